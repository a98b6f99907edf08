"""The cookies of commands without a terminal, which name the callers of the commands. Pure."""

from __future__ import annotations


def cookie_of_execution(root: str, workspace: str, caller: str | None, number: int) -> str:
    """Return the cookie of one command; it is no secret.

    ``root`` is text as ``aegis.path_text`` makes it; ``caller`` is a handle, None for a person.
    """
    # ``@`` is in no name, so that this is no cookie of a terminal. It has the form of one, so that
    # a later daemon finds the processes together with those of the terminals.
    return f"{root}/@{workspace}@{caller or ''}/{number}"


def caller_of_cookie(cookie: str, root: str) -> str | None:
    """Return the handle of the caller, empty for a person; None for another cookie."""
    of_root, *rest = cookie.rsplit("/", 2)
    if of_root != root or len(rest) != 2:
        return None
    nothing, *names = rest[0].split("@")
    return names[1] if not nothing and len(names) == 2 else None
