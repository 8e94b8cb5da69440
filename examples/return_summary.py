"""Have many calls made at the other end, hear of them, and read a summary.

toolfold serve --config examples/mcp.json
python examples/return_summary.py [URL]
"""

import sys

from toolfold import Client

CODE = """
import records

people = [f"person-{number}" for number in range(40)]
records.create_entities(entities=[
    {"name": name, "entityType": "person", "observations": []} for name in people
])
added = 0
for number, name in enumerate(people):
    found = records.open_nodes(names=[name])["entities"]
    if found and number % 2:
        records.add_observations(observations=[{"entityName": name, "contents": ["likes tea"]}])
        added += 1
print(f"{len(people)} people looked at, {added} of them like tea")
"""


def main(url: str) -> None:
    """Run the code, and show how little comes back."""
    heard: list[str] = []
    with Client(url) as client:
        run = client.execute(CODE, on_progress=lambda _count, call: heard.append(call))
    calls = sum(each.completed for each in run.calls)
    print(f"{calls} calls were made; heard of {len(heard)} of them on the way")
    print(run.text)


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["http://127.0.0.1:8765"])
