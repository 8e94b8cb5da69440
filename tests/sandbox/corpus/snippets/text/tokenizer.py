import re
from typing import NamedTuple

class Token(NamedTuple):
    kind: str
    text: str

SPEC = [("NUMBER", r"\d+(\.\d+)?"), ("NAME", r"[A-Za-z_]\w*"), ("OP", r"[-+*/()=]"), ("SKIP", r"\s+")]
master = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in SPEC))

def tokens(text):
    for match in master.finditer(text):
        if match.lastgroup != "SKIP":
            yield Token(match.lastgroup, match.group())

[f"{t.kind}:{t.text}" for t in tokens("rate = 3.5 * (base + 2)")]

#: value
#| ["NAME:rate", "OP:=", "NUMBER:3.5", "OP:*", "OP:(", "NAME:base", "OP:+", "NUMBER:2", "OP:)"]
