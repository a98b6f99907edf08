"""A local server that speaks the Bot API, with the limits of the real one.

It keeps updates until they are confirmed by an offset, serves one poller at a time, refuses what
Telegram refuses (long texts and buttons, unchanged edits, unknown topics), answers 429 to a flood,
and can be told to answer 409 or 429, or to cut the connection.
"""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

TOKEN = "7:stand-in"
CHAT, USER, STRANGER = -100200, 41, 666
FLOOD = 30
"""Messages in one second after which 429 is answered."""


class BotApi:
    """The state of the server; every method of it may be called while it serves."""

    def __init__(self, *, is_forum: bool = False) -> None:
        self.is_forum = is_forum
        self.chat = CHAT
        """The id of the chat; another one after ``migrate``."""
        self.lock = threading.Condition()
        self.messages: dict[int, dict[str, Any]] = {}
        self.notes: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.topics: dict[int, str] = {}
        self.gone: set[int] = set()
        self.trouble: deque[str] = deque()
        """What the next polls get: ``409``, ``429`` or ``cut``."""
        self.sending_trouble: deque[str] = deque()
        """What the next other calls get."""
        self.held = ""
        """The calls that send a message with this part return once it is empty again."""
        self.confirmed = 0
        self.port = 0
        self._updates: dict[int, dict[str, Any]] = {}
        self._last_update = 1000
        self._last_message = 0
        self._sent_at: deque[float] = deque()
        self._polls = 0

    # What people do.

    def write(
        self, text: str, *, user: int = USER, chat: int = 0, thread: int = 0, reply_to: int = 0
    ) -> int:
        """A person writes a message; gives the id of its update."""
        topic = {"message_thread_id": thread, "is_topic_message": True} if thread else {}
        who = {"id": user, "first_name": "Ada"}
        with self.lock:
            self._last_message += 1
            message = {
                "message_id": self._last_message,
                "chat": {"id": chat or self.chat},
                "from": who,
            }
            if reply_to:
                message["reply_to_message"] = {"message_id": reply_to, "chat": {"id": chat}}
            return self._update({"message": {**message, **topic, "text": text}})

    def send(self, *, edits: bool = False, **fields: Any) -> int:
        """A person sends something that is no text, or edits a message."""
        who = {"id": USER, "first_name": "Ada"}
        with self.lock:
            self._last_message += 1
            chat = {"id": self.chat}
            message = {"message_id": self._last_message, "chat": chat, "from": who, **fields}
            return self._update({"edited_message" if edits else "message": message})

    def delete_topics(self) -> None:
        """A person deletes all topics, with their messages."""
        with self.lock:
            self.gone |= {*self.topics}
            lost = [n for n, each in self.messages.items() if each.get("message_thread_id")]
            self.topics.clear()
            for number in lost:
                del self.messages[number]

    def migrate(self, new: int) -> None:
        """The group becomes a supergroup: Telegram says so, and knows its old id no more."""
        self.send(migrate_to_chat_id=new)
        self.chat = new

    def release(self) -> None:
        """Let the calls return that are held."""
        with self.lock:
            self.held = ""
            self.lock.notify_all()

    def press(self, message: int, data: str, *, user: int = USER) -> int:
        """A person presses a button, or sends what a button might have sent."""
        who = {"id": user, "first_name": "Ada"}
        shown = {"message_id": message, "chat": {"id": CHAT}}
        with self.lock:
            query = {"id": f"q{self._last_update}", "from": who, "data": data, "message": shown}
            return self._update({"callback_query": query})

    def _update(self, fields: dict[str, Any]) -> int:
        self._last_update += 1
        self._updates[self._last_update] = {"update_id": self._last_update, **fields}
        self.lock.notify_all()
        return self._last_update

    # What is seen in the chat.

    def texts(self) -> list[str]:
        """The texts of the messages of the bot, as they are now, in order."""
        with self.lock:
            return [each["text"] for _, each in sorted(self.messages.items())]

    def find(self, part: str) -> dict[str, Any] | None:
        """The newest message whose text has this part."""
        with self.lock:
            found = [each for each in self.messages.values() if part in each["text"]]
        return found[-1] if found else None

    def buttons(self, message: dict[str, Any]) -> dict[str, str]:
        """The data of the buttons below a message, by their labels."""
        markup = message.get("reply_markup") or {}
        return {
            each["text"]: each["callback_data"]
            for row in markup.get("inline_keyboard", [])
            for each in row
        }

    # The methods.

    def answer(self, method: str, given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self.lock:
            self.calls.append(method)
        trouble = self.trouble if method == "getUpdates" else self.sending_trouble
        if trouble:
            kind = trouble.popleft()
            if kind == "cut":
                raise ConnectionAbortedError
            return refused(int(kind), retry_after=1 if kind == "429" else None)
        handler: Callable[[dict[str, Any]], Any] | None = getattr(self, f"_{method}", None)
        if handler is None:
            return refused(404)
        if given.get("chat_id", self.chat) != self.chat and given["chat_id"] == CHAT:
            text = "Bad Request: group chat was upgraded to a supergroup chat"
            return refused(400, text, moved_to=self.chat)
        try:
            return 200, {"ok": True, "result": handler(given)}
        except Refusal as error:
            return refused(error.code, error.text, error.retry_after)

    def _getChat(self, given: dict[str, Any]) -> Any:  # noqa: N802 -- the method's name
        if given["chat_id"] != self.chat:
            raise Refusal(400, "Bad Request: chat not found")
        return {"id": self.chat, "type": "supergroup", "is_forum": self.is_forum}

    def _getMe(self, given: dict[str, Any]) -> Any:  # noqa: N802
        del given
        return {"id": 7, "is_bot": True, "first_name": "Aegis", "username": "aegis_bot"}

    def _getUpdates(self, given: dict[str, Any]) -> Any:  # noqa: N802
        with self.lock:
            self._polls += 1
            mine = self._polls
            self.lock.notify_all()  # an older poll ends with 409
            offset = given.get("offset", 0)
            self.confirmed = max(self.confirmed, offset)
            for number in [each for each in self._updates if each < offset]:
                del self._updates[number]
            deadline = time.monotonic() + given.get("timeout", 0)
            while not self._updates and self._polls == mine:
                left = deadline - time.monotonic()
                if left <= 0 or not self.lock.wait(left):
                    break
            if self._polls != mine:
                raise Refusal(409, "Conflict: terminated by other getUpdates request")
            return [self._updates[number] for number in sorted(self._updates)][
                : given.get("limit", 100)
            ]

    def _sendMessage(self, given: dict[str, Any]) -> Any:  # noqa: N802
        self._check_text(given)
        with self.lock:
            self._count_flood()
            thread = given.get("message_thread_id")
            if thread is not None and thread not in self.topics:
                raise Refusal(400, "Bad Request: message thread not found")
            self._last_message += 1
            number = self._last_message
            self.messages[number] = {**given, "message_id": number}
            self.lock.wait_for(lambda: not (self.held and self.held in given["text"]))
            return {"message_id": number, "text": given["text"]}

    def _editMessageText(self, given: dict[str, Any]) -> Any:  # noqa: N802
        self._check_text(given)
        with self.lock:
            self._count_flood()
            message = self.messages.get(given["message_id"])
            if message is None:
                raise Refusal(400, "Bad Request: message to edit not found")
            new = {"text": given["text"], "reply_markup": given.get("reply_markup")}
            if all(message.get(name) == value for name, value in new.items()):
                raise Refusal(400, "Bad Request: message is not modified")
            message.update(new)
            return {"message_id": given["message_id"], "text": given["text"]}

    def _answerCallbackQuery(self, given: dict[str, Any]) -> Any:  # noqa: N802
        with self.lock:
            self.notes.append(given)
        return True

    def _createForumTopic(self, given: dict[str, Any]) -> Any:  # noqa: N802
        if not self.is_forum:
            raise Refusal(400, "Bad Request: the chat is not a forum")
        with self.lock:
            thread = max(self.topics, default=6) + 1 + len(self.gone)
            self.topics[thread] = given["name"]
        return {"message_thread_id": thread, "name": given["name"]}

    def _check_text(self, given: dict[str, Any]) -> None:
        assert given["chat_id"] == self.chat
        check_text(given)

    def _count_flood(self) -> None:
        now = time.monotonic()
        while self._sent_at and now - self._sent_at[0] > 1:
            self._sent_at.popleft()
        if len(self._sent_at) >= FLOOD:
            raise Refusal(429, "Too Many Requests: retry after 1", 1)
        self._sent_at.append(now)


class Refusal(Exception):
    def __init__(self, code: int, text: str, retry_after: int | None = None) -> None:
        super().__init__(text)
        self.code, self.text, self.retry_after = code, text, retry_after


def refused(
    code: int, text: str = "no", retry_after: int | None = None, moved_to: int | None = None
) -> tuple[int, dict[str, Any]]:
    hints = {"retry_after": retry_after, "migrate_to_chat_id": moved_to}
    parameters = {name: hint for name, hint in hints.items() if hint is not None}
    body = {"ok": False, "error_code": code, "description": text}
    return code, {**body, "parameters": parameters} if parameters else body


def check_text(given: dict[str, Any]) -> None:
    """Refuse what Telegram refuses."""
    if not given["text"].strip():
        raise Refusal(400, "Bad Request: message text is empty")
    if len(given["text"].encode("utf-16-le")) // 2 > 4096:
        raise Refusal(400, "Bad Request: message is too long")
    for row in (given.get("reply_markup") or {}).get("inline_keyboard", []):
        for each in row:
            if not 1 <= len(each["callback_data"].encode()) <= 64:
                raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A daemon that was killed resets its connections."""


@contextmanager
def bot_api(*, is_forum: bool = False) -> Iterator[BotApi]:
    """A server on a free port of this machine."""
    api = BotApi(is_forum=is_forum)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            _, bot, method = self.path.split("/")
            given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                status, body = api.answer(method, given) if bot == f"bot{TOKEN}" else refused(401)
            except ConnectionAbortedError:
                self.close_connection = True
                return
            data = json.dumps(body).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:  # the daemon was killed
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    api.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
