"""``Chat``: messages to the one chat, through the outbox."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs
import trio

from actors import AskError, System
from aegis.errors import AegisError, Unavailable
from aegis.shown_text import escape_line
from aegis.telegram.outbox import Send
from aegis.telegram.texts import parts_of

AGAIN_S = 1.0

GONE = ("thread not found", "TOPIC_DELETED", "TOPIC_CLOSED")
"""The words of Telegram about a topic that a person deleted or closed."""


@attrs.frozen
class Button:
    """A button below a message; ``data`` is returned when it is pressed."""

    label: str
    data: str


@attrs.frozen
class Chat:
    """The chat with the id that ``chat_id`` returns: a group gets another one.

    Calls wait while Telegram cannot be reached or wants to be left alone. A call is repeated when
    the outbox was restarted meanwhile: a message may come twice. ``instead_of`` returns where to
    send what a topic does not take any more: another topic, or None for the chat itself.
    """

    system: System
    chat_id: Callable[[], int]
    instead_of: Callable[[int], Awaitable[int | None]]

    async def say(self, text: str, thread: int | None) -> None:
        """Send a text, in as many messages as it takes. What Telegram refuses is dropped."""
        for part in parts_of(text):
            with contextlib.suppress(AegisError):
                await self.call("sendMessage", text=part, message_thread_id=thread)

    async def send(self, text: str, thread: int | None, buttons: Sequence[Button] = ()) -> int:
        """Send one message with buttons below each other; return its id. Raises ``AegisError``."""
        part = parts_of(text)[0]
        sent = await self.call(
            "sendMessage", text=part, message_thread_id=thread, reply_markup=_markup(buttons)
        )
        return _message_id(sent)

    async def edit(self, message: int, text: str, buttons: Sequence[Button] = ()) -> None:
        """Replace a message and its buttons. Raises ``AegisError``."""
        await self.call(
            "editMessageText",
            edits=message,
            message_id=message,
            text=parts_of(text)[0],
            reply_markup=_markup(buttons),
        )

    def edit_soon(self, message: int, text: str) -> None:
        """Replace a message later; a later edit replaces this one."""
        outbox = self._outbox()
        if outbox is not None:
            arguments = {
                "chat_id": self.chat_id(),
                "message_id": message,
                "text": parts_of(text)[0],
            }
            with contextlib.suppress(AskError):
                outbox.send_request(
                    Send(method="editMessageText", arguments=arguments, edits=message)
                )

    async def note(self, callback: str, text: str) -> None:
        """Answer a pressed button with a note that is shown for a moment."""
        # Telegram forgets a press soon: there is no use in trying for long.
        with contextlib.suppress(AegisError), trio.move_on_after(10):
            await self.call(
                "answerCallbackQuery",
                spaced=False,
                with_chat=False,
                callback_query_id=callback,
                text=text[:200],
            )

    async def call(
        self,
        method: str,
        *,
        edits: int | None = None,
        spaced: bool = True,
        with_chat: bool = True,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Make a call. Raises ``AegisError`` if Telegram refuses it."""
        while True:
            given = {"chat_id": self.chat_id(), **arguments} if with_chat else arguments
            outbox = self._outbox()
            if outbox is not None:
                request = Send(method=method, arguments=given, edits=edits, spaced=spaced)
                try:
                    result: dict[str, Any] = await outbox.send_request(request).wait()
                except AskError:
                    pass
                except Unavailable as error:
                    thread = arguments.get("message_thread_id")
                    if thread is None or not any(each in str(error) for each in GONE):
                        raise
                    arguments["message_thread_id"] = await self.instead_of(thread)
                    continue
                else:
                    return result
            await trio.sleep(AGAIN_S)

    def _outbox(self) -> Any:
        return self.system.registry.find("service", "telegram-outbox")


def _markup(buttons: Sequence[Button]) -> dict[str, Any] | None:
    rows = [[{"text": escape_line(each.label), "callback_data": each.data}] for each in buttons]
    return {"inline_keyboard": rows} if rows else None


def _message_id(sent: dict[str, Any]) -> int:
    number = sent.get("message_id")
    if not isinstance(number, int):
        raise Unavailable("Telegram: the answer has no message_id")
    return number
