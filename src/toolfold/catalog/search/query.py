"""Read a query: the kind of thing that each path or address in it is, and its steps."""

import re

_MAX_CHARS = 2_000
_MAX_STEPS = 6
_MIN_STEP_WORDS = 3

_KINDS = {
    "csv": "CSV file",
    "doc": "Word document",
    "docx": "Word document",
    "gif": "image file",
    "html": "HTML file",
    "jpeg": "image file",
    "jpg": "image file",
    "json": "JSON file",
    "md": "Markdown file",
    "mp3": "audio file",
    "mp4": "video file",
    "pdf": "PDF file",
    "png": "image file",
    "ppt": "PowerPoint presentation",
    "pptx": "PowerPoint presentation",
    "py": "Python file",
    "svg": "image file",
    "txt": "text file",
    "wav": "audio file",
    "xls": "Excel spreadsheet",
    "xlsx": "Excel spreadsheet",
    "xml": "XML file",
    "yaml": "YAML file",
    "yml": "YAML file",
    "zip": "ZIP archive",
}

_ADDRESS = re.compile(
    r"""https?://(?:www\.)?(?P<host>[\w-]+(?:\.[\w-]+)*)[^\s,;)\]>"'`]*(?<![.!?])"""
)
_PATH = re.compile(
    r"(?<![\w:/\\.-])(?:"
    r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.-]+){2,}(?<!\.)[/\\]?"  # two segments or more
    rf"|(?:~|\.{{1,2}})?[/\\]?[\w-][\w.-]*\.(?:{'|'.join(_KINDS)})\b"  # or an ending we know
    r")"
)
# Encoded data, not words: no word of any use is that long.
_BLOB = re.compile(r"\S{60,}")
_STEP_END = re.compile(r"[.;:!?](?=\s|$)|\n|,(?=\s)|\b(?:and|then)\b", re.IGNORECASE)


def intent(query: str) -> str:
    """Return `query` with its data taken out, so that it says what is wanted.

    `save it to /home/ada/talk.pptx` becomes `save it to PowerPoint presentation`: how somebody
    named a file says nothing about the tool, what the file is does. Of an address the host stays.
    A query that is nothing but data stays as it is.
    """
    text = _ADDRESS.sub(_kind_of_address, query[:_MAX_CHARS])
    text = _BLOB.sub(" ", _PATH.sub(_kind_of_path, text))
    return text.strip() or query[:_MAX_CHARS].strip()


def steps(text: str) -> list[str]:
    """Return the parts of a task, at most six; none if it is all one part.

    They end with a sentence, at a comma, `and` or `then`. What has under three words is no step.
    """
    parts = [part.strip() for part in _STEP_END.split(text)]
    found = [part for part in parts if len(part.split()) >= _MIN_STEP_WORDS]
    return found[:_MAX_STEPS] if len(found) > 1 else []


def _kind_of_address(found: re.Match[str]) -> str:
    labels = found["host"].split(".")
    return f"{' '.join(labels[:-1] or labels)} web page"


def _kind_of_path(found: re.Match[str]) -> str:
    name = re.split(r"[/\\]", found[0])[-1]
    return _KINDS.get(name.rpartition(".")[2].lower(), "file") if "." in name else "folder"
