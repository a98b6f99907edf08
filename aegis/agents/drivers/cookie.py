"""The cookies of agents' processes: by them the processes of earlier daemons are found. Pure."""

from __future__ import annotations

import attrs


def cookie_of_driver(root: str, session: str, launch: int) -> str:
    """Return the cookie of one process of a session; it is no secret.

    ``root`` is text as ``aegis.path_text`` makes it; ``session`` is an id without ``/``.
    """
    # A root has no empty part, so that this is no cookie of a terminal or an execution.
    return f"{root}//{session}/{launch}"


@attrs.frozen(kw_only=True)
class DriverCookies:
    """A container of the cookies of a root's agents, or of one session, of any daemon and launch.

    With ``reaper.end_processes`` it ends what earlier daemons left.
    """

    root: str
    session: str | None = None

    def __contains__(self, cookie: object) -> bool:
        if not isinstance(cookie, str):
            return False
        root, *rest = cookie.rsplit("/", 2)
        if root != f"{self.root}/" or len(rest) != 2:
            return False
        return self.session is None or rest[0] == self.session
