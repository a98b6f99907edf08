"""The keys that make a shell's line editor read exactly one given text.

First a key that empties the line (a person may have left text there) and marks it as the daemon's
for the hook; then the text as a bracketed paste, which the editor inserts literally; then Enter.
Characters that the tty would act on (Ctrl-C, Ctrl-S, …) or that a paste alters (CR) are sent
between two pastes, each as a key that the hook bound to insert it.
"""

from __future__ import annotations

import re

from aegis.errors import InvalidRequest

SUBMIT_KEY = b"\x1b[8133;0~\x1b[8133;1~"
"""Empties the line and marks it as the daemon's. Its first half ends a waiting quoted-insert."""

EMPTY_KEY = b"\x1b[8133;8~"
"""Empties the line, in the place of the submit key: the shell runs nothing for it."""

PROBE_KEY = b"\x1b[8133;2~"
"""Requests a line report (``133;P;k=l``) from the hook and changes nothing."""

SPLIT_KEY = b"\x1b[8133;6~"
"""Sends standard error of the next command to the PTY that the hook knows."""

HEED_KEY = b"\x1b[8133;7~"
"""Enables Ctrl-C in a bash that ignores it, until the line has ended."""

INTERRUPT_LINE = b"\x03" + PROBE_KEY
"""Drops a line that the shell is reading: Ctrl-C, then the probe key.

Bash may keep a Ctrl-C that comes while it draws a prompt until the next key.
"""

_PASTE_BEGIN = b"\x1b[200~"
_PASTE_END = b"\x1b[201~"
_ENTER = b"\r"

_NEEDS_KEY = re.compile(rb"[\x03\x0d\x11\x13\x1a\x1c]")


def check_command(cmd: str) -> None:
    """Raise ``InvalidRequest`` for NUL, and for characters that UTF-8 cannot encode.

    All other text arrives unchanged, control characters too.
    """
    if "\0" in cmd:
        raise InvalidRequest(
            "cmd holds a NUL character (U+0000), which no shell can read: leave it out, or let "
            r"the command make it, as in printf '\0'"
        )
    try:
        cmd.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"cmd holds U+{ord(cmd[error.start]):04X}, half of a surrogate pair, which UTF-8 "
            "cannot hold: send the whole character"
        ) from None


def encode_submission(cmd: str, accept: bytes = b"", first: bytes = SUBMIT_KEY) -> bytes:
    """Return the bytes that make the shell run ``cmd``.

    ``first`` is the key that empties the line, and ``accept`` is sent before the Enter.

    Newlines at the end of ``cmd`` change nothing: the Enter that follows ends the last line
    either way. Raises ``InvalidRequest`` as ``check_command`` does.
    """
    check_command(cmd)
    text = cmd.encode()
    parts = [_paste(part) for part in _NEEDS_KEY.split(text)]
    keys = [_insert_key(control[0]) for control in _NEEDS_KEY.findall(text)]
    pieces = [first, parts[0]]
    for key, part in zip(keys, parts[1:], strict=True):
        pieces += [key, part]
    return b"".join([*pieces, accept, _ENTER])


def _paste(text: bytes) -> bytes:
    """Return ``text`` as a paste. An end of paste inside it is split between two pastes."""
    head, tail = _PASTE_END[:1], _PASTE_END[1:]
    kept = text.replace(_PASTE_END, head + _PASTE_END + _PASTE_BEGIN + tail)
    return _PASTE_BEGIN + kept + _PASTE_END


def _insert_key(control: int) -> bytes:
    """Return the key that inserts this control character."""
    return b"\x1b[8133;%d~" % (100 + control)
