"""The children of the daemon for Telegram, if it is configured. Loaded only then."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import structlog

from actors import ChildSpec
from aegis.journal.flusher import Flusher
from aegis.telegram.doing import Names
from aegis.telegram.settings import TOKEN_VARIABLE, ChatSettings

log = structlog.get_logger("aegis.telegram")


class Section(Protocol):
    """The section of the configuration."""

    @property
    def chat_id(self) -> int | None: ...
    @property
    def user_ids(self) -> tuple[int, ...]: ...
    @property
    def api(self) -> str: ...


def telegram_children(
    path: Path, section: Section, token: str, flusher: Flusher, names: Names
) -> tuple[ChildSpec, ...]:
    """Return the outbox and the desk; none, with a warning in the log, if they cannot work."""
    if not token:
        log.warning("telegram is not started", why=f"{TOKEN_VARIABLE} is not set")
        return ()
    from aegis.telegram.desk import TelegramDesk
    from aegis.telegram.outbox import Outbox

    assert section.chat_id is not None
    settings = ChatSettings(
        chat_id=section.chat_id, user_ids=section.user_ids, token=token, api=section.api
    )
    return (
        ChildSpec.of("telegram-outbox", Outbox, settings=settings),
        ChildSpec.of(
            "telegram", TelegramDesk, settings=settings, path=path, flusher=flusher, names=names
        ),
    )
