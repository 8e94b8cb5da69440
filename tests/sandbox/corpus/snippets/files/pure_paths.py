from pathlib import PurePosixPath

path = PurePosixPath("/srv/data/report.final.csv")
(path.name, path.stem, path.suffix, str(path.parent / "x" / "y.txt"), path.relative_to("/srv").parts, path.with_suffix(".json").name)

#: value
#| ["report.final.csv", "report.final", ".csv", "/srv/data/x/y.txt", ["data", "report.final.csv"], "report.final.json"]
