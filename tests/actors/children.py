"""Children for tests of supervisors: they log their lives, and start and end as told."""

from __future__ import annotations

from typing import Any

import attrs
import trio
import trio.testing

from actors import Actor, Backoff, ChildSpec, Node, Request, SupervisorSpec

NO_PAUSE = Backoff(first_s=0, step_s=0)
PAUSE = Backoff(first_s=10.0)


@attrs.frozen
class Do:
    """``how``: crash, finish or hang."""

    how: str


@attrs.frozen
class Life(Request[int]):
    """Which life answers, the first being 1."""


class Log:
    """What happened, in order.

    ``failing`` says by name how many set-ups still raise, ``failures`` how many did, ``slow``
    whose set-up takes half a second.
    """

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.failing: dict[str, float] = {}
        self.failures = 0
        self.slow: set[str] = set()

    def of(self, what: str) -> list[str]:
        """The names that ``what`` was logged for."""
        return [entry.split()[1] for entry in self.entries if entry.startswith(what + " ")]

    def take(self) -> list[str]:
        """What was logged since the last look."""
        taken, self.entries = self.entries, []
        return taken


class Child(Actor[Do | Life]):
    """Logs "up" and "down" with its name; its teardown takes ``linger_s``."""

    def __init__(self, log: Log, linger_s: float = 0.0) -> None:
        self._log = log
        self._linger_s = linger_s

    @property
    def _name(self) -> str:
        return self.context.path.rsplit("/", 1)[1]

    async def setup(self) -> None:
        if self._name in self._log.slow:
            await trio.sleep(0.5)
        if self._log.failing.get(self._name, 0) > 0:
            self._log.failing[self._name] -= 1
            self._log.failures += 1
            raise OSError(f"no {self._name}")
        self._log.entries.append(f"up {self._name}")

    async def teardown(self) -> None:
        await trio.sleep(self._linger_s)
        self._log.entries.append(f"down {self._name}")

    async def receive(self, message: Do | Life) -> None:
        match message:
            case Life():
                self.reply(message, self.context.incarnation)
            case Do(how="crash"):
                raise ValueError("made to order")
            case Do(how="finish"):
                self.context.finish()
            case Do(how="hang"):
                await trio.sleep_forever()


def child(log: Log, name: str, *, linger_s: float = 0.0, **options: Any) -> ChildSpec:
    """The spec of one; it comes back without a pause unless told otherwise."""
    options.setdefault("backoff", NO_PAUSE)
    return ChildSpec.of(name, Child, log=log, linger_s=linger_s).with_options(**options)


def group(name: str, *children: ChildSpec | SupervisorSpec, **options: Any) -> SupervisorSpec:
    """The spec of a supervisor that comes back without a pause."""
    return SupervisorSpec(name=name, children=children, backoff=NO_PAUSE, **options)


def states(node: Node) -> dict[str, str]:
    """The state of everything from ``node`` down, by path."""
    found = {node.path: node.state}
    for each in node.children:
        found |= states(each)
    return found


async def idle() -> None:
    """Let everything run until nothing more happens by itself."""
    await trio.testing.wait_all_tasks_blocked()
