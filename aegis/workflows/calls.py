"""Engine calls: their digests, texts and outcomes, for the daemon and for the process. Pure."""

from __future__ import annotations

import hashlib
import json
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


def json_text(what: str, document: Any, limit: int = MAX_VALUE_BYTES) -> str:
    """Return ``document`` as JSON. Raises ``ValueError`` with one sentence about ``what``."""
    try:
        text = json.dumps(document, allow_nan=False, separators=(",", ":"))
        # JSON makes text of a key that is none: the copy would differ. A tuple may become a list.
        is_same = json.loads(text) == _as_lists(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}; return or pass plain values") from None
    if not is_same:
        raise ValueError(f"{what} is not JSON: use text for the keys of a mapping")
    if len(text) > limit:
        raise ValueError(
            f"{what} is {len(text)} bytes long as JSON, and at most {limit} are kept: write it to "
            "a file, and pass the file's path"
        )
    return text


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
