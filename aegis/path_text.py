"""Paths as text that every client, file and log can carry, and back. Pure.

Linux allows any byte but NUL in a path; UTF-8, and so JSON, cannot encode all of them. Python keeps
such bytes as lone surrogates (PEP 383), which no encoder accepts. Inside the program, in files and
in replies such a path is written in the shells' notation, ``$'/srv/d\\xff'``: it can be pasted into
bash, zsh or ksh unchanged, and no absolute path begins with it (a relative one is written
``./$'…'``). Any other path is its own text. A path is converted where it comes from the system or
is passed to it.
"""

from __future__ import annotations

import re
import sys

# Type checkers take this for true. Everyday commands import this file, so it imports little.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from pathlib import PurePath

MAX_PATH_CHARS = 4 * 4096 + 3
"""The length of the longest path that Linux accepts (PATH_MAX), with each byte escaped."""

_ENCODING = "ascii" if sys.getfilesystemencoding() == "ascii" else "utf-8"
"""The encoding in which Python decodes paths. In the locale C, unless it is coerced to UTF-8,
every byte that is not ASCII becomes a lone surrogate."""

_NOTATION = r"(?s)\$'((?:[^'\\]|\\.)*)'"
_ESCAPE = rb"(?s)\\(?:x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(.))"
_NAMED = {
    b"a": b"\a",
    b"b": b"\b",
    b"e": b"\x1b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
    **{each: each for each in (b"\\", b"'", b'"', b"?")},
}


def text_of_path(path: str | PurePath) -> str:
    """Return ``path``, as Python got it from the system, as text that UTF-8 can encode.

    A text that this function returned before is returned unchanged.
    """
    text = str(path)
    if is_utf8(text):
        return text
    try:  # noqa: SIM105 -- contextlib would have to be imported
        # In the locale C each letter that is not ASCII consists of lone surrogates.
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeError:
        pass
    return text if is_utf8(text) else f"$'{''.join(map(_escaped, text))}'"


def path_of_text(text: str) -> str:
    """Return the path that ``text`` means, as Python passes it to the system.

    A text that does not match the notation is the path itself. Every escape of a single byte that
    bash supports is accepted, octal ones too.
    """
    found = re.fullmatch(_NOTATION, text) if text.startswith("$'") else None
    if found is None and (text.isascii() or _ENCODING != "ascii"):
        return text
    if found is None:
        data = text.encode("utf-8", "surrogateescape")
    else:
        data = re.sub(_ESCAPE, _unescaped, found[1].encode("utf-8", "surrogateescape"))
    return data.decode(_ENCODING, "surrogateescape")


def stored_path(path: str, root: str) -> str:
    """Return ``path`` as the state of ``root`` stores it: relative to the root if it is below it.

    A root may move, and another project may be at its old path then. All are texts; ``root`` ""
    leaves every path as it is.
    """
    real, base = path_of_text(path), path_of_text(root).rstrip("/")
    if not root or not f"{real}/".startswith(f"{base}/"):
        return path
    below = real[len(base) + 1 :].strip("/")
    return f"./{below}" if below.startswith("$'") else text_of_path(below or ".")


def path_of_stored(stored: str, root: str) -> str:
    """Return the absolute path, as text, that the state of ``root`` stores as ``stored``."""
    below = path_of_text(stored)
    if below.startswith("/") or not root:
        return stored
    base = path_of_text(root).rstrip("/")
    below = below.removeprefix("./")
    return root if below == "." else text_of_path(f"{base}/{below}")


def path_after_moves(path: str, root: str, earlier: tuple[str, ...]) -> str:
    """Return the present path of an absolute one that an older version stored.

    What was below one of the ``earlier`` paths of the root is below ``root`` now.
    """
    for each in (root, *earlier):
        stored = stored_path(path, each)
        if not path_of_text(stored).startswith("/"):
            return path_of_stored(stored, root)
    return path


def shell_word(path: str | PurePath) -> str:
    """Return ``path`` as one word of a command line, to be pasted into a shell."""
    import shlex

    text = text_of_path(path)
    return text if text.startswith("$'") else shlex.quote(text)


def is_utf8(text: str) -> bool:
    """Return whether UTF-8 can encode ``text``: it has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    try:
        data = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair, which no system returns
        data = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)


def _unescaped(found: re.Match[bytes]) -> bytes:
    in_hex, in_octal, name = found.groups()
    if in_hex is not None:
        return bytes([int(in_hex, 16)])
    if in_octal is not None:
        return bytes([int(in_octal, 8) & 0xFF])
    return _NAMED.get(name, found[0])
