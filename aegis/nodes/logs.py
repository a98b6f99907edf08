"""The log of the node runtime, at a limited rate.

The runtime logs each connection that it refuses. Any program may connect, and a line for each
connection would let it fill the disk.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import structlog

LOGGER = "actors.nodes"

AT_ONCE = 20
PERIOD_S = 10.0
"""At most ``AT_ONCE`` lines in ``PERIOD_S`` seconds; the next line counts the suppressed ones."""

log = structlog.get_logger("aegis.nodes")


class NodeLogHandler(logging.Handler):
    """A log handler that passes on at most ``AT_ONCE`` lines in ``PERIOD_S``."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._clock = clock
        self._until = 0.0
        self._left = 0
        self._untold = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record, or count it as suppressed."""
        now = self._clock()
        if now >= self._until:
            self._until, self._left = now + PERIOD_S, AT_ONCE
        if self._left == 0:
            self._untold += 1
            return
        self._left -= 1
        more = {"untold": self._untold} if self._untold else {}
        self._untold = 0
        log.warning("nodes", why=record.getMessage(), **more)


def forward_node_logs() -> None:
    """Start forwarding the node runtime's log records to the daemon's log. Idempotent."""
    logger = logging.getLogger(LOGGER)
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    if not any(isinstance(each, NodeLogHandler) for each in logger.handlers):
        logger.addHandler(NodeLogHandler())
