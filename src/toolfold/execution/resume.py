"""Which runs can be resumed, and what must be decided before."""

from toolfold.catalog.catalog import Catalog
from toolfold.errors import BadInput, InDoubt, ToolfoldError
from toolfold.execution import report
from toolfold.journal.journal import Journal
from toolfold.journal.replay import DoubtDecision, Replay


class ResumableRuns:
    """Finds what is known of a run that did not come to its own end."""

    def __init__(self, journal: Journal, catalog: Catalog) -> None:
        self._journal = journal
        self._catalog = catalog

    async def replay(self, run_id: str, decision: DoubtDecision) -> Replay:
        """Return what is known of a run that can be resumed, or of the last attempt at that.

        Raises:
            BadInput: It is under way.
            NotFound: There is no such run, or nothing to go on with.
            InDoubt: The user has to decide.
        """
        last = self._journal.following(self._journal.find(run_id).id)
        if self._journal.is_under_way(last):
            raise BadInput(f"The run {last.id} is under way: runs.wait({last.id!r}) waits for it.")
        replay = Replay(self._journal.recorded(last.id), decision=decision)
        await self._settle_doubts(replay)
        return replay

    def check_not_superseded(self, replay: Replay) -> None:
        """Look again, now that nobody else can go on with it.

        Raises:
            BadInput: Somebody has, since it was looked for.
        """
        first, last = replay.first, self._journal.following(replay.first).id
        if last != replay.run.id:
            raise BadInput(f"Another process has just resumed the run {first}: see run {last}.")

    async def _settle_doubts(self, replay: Replay) -> None:
        """See that nothing is repeated that may do harm twice.

        Raises:
            InDoubt: The user has to decide.
        """
        await self._catalog.learn({doubt.tool.partition(".")[0] for doubt in replay.doubts})
        if doubts := replay.open_doubts(self._may_repeat):
            raise InDoubt(report.doubt_text(replay.run.id, doubts))

    def _may_repeat(self, path: str) -> bool:
        try:
            listed = self._catalog.find(path).listed
        except ToolfoldError:
            return False
        return listed.read_only or listed.idempotent
