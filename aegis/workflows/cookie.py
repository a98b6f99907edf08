"""The cookies of workflows' processes, which name the starters of the workflows. Pure."""

from __future__ import annotations

import attrs


def cookie_of_workflow(root: str, workflow: str, starter: str | None, run: int) -> str:
    """Return the cookie of one process of a workflow; it is no secret.

    ``root`` is text as ``aegis.path_text`` makes it; ``starter`` is a handle, None for a person.
    """
    # A root has no empty part, so that this is no cookie of a terminal; nor is it one of an agent.
    return f"{root}//w/{starter or ''}/{workflow}/{run}"


def starter_of_cookie(cookie: str, root: str) -> str | None:
    """Return the handle of the starter, empty for a person; None for another cookie."""
    prefix = f"{root}//w/"
    if not cookie.startswith(prefix):
        return None
    parts = cookie[len(prefix) :].split("/")
    return parts[0] if len(parts) == 3 else None


@attrs.frozen
class WorkflowCookies:
    """A container of the cookies of a root's workflows, of any daemon and run."""

    root: str

    def __contains__(self, cookie: object) -> bool:
        return isinstance(cookie, str) and starter_of_cookie(cookie, self.root) is not None
