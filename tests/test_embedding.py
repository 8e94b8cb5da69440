"""The built-in model, as a checkout builds it and a wheel carries it; no stand-in."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from toolfold.embedding import (
    DIMENSIONS,
    MODEL,
    TOKENIZER,
    BuiltinEmbedder,
    Embedder,
    Vectors,
    dequantize,
    quantize,
)
from toolfold.errors import StoreError

built = pytest.mark.skipif(
    not BuiltinEmbedder().is_available(),
    reason="the embedding model is not built; run `make setup`",
)


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return BuiltinEmbedder()


def embed_one(embedder: Embedder, text: str) -> Vectors:
    return embedder.embed([text])[0]


def cosine(a: Vectors, b: Vectors) -> float:
    wide = a.astype(np.float64), b.astype(np.float64)
    return float(wide[0] @ wide[1] / np.linalg.norm(wide[0]) / np.linalg.norm(wide[1]))


@built
@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("open a ticket about a bug", "create an issue in a repository", "convert miles to metres"),
        ("will it rain tomorrow?", "weather forecast for a city", "list the rows of a table"),
        ("Ada moved house in May", "when did Ada change her address?", "Bob's cat eats tuna"),
    ],
)
def test_a_text_is_closer_to_its_paraphrase_than_to_another_subject(
    embedder: Embedder, query: str, near: str, far: str
) -> None:
    asked, paraphrase, other = embedder.embed([query, near, far])

    assert asked @ paraphrase > asked @ other + 0.04


@built
def test_vectors_are_those_of_the_same_weights_in_float32(embedder: Embedder) -> None:
    # Rounded weights and inputs move a cosine by so much at most, on any processor.
    texts = ["That is a happy person", "That is a happy dog", "Today is a sunny day"]
    person, dog, day = embedder.embed(texts)

    assert [person @ dog, person @ day] == pytest.approx([0.893, 0.750], abs=0.02)


@built
def test_a_vector_does_not_depend_on_the_texts_beside_it(embedder: Embedder) -> None:
    texts = ["a long text about nothing in particular " * 20, "short", "", "short", "two words"]

    together = embedder.embed(texts)

    assert together.dtype == np.float32
    assert together.shape == (5, embedder.dimensions) == (5, DIMENSIONS)
    assert np.array_equal(together, np.stack([embed_one(embedder, text) for text in texts]))


@built
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\0",
        "\ud800",
        "a\udfffb",
        "e\u0301",
        "\U0001f469\u200d\U0001f680",
        "お誕生日",
        "x" * 100_000,
    ],
    ids=["empty", "space", "nul", "high", "low", "combining", "joined", "japanese", "long word"],
)
def test_odd_text_gives_a_unit_vector(embedder: Embedder, text: str) -> None:
    assert np.linalg.norm(embed_one(embedder, text)) == pytest.approx(1, abs=1e-5)


@built
def test_a_surrogate_pair_means_its_character(embedder: Embedder) -> None:
    split, whole = embedder.embed(["caf\u00e9 \ud83d\ude00", "caf\u00e9 \U0001f600"])

    assert np.array_equal(split, whole)


@built
def test_text_past_256_tokens_is_not_read(embedder: Embedder) -> None:
    start = "word " * 254
    one, other = embedder.embed([start + "volcano", start + "tax return " * 5_000])

    assert np.array_equal(one, other)


@built
def test_the_names_of_special_tokens_are_plain_text(embedder: Embedder) -> None:
    marked, bare = embedder.embed(["rain [SEP] [SEP] [SEP]", "rain"])

    assert marked @ bare < 0.97


@built
def test_threads_that_meet_while_it_loads_get_the_same_vectors() -> None:
    embedder = BuiltinEmbedder()
    texts = [f"note number {number}" for number in range(8)]

    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: embed_one(embedder, text), texts))

    assert np.array_equal(np.stack(rows), embedder.embed(texts))


def test_no_texts_give_no_rows_and_need_no_model(tmp_path: Path) -> None:
    nothing = BuiltinEmbedder(model=tmp_path / "absent.onnx").embed([])

    assert nothing.shape == (0, DIMENSIONS)


def test_importing_the_module_imports_no_library() -> None:
    script = """
import sys
from toolfold.embedding import BuiltinEmbedder

BuiltinEmbedder().is_available()
print({"numpy", "onnxruntime", "tokenizers"} & set(sys.modules))
"""

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )

    assert done.stdout == "set()\n"


@built
def test_the_model_says_nothing_on_the_terminal() -> None:
    script = "from toolfold.embedding import BuiltinEmbedder as M; M().embed(['a'])"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert (done.stdout, done.stderr) == (b"", b"")


def test_a_missing_model_says_what_to_run(tmp_path: Path) -> None:
    embedder = BuiltinEmbedder(model=tmp_path / "absent.onnx", tokenizer=tmp_path / "absent.json")

    assert not embedder.is_available()
    with pytest.raises(StoreError, match=r"missing.*build_embedder\.py"):
        embedder.embed(["a"])


@built
@pytest.mark.parametrize("torn", ["model", "tokenizer"])
def test_a_damaged_model_is_refused(tmp_path: Path, torn: str) -> None:
    files = {"model": MODEL, "tokenizer": TOKENIZER}
    damaged = tmp_path / "damaged"
    damaged.write_bytes(files[torn].read_bytes()[:-1])

    with pytest.raises(StoreError, match="not the one we built"):
        BuiltinEmbedder(**files | {torn: damaged}).embed(["a"])


def test_a_model_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Cannot read"):
        BuiltinEmbedder(tokenizer=tmp_path).embed(["a"])


numbers = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)


@given(arrays(np.float32, (3, DIMENSIONS), elements=numbers))
def test_a_quantized_vector_points_the_same_way(vectors: Vectors) -> None:
    restored = dequantize(quantize(vectors))

    assert restored.dtype == np.float32
    for before, after in zip(vectors, restored, strict=True):
        largest = np.abs(before).max()
        assert np.abs(before - after).max() <= largest / 253
        assert largest < 1e-30 or cosine(before, after) >= 0.997


@built
def test_quantizing_real_vectors_moves_no_similarity_by_half_a_hundredth(
    embedder: Embedder,
) -> None:
    things = ["file", "ticket", "meeting", "photo", "table"]
    vectors = embedder.embed(
        [f"{verb} a {thing}" for verb in ("share", "drop") for thing in things]
    )

    restored = dequantize(quantize(vectors))

    assert np.abs(restored @ restored.T - vectors @ vectors.T).max() < 0.005


def test_a_blob_is_four_bytes_longer_than_the_vector() -> None:
    [blob] = quantize(np.ones((1, DIMENSIONS), np.float32))

    assert len(blob) == 4 + DIMENSIONS


def test_no_vectors_make_no_blobs_and_back() -> None:
    assert quantize(np.empty((0, DIMENSIONS), np.float32)) == []
    assert dequantize([]).shape == (0, DIMENSIONS)


@pytest.mark.parametrize("length", [0, 100])
def test_a_vector_of_another_embedder_is_refused(length: int) -> None:
    with pytest.raises(StoreError, match="Another embedder"):
        dequantize([bytes(4 + DIMENSIONS), bytes(length)])


@built
def test_nothing_is_written_to_the_home_directory(tmp_path: Path) -> None:
    code = "from toolfold.embedding import BuiltinEmbedder; BuiltinEmbedder().embed(['hello'])"
    environment = {**os.environ, "HOME": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=50)

    assert list(tmp_path.iterdir()) == []
