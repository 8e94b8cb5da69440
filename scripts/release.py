"""Prepare a release: `make release VERSION=1.2.0` runs both steps, with checks, tests and dist between.

usage: release.py VERSION            put the version into every file that names it, and date the changelog
       release.py VERSION --finish   write dist/NOTES.md, commit and tag; the upload is yours
"""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHANGELOG = Path("CHANGELOG.md")
NAMES_VERSION = {
    Path("src/toolfold/__init__.py"): r'(__version__ = ")[^"]+',
    Path("server.json"): r'("version": ")[^"]+',
    Path("plugin/.claude-plugin/plugin.json"): r'("version": ")[^"]+',
    Path(".claude-plugin/marketplace.json"): r'("version": ")[^"]+',
}
"""Files that hold the version of the package, and what stands before it."""
_HEADING = "## [Unreleased]\n"
_UPLOAD = """\
release: {version} is committed, tagged and in dist/. What is left is yours:
    git push origin HEAD v{version}
    python -m twine upload dist/*.whl dist/*.tar.gz
    mcp-publisher publish                 # server.json, to the MCP registry
    the release page of v{version}, with dist/NOTES.md
"""


def prepare(root: Path, version: str, day: str) -> None:
    """Write the version into all files, and a heading with it into the changelog."""
    changelog = (root / CHANGELOG).read_text(encoding="utf-8")
    dated = dated_changelog(changelog, version, day)
    if numbers(version) < numbers(current_version(root)):
        raise SystemExit(f"release: {version} is older than the version that is there.")
    for path, pattern in NAMES_VERSION.items():
        text = (root / path).read_text(encoding="utf-8")
        (root / path).write_text(re.sub(pattern, rf"\g<1>{version}", text), encoding="utf-8")
    (root / CHANGELOG).write_text(dated, encoding="utf-8")


def current_version(root: Path) -> str:
    """Return the version that the package has."""
    [path, *_] = NAMES_VERSION
    return (root / path).read_text(encoding="utf-8").split('__version__ = "')[1].split('"')[0]


def numbers(version: str) -> tuple[int, ...]:
    """Return `1.2.0` as numbers; end with a message where it is none of ours."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(f"release: {version!r} is not a version such as 1.2.0.")
    return tuple(map(int, version.split(".")))


def dated_changelog(text: str, version: str, day: str) -> str:
    """Return a changelog in which what was unreleased is this version's."""
    if f"## [{version}]" in text:
        raise SystemExit(f"release: {CHANGELOG} has {version} already.")
    if not notes(text, "Unreleased"):
        raise SystemExit(f"release: {CHANGELOG} has nothing below `{_HEADING.strip()}`.")
    return text.replace(_HEADING, f"{_HEADING}\n## [{version}] - {day}\n", 1)


def notes(changelog: str, version: str) -> str:
    """Return what a changelog says of one version."""
    found = re.search(
        rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)",
        changelog,
        re.MULTILINE | re.DOTALL,
    )
    return found[1].strip() if found else ""


def finish(root: Path, version: str) -> None:
    """Write the notes, commit and tag."""
    said = notes((root / CHANGELOG).read_text(encoding="utf-8"), version)
    (root / "dist").mkdir(exist_ok=True)
    (root / "dist" / "NOTES.md").write_text(said + "\n", encoding="utf-8")
    _git(root, "commit", "--quiet", "--all", "--message", f"Release {version}")
    _git(root, "tag", "--annotate", f"v{version}", "--message", f"toolfold {version}")
    print(_UPLOAD.format(version=version), end="")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"release: git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    """Do one of the two steps."""
    match sys.argv[1:]:
        case [version]:
            if changed := _git(ROOT, "status", "--porcelain"):
                raise SystemExit(f"release: commit or remove these first:\n{changed.rstrip()}")
            prepare(ROOT, version, datetime.now(UTC).date().isoformat())
        case [version, "--finish"]:
            finish(ROOT, version)
        case _:
            raise SystemExit("release: name a version: make release VERSION=1.2.0")


if __name__ == "__main__":
    main()
