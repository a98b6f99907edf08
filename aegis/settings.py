"""What ``aegis-actors up`` was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8420


class DaemonSettings(NamedTuple):
    """How to start a daemon.

    ``port`` None: the one that this root used last, else ``DEFAULT_PORT``, else a free one; 0: a
    free one. ``log_level`` is one of debug, info, warning, error. ``clean``: start none of the
    terminals that were open. ``debug``: show where a step was that blocked everything, at the cost
    of a thread.
    """

    root: Path
    host: str = DEFAULT_HOST
    port: int | None = None
    log_level: str = "info"
    clean: bool = False
    debug: bool = False
