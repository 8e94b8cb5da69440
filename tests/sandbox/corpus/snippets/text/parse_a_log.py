import re
import shop

pattern = re.compile(r"^(?P<when>\S+ \S+) (?P<level>\w+)\s+(?P<part>\w+)\s+(?P<rest>.*)$", re.M)
counts = {}
for match in pattern.finditer(shop.read_text(name="app.log")):
    counts.setdefault(match["level"], []).append(match["part"])
for level in sorted(counts):
    print(level, len(counts[level]), sorted(set(counts[level])))

#: prints
#| ERROR 2 ['payment']
#| INFO 4 ['api']
#| WARN 2 ['db']
