"""Save how far a job is, stop, and take it up again in another process.

    toolfold serve --config examples/mcp.json
    python examples/save_and_resume.py [URL]

Run it until it says that all is done: each time it does three of eight steps.
"""

import sys

from toolfold import Client

STEPS = [f"step {number}" for number in range(1, 9)]
AT_ONCE = 3
JOB = "example-job"


def main(url: str) -> None:
    """Do the next steps of the job."""
    with Client(url) as client:
        # One event for each step: events are never edited, so they cannot get lost on the way.
        done = {event.preview for event in client.iter_events(session_id=JOB)}
        waiting = [step for step in STEPS if step not in done]
        print(f"{len(done)} of {len(STEPS)} steps were done before")
        for step in waiting[:AT_ONCE]:
            print(f"doing {step}")
            client.record_event("step", step, outcome="done", session_id=JOB)
        if len(waiting) > AT_ONCE:
            print("stopped; run this again to go on")
            return
        client.remember(f"{JOB}: all {len(STEPS)} steps are done", tags=[JOB])
        [note] = client.recall(f"is {JOB} done", limit=1, tags=[JOB]).memories
        print(f"all done; remembered as {note.hash}: {note.preview}")


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["http://127.0.0.1:8765"])
