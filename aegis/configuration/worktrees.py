"""The section ``worktrees`` of the configuration. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.setting import setting
from aegis.configuration.values import OneLine, Several

# A default of the setting itself would fill lines of every list of settings.
MADE_AGAIN = (
    *("__pycache__", "node_modules", ".venv", "venv", "target", ".tox", ".nox", ".gradle"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".cache", ".parcel-cache"),
    *(".turbo", ".next", ".nuxt", ".svelte-kit", ".terraform", ".eggs"),
)

MAX_NAMES = 100


@attrs.frozen(kw_only=True)
class WorktreesSection:
    """The git worktrees of agents."""

    made_again: tuple[str, ...] | None = setting(
        Several(
            OneLine("the name of a directory", r"(?!\.\.?$)[^/\x00-\x1f\x7f]+", 100), MAX_NAMES
        ),
        default=None,
        otherwise="`__pycache__`, `node_modules`, `.venv`, `target`, caches and the like",
        doc="Names of directories that tools make again: ignored files in them do not keep a "
        "worktree at the close of its agent.",
    )
