"""Files made by hand: PDF with and without a password, DOCX."""

import hashlib
import struct
import zipfile
from collections.abc import Sequence
from io import BytesIO
from xml.sax.saxutils import escape

_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
_ID = bytes(range(16))


def make_pdf(
    pages: Sequence[Sequence[str]],
    *,
    title: str = "",
    outline: Sequence[tuple[str, int]] = (),
    password: str = "",
) -> bytes:
    """Return a PDF with lines of Latin text on each page; outline entries are title and page."""
    key, encryption = _encryption(password) if password else (b"", b"")
    writer = _Objects(key)
    font = writer.add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    pages_at = len(writer.objects) + 2 * len(pages) + 1
    kids = []
    for lines in pages:
        stream = writer.add_stream(_page_text(lines))
        kids.append(
            writer.add(
                b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
                b"/Resources << /Font << /F1 %d 0 R >> >> >>" % (pages_at, stream, font)
            )
        )
    refs = b" ".join(b"%d 0 R" % kid for kid in kids)
    writer.add(b"<< /Type /Pages /Kids [%s] /Count %d >>" % (refs, len(kids)))
    outlines = _add_outline(writer, outline, kids)
    root = writer.add(b"<< /Type /Catalog /Pages %d 0 R %s >>" % (pages_at, outlines))
    info = writer.add(b"<< /Title (%s) >>" % _escaped(title))
    extra = b""
    if encryption:
        extra = b"/Encrypt %d 0 R" % writer.add(encryption, is_open=True)
    return writer.finish(b"/Root %d 0 R /Info %d 0 R %s" % (root, info, extra))


def _page_text(lines: Sequence[str]) -> bytes:
    shown = b"".join(b"(%s) Tj T*\n" % _escaped(line) for line in lines)
    return b"BT /F1 11 Tf 50 740 Td 14 TL\n%sET" % shown


def _escaped(text: str) -> bytes:
    encoded = text.encode("cp1252")
    return encoded.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def _add_outline(
    writer: "_Objects", outline: Sequence[tuple[str, int]], kids: Sequence[int]
) -> bytes:
    if not outline:
        return b""
    first = len(writer.objects) + 1
    parent = first + len(outline)
    for number, (title, page) in enumerate(outline):
        following = b"/Next %d 0 R" % (first + number + 1) if number + 1 < len(outline) else b""
        writer.add(
            b"<< /Title (%s) /Parent %d 0 R /Dest [%d 0 R /Fit] %s >>"
            % (_escaped(title), parent, kids[page], following)
        )
    last = first + len(outline) - 1
    writer.add(b"<< /Type /Outlines /First %d 0 R /Last %d 0 R >>" % (first, last))
    return b"/Outlines %d 0 R" % parent


class _Objects:
    def __init__(self, key: bytes) -> None:
        self.objects: list[bytes] = []
        self._key = key

    def add(self, body: bytes, *, is_open: bool = False) -> int:
        self.objects.append(body)
        return len(self.objects)

    def add_stream(self, content: bytes) -> int:
        number = len(self.objects) + 1
        if self._key:
            salted = self._key + struct.pack("<I", number)[:3] + b"\0\0"
            content = _rc4(hashlib.md5(salted).digest()[:10], content)
        return self.add(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))

    def finish(self, trailer: bytes) -> bytes:
        out = bytearray(b"%PDF-1.4\n")
        offsets = []
        for number, body in enumerate(self.objects, start=1):
            offsets.append(len(out))
            out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
        start = len(out)
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1)
        out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
        ids = b"/ID [<%s> <%s>]" % (_ID.hex().encode(), _ID.hex().encode())
        out += b"trailer\n<< /Size %d %s %s >>\n" % (len(offsets) + 1, trailer, ids)
        out += b"startxref\n%d\n%%%%EOF\n" % start
        return bytes(out)


def _encryption(password: str) -> tuple[bytes, bytes]:
    """Return the key and the dictionary of the oldest scheme there is: 40 bits of RC4."""
    padded = (password.encode() + _PADDING)[:32]
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    rights = struct.pack("<i", -4)
    key = hashlib.md5(padded + owner + rights + _ID).digest()[:5]
    user = _rc4(key, _PADDING)
    body = b"<< /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P -4 >>"
    return key, body % (owner.hex().encode(), user.hex().encode())


def _rc4(key: bytes, content: bytes) -> bytes:
    state = list(range(256))
    at = 0
    for number in range(256):
        at = (at + state[number] + key[number % len(key)]) % 256
        state[number], state[at] = state[at], state[number]
    out = bytearray()
    first = second = 0
    for byte in content:
        first = (first + 1) % 256
        second = (second + state[first]) % 256
        state[first], state[second] = state[second], state[first]
        out.append(byte ^ state[(state[first] + state[second]) % 256])
    return bytes(out)


WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DOCUMENT = '<?xml version="1.0"?><w:document xmlns:w="%s"><w:body>%s</w:body></w:document>'
STYLES = (
    f'<?xml version="1.0"?><w:styles xmlns:w="{WORDS}">'
    '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style></w:styles>'
)


def paragraph(text: str, style: str = "") -> str:
    styled = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{styled}<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def table(rows: Sequence[Sequence[str]]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def make_docx(body: str, **parts: str | bytes) -> bytes:
    """Return a DOCX with that body; other parts by their path, `/` and `.` as `__` and `_`."""
    document = DOCUMENT % (WORDS, body)
    return make_archive(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": document,
            "word/styles.xml": STYLES,
        }
        | {name.replace("__", "/").replace("_", "."): part for name, part in parts.items()}
    )


def make_archive(parts: dict[str, str | bytes]) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return made.getvalue()
