"""Rules for canvases: no write is lost unseen, edits of other programs included. Pure.

The model of a canvas is its history: the changes of it, one after the other, result in the texts of
the sections that are in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from aegis.canvases.document import BODY, PREAMBLE
from aegis.protocol.canvases import CanvasChange
from tests.chaos.checking.canvas_evidence import CanvasEvidence, CanvasFound, CanvasWrite
from tests.chaos.checking.case import Case
from tests.chaos.checking.observations import Span
from tests.chaos.checking.rule import Rule

TOKEN = re.compile(r"@[a-z]+\.[0-9]+@")
"""The token of a write or an edit."""

Texts = Mapping[str, str]
"""The texts of sections by their names."""


def states(changes: Iterable[CanvasChange]) -> Iterator[tuple[CanvasChange, Texts]]:
    """Yield each change with the texts of all sections after it."""
    texts: dict[str, str] = {}
    for change in changes:
        if change.displaced:
            yield change, texts
            continue
        texts = dict(texts)
        if change.text is None:
            texts.pop(change.section, None)
        elif change.op == "appended" and texts.get(change.section):
            texts[change.section] += f"\n{change.text}"
        else:
            texts[change.section] = change.text
        yield change, texts


def _lost(evidence: CanvasEvidence, found: CanvasFound) -> Iterator[str]:
    """Find acknowledged writes that are not in the history."""
    known = {each.rev: each.text or "" for each in found.changes}
    for write in evidence.writes:
        if (
            write.canvas == found.canvas
            and write.done
            and write.token not in known.get(write.rev or 0, "")
        ):
            yield f"{write.token} was acknowledged as {write.rev} and is not in the history"


def _edit_lost(
    evidence: CanvasEvidence, found: CanvasFound, losses: Sequence[int] = ()
) -> Iterator[str]:
    """Find edits of other programs that are neither in the history nor in the file.

    ``losses`` are the moments of losses of power. One may take an edit, or those before it, if the
    program did not sync the file. It may take those after it too: a program that writes the new
    file in place syncs its text, but not its name. A write that the daemon acknowledged has synced
    both.
    """
    texts = [found.file, *(each.text or "" for each in found.changes)]
    edits = [each for each in evidence.edits if each.canvas == found.canvas]
    synced = [each.span for each in evidence.writes if each.canvas == found.canvas and each.done]
    for edit in edits:
        is_risked = any(
            not each.is_synced and _is_at_risk(edit.span, each.span, loss, synced)
            for each in edits
            for loss in losses
        )
        if not is_risked and not any(edit.token in text for text in texts):
            yield f"the edit {edit.token} by another program is lost"


def _is_at_risk(edit: Span, unsynced: Span, loss: int, synced: Sequence[Span]) -> bool:
    """Return whether a loss of power may take ``edit`` because of one that was not synced."""
    if loss <= max(edit.asked, unsynced.asked):
        return False
    is_named = any(unsynced.is_before(each) and each.last < loss for each in synced)
    return edit.asked <= unsynced.asked or not is_named


def _refused_written(evidence: CanvasEvidence, found: CanvasFound) -> Iterator[str]:
    """Find writes that were refused, or that nobody made, and are there."""
    texts = [found.file, *(each.text or "" for each in found.changes)]
    there = {token for text in texts for token in TOKEN.findall(text)}
    made = {each.token: False for each in evidence.edits}
    for write in evidence.writes:
        made[write.token] = made.get(write.token, True) and write.done is False
    yield from (f"{each} was refused and is there" for each in sorted(there) if made.get(each))
    yield from (f"nobody wrote {each}" for each in sorted(there - made.keys()))


def _overwritten(evidence: CanvasEvidence, found: CanvasFound) -> Iterator[str]:
    """Find writes that replaced another text than the one that their writer had read."""
    attempts: dict[str, list[CanvasWrite]] = {}
    for write in evidence.writes:
        if write.canvas == found.canvas and write.done is not False:
            attempts.setdefault(write.token, []).append(write)
    newest: dict[str, int] = {}
    for change in found.changes:
        if change.displaced:
            continue
        before = newest.get(change.section)
        tries = attempts.get(_token_of(change), [])
        if change.op == "written" and not any(
            not each.is_bound or (each.if_rev or None) == before for each in tries
        ):
            known = [each.if_rev for each in tries]
            yield f"{change.text!r} replaced revision {before}, and its writer knew {known}"
        if change.text is None:
            newest.pop(change.section, None)
        else:
            newest[change.section] = change.rev


def _token_of(change: CanvasChange) -> str:
    tokens = TOKEN.findall(change.text or "")
    return tokens[-1] if tokens else ""


def _unseen(_: CanvasEvidence, found: CanvasFound) -> Iterator[str]:
    """Find texts in the file that do not result from the history."""
    texts = ({}, *(after for _, after in states(found.changes)))[-1]
    shown = {each.section: each.text for each in found.sections}
    if found.problem:
        yield f"the canvas cannot be used: {found.problem}"
    elif _without_empty(shown) != _without_empty(texts):
        yield f"the sections are {shown}, and the history results in {dict(texts)}"
    if found.beside:
        yield f"an exchange left {found.beside}"
    revs = [each.rev for each in found.changes]
    if sorted(set(revs)) != revs:
        yield f"the revisions are {revs}"


def _without_empty(texts: Texts) -> Texts:
    return {name: text for name, text in texts.items() if text or name not in (PREAMBLE, BODY)}


def _forgotten(evidence: CanvasEvidence, found: CanvasFound) -> Iterator[str]:
    """Find texts that a client has read and that the history does not have."""
    known = {change.rev: texts.get(change.section) for change, texts in states(found.changes)}
    for seen in evidence.seen:
        if seen.canvas == found.canvas and seen.rev and known.get(seen.rev) != seen.text:
            yield (
                f"{seen.section!r} was read as {seen.text!r} at {seen.rev}, and the history has "
                f"{known.get(seen.rev)!r}"
            )


FINDERS: dict[str, Callable[[CanvasEvidence, CanvasFound], Iterator[str]]] = {
    "write lost": _lost,
    "refused write": _refused_written,
    "overwritten unseen": _overwritten,
    "canvas differs from its history": _unseen,
    "read text forgotten": _forgotten,
}


def _rule(find: Callable[[CanvasEvidence, CanvasFound], Iterator[str]]) -> Rule:
    def in_case(case: Case) -> Iterator[str]:
        evidence = case.evidence.canvases
        for found in evidence.found:
            yield from (f"canvas {found.canvas}: {what}" for what in find(evidence, found))

    return Rule("G19", in_case)


def _stuck(case: Case) -> Iterator[str]:
    """Find requests that had no answer in the undisturbed last life."""
    yield from case.evidence.canvases.stuck


def _edit_lost_in(case: Case) -> Iterator[str]:
    evidence = case.evidence.canvases
    losses = [each.moment for each in case.evidence.deaths if each.kind == "power loss"]
    for found in evidence.found:
        for what in _edit_lost(evidence, found, losses):
            yield f"canvas {found.canvas}: {what}"


CANVAS_RULES: dict[str, Rule] = {
    "edit lost": Rule("G19", _edit_lost_in),
    **{name: _rule(find) for name, find in FINDERS.items()},
    "canvas stuck": Rule("G19", _stuck),
}


def broken(evidence: CanvasEvidence) -> Iterator[str]:
    """Yield a sentence for each broken promise about canvases."""
    for name, find in {**FINDERS, "edit lost": _edit_lost}.items():
        for found in evidence.found:
            yield from (f"{name}: {what}" for what in find(evidence, found))
