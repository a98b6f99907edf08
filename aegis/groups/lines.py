"""``Unsynced``: a line of a group that is not durable yet. Pure."""

from __future__ import annotations

import attrs

from aegis.groups.ledger import Line


@attrs.define
class Unsynced:
    """A line that is not synced: its ledger, its group, and the callers that wait for it."""

    ledger: str
    group: str
    fields: Line
    callers: list[int]

    @property
    def kind(self) -> str:
        """The kind of the line."""
        return str(self.fields["kind"])

    @property
    def forming(self) -> str:
        """The id of the members that are being started, of a line about these."""
        forming = self.fields.get("forming")
        return str(forming["id"] if isinstance(forming, dict) else self.fields["id"])
