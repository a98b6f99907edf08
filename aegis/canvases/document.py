"""A markdown file as sections (its second-level headings and the text under each). Pure.

The text before the first heading is the section ``_preamble``; in a file without such a heading it
is called ``body``. Headings are those of CommonMark at the top level: a ``##`` in a code fence, in
a list or in a quotation is text, and a line of text over ``---`` is a heading. Front matter at the
beginning of the file, YAML between ``---`` or TOML between ``+++``, belongs to ``_preamble`` and
has no headings. The bytes of a section are kept as they are until that section is written.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from aegis.errors import InvalidRequest
from aegis.names import shorten

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

PREAMBLE = "_preamble"
BODY = "body"

MAX_FILE_BYTES = 256 * 1024
"""The size of a canvas: a text of about 60,000 tokens."""

MAX_SECTIONS = 500

MAX_PAIRS = 1_000_000
"""Pairs of lines that are compared; above that, equal lines are counted in any order."""

_BOM = "\ufeff"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_LINE_END = re.compile(r"\r\n|\r")
_YAML_KEY = re.compile(r"""("[^"]*"|'[^']*'|[^\s:#\-][^:]*)\s*:(\s|$)""")


class NotCanvas(Exception):
    """The content of a file that cannot be a canvas; the sentence says why and what to do."""


@attrs.frozen
class Section:
    """A section: its name, and the raw text of its heading and of what is under it."""

    name: str
    heading: str
    body: str

    @property
    def text(self) -> str:
        """The text under the heading, with ``\\n``, without empty lines around it."""
        return plain(self.body)


@attrs.frozen
class Document:
    """A file: its first section is the preamble, which has no heading."""

    sections: tuple[Section, ...]
    newline: str = "\n"
    has_bom: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the sections, in order; that of an empty preamble only if it is alone."""
        preamble, *headed = self.sections
        if not headed:
            return [BODY]
        names = [each.name for each in headed]
        return [PREAMBLE, *names] if preamble.text else names

    @functools.cached_property
    def texts(self) -> dict[str, str]:
        """The text of each section by its key; sections of the same name are joined."""
        found: dict[str, list[str]] = {}
        for each in self.sections:
            if each.text or each.name != PREAMBLE or len(self.sections) == 1:
                found.setdefault(each.name, []).append(each.text)
        return {name: "\n\n".join(texts) for name, texts in found.items()}

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        text = "".join(each.heading + each.body for each in self.sections)
        return (_BOM * self.has_bom + text).encode()

    def key(self, name: str) -> str:
        """Return the key of the section ``name``: ``body`` is the preamble where it is alone."""
        return PREAMBLE if name == BODY and len(self.sections) == 1 else name

    def shown(self, key: str) -> str:
        """Return the name of the section with this key."""
        return BODY if key == PREAMBLE and len(self.sections) == 1 else key

    def places(self, key: str) -> list[int]:
        """Return the numbers of the sections with this key."""
        return [number for number, each in enumerate(self.sections) if each.name == key]


EMPTY = Document((Section(PREAMBLE, "", ""),))


def parse(data: bytes) -> Document:
    """Return the sections of a file. Raises ``NotCanvas``."""
    if len(data) > MAX_FILE_BYTES:
        raise NotCanvas(
            f"it has {len(data)} bytes, and a canvas at most {MAX_FILE_BYTES}: split the file"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise NotCanvas(
            f"its byte {error.start} is not valid UTF-8: convert the file to UTF-8"
        ) from None
    document = _parsed(text)
    if len(document.sections) > MAX_SECTIONS + 1:
        raise NotCanvas(
            f"it has {len(document.sections) - 1} sections, and a canvas at most {MAX_SECTIONS}: "
            "split the file"
        )
    return document


def plain(text: str) -> str:
    """Return ``text`` with ``\\n`` as line end, without empty lines around it."""
    return _LINE_END.sub("\n", text).strip("\n")


def headings(text: str) -> list[str]:
    """Return the names of the second-level headings in ``text``."""
    return [name for _, _, name in _headings(_LINE.findall(text))]


def _parsed(text: str) -> Document:
    has_bom = text.startswith(_BOM)
    lines = _LINE.findall(text.removeprefix(_BOM))
    sections, name, start, body = [], PREAMBLE, 0, 0
    for first, after, following in _headings(lines):
        sections.append(_section(lines, name, start, body, first))
        name, start, body = following, first, after
    sections.append(_section(lines, name, start, body, len(lines)))
    crlf = sum(line.endswith("\r\n") for line in lines)
    newline = "\r\n" if 2 * crlf > len(lines) else "\n"
    return Document(tuple(sections), newline, has_bom)


def _section(lines: list[str], name: str, start: int, body: int, end: int) -> Section:
    return Section(name, "".join(lines[start:body]), "".join(lines[body:end]))


def _headings(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the first line of each heading, the line after it, and its text."""
    front = _front_matter(lines)
    source = "\n" * front + "".join(lines[front:])
    tokens = _parser().parse(source)
    for token, content in itertools.pairwise(tokens):
        if token.type == "heading_open" and token.tag == "h2" and token.level == 0 and token.map:
            # Not ``split``: it would join words that another kind of blank separates.
            yield token.map[0], token.map[1], content.content.replace("\n", " ")


