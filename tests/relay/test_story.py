"""An agent's work over days: records into a file, a restart, updates, a skill for the next time."""

import json
from pathlib import Path

from relay.conftest import User
from relay.peer import kill
from support import test_server

from toolfold.tokens import count_tokens

COLLECT = """
import records, csv
rows = records.list_records()
with open("/workspace/records.csv", "w") as file:
    file.write("id,city,amount\\n")
    for row in rows:
        file.write(f"{row['id']},{row['city']},{row['amount']}\\n")
len(rows)
"""
UPDATE = """
import csv
with open("/workspace/records.csv") as file:
    lines = file.read().split("\\n")[1:-1]
picked = [line.split(",") for line in lines if line.split(",")[1] == "Oslo"]
large = [int(number) for number, city, amount in picked if int(amount) > 95]
for number in large:
    records.update(id=number, value="large")
len(large)
"""
DEFINE = '''
def flag_large_amounts(city: str, above: int = 95) -> int:
    """Flag the records of a city whose amount is large; return how many there were."""
    import records
    with open("/workspace/records.csv") as file:
        lines = file.read().split("\\n")[1:-1]
    count = 0
    for line in lines:
        number, where, amount = line.split(",")
        if where == city and int(amount) > above:
            records.update(id=int(number), value="large")
            count += 1
    return count
flag_large_amounts("Rome")
'''
SAVE = """
import skills
print(skills.save("flag_large_amounts", "flag_large_amounts", "Flag records with large amounts"))
"""
USE = """from skills import flag_large_amounts
flag_large_amounts("Lima")"""


def updated(path: Path) -> int:
    return len(path.read_text().splitlines())


def large(city: str) -> int:
    cities = ("Rome", "Oslo", "Lima")
    return sum(cities[n % 3] == city and n * 7 % 100 > 95 for n in range(1_000))


def test_what_an_agent_built_is_still_there(user: User) -> None:
    updates = user.home / "updates.jsonl"
    user.configure(records=test_server("records", updates, "1000"))
    client = user.connect()
    assert client.run(COLLECT) == "1000"

    kill(user.daemon())
    assert client.run(UPDATE) == str(large("Oslo"))
    assert updated(updates) == large("Oslo")

    assert client.run(DEFINE) == str(large("Rome"))
    said = client.run(SAVE)  # in a later run: the function is one of the session
    assert "from skills import flag_large_amounts" in said, said

    # Another day: a new conversation, which knows nothing of it.
    kill(user.daemon())
    other = user.connect()
    assert "'flag_large_amounts' is not defined" in other.run("flag_large_amounts('Lima')")
    found = other.run("import tools\nprint(tools.search('mark records whose amount is high'))")
    assert "flag_large_amounts(city" in found
    call = {"name": "execute_code", "arguments": {"code": USE}}
    assert count_tokens(json.dumps(call)) < 60
    assert other.run(USE) == str(large("Lima"))
    assert updated(updates) == large("Oslo") + large("Rome") + large("Lima")
