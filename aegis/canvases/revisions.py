"""The rows of a canvas: its revisions, its file, its subscribers; and what follows from them. Pure.

A write is a revision that is ``intended`` before the file is exchanged, and ``done`` or ``dropped``
after it. What was left by an exchange that was cut is judged by the digests of the file and of the
file beside it. An edit of another program is one revision for each section, and then a line with
the new digest of the file: cut in between, the sections that were not written are found again.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, ClassVar, Literal, cast

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.canvases.document import BODY, PREAMBLE, Difference
from aegis.journal.file_content import NO_FILE
from aegis.journal.table import StoredText, row_of
from aegis.protocol.canvases import OUTSIDE, CanvasOp
from aegis.protocol.naming import name_key

HUMAN = "human"

MAX_BESIDE = 6
"""Digests of files that an exchange may have left: those of two writes, and displaced ones."""

KIND = "revisions-"
"""The beginning of the name of a canvas's archive, before the canvas's own name."""

MAX_OWED = 1_000
"""The newest revisions that stay in the ledger for subscribers that do not have them."""

MAX_HISTORY_CHARS = 4 * 1024 * 1024
"""The size of the texts of revisions that are kept, besides ``keep``."""

Phase = Literal["intended", "done", "dropped", "displaced", "base"]


def writer_of(handle: str | None) -> str:
    """Return the writer's tag of a handle; None is the operator."""
    return HUMAN if handle is None or name_key(handle) == HUMAN else f"agent:{handle}"


@attrs.frozen(kw_only=True)
class Revision:
    """A change of a section; ``id`` is its number.

    ``text`` is the new text, or what was appended; null: the section is gone. ``section_text`` is
    the text after something was appended. ``before`` and ``after`` are the SHA-256 of the file of a
    write, ``before`` that of a file that was ``displaced``. ``base``: the change is in the archive,
    and the row has the text of its section as long as that is the newest one; from a ledger of
    before tables, the change is not known.
    """

    tag: ClassVar[str] = "revision"

    id: str
    section: str
    op: CanvasOp
    writer: str
    added: int
    removed: int
    timestamp: str
    text: StoredText | None = attrs.field(repr=False)
    section_text: StoredText | None = attrs.field(default=None, repr=False)
    phase: Phase = "done"
    before: str = ""
    after: str = ""

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return int(self.id)

    @property
    def is_displaced(self) -> bool:
        """Whether its text is not in the file: it was written at the moment of an exchange."""
        return self.phase == "displaced"

    @property
    def save(self) -> object:
        """The same value for the revisions of one save of another program, which wakes once."""
        return self.timestamp if self.writer == OUTSIDE and not self.is_displaced else self.number


@attrs.frozen(kw_only=True)
class FileVersion:
    """The file as another program has left it after revision ``rev``.

    ``beside`` are the digests of files that are in the history: a kill or a loss of power may leave
    one of them beside the file, even after later changes.
    """

    tag: ClassVar[str] = "file"

    id: str = "file"
    rev: int = 0
    digest: str = NO_FILE
    beside: tuple[str, ...] = ()

    def with_beside(self, digest: str) -> FileVersion:
        """Return it with one digest more."""
        return attrs.evolve(self, beside=_newest((digest, *self.beside)))


@attrs.frozen(kw_only=True)
class Former:
    """The sections that a subscriber wanted of the changes up to ``until``."""

    sections: tuple[str, ...] | None
    until: int


