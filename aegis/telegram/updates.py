"""Updates of the Bot API, as far as they are used: a message, or a pressed button. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import attrs

from aegis.telegram.settings import ChatSettings

MAX_TEXT_CHARS = 4_096
"""The longest text of a message of Telegram."""

CUT_UNITS = 3_500
"""A text of at least so many UTF-16 units may be one part of a longer one: apps cut at words."""

UNREAD = {
    "photo": "a photo",
    "document": "a file",
    "voice": "a voice message",
    "audio": "an audio file",
    "video": "a video",
    "video_note": "a video message",
    "animation": "an animation",
    "sticker": "a sticker",
    "contact": "a contact",
    "location": "a location",
    "venue": "a place",
    "poll": "a poll",
    "checklist": "a checklist",
    "dice": "a die",
    "story": "a story",
    "game": "a game",
    "paid_media": "paid media",
    "rich_message": "a formatted page",
}
"""The contents that a person may send in place of text, by field.

Other messages are the group's own.
"""

NOT_EDITED = "an edited message is not read again: send the new text as a message"


@attrs.frozen(kw_only=True)
class TextMessage:
    """A message: ``thread`` is the topic, ``reply_to`` the message that it answers.

    ``unfit``: why it is no order; its text is empty then.
    """

    update: int
    user: int
    name: str
    thread: int | None
    text: str
    reply_to: int | None = None
    unfit: str = ""

    @property
    def is_partial(self) -> bool:
        """Whether the app may have cut a longer text here."""
        return len(self.text.encode("utf-16-le", "surrogatepass")) // 2 >= CUT_UNITS


@attrs.frozen(kw_only=True)
class Press:
    """A pressed button; ``callback`` names the press, ``message`` the message with the button."""

    update: int
    user: int
    name: str
    callback: str
    data: str
    message: int | None


Update = TextMessage | Press


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
            "edited_message": {
                "chat": {"id": int(chat)},
                "from": {"id": int(user), **who},
                **message,
            }
        }:
            if chat != settings.chat_id or user not in settings.user_ids:
                return None
            edited = _text(number, user, who, message)
            return None if edited is None else attrs.evolve(edited, text="", unfit=NOT_EDITED)
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


def moved_chat(raw: Mapping[str, Any], chat_id: int) -> int | None:
    """Return the new id of the chat ``chat_id`` if an update says that it became a supergroup."""
    match raw:
        case {"message": {"chat": {"id": int(chat)}, "migrate_to_chat_id": int(new)}}:
            return new if chat == chat_id else None
        case {"message": {"chat": {"id": int(new)}, "migrate_from_chat_id": int(old)}}:
            return new if old == chat_id else None
    return None


def joined(parts: Sequence[TextMessage]) -> TextMessage:
    """Return a text whose parts an app sent as messages.

    Telegram removes spaces and line ends at both ends of a message: a part that is shorter than the
    limit ended with them.
    """
    text = parts[0].text
    for before, part in pairwise(parts):
        is_full = len(before.text.encode("utf-16-le", "surrogatepass")) // 2 >= MAX_TEXT_CHARS
        text += part.text if is_full else f"\n{part.text}"
    return attrs.evolve(parts[0], text=text)


def _text(
    number: int, user: int, who: Mapping[Any, Any], message: Mapping[Any, Any]
) -> TextMessage | None:
    text, unfit = message.get("text"), ""
    if not isinstance(text, str) or not text:
        kind = next((words for field, words in UNREAD.items() if field in message), "")
        if not kind:
            return None
        with_caption = " and its caption are" if message.get("caption") else " is"
        text = ""
        unfit = f"{kind}{with_caption} not taken: this bot reads texts; write it as a message"
    thread = message.get("message_thread_id") if message.get("is_topic_message") else None
    answered = message.get("reply_to_message")
    reply_to = answered.get("message_id") if isinstance(answered, Mapping) else None
    return TextMessage(
        update=number,
        user=user,
        name=_name(who),
        thread=_number(thread),
        text=text[:MAX_TEXT_CHARS],
        reply_to=_number(reply_to),
        unfit=unfit,
    )


def _name(who: Mapping[Any, Any]) -> str:
    name = who.get("first_name")
    return name[:64] if isinstance(name, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
