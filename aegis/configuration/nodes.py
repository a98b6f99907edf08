"""The section ``nodes`` of the configuration. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.setting import setting
from aegis.configuration.values import WholeNumber

MAX_WORKERS = 64


@attrs.frozen(kw_only=True)
class NodesSection:
    """The processes that run terminals ([nodes](../nodes.md))."""

    workers: int = setting(
        WholeNumber(0, MAX_WORKERS),
        default=0,
        doc="Number of worker processes that run terminals; 0: the daemon's process runs them.",
    )
