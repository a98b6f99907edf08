"""The children of the daemon for Telegram, if it is configured. Loaded only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import structlog

from actors import ChildSpec
from aegis.journal.flusher import Flusher
from aegis.telegram.settings import TOKEN_VARIABLE, ChatSettings

log = structlog.get_logger("aegis.telegram")


def telegram_children(
    path: Path, settings: ChatSettings, flusher: Flusher, address_of: Callable[[str], str]
) -> tuple[ChildSpec, ...]:
    """Return the outbox and the desk; none, with a warning in the log, if they cannot work."""
    if not settings.token:
        log.warning("telegram is not started", why=f"{TOKEN_VARIABLE} is not set")
        return ()
    from aegis.telegram.desk import TelegramDesk
    from aegis.telegram.outbox import Outbox

    return (
        ChildSpec.of("telegram-outbox", Outbox, settings=settings),
        ChildSpec.of(
            "telegram",
            TelegramDesk,
            settings=settings,
            path=path,
            flusher=flusher,
            address_of=address_of,
        ),
    )
