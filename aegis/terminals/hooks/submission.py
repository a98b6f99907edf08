"""What is sent to a shell's line editor so that it reads exactly one given text.

First a key that empties the line (whatever a person left there) and tells the hook that the line
is the daemon's; then the text as a bracketed paste, which the editor inserts without looking at
it; then Enter. Characters that the tty would act on (Ctrl-C, Ctrl-S, …) or that a paste alters
(CR) go between two pastes, each as a key of its own that the hook bound to insert it.
"""

from __future__ import annotations

import re

from aegis.errors import InvalidRequest

SUBMIT_KEY = b"\x1b[8133;0~\x1b[8133;1~"
"""Empties the line, marks it as the daemon's. Its first half is for a quoted-insert that waits."""

PROBE_KEY = b"\x1b[8133;2~"
"""Asks the hook for a line report (``133;P;k=l``) and changes nothing."""

SPLIT_KEY = b"\x1b[8133;6~"
"""Lets standard error of what runs next go to the PTY that the hook knows."""

HEED_KEY = b"\x1b[8133;7~"
"""Makes bash heed a Ctrl-C that it was told to ignore, until the line has ended."""

INTERRUPT_LINE = b"\x03" + PROBE_KEY
"""Drops a line that the shell is reading: Ctrl-C, and the probe key behind it.

A Ctrl-C that comes while bash draws a prompt may be kept until the next key.
"""

_PASTE_BEGIN = b"\x1b[200~"
_PASTE_END = b"\x1b[201~"
_ENTER = b"\r"

_NEEDS_KEY = re.compile(rb"[\x03\x0d\x11\x13\x1a\x1c]")


def check_command(cmd: str) -> None:
    """Refuse what no shell can read: NUL, and characters that UTF-8 cannot hold.

    Raises ``InvalidRequest``. Everything else arrives as it is, control characters too.
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


def encode_submission(cmd: str, accept: bytes = b"") -> bytes:
    """The bytes that make the shell read ``cmd`` and run it; ``accept`` goes before the Enter.

    Newlines at the end of ``cmd`` change nothing: the Enter that follows ends the last line
    either way. Raises ``InvalidRequest`` as ``check_command`` does.
    """
    check_command(cmd)
    text = cmd.encode()
    parts = [_paste(part) for part in _NEEDS_KEY.split(text)]
    keys = [_insert_key(control[0]) for control in _NEEDS_KEY.findall(text)]
    pieces = [SUBMIT_KEY, parts[0]]
    for key, part in zip(keys, parts[1:], strict=True):
        pieces += [key, part]
    return b"".join([*pieces, accept, _ENTER])


def _paste(text: bytes) -> bytes:
    """``text`` as pasted. An end of paste inside it is cut in two, a half in either of two."""
    head, tail = _PASTE_END[:1], _PASTE_END[1:]
    kept = text.replace(_PASTE_END, head + _PASTE_END + _PASTE_BEGIN + tail)
    return _PASTE_BEGIN + kept + _PASTE_END


def _insert_key(control: int) -> bytes:
    """The key that inserts this control character."""
    return b"\x1b[8133;%d~" % (100 + control)
