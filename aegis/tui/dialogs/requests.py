"""The inbox of open requests, answered with one key after a short guard."""

from __future__ import annotations

import attrs
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from aegis.agents.render import StyledSegment
from aegis.client.client import Client
from aegis.protocol.requests import RequestInfo, Value
from aegis.tui.dialogs.asking import DIALOG_CSS, Dialog
from aegis.tui.model.requests import (
    AnswerDelay,
    RequestAnswer,
    fields_of,
    key_hints,
    key_reply,
    questions_of,
    request_segments,
    typed_value,
)
from aegis.tui.panes.pane import Desk
from aegis.tui.widgets.input_bar import LineInput, Recall
from aegis.tui.widgets.parts_view import PartsView, Passage

FRAME_LINES = 6
"""Lines of the dialog beside those of the request."""


class RequestsDialog(Dialog[None]):
    """Shows the open requests one after another, the oldest first.

    The request that is shown stays until it is settled, by any client, or another is chosen.
    """

    shows_requests = True
    DEFAULT_CSS = (
        DIALOG_CSS.format(name="RequestsDialog")
        + """
    RequestsDialog > Vertical { width: 90; height: 80%; border: round $warning; }
    RequestsDialog PartsView { height: 1fr; background: $surface; }
    RequestsDialog Input { display: none; }
    RequestsDialog.asks Input { display: block; }
    RequestsDialog .keys { color: $accent; }
    """
    )

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk
        self._guard = AnswerDelay()
        self._shown: RequestInfo | None = None
        self._confirms: RequestAnswer | None = None
        self._values: dict[str, Value] = {}
        self._asked: list[tuple[str, object]] = []

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("", classes="title", markup=False)
            yield PartsView()
            yield LineInput(Recall())
            yield Static("", classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(PartsView).follows = False
        self.query_one(PartsView).focus()
        self.refresh_requests()

    def refresh_requests(self) -> None:
        """Show the request again, or the next one if it is settled."""
        if not self.is_attached:
            return
        requests = self._desk.world.open_requests()
        if self._shown is None or self._shown.id not in self._desk.world.requests:
            was_last = self._shown is not None and not requests
            self._choose(requests[0] if requests else None)
            if was_last:
                self.close()
                return
        self._draw()

    def _choose(self, request: RequestInfo | None) -> None:
        self._shown = request
        self._confirms, self._values, self._asked = None, {}, []
        self.set_class(False, "asks")
        if request is not None:
            self._guard.show(request.id, self._desk.now())

    def _draw(self) -> None:
        requests = self._desk.world.open_requests()
        title, view = self.query_one(".title", Static), self.query_one(PartsView)
        keys = self.query_one(".keys", Static)
        if self._shown is None:
            title.update("REQUESTS")
            view.replace([Passage(_NOTHING)])
            keys.update("Esc closes")
            self._fit()
            return
        number = [each.id for each in requests].index(self._shown.id) + 1
        title.update(f"REQUEST {number} of {len(requests)}")
        segments = request_segments(self._shown, self._desk.now())
        view.replace([Passage(segments, edge=("", ""))])
        view.scroll_home(animate=False)
        keys.update(self._hints())
        self._fit()

    def _fit(self) -> None:
        """Make the dialog as high as the request, within the window."""
        most = max(8, self.app.size.height * 4 // 5)
        lines = self.query_one(PartsView).count()
        self.query_one(Vertical).styles.height = min(lines + FRAME_LINES, most)

    def on_parts_view_laid_out(self) -> None:
        self._fit()

    def _hints(self) -> str:
        assert self._shown is not None
        if self._confirms:
            return "Enter allows it · any other key goes back"
        if self._asked:
            return f"{self._asked[0][0]} · Enter answers · Esc goes back"
        hints = [f"{key} {text}" for key, text in key_hints(self._shown)]
        if len(self._desk.world.requests) > 1:
            hints.append("→ next")
        return " · ".join([*hints, "Esc closes"])

    # Keys.

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            self._escape()
        elif self._asked:
            return  # typed into the input
        elif event.key in ("left", "right"):
            self._step(1 if event.key == "right" else -1)
        elif event.key in ("up", "down", "pageup", "pagedown", "home", "end"):
            return
        elif self._shown is not None:
            self._answer_key(event)
        else:
            return
        event.stop()
        event.prevent_default()

    def _escape(self) -> None:
        if self._asked or self._confirms:
            request, self._shown = self._shown, None
            self._choose(request)
            self.query_one(PartsView).focus()
            self._draw()
        else:
            self.close()

    def _step(self, by: int) -> None:
        requests = self._desk.world.open_requests()
        if self._shown is not None and len(requests) > 1:
            at = [each.id for each in requests].index(self._shown.id)
            self._choose(requests[(at + by) % len(requests)])
            self._draw()

    def _answer_key(self, event: events.Key) -> None:
        assert self._shown is not None
        now = self._desk.now()
        if self._guard.left(now) > 0:
            # The key was meant for what had the focus before the request was shown.
            self._guard.touch(now)
            return
        request = self._shown
        if self._confirms is not None:
            reply, self._confirms = self._confirms, None
            if event.key == "enter":
                self._send(request, reply)
            self._draw()
            return
        if event.key == "enter" and request.kind in ("question", "elicitation"):
            self._ask_values(request)
            return
        if self._pick(request, event.key):
            return
        found = key_reply(request, event.key)
        if found is None:
            return
        if found.answer == "allow" and request.needs_person:
            self._confirms = found
            self._draw()
            return
        self._send(request, found)

    def _pick(self, request: RequestInfo, key: str) -> bool:
        """Answer a single question by the number of its label."""
        questions = questions_of(request) if request.kind == "question" else []
        if len(questions) != 1 or questions[0].is_multiple or not key.isdecimal():
            return False
        labels = questions[0].labels
        if not 1 <= int(key) <= len(labels):
            return False
        label = labels[int(key) - 1]
        self._send(request, RequestAnswer("allow", values={questions[0].text: label}, label=label))
        return True

    # Questions and forms, one line each.

    def _ask_values(self, request: RequestInfo) -> None:
        if request.kind == "question":
            self._asked = [(each.text, each.is_multiple) for each in questions_of(request)]
        else:
            self._asked = [(name, each.get("type")) for name, each in fields_of(request).items()]
        if not self._asked:
            self._send(request, RequestAnswer("allow", label="accepted"))
            return
        self.set_class(True, "asks")
        self._ask_next()

    def _ask_next(self) -> None:
        field = self.query_one(LineInput)
        field.taken()
        field.placeholder = self._asked[0][0]
        field.focus()
        self._draw()

    def on_input_submitted(self, event: LineInput.Submitted) -> None:
        event.stop()
        text = self.query_one(LineInput).whole()
        request = self._shown
        if request is None or not self._asked:
            return
        name, kind = self._asked.pop(0)
        self._values[name] = self._value(request, name, kind, text)
        if self._asked:
            self._ask_next()
            return
        self.set_class(False, "asks")
        self.query_one(PartsView).focus()
        self._send(request, RequestAnswer("allow", values=self._values, label="answered"))

    def _value(self, request: RequestInfo, name: str, kind: object, text: str) -> Value:
        if request.kind != "question":
            return typed_value(text, kind)
        labels = next(each.labels for each in questions_of(request) if each.text == name)
        words = [each.strip() for each in text.split(",")] if kind else [text.strip()]
        chosen = [
            labels[int(each) - 1] if each.isdecimal() and 1 <= int(each) <= len(labels) else each
            for each in words
        ]
        return chosen if kind else chosen[0]

    def _send(self, request: RequestInfo, reply: RequestAnswer) -> None:
        async def answer(client: Client) -> None:
            fate = await client.requests.answer(
                request.id,
                request.digest,
                reply.answer,
                scope=reply.scope,
                option=reply.option,
                values=reply.values or None,
            )
            if fate.outcome == "applied":
                self._desk.show_remark(f"{request.handle}: {reply.label}")
            else:
                self._desk.report(fate.text)

        self._desk.answering.add(request.id)
        self._desk.link.call(answer, what=f"{request.handle}: ")


_NOTHING = [StyledSegment("Nobody waits for you.", "dim")]


def settled_note(request: RequestInfo) -> str:
    """Return one sentence about a request that was settled."""
    if request.state == "withdrawn":
        return f"{request.handle}: withdrawn, {request.withdrawn}"
    kind = (attrs.asdict(request).get("answer") or {}).get("kind", "answered")
    return f"{request.handle}: {kind} by {request.by}"
