"""The section ``nodes``: the processes that terminals run in. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.setting import setting
from aegis.configuration.values import WholeNumber

MAX_WORKERS = 64


@attrs.frozen(kw_only=True)
class NodesSection:
    """The processes that terminals run in ([nodes](../nodes.md))."""

    workers: int = setting(
        WholeNumber(0, MAX_WORKERS),
        default=0,
        doc="Over how many worker processes terminals are spread; 0: they run in the daemon's own.",
    )
