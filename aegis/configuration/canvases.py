"""The section ``canvases`` of the configuration. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.setting import setting
from aegis.configuration.values import OneLine, Several
from aegis.path_text import MAX_PATH_CHARS

MAX_DIRECTORIES = 20


@attrs.frozen(kw_only=True)
class CanvasesSection:
    """Where the files of canvases may be, beside the project's root."""

    directories: tuple[str, ...] = setting(
        Several(
            OneLine("the path of a directory", r"[^\x00-\x1f\x7f]+", MAX_PATH_CHARS),
            MAX_DIRECTORIES,
        ),
        default=(),
        otherwise="none",
        doc="Further directories whose files may be canvases, relative to the root or absolute. "
        "Used once you trust the file (`up --trust`).",
    )
