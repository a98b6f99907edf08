"""``Settings``: the parts of a session's machine that never change. Pure."""

from __future__ import annotations

import attrs

from aegis.agents.sessions.open_requests import Policy


@attrs.frozen(kw_only=True)
class Settings:
    """``session`` is the id. ``max_runtime_s`` limits one turn; None: no limit."""

    session: str
    policy: Policy
    max_runtime_s: float | None = None
