"""The kind of the stream of groups. Pure."""

from __future__ import annotations

from typing import Any

from aegis.client.stream_kinds import Gap, Kind, structured
from aegis.protocol.group_streams import GroupItem, GroupsItem

GroupsValue = GroupsItem | GroupItem | Gap


class GroupsKind(Kind[GroupsValue]):
    """The states of groups: all of them, then changes."""

    stream = "groups"

    def item(self, document: dict[str, Any]) -> GroupsValue:
        """Return all groups, or one."""
        if "groups" in document:
            return structured(GroupsItem, document)
        return structured(GroupItem, document)
