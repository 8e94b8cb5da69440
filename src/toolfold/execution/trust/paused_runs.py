"""Runs that wait for a person."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from toolfold.catalog.questions import Elicitor, Question, Reply, unanswerable
from toolfold.clocks import PausableClock


class WaitingRuns:
    """Bounds the runs that wait at one time: each keeps a worker that others may need."""

    def __init__(self, most: int) -> None:
        self._most = max(1, most)
        self._questions: Counter[int] = Counter()

    @contextmanager
    def waiting(self, run: object, question: Question) -> Iterator[None]:
        """Count a run as waiting for the length of this context.

        Raises:
            QuestionRefused: Too many others wait.
        """
        key = id(run)
        if key not in self._questions and len(self._questions) >= self._most:
            raise unanswerable(question, f"{self._most} other runs wait for answers already")
        self._questions[key] += 1
        try:
            yield
        finally:
            self._questions[key] -= 1
            self._questions = +self._questions


class RunElicitor:
    """Puts the questions of one run to its client; the run's clock stands still meanwhile."""

    def __init__(self, ask: Elicitor, runs: WaitingRuns, clock: PausableClock) -> None:
        self._ask = ask
        self._runs = runs
        self._clock = clock

    async def __call__(self, question: Question) -> Reply:
        with self._runs.waiting(self, question), self._clock.paused():
            return await self._ask(question)
