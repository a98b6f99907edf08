r"""Status reports of programs: OSC 7501, the Program Status Protocol, revision 0.3. Pure.

    ESC ] 7501 ; key=value(:key=value)* (BEL | ESC \)

Rules:

- ``state`` is required. Unknown keys and malformed pairs are skipped; of a repeated key the last
  value counts. ``kind`` and ``progress`` with a value that they do not have are absent.
- A malformed id, a breach of a limit, and text that is no base64, no UTF-8 or has a control
  character discard the whole report, wherever they are in it. So a report for a child can never
  become one for the root.
- A report replaces the one before, and ``clear`` removes it. ``working`` and ``blocked`` end at a
  new prompt. Nothing ends by time: no heartbeat is required.
- A report with an id is one for a child, which never changes the state of its parent.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Literal, cast, get_args

import attrs

from aegis.lifecycle.states import MAX_TEXT_CHARS, MAX_TITLE_CHARS, clean

ReportState = Literal["idle", "working", "done", "blocked", "error", "clear"]
BlockedKind = Literal["permission", "question", "auth"]

MAX_SEQUENCE_BYTES = 4096
MAX_KEY_BYTES = 16
MAX_ID_BYTES = 128
MAX_SEGMENTS = 8
MAX_APP_BYTES = 32
MAX_TITLE_BYTES = 192
MAX_MSG_BYTES = 2048
"""Limits of the protocol; those of texts hold for the decoded bytes."""

_INTRODUCER = b"\x1b]7501;"
_KEY = re.compile(rb"[a-z]+")
_VALUE = re.compile(rb"[A-Za-z0-9_.,+/=-]*")
_ID = re.compile(rb"[A-Za-z0-9_.+-]{1,32}(?:/[A-Za-z0-9_.+-]{1,32}){0,%d}" % (MAX_SEGMENTS - 1))
_PROGRESS = re.compile(r"[0-9]{1,3}")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_BLANK = b" \t"

_ENCODED_LIMITS = {
    b"app": MAX_APP_BYTES,
    b"title": -(-MAX_TITLE_BYTES // 3) * 4,
    b"msg": -(-MAX_MSG_BYTES // 3) * 4,
}
_DECODED_LIMITS = {b"title": MAX_TITLE_BYTES, b"msg": MAX_MSG_BYTES}


@attrs.frozen(kw_only=True)
class Report:
    """A valid report. ``id`` is empty for the root; other absent fields are empty or None."""

    state: ReportState
    id: str = ""
    kind: BlockedKind | None = None
    progress: int | None = None
    title: str = ""
    msg: str = ""

    @property
    def is_work(self) -> bool:
        """Whether it ends at a new prompt."""
        return self.state in ("working", "blocked")


def read_report(content: bytes, ending: bytes = b"\x1b\\") -> Report | None:
    """Return the report in an OSC 7501; None for the query ``?`` and for a discarded report.

    ``content`` are the bytes between ``7501;`` and the ``ending``.
    """
    if len(_INTRODUCER) + len(content) + len(ending) > MAX_SEQUENCE_BYTES:
        return None
    try:
        return _report(dict(_pairs(content)))
    except ValueError:
        return None


def _pairs(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the valid pairs, texts decoded. Raises ``ValueError`` to discard the report."""
    for pair in content.split(b":"):
        key, equals, value = (part.strip(_BLANK) for part in pair.partition(b"="))
        if not equals:
            continue
        if len(key) > MAX_KEY_BYTES or len(value) > _ENCODED_LIMITS.get(key, len(value)):
            raise ValueError("over a limit")
        # Before the test of the value's characters, which only skips the pair: without its id the
        # report would be one for the root.
        if key == b"id" and (len(value) > MAX_ID_BYTES or not _ID.fullmatch(value)):
            raise ValueError("malformed id")
        if _KEY.fullmatch(key) and _VALUE.fullmatch(value):
            yield key.decode(), _value(key, value)


def _value(key: bytes, value: bytes) -> str:
    if key not in _DECODED_LIMITS:
        return value.decode()
    text = _decoded(value)
    if len(text) > _DECODED_LIMITS[key]:
        raise ValueError("over a limit")
    decoded = text.decode()
    if _CONTROL.search(decoded):
        raise ValueError("control character")
    return decoded


def _decoded(value: bytes) -> bytes:
    """Decode base64, with or without its padding. Raises ``ValueError`` for any other text."""
    digits = value.rstrip(b"=")
    if digits != value and len(value) % 4:
        raise ValueError("padding")
    try:
        data = binascii.a2b_base64(digits + b"=" * (-len(digits) % 4), strict_mode=True)
    except binascii.Error as error:
        raise ValueError("base64") from error
    # The decoder accepts set bits behind the last byte: one text would have several encodings.
    if base64.b64encode(data).rstrip(b"=") != digits:
        raise ValueError("base64")
    return data


def _report(pairs: dict[str, str]) -> Report | None:
    state = pairs.get("state")
    if state not in get_args(ReportState):
        return None
    kind, progress = pairs.get("kind"), pairs.get("progress", "")
    is_kind = state == "blocked" and kind in get_args(BlockedKind)
    has_progress = state in ("working", "blocked") and _PROGRESS.fullmatch(progress) is not None
    return Report(
        state=cast(ReportState, state),
        id=pairs.get("id", ""),
        kind=cast(BlockedKind, kind) if is_kind else None,
        progress=int(progress) if has_progress and int(progress) <= 100 else None,
        title=clean(pairs.get("title", ""), MAX_TITLE_CHARS),
        msg=clean(pairs.get("msg", ""), MAX_TEXT_CHARS),
    )
