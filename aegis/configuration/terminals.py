"""The section ``terminals``: what terminals and commands begin with. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.setting import setting
from aegis.configuration.values import Number, Program, WholeNumber
from aegis.protocol.command import MAX_TIMEOUT_S
from aegis.protocol.terminals import DEFAULT_COLS, DEFAULT_ROWS, DEFAULT_RUN_TIMEOUT_S

DEFAULT_RAW_LOG_BYTES = 10_000_000
MIN_RAW_LOG_BYTES = 64 * 1024
MAX_RAW_LOG_BYTES = 1024**3


@attrs.frozen(kw_only=True)
class TerminalsSection:
    """What a terminal is spawned with, and how long a call waits, where the caller says nothing."""

    shell: str | None = setting(
        Program(),
        default=None,
        otherwise="$SHELL of the daemon if it has exact boundaries, else bash",
        doc="The shell of a terminal that is spawned without one.",
    )
    cols: int = setting(
        WholeNumber(2, 1000),
        default=DEFAULT_COLS,
        doc="The width of a terminal that is spawned without one, in columns.",
    )
    rows: int = setting(
        WholeNumber(1, 1000),
        default=DEFAULT_ROWS,
        doc="The height of a terminal that is spawned without one, in rows.",
    )
    raw_log_bytes: int = setting(
        WholeNumber(MIN_RAW_LOG_BYTES, MAX_RAW_LOG_BYTES),
        default=DEFAULT_RAW_LOG_BYTES,
        doc="How large a file of raw output grows; of each terminal the newest two are kept.",
    )
    timeout_s: float = setting(
        Number(0.01, MAX_TIMEOUT_S),
        default=DEFAULT_RUN_TIMEOUT_S,
        doc="How long `term_run`, `term_wait`, `term_broadcast` and `workspace_exec` wait without "
        "a `timeout`, in seconds.",
    )
