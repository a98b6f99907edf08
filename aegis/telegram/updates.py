"""Updates of the Bot API, as far as they are used: a text, or a pressed button. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from aegis.telegram.settings import ChatSettings

MAX_TEXT_CHARS = 4_096
"""The longest text of a message of Telegram."""


@attrs.frozen(kw_only=True)
class Text:
    """A message: ``thread`` is the topic, ``reply_to`` the message that it answers."""

    update: int
    user: int
    name: str
    thread: int | None
    text: str
    reply_to: int | None = None


@attrs.frozen(kw_only=True)
class Press:
    """A pressed button; ``callback`` names the press, ``message`` the message with the button."""

    update: int
    user: int
    name: str
    callback: str
    data: str
    message: int | None


Update = Text | Press


def update_id(raw: object) -> int | None:
    """Return the id of an update; None if it has none."""
    number = raw.get("update_id") if isinstance(raw, Mapping) else None
    return number if isinstance(number, int) and number >= 0 else None


def read_update(raw: Mapping[str, Any], settings: ChatSettings) -> Update | None:
    """Return what an allowed person did in the allowed chat; None for everything else.

    A stranger gets no answer: not even that there is a bot.
    """
    number = update_id(raw)
    if number is None:
        return None
    match raw:
        case {"message": {"chat": {"id": int(chat)}, "from": {"id": int(user), **who}, **message}}:
            if chat != settings.chat_id or user not in settings.user_ids:
                return None
            return _text(number, user, who, message)
        case {
            "callback_query": {
                "id": str(callback),
                "from": {"id": int(user), **who},
                "data": str(data),
                "message": {"chat": {"id": int(chat)}, **message},
            }
        }:
            if chat != settings.chat_id or user not in settings.user_ids:
                return None
            return Press(
                update=number,
                user=user,
                name=_name(who),
                callback=callback[:128],
                data=data[:64],
                message=_number(message.get("message_id")),
            )
    return None


def _text(
    number: int, user: int, who: Mapping[Any, Any], message: Mapping[Any, Any]
) -> Text | None:
    text = message.get("text")
    if not isinstance(text, str) or not text:
        return None
    thread = message.get("message_thread_id") if message.get("is_topic_message") else None
    answered = message.get("reply_to_message")
    reply_to = answered.get("message_id") if isinstance(answered, Mapping) else None
    return Text(
        update=number,
        user=user,
        name=_name(who),
        thread=_number(thread),
        text=text[:MAX_TEXT_CHARS],
        reply_to=_number(reply_to),
    )


def _name(who: Mapping[Any, Any]) -> str:
    name = who.get("first_name")
    return name[:64] if isinstance(name, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