@attrs.frozen(kw_only=True)
class Subscriber:
    """A subscriber by its immutable handle; ``confirmed`` is the last change that its inbox has.

    ``former`` are earlier subscriptions, the oldest first, that unconfirmed changes belong to.
    """

    tag: ClassVar[str] = "subscriber"

    id: str
    handle: str
    sections: tuple[str, ...] | None
    confirmed: int
    former: tuple[Former, ...] = ()

    def wants(self, change: Revision) -> bool:
        """Return whether the change wakes the subscriber: its own does not."""
        if name_key(change.writer) == name_key(writer_of(self.handle)):
            return False
        sections = self._sections_at(change.number)
        names = {change.section, BODY} if change.section == PREAMBLE else {change.section}
        return sections is None or not names.isdisjoint(sections)

    def _sections_at(self, rev: int) -> tuple[str, ...] | None:
        for each in self.former:
            if rev <= each.until:
                return each.sections
        return self.sections

    def again(self, sections: tuple[str, ...] | None, rev: int) -> Subscriber:
        """Return it with other sections for the changes after ``rev``."""
        former = [each for each in self.former if each.until > self.confirmed]
        if rev > max(self.confirmed, *(each.until for each in former), 0):
            former.append(Former(sections=self.sections, until=rev))
        # Of more changes none is kept either, so older sections have nothing to wake for.
        return attrs.evolve(self, sections=sections, former=tuple(former[-MAX_OWED:]))

    def has(self, rev: int) -> Subscriber:
        """Return it with the fact that its inbox has the changes up to ``rev``."""
        return attrs.evolve(self, confirmed=rev) if rev > self.confirmed else self


CanvasRow = Revision | FileVersion | Subscriber


def subscriber_id(handle: str) -> str:
    """Return the id of the row of a subscriber."""
    return f"subscriber/{name_key(handle)}"


def outside_revisions(
    found: Iterable[Difference], number: int, time: str, *, displaced: str = ""
) -> Iterator[Revision]:
    """Yield what another program has changed, numbered from ``number``.

    ``displaced`` is the digest of a file that is not under its name any more.
    """
    for each in found:
        if displaced and each.text is None:
            continue
        yield Revision(
            id=str(number),
            section=each.section,
            op="removed" if each.text is None else "changed",
            writer=OUTSIDE,
            added=each.added,
            removed=each.removed,
            timestamp=time,
            text=None if each.text is None else StoredText.of(each.text),
            phase="displaced" if displaced else "done",
            before=displaced,
        )
        number += 1


# What is known of a canvas.


class Known:
    """The changes of a canvas that have happened, derived from its ``rows``.

    ``numbers`` has their numbers, in their order, with the sizes of their texts. ``sections`` has
    the newest change of each section, ``digest`` is that of the file after the last one. ``newest``
    is the newest number that was ever given, ``recorded`` that of the newest change that happened.
    ``intent`` is a write that may be in the file.
    """

    def __init__(self, rows: Iterable[CanvasRow] = ()) -> None:
        self.numbers: dict[int, int] = {}
        self.sections: dict[str, Revision] = {}
        self.last: Revision | None = None
        self.intent: Revision | None = None
        self.file = FileVersion()
        self.recorded = 0
        self._digests: deque[str] = deque(maxlen=MAX_BESIDE)
        self._useless: list[int] = []
        revisions = []
        for row in rows:
            if isinstance(row, Revision):
                revisions.append(row)
            elif isinstance(row, FileVersion):
                self.file = row
        self.digest, self.newest = self.file.digest, self.file.rev
        for each in sorted(revisions, key=lambda each: each.number):
            if each.after:
                self.intend(each)
            if each.phase == "dropped":
                self.drop(each)
            elif each.phase != "intended":
                self.take(each)
            self.newest = max(self.newest, each.number)

    @property
    def beside(self) -> set[str]:
        """The digests of files that are no edit if they are found beside the file."""
        return {self.digest, NO_FILE, *self._digests, *self.file.beside}

    def intend(self, revision: Revision) -> None:
        """Note a write that may be in the file from now on."""
        self.intent, self.newest = revision, max(self.newest, revision.number)
        self._digests.extend((revision.before, revision.after))

    def drop(self, revision: Revision) -> None:
        """Note that a write is not in the file."""
        self.intent = None
        self._useless.append(revision.number)

    def take(self, revision: Revision) -> None:
        """Note a change that has happened."""
        number = revision.number
        self.recorded, self.newest = max(self.recorded, number), max(self.newest, number)
        if revision.after:
            self.intent = None
            if number > self.file.rev:
                self.digest = revision.after
        if revision.phase != "base":
            self.numbers[number] = chars_of(revision)
            self.last = revision
        if revision.is_displaced:
            return
        self._leave_base(self.sections.get(revision.section))
        if revision.text is None:
            self.sections.pop(revision.section, None)
        else:
            self.sections[revision.section] = revision
        preamble = self.sections.get(PREAMBLE)
        is_empty = preamble is not None and not section_text(preamble).chars
        if is_empty and revision.after and len(self.sections) > 1:
            del self.sections[PREAMBLE]  # in an edit of another program it is a change of its own
            self._leave_base(preamble)

    def _leave_base(self, revision: Revision | None) -> None:
        if revision is not None and revision.phase == "base":
            self._useless.append(revision.number)

    def take_file(self, file: FileVersion) -> None:
        """Note the file that another program has left."""
        self.file, self.digest = file, file.digest

    def after(self, rev: int) -> list[int]:
        """Return the numbers of the changes after ``rev``."""
        return [*takewhile(lambda number: number > rev, reversed(self.numbers))][::-1]

    def ended(self, after: int, confirmed: int) -> list[int]:
        """Return the numbers above ``after`` of the changes that may move to the archive, in order.

        Those up to ``confirmed`` have woken all subscribers. The digests of the newest ones may
        still be those of a file beside the file.
        """
        found = self.after(after)
        newest = min(self.recorded, self.newest - MAX_BESIDE)
        owed = found[max(0, len(found) - MAX_OWED) :]
        oldest_owed = next((each for each in owed if each > confirmed), newest)
        return [*takewhile(lambda number: number < min(newest, oldest_owed), found)]

    def is_text(self, revision: Revision) -> bool:
        """Return whether a revision has the text of its section."""
        newest = self.sections.get(revision.section)
        return newest is not None and newest.number == revision.number

    def leave(self, revision: Revision) -> None:
        """Leave a change that is in the archive; its row may stay as the text of its section."""
        self.numbers.pop(revision.number, None)
        if self.is_text(revision):
            self.sections[revision.section] = as_base(revision)

    def take_useless(self) -> list[str]:
        """Return the ids of the rows that nobody needs any more, each once."""
        # The digests of a write that was dropped may still be those of a file beside the file.
        gone = [each for each in self._useless if each < self.newest - MAX_BESIDE]
        self._useless = [each for each in self._useless if each >= self.newest - MAX_BESIDE]
        return [*map(str, gone)]


