import time

import pytest

from toolfold.errors import ConfigError
from toolfold.privacy.detectors.custom import CustomDetector


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bE-\d{6}\b",
        r"(?i)case[ -]?\d{1,9}",
        r"(?:MRN|PID):\s?[A-Z0-9]{4,12}",
        r"(?<!\d)\d{3}(?=-x)",
        r"(?:\d{1,3}){1,3}",
        r"(?:[a-z]{1,9}\.){1,9}+x",
    ],
)
def test_a_bounded_pattern_is_taken(pattern: str) -> None:
    CustomDetector("STAFF", pattern)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"\d+", "without a bound"),
        (r"a*b", "without a bound"),
        (r"(a{1,20}){1,20}b", "ways"),
        (r"(?:a|a){1,30}b", "ways"),
        (r"\w{1,60}\w{1,60}x", "ways"),
        (r"(a)\1", "earlier group"),
        (r"(", "not a regular expression"),
        (r"(?:a{900}){2}", "characters"),
        ("a" * 1_001, "longer"),
    ],
)
def test_a_pattern_that_could_take_long_is_refused_with_its_reason(
    pattern: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        CustomDetector("STAFF", pattern)


def test_a_kind_must_be_one_that_placeholders_can_have() -> None:
    with pytest.raises(ConfigError, match="STAFF_ID"):
        CustomDetector("staff id", "x")


def test_the_worst_pattern_that_is_taken_reads_hostile_text_in_linear_time() -> None:
    detector = CustomDetector("STAFF", r"a{1,16}a{1,16}b")

    def seconds(size: int) -> float:
        started = time.process_time_ns()
        detector.find("a" * size)
        return max(time.process_time_ns() - started, 1_000)

    assert min(seconds(20_000) / seconds(2_000) for _ in range(5)) < 25
