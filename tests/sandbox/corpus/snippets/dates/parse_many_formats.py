from datetime import datetime

FORMATS = ("%Y-%m-%d", "%d/%m/%Y", "%b %d, %Y", "%Y%m%dT%H%M")

def parse(text):
    for form in FORMATS:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    raise ValueError(f"no format fits {text!r}")

for text in ("2026-03-01", "31/12/2025", "Jul 04, 2026", "20260102T0930", "soon"):
    try:
        print(parse(text).isoformat())
    except ValueError as error:
        print(error)

#: prints
#| 2026-03-01T00:00:00
#| 2025-12-31T00:00:00
#| 2026-07-04T00:00:00
#| 2026-01-02T09:30:00
#| no format fits 'soon'
