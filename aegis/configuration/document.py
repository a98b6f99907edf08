"""The YAML parser: bytes of the file to a tree of nodes with their places. Pure.

A subset of YAML is accepted: mappings, lists, single values. Aliases, anchors and tags are refused,
so that a short file cannot expand to a huge one; so are several documents and deep nesting. The
only exception raised, for any bytes, is ``BadConfiguration``.
"""

from __future__ import annotations

import yaml

from aegis.configuration.problems import BadConfiguration, Problem, SourcePosition
from aegis.configuration.sections import MAX_BYTES
from aegis.names import shorten

MAX_DEPTH = 16
MAX_REASON_CHARS = 160


def compose(content: bytes) -> yaml.Node | None:
    """Parse the one document in ``content``; return None if it has only comments.

    Raises ``BadConfiguration``.
    """
    text = _decoded(content)
    try:
        loader = _NodeLoader(text)
    except yaml.reader.ReaderError as error:
        raise _bad(_unreadable(error), _place_of(text, error.position)) from None
    try:
        return loader.get_single_node()
    except _Refused as error:
        raise _bad(error.sentence, place_at(error.mark)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark or loader.get_mark()
        raise _bad(_sentence(error), place_at(mark)) from None
    except (ValueError, OverflowError):
        # Python refuses the number of a character or of a YAML version.
        sentence = "cannot be read as YAML: a number in it is out of range"
        raise _bad(sentence, place_at(loader.get_mark())) from None
    finally:
        loader.dispose()


def place_at(mark: yaml.error.Mark) -> SourcePosition:
    """Return the place of a YAML mark, which counts from 0."""
    return SourcePosition(mark.line + 1, mark.column + 1)


class _Refused(Exception):
    """A feature of YAML that a configuration may not use."""

    def __init__(self, sentence: str, mark: yaml.error.Mark) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.mark = mark


class _NodeLoader(yaml.SafeLoader):
    """A loader that only makes nodes, and refuses features before it expands them."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        """Return a node with its children."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _Refused(
                "anchors (&) and aliases (*) are not allowed: write the value itself",
                event.start_mark,
            )
        if getattr(event, "tag", None) is not None:
            raise _Refused("tags (!) are not allowed: leave the tag out", event.start_mark)
        if self._depth == MAX_DEPTH:
            raise _Refused(f"is nested more than {MAX_DEPTH} levels deep", event.start_mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)  # type: ignore[arg-type]
        finally:
            self._depth -= 1


def _decoded(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise _bad(f"is longer than {MAX_BYTES} bytes, the maximum")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place_of(content[: error.start].decode("utf-8-sig"), None)
        raise _bad("is not UTF-8 text: save it as UTF-8", place) from None


def _unreadable(error: yaml.reader.ReaderError) -> str:
    number = error.character if isinstance(error.character, int) else ord(error.character)
    return f"contains the character U+{number:04X}, which YAML does not allow: remove it"


def _sentence(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "it does not fit its rules"
    if r"'\t'" in problem:
        return "a tab is used for indentation: indent with spaces"
    if "another document" in problem:
        return "a second document begins ('---'): keep only one document"
    return f"cannot be read as YAML: {shorten(problem, MAX_REASON_CHARS)}"


def _place_of(text: str, position: int | None) -> SourcePosition:
    """Return the place of the character at ``position``; None: after the last one."""
    before = text[:position].replace("\r\n", "\n").replace("\r", "\n")
    return SourcePosition(before.count("\n") + 1, len(before) - before.rfind("\n"))


def _bad(sentence: str, place: SourcePosition | None = None) -> BadConfiguration:
    return BadConfiguration([Problem(sentence, place)])
