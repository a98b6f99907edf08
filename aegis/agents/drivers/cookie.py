"""The cookies of agents' processes: by them the processes of earlier daemons are found. Pure."""

from __future__ import annotations

import attrs


def cookie_of_driver(root: str, session: str, launch: int) -> str:
    """Return the cookie of one process of a session; it is no secret.

    ``root`` is text as ``aegis.path_text`` makes it; ``session`` is an id without ``/``.
    """
    # A root has no empty part, so that this is no cookie of a terminal or an execution.
    return f"{root}//{session}/{launch}"


def session_of_cookie(cookie: str, root: str) -> str | None:
    """Return the id of the session with this cookie; None if it is no cookie of an agent of root.

    ``root`` is as for ``cookie_of_driver``.
    """
    of_root, *rest = cookie.rsplit("/", 2)
    return rest[0] if of_root == f"{root}/" and len(rest) == 2 else None


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
        session = session_of_cookie(cookie, self.root)
        return session is not None and self.session in (None, session)
