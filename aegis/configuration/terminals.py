"""The section ``terminals`` of the configuration. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.setting import setting
from aegis.configuration.values import DecimalNumber, ProgramName, WholeNumber
from aegis.protocol.command import MAX_TIMEOUT_S
from aegis.protocol.terminals import DEFAULT_COLS, DEFAULT_ROWS, DEFAULT_RUN_TIMEOUT_S

DEFAULT_RAW_LOG_BYTES = 10_000_000
MIN_RAW_LOG_BYTES = 64 * 1024
MAX_RAW_LOG_BYTES = 1024**3


@attrs.frozen(kw_only=True)
class TerminalsSection:
    """Defaults of calls that spawn a terminal or wait for a command."""

    shell: str | None = setting(
        ProgramName(),
        default=None,
        otherwise="$SHELL of the daemon if it has exact boundaries, else bash",
        doc="Shell of a terminal that is spawned without `shell`.",
    )
    cols: int = setting(
        WholeNumber(2, 1000),
        default=DEFAULT_COLS,
        doc="Width in columns of a terminal that is spawned without `cols`.",
    )
    rows: int = setting(
        WholeNumber(1, 1000),
        default=DEFAULT_ROWS,
        doc="Height in rows of a terminal that is spawned without `rows`.",
    )
    raw_log_bytes: int = setting(
        WholeNumber(MIN_RAW_LOG_BYTES, MAX_RAW_LOG_BYTES),
        default=DEFAULT_RAW_LOG_BYTES,
        doc="Maximum size of a file of raw output, in bytes; the newest two files are kept.",
    )
    timeout_s: float = setting(
        DecimalNumber(0.01, MAX_TIMEOUT_S),
        default=DEFAULT_RUN_TIMEOUT_S,
        doc="Seconds that `term_run`, `term_wait`, `term_broadcast` and `workspace_exec` wait if "
        "`timeout` is not given.",
    )
