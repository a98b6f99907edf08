"""What the runtime of nodes logs: bounded, whoever makes it log."""

from __future__ import annotations

import logging

from structlog.testing import capture_logs

from aegis.nodes.logs import AT_ONCE, LOGGER, PERIOD_S, NodeLogHandler, forward_node_logs


def refused(number: int) -> logging.LogRecord:
    return logging.LogRecord(LOGGER, logging.WARNING, "", 0, "refused %s", (number,), None)


def test_a_flood_of_refusals_is_a_few_lines_and_a_number() -> None:
    now = 100.0
    handler = NodeLogHandler(lambda: now)
    with capture_logs() as lines:
        for number in range(10_000):
            handler.handle(refused(number))
        assert [line["why"] for line in lines] == [f"refused {n}" for n in range(AT_ONCE)]
        now += PERIOD_S
        handler.handle(refused(-1))
    assert (lines[-1]["why"], lines[-1]["untold"]) == ("refused -1", 10_000 - AT_ONCE)


def test_it_is_told_once_however_often_it_is_begun() -> None:
    logger = logging.getLogger(LOGGER)
    before = list(logger.handlers), logger.propagate, logger.level
    try:
        forward_node_logs()
        forward_node_logs()
        assert logger.isEnabledFor(logging.WARNING)
        assert len([each for each in logger.handlers if isinstance(each, NodeLogHandler)]) == 1
    finally:
        logger.handlers[:], logger.propagate, logger.level = before
