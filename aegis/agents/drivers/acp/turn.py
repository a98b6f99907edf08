"""One turn: the text that was sent, and the last message of the answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from aegis.agents.drivers.harness import SentImage
from aegis.protocol.agent_events import AgentEvent, AssistantText, ToolUse

MAX_FINAL_CHARS = 256 * 1024
"""The last message of a turn is truncated here; its events have all of it."""


class AcpTurn:
    """A turn from ``send`` to the response of its prompt."""

    def __init__(
        self, uuid: str, text: str, command: str = "", images: Sequence[SentImage] = ()
    ) -> None:
        self.uuid = uuid
        self.text = text
        self.command = command
        self.images = images
        self.command_sent = ""
        self.is_sent = False
        self.is_cancelled = False
        self.has_failed = False
        self._message = ""
        self._chunks: list[str] = []
        self._length = 0

    @property
    def final_text(self) -> str:
        """The text after the last tool call."""
        return "".join(self._chunks)[:MAX_FINAL_CHARS]

    def note(self, events: list[AgentEvent]) -> None:
        """Collect the text of the last message."""
        for each in events:
            if isinstance(each, ToolUse):
                self._clear()
            elif isinstance(each, AssistantText):
                self._add(each)

    def _clear(self) -> None:
        self._chunks.clear()
        self._length = 0

    def _add(self, event: AssistantText) -> None:
        if event.message != self._message:
            self._clear()
            self._message = event.message
        if self._length < MAX_FINAL_CHARS:
            self._chunks.append(event.text)
            self._length += len(event.text)
