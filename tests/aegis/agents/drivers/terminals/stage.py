"""The rules of one terminal, played step by step."""

from __future__ import annotations

from typing import Any

from actors import Reply
from aegis.agents.drivers.terminals.rules import TerminalRules

Step = tuple[Any, ...]
"""The name of a step and its arguments; a number before them is its moment."""

Effect = tuple[Any, ...]


class KeyedReply(Reply[dict[str, Any]]):
    """A reply that adds its outcome to ``effects``, with its key."""

    def __init__(self, key: int, effects: list[Effect]) -> None:
        super().__init__()
        self.key, self.effects = key, effects

    def send(self, value: dict[str, Any]) -> None:
        assert not self.is_settled
        super().send(value)
        self.effects.append(("answer", self.key, value))

    def fail(self, error: Exception) -> None:
        assert not self.is_settled
        super().fail(error)
        self.effects.append(("refuse", self.key, str(error)))


class Stage:
    """The rules of one terminal, with all that they do and answer in ``effects``."""

    def __init__(self, limit: int | None = None) -> None:
        self.effects: list[Effect] = []
        self.now = 0.0
        self.replies: dict[int, KeyedReply] = {}
        self.rules = TerminalRules(limit, self)

    def end_processes(self, *, at_once: bool) -> None:
        self.effects.append(("end", at_once))

    def set_alarm(self, after_s: float) -> None:
        self.effects.append(("alarm", after_s))

    def show_output(self) -> None:
        self.effects.append(("show",))

    def finish(self) -> None:
        self.effects.append(("finish",))

    def play(self, *step: Any) -> list[Effect]:
        """Take a step; return its effects."""
        self.effects.clear()
        match step:
            case ["ask", key, question]:
                self.replies[key] = KeyedReply(key, self.effects)
                self.rules.ask(question, self.replies[key], self.now)
            case ["give up", key]:
                self.replies[key].expire(TimeoutError())
            case ["print", data]:
                self.rules.printed(data, self.now)
            case ["exit", status]:
                self.rules.ended(status)
            case ["gone"]:
                self.rules.gone()
            case ["due"]:
                self.rules.due(self.now)
            case [float(moment), *rest]:
                self.now = moment
                return self.play(*rest)
            case _:
                raise AssertionError(step)
        return list(self.effects)


def played(*steps: Step) -> list[list[Effect]]:
    """Return the effects of each step; a step without a moment is at the one before."""
    stage = Stage()
    return [stage.play(*step) for step in steps]
