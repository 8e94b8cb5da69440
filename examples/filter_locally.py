"""Filter a large result where it is, so that only what matters travels.

    toolfold serve --config examples/mcp.json
    python examples/filter_locally.py [URL]

The code runs beside the server: it reads all records, and three lines come back.
"""

import sys

from toolfold import Client

FILL = """
import records

records.create_entities(entities=[
    {
        "name": f"order-{number}",
        "entityType": "order",
        "observations": [f"customer {number % 50}", f"total {number * 7 % 1000}", "paid" * 10],
    }
    for number in range(2_000)
])
"""

MAX = """
import records

def total(record):
    return int(record["observations"][1].split()[1])

everything = records.read_graph()["entities"]
orders = [each for each in everything if each["entityType"] == "order"]
best = sorted(orders, key=total, reverse=True)[:3]
{"looked_at": len(str(everything)), "largest": [[each["name"], total(each)] for each in best]}
"""


def main(url: str) -> None:
    """Fill the server, then ask for the three largest orders."""
    with Client(url) as client:
        filled = client.execute(FILL)
        if filled.error is not None:
            sys.exit(filled.text)
        run = client.execute(MAX)
        if not isinstance(run.value, dict):
            sys.exit(run.text)
        print(f"looked at {run.value['looked_at']:,} characters, read {len(run.text)}:")
        print(run.value["largest"])


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["http://127.0.0.1:8765"])
