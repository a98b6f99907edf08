"""The stream of groups: its arguments and items. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from aegis.protocol.command import Command
from aegis.protocol.groups import GroupInfo


@attrs.frozen(kw_only=True)
class StreamGroups(Command[Any]):
    """Groups: all of them first, then each that has changed; the last item of one is ``dissolved``.

    A slow client gets the newest state of a group and none between. The states of their sessions
    are in the stream ``agents``.
    """


@attrs.frozen(kw_only=True)
class GroupsItem:
    """All groups, in the order of their names."""

    groups: list[GroupInfo]


@attrs.frozen(kw_only=True)
class GroupItem:
    """A group as it is now."""

    group: GroupInfo