def as_base(revision: Revision) -> Revision:
    """Return the text of a section whose change is in the archive."""
    return attrs.evolve(revision, phase="base")


def chars_of(revision: Revision) -> int:
    """Return the size of the texts of a revision."""
    return sum(each.chars for each in (revision.text, revision.section_text) if each is not None)


def section_text(revision: Revision) -> StoredText:
    """Return the text of its section after a revision that has not removed it."""
    text = revision.section_text or revision.text
    assert text is not None, "a section that was removed has no text"
    return text


def is_in_file(intent: Revision, file: str, swap: str) -> bool:
    """Return whether a write is in the file, by the digests of that and of the file beside it.

    Without a file beside it, a file with neither digest was changed since. The write may have been
    acknowledged before, and its line lost with the power: it counts as written.
    """
    is_pending = swap == intent.after and file != intent.after
    is_untouched = file == intent.before != swap
    return not is_pending and not is_untouched


def _newest(digests: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(digests))[:MAX_BESIDE]


# Ledgers of before tables.


def line_of_today(line: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    """Return a line that a version before tables has written as lines of today's."""
    try:
        return _lines_of_today(line, rows)
    except (KeyError, TypeError, CodecError):  # it is of another version, or was edited
        return []


def _lines_of_today(line: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    match line:
        case {
            "kind": "intent",
            "intent": {"change": dict(change), "before": str(before)} as intent,
        }:
            text = intent["section_text"] if change["op"] == "appended" else None
            made = {"section_text": text, "before": before, "after": intent["after"]}
            return [*_settled(rows, before), _revision(change, phase="intended", **made)]
        case {"kind": "done" | "dropped" as kind}:
            pending = _pending(rows)
            return [] if pending is None else [_set(pending, phase=kind)]
        case {"kind": "outside", "changes": list(changes), "before": str(before)}:
            known = rows.get("file", {})
            newest = next((int(each) for each in _newest_first(rows) if each.isdigit()), 0)
            rev = max(newest, known.get("rev", 0), *(each["rev"] for each in changes))
            beside = _newest((before, *known.get("beside", ())))
            file = _set("file", type="file", rev=rev, digest=line["after"], beside=[*beside])
            return [*_settled(rows, before), *map(_revision, changes), file]
        case {"kind": "displaced", "changes": list(changes), "digest": str(digest)}:
            file = {"type": "file", **rows.get("file", {})}
            beside = _newest((digest, *file.get("beside", ())))
            found = [_revision(each, phase="displaced", before=digest) for each in changes]
            return [*found, _set("file", **{**file, "beside": [*beside]})]
        case {"kind": "head", "state": dict(state)}:
            return [*_of_head(state)]
        case {"kind": "subscribed" | "unsubscribed", "handle": str(handle)}:
            return [_subscribed(line, subscriber_id(handle), rows)]
        case {"kind": "confirmed", "revs": dict(revs)}:
            confirmed = [(subscriber_id(handle), rev) for handle, rev in revs.items()]
            return [_set(each, confirmed=rev) for each, rev in confirmed if each in rows]
    return []


def _set(row_id: str, **fields: Any) -> dict[str, Any]:
    return {"id": row_id, "set": fields}


def _revision(change: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    fields = {name: value for name, value in change.items() if name not in ("rev", "displaced")}
    return _set(str(change["rev"]), type="revision", **fields, **more)


def _pending(rows: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the id of the write that has neither been done nor dropped."""
    for row_id in filter(str.isdigit, _newest_first(rows)):
        phase = rows[row_id].get("phase", "done")
        if phase != "displaced":
            return row_id if phase == "intended" else None
    return None


def _newest_first(rows: Mapping[str, Any]) -> Iterator[str]:
    return reversed(cast("dict[str, Any]", rows))  # a copy for each line would take minutes


def _settled(rows: Mapping[str, Mapping[str, Any]], digest: str) -> list[Any]:
    """Judge a write without an outcome by the digest that the next line has found."""
    pending = _pending(rows)
    if pending is None:
        return []
    is_done = rows[pending]["after"] == digest
    return [_set(pending, phase="done" if is_done else "dropped")]


def _subscribed(line: Mapping[str, Any], row_id: str, rows: Mapping[str, Any]) -> dict[str, Any]:
    if line["kind"] == "unsubscribed":
        return {"id": row_id, "drop": True}
    known, sections = rows.get(row_id), line["sections"]
    if known is None:
        fields = {"handle": line["handle"], "sections": sections, "confirmed": line["rev"]}
        return _set(row_id, type="subscriber", **fields)
    wanted = None if sections is None else tuple(sections)
    again = structure(CanvasRow, known).again(wanted, line["rev"])
    return _set(row_id, sections=sections, former=unstructure(again)["former"])


def _of_head(state: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the state at the beginning of a file of the ledger that was not the first."""
    for change in state["owed"]:
        yield _revision(change, phase="displaced" if change["displaced"] else "done")
    owed = {each["rev"] for each in state["owed"]}
    for name, known in state["sections"].items():
        if known["rev"] in owed:
            yield _set(str(known["rev"]), text=known["text"])
            continue
        unknown = {"op": "written", "added": 0, "removed": 0, "timestamp": ""}
        yield _revision({"section": name, **known, **unknown}, phase="base")
    for known in state["subscribers"]:
        yield _set(subscriber_id(known["handle"]), type="subscriber", **known)
    beside = [state["previous"], *state["beside"]][:MAX_BESIDE]
    file = {"rev": state["rev"], "digest": state["digest"], "beside": beside}
    yield _set("file", type="file", **file)


def revisions_before(lines: Iterable[Mapping[str, Any]]) -> list[Revision]:
    """Return the changes that happened in the file before the current one, with their texts."""
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        for fields in line_of_today(line, found):
            if "set" in fields:
                found.setdefault(fields["id"], {"id": fields["id"]}).update(fields["set"])
            else:
                found.pop(fields["id"], None)
    revisions = []
    for row_id, fields in found.items():
        if not row_id.isdigit() or fields.get("phase") in ("intended", "dropped", "base"):
            continue
        with contextlib.suppress(CodecError):  # it is of another version
            revisions.append(row_of(CanvasRow, {"id": row_id, "set": fields}))
    return revisions[-MAX_OWED:]
