import re

version = re.compile(r"""
    (?P<major>\d+) \.
    (?P<minor>\d+) \.
    (?P<patch>\d+)
    (?:-(?P<tag>[\w.]+))?   # optional
""", re.VERBOSE)
[version.fullmatch(v).groupdict() for v in ("1.20.3", "2.0.0-rc.1")]

#: value
#| [{"major": "1", "minor": "20", "patch": "3", "tag": null}, {"major": "2", "minor": "0", "patch": "0", "tag": "rc.1"}]
