"""The steps of a script on groups. Pure."""

from __future__ import annotations

import attrs

from tests.chaos.histories.script_steps import Step


@attrs.frozen(kw_only=True)
class GroupStep(Step):
    """A step on the group ``group``."""

    group: str


@attrs.frozen(kw_only=True)
class SpawnGroupStep(GroupStep):
    """Create the group with so many members."""

    members: int


@attrs.frozen(kw_only=True)
class GroupBroadcastStep(GroupStep):
    """Broadcast an order of ``kind``. ``key`` numbers the keys of the client."""

    kind: str
    key: int | None = None
    callback: bool = True


@attrs.frozen(kw_only=True)
class GroupWaitStep(GroupStep):
    """Wait for the replies of all members or of any; ``draw`` picks a broadcast of the group."""

    is_any: bool
    cancels: bool
    timeout_s: float
    draw: int


@attrs.frozen(kw_only=True)
class ShowGroupStep(GroupStep):
    """Read the group, and the list of all."""


@attrs.frozen(kw_only=True)
class DissolveGroupStep(GroupStep):
    """Dissolve the group."""
