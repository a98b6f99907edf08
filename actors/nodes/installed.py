"""Whether what nodes need is installed, asked without importing it."""

from __future__ import annotations

from actors.nodes.compat.loading import sources_of_tractor


def check_installed() -> None:
    """Raise ``NodesNotInstalled`` unless the extra ``nodes`` is installed."""
    sources_of_tractor()