@functools.cache
def _parser() -> MarkdownIt:
    """Return a parser of blocks only: what is inside a paragraph does not matter here."""
    from markdown_it import MarkdownIt  # 75 modules, which a start without a canvas does not need

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _front_matter(lines: list[str]) -> int:
    """Return the number of lines of the front matter; 0 without one.

    A line ``---`` that begins a file may be a rule: YAML must have a key in its first line, or
    nothing at all.
    """
    first = lines[0].rstrip() if lines else ""
    ends = {"---": ("---", "..."), "+++": ("+++",)}.get(first, ())
    inner = (number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ends)
    end = next(inner, 0)
    content = [each for each in lines[1:end] if each.strip() and not each.startswith("#")]
    is_rule = first == "---" and content and not _YAML_KEY.match(content[0])
    return 0 if is_rule or not end else end + 1


# Writing.


def written(document: Document, name: str, content: str) -> Document:
    """Return the document with another text of the section, which is added at the end if it is new.

    Raises ``InvalidRequest`` if the file would not have exactly this change.
    """
    key, text = document.key(name), plain(content)
    places = document.places(key)
    if len(places) > 1:
        raise InvalidRequest(
            f"the file has {len(places)} sections {shorten(name)!r}; rename one of the headings"
        )
    new = _replaced(document, places[0], text) if places else _added(document, key, text)
    data = new.data
    if len(data) > MAX_FILE_BYTES:
        raise InvalidRequest(
            f"the file would have {len(data)} bytes, and a canvas may have {MAX_FILE_BYTES}; write "
            "less, or open another canvas"
        )
    if not places and len(document.sections) > MAX_SECTIONS:
        raise InvalidRequest(f"the canvas has {MAX_SECTIONS} sections, which is the limit")
    return _checked(document, new, key, text, is_new=not places)


def appended(document: Document, name: str, content: str) -> Document:
    """Return the document with ``content`` after the section's text, as ``written`` does."""
    text = plain(content)
    if not text.strip():
        raise InvalidRequest("there is nothing to append: the text is empty")
    before = document.texts.get(document.key(name), "")
    return written(document, name, f"{before}\n{text}" if before else text)


def _replaced(document: Document, place: int, text: str) -> Document:
    old, newline = document.sections[place], document.newline
    heading = old.heading
    if heading and not heading.endswith(("\r", "\n")):
        heading += newline
    is_last = place == len(document.sections) - 1
    # An empty line after the heading, and one before the next.
    lines = ["", *text.split("\n")] if heading and text else text.split("\n") if text else []
    body = "".join(line + newline for line in lines) + ("" if is_last else newline)
    new = Section(old.name, heading, body)
    sections = (*document.sections[:place], new, *document.sections[place + 1 :])
    return attrs.evolve(document, sections=sections)


def _added(document: Document, name: str, text: str) -> Document:
    newline = document.newline
    *others, last = document.sections
    gap = _gap(last, newline)
    if gap:
        others.append(attrs.evolve(last, body=last.body + gap))
    else:
        others.append(last)
    new = attrs.evolve(document, sections=(*others, Section(name, f"## {name}{newline}", "")))
    return _replaced(new, len(others), text)


def _gap(last: Section, newline: str) -> str:
    """Return what makes the line after a section follow an empty line."""
    raw = last.heading + last.body
    lines = _LINE.findall(raw)
    if not lines or not lines[-1].strip("\r\n"):
        return ""
    return newline if lines[-1].endswith(("\r", "\n")) else newline * 2


def _checked(document: Document, new: Document, key: str, text: str, *, is_new: bool) -> Document:
    """Return the new document as a reader finds it. Raises ``InvalidRequest`` if it differs."""
    found = _parsed(new.data.decode())
    wanted = {**document.texts, key: text}
    if is_new and PREAMBLE in wanted and not wanted[PREAMBLE] and key != PREAMBLE:
        del wanted[PREAMBLE]
    is_alone = key == PREAMBLE and len(new.sections) > 1 and not text
    if is_alone:
        del wanted[PREAMBLE]
    is_as_wanted = [each.name for each in found.sections] == [each.name for each in new.sections]
    if is_as_wanted and found.texts == wanted:
        return found
    own = headings(text)
    if own:
        raise InvalidRequest(
            f"the content has a '##' heading of its own, {shorten(own[0])!r}: write each section "
            "with a call of its own, or use ### inside a section"
        )
    if is_new and headings(f"## {key}\n") != [key]:
        raise InvalidRequest(
            f"{shorten(key)!r} cannot be the text of a heading; use words without ## or blanks "
            "around them"
        )
    raise InvalidRequest(
        "the content would change the sections after it: close its code fence, comment or HTML "
        "block, or open none"
    )


# Differences.


@attrs.frozen(kw_only=True)
class Difference:
    """A section that has changed; ``text`` is None if it is gone. Counts are of lines."""

    section: str
    text: str | None
    added: int
    removed: int


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Difference, ...]:
    """Return the sections that differ, those of ``after`` first."""
    found = []
    for section in dict.fromkeys((*after, *before)):
        old, new = before.get(section), after.get(section)
        if old != new:
            added, removed = changed_lines(old or "", new or "")
            found.append(Difference(section=section, text=new, added=added, removed=removed))
    return tuple(found)


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """Return how many lines were added and removed."""
    old, new = _lines(before), _lines(after)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    old, new = old[start:], new[start:]
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    if len(old) * len(new) > MAX_PAIRS:
        same = (Counter(old) & Counter(new)).total()
    else:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        same = sum(block.size for block in matcher.get_matching_blocks())
    return len(new) - same, len(old) - same


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []
