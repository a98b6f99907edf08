"""Engine calls: their digests, texts and outcomes, for the daemon and for the process. Pure."""

from __future__ import annotations

import ast
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

REPEATABLE = frozenset(
    {
        *("spawn", "send", "drain", "delegate", "close", "ask_human", "checkpoint"),
        *("group", "broadcast"),
    }
)
"""Calls that a replay continues: done again they have no second effect. All others are done once.
"""

IN_PROCESS = frozenset({"bash", "step"})
"""Calls that the workflow's own process carries out."""

MAX_CALLS = 10_000
"""The calls of one workflow."""

MAX_VALUE_BYTES = 256 * 1024
"""The arguments and the result of one call, and the result of a workflow, as JSON."""

MAX_DEPTH = 100
"""The depth of lists and mappings in a value. The reader of frames drops what is much deeper."""

MAX_PARALLEL = 100
"""The branches of one ``parallel``."""

MAX_ABOUT_CHARS = 120

Outcome = dict[str, Any]
"""``{"value": …}``, or ``{"error": {"type": …, "message": …}}``."""


def value(result: Any) -> Outcome:
    """Return the outcome of a call that has succeeded."""
    return {"value": result}


def failure(kind: str, message: str, **more: str) -> Outcome:
    """Return the outcome of a call that has failed; ``kind`` is the name of an exception."""
    return {"error": {"type": kind, "message": message, **more}}


def is_failure(outcome: Outcome) -> bool:
    """Return whether the call has failed."""
    return "error" in outcome


def cancelled(position: str, call: str) -> Outcome:
    """Return the outcome of a call that the workflow itself cancelled."""
    return failure("Cancelled", f"call {position}, {call}, was cancelled by the workflow")


def not_cancelled(position: str) -> Outcome:
    """Return the outcome of a call that its journal has as cancelled, and that was not now."""
    return failure(
        "WorkflowChanged",
        f"call {position} was cancelled by the workflow in the journal, and is not now: the "
        "workflow has changed since; restore it and resume, or retry it from its beginning",
    )


def is_cancelled(outcome: Outcome | None) -> bool:
    """Return whether the workflow itself cancelled the call."""
    return outcome is not None and _kind(outcome) == "Cancelled"


def is_changed(outcome: Outcome) -> bool:
    """Return whether the outcome is that the workflow has changed since its journal was written."""
    return _kind(outcome) == "WorkflowChanged"


def _kind(outcome: Outcome) -> object:
    error = outcome.get("error")
    return error.get("type") if isinstance(error, dict) else None


def json_text(what: str, document: Any, limit: int = MAX_VALUE_BYTES) -> str:
    """Return ``document`` as JSON. Raises ``ValueError`` with one sentence about ``what``."""
    _check_depth(what, document)
    try:
        text = json.dumps(document, allow_nan=False, separators=(",", ":"))
        # JSON makes text of a key that is none: the copy would differ. A tuple may become a list.
        is_same = json.loads(text) == _as_lists(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}; return or pass plain values") from None
    if not is_same:
        raise ValueError(f"{what} is not JSON: use text for the keys of a mapping")
    if _has_surrogates(text, document):
        raise ValueError(
            f"{what} has text that is not Unicode, such as a file name that is not UTF-8: pass it "
            "escaped, for example as urllib.parse.quote(os.fsencode(name))"
        )
    if len(text) > limit:
        raise ValueError(
            f"{what} is {len(text)} bytes long as JSON, and at most {limit} are kept: write it to "
            "a file, and pass the file's path"
        )
    return text


def packed(what: str, document: Any) -> Any:
    """Return ``document`` as JSON from which ``unpacked`` makes an equal value of the same types.

    Values that JSON cannot carry exactly (tuples, bytes, keys that are no text, file names that are
    not UTF-8) become the text of a Python literal. Raises ``ValueError`` with one sentence about
    ``what`` for all others.
    """
    _check_depth(what, document)
    if _is_exact_json(document) and not (isinstance(document, dict) and LITERAL in document):
        json_text(what, document)
        return document
    _check_literal(what, document)
    found = {LITERAL: ascii(document)}
    json_text(what, found)
    return found


def unpacked(document: Any) -> Any:
    """Return the value that ``packed`` was given."""
    if isinstance(document, dict) and list(document) == [LITERAL]:
        return ast.literal_eval(document[LITERAL])
    return document


LITERAL = "python literal"
"""The only key of a packed value that JSON cannot carry exactly."""


def _is_exact_json(document: Any) -> bool:
    kind = type(document)
    if kind is str:
        return document.isascii() or not _is_lone(document)
    if kind is float:
        return math.isfinite(document)
    if kind is list:
        return all(_is_exact_json(each) for each in document)
    if kind is dict:
        return all(type(key) is str and _is_exact_json(key) for key in document) and all(
            _is_exact_json(each) for each in document.values()
        )
    return document is None or kind in (bool, int)


def _check_literal(what: str, document: Any) -> None:
    """Raise ``ValueError`` for a value that a Python literal cannot carry exactly.

    No sets: their order differs from process to process, and so would a replay.
    """
    kind = type(document)
    if kind in (list, tuple):
        for each in document:
            _check_literal(what, each)
    elif kind is dict:
        for key, each in document.items():
            _check_literal(what, key)
            _check_literal(what, each)
    elif document is not None and kind not in (bool, int, float, str, bytes):
        raise ValueError(
            f"{what} has a value of type {kind.__name__}, which cannot be kept exactly: return or "
            "pass plain values (None, True, numbers, text, bytes, lists, tuples, dicts)"
        )
    elif kind is float and not math.isfinite(document):
        raise ValueError(
            f"{what} has the number {document}, which cannot be kept: use None or text"
        )


def _check_depth(what: str, document: Any) -> None:
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH + 1:
            raise ValueError(f"{what} is nested more than {MAX_DEPTH} deep, or contains itself")
        inner = (each for each in level if isinstance(each, list | tuple | dict))
        level = [
            one for each in inner for one in (each.values() if isinstance(each, dict) else each)
        ]


def _is_lone(text: str) -> bool:
    return any("\ud800" <= each <= "\udfff" for each in text)


def _has_surrogates(text: str, document: Any) -> bool:
    return "\\ud" in text and _is_lone(json.dumps(document, ensure_ascii=False))


def _as_lists(document: Any) -> Any:
    if isinstance(document, list | tuple):
        return [_as_lists(each) for each in document]
    if isinstance(document, dict):
        return {key: _as_lists(each) for key, each in document.items()}
    return document


def digest_of(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the digest of a call: equal for equal names and arguments."""
    text = json.dumps([name, arguments], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def about(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call in a few words, on one line."""
    shown = ", ".join(repr(each) for each in arguments.values() if each is not None)
    text = f"{name}({shown})"
    return text if len(text) <= MAX_ABOUT_CHARS else f"{text[: MAX_ABOUT_CHARS - 2]}…)"


def changed(position: str, before: str, now: str) -> Outcome:
    """Return the outcome of a call at a position where the journal has another one."""
    return failure(
        "WorkflowChanged",
        f"call {position} is {now} now, and was {before} in the journal: the workflow has changed "
        "since; restore it and resume, or retry it from its beginning",
    )


def interrupted(position: str, call: str) -> Outcome:
    """Return the outcome of a call that had begun when the process ended."""
    return failure(
        "StepInterrupted",
        f"call {position}, {call}, was interrupted: what it did until then is not known; look, "
        "then continue with aegis-actors workflow resume, which does it again",
    )
