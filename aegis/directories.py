"""Resolution of a directory that a caller names."""

from __future__ import annotations

import os
from pathlib import Path

from aegis.errors import InvalidRequest
from aegis.names import shorten
from aegis.path_text import path_of_text, text_of_path


def find_directory(asked: str | None, base: str | Path, what: str, otherwise: str = "") -> str:
    """Resolve ``asked`` relative to ``base``; None means ``base`` itself.

    Paths are text as ``aegis.path_text`` makes it; the result has no symbolic links. Raises
    ``InvalidRequest`` if the directory cannot be entered, with a sentence that begins with ``what``
    (the tool and the argument) and ends with ``otherwise``.
    """
    path = Path(path_of_text(str(base)))
    try:
        if asked is not None:
            path /= Path(path_of_text(asked)).expanduser()
        problem = _problem_of(asked, path)
    except OSError as error:  # too long, or below a directory without search permission
        problem = f"cannot be looked up ({error.strerror})"
    except RuntimeError:  # from expanduser, for an unknown user
        problem = "names a home directory that is not known"
    if problem is not None and asked is None:
        raise InvalidRequest(
            f"{what} {text_of_path(base)!r} {problem}; make it again, or use another directory"
        )
    if problem is not None:
        named = shorten(asked or "")
        raise InvalidRequest(f"{what} {named!r} {problem}; give a directory that exists{otherwise}")
    return text_of_path(os.path.realpath(path))


def _problem_of(asked: str | None, path: Path) -> str | None:
    """Return why the directory cannot be entered, or None. Raises ``OSError``."""
    if asked == "":
        return "is empty"
    if "\0" in str(path):
        return "holds a NUL"
    if not path.exists():
        return "does not exist"
    if not path.is_dir():
        return "is not a directory"
    if not os.access(path, os.R_OK | os.X_OK):
        return "cannot be read and entered"
    return None
