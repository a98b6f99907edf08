"""One incarnation of a supervisor as a state machine: events in, actions out. Pure.

Rules of order, in addition to those of ``policy.py``:

- Children start one after the other, each when the one before is up. A first start that fails ends
  the supervisor.
- A group that restarts together (one_for_all, rest_for_one) is stopped in reverse, one after the
  other; then follows the pause; then it starts in order. It costs the budget one restart.
- A member that ends by itself while its group is being stopped is down like the others and costs
  nothing. A member that crashes or fails to start while the group starts is one more restart.
- A group also starts those of its children that had finished or been stopped, as a restart of the
  supervisor does, but never temporary ones.
- A child that is stopped on purpose, at any time, is left out of the restart in progress.
- The first reason to end the supervisor counts; nothing is started after it.

Each event method returns the actions to carry out, in order.
"""

from __future__ import annotations

import enum

import attrs

from actors.errors import ActorError, RestartsExhausted, StartFailed
from actors.policy import (
    Exit,
    ExitKind,
    ForgetChild,
    GiveUp,
    RestartBudget,
    RestartChild,
    decide,
    describe,
    restarted_with,
    shuts_down,
)
from actors.spec import AnySpec, Restart, Strategy, SupervisorSpec


@attrs.frozen
class StartChild:
    """Start an incarnation of the child."""

    name: str


@attrs.frozen
class StopChild:
    """Stop the child's incarnation, within its time limit."""

    name: str


@attrs.frozen
class EndIncarnation:
    """Note the end of the child's incarnation; another may follow."""

    name: str
    ended: Exit


@attrs.frozen
class RemoveChild:
    """Remove the child: it is stopped for good."""

    name: str
    ended: Exit


@attrs.frozen
class BackoffPause:
    """Call ``pause_over`` with ``ticket`` in ``delay_s`` seconds."""

    ticket: int
    delay_s: float


@attrs.frozen
class Up:
    """Report that all children are up for the first time."""


@attrs.frozen
class EndSupervisor:
    """End the supervisor with this exit: all children are down."""

    ended: Exit


Action = StartChild | StopChild | EndIncarnation | RemoveChild | BackoffPause | Up | EndSupervisor


class ChildStatus(enum.Enum):
    """The state of a child as its supervisor knows it."""

    DOWN = "down"
    """Will be started."""
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    GONE = "gone"
    """Ended for good; only a restart of its group may start it again."""


@attrs.define(eq=False)
class _Child:
    spec: AnySpec
    status: ChildStatus = ChildStatus.DOWN
    was_up: bool = False
    is_removed: bool = False
    """Stopped on purpose: no restart follows."""

    @property
    def is_alive(self) -> bool:
        return self.status not in (ChildStatus.DOWN, ChildStatus.GONE)


@attrs.define(eq=False)
class _Group:
    """Children that restart together: they end, then there is a pause, then they start."""

    names: frozenset[str]
    to_stop: list[str]
    delay_s: float
    ticket: int | None = None


class Supervision:
    """The state of one incarnation of the supervisor at ``path``."""

    def __init__(self, path: str, spec: SupervisorSpec) -> None:
        self._path = path
        self._spec = spec
        self._budget = RestartBudget(intensity=spec.intensity, period_s=spec.period_s)
        self._children = {child.name: _Child(child) for child in spec.children}
        self._order = tuple(self._children)
        self._to_start: list[str] = []
        self._group: _Group | None = None
        self._pauses: dict[int, _Child] = {}
        self._tickets = 0
        self._is_up = False
        self._is_over = False
        self._ending: Exit | None = None
        self._to_stop: list[str] = []
        self._alive = 0
        self._actions: list[Action] = []

    def status(self, name: str) -> ChildStatus:
        """Return the child's state: ``GONE`` for an unknown name."""
        child = self._children.get(name)
        return ChildStatus.GONE if child is None else child.status

    @property
    def is_ending(self) -> bool:
        """Whether the supervisor is ending."""
        return self._ending is not None

    @property
    def restarts(self) -> int:
        """The number of restarts that the budget counts in the current period."""
        return len(self._budget.times)

    # Events.

    def begin(self) -> list[Action]:
        """Start all children of the spec."""
        self._to_start.extend(self._order)
        return self._advance()

    def started(self, name: str) -> list[Action]:
        """Note that the child is up."""
        child = self._children[name]
        child.was_up = True
        if child.status is ChildStatus.STARTING:
            child.status = ChildStatus.RUNNING
        if self._to_start and self._to_start[0] == name:
            self._to_start.pop(0)
        return self._advance()

    def ended(self, name: str, ended: Exit, now: float, chance: float) -> list[Action]:
        """Note the end of the child at ``now`` (seconds). ``chance``, for the jitter: [0, 1)."""
        child = self._children[name]
        assert child.is_alive, f"{self._path}/{name} ended twice"
        child.status = ChildStatus.DOWN
        self._alive -= 1
        if self._ending is not None:
            self._actions.append(EndIncarnation(name, ended))
        elif child.is_removed:
            self._remove(child, Exit(ExitKind.STOPPED))
        elif self._group is not None and name in self._group.names:
            self._end_member(child, ended)
        elif child.was_up or (self._is_up and not self._spec.dynamic):
            self._apply_policy(child, ended, now, chance)
        else:
            self._fail_first_start(child, ended)
        return self._advance()

    def pause_over(self, ticket: int) -> list[Action]:
        """Note the end of a ``BackoffPause``."""
        child = self._pauses.pop(ticket, None)
        if self._ending is None and child is not None and child.status is ChildStatus.DOWN:
            self._start(child)
        if self._group is not None and self._group.ticket == ticket:
            self._start_group(self._group)
        return self._advance()

    def add(self, spec: AnySpec) -> list[Action]:
        """Start a child of a dynamic supervisor; its name must be free."""
        assert self._spec.dynamic
        assert spec.name not in self._children
        child = self._children[spec.name] = _Child(spec)
        self._start(child)
        return self._advance()

    def remove(self, name: str) -> list[Action]:
        """Stop a child for good, on request."""
        child = self._children.get(name)
        if self._ending is not None or child is None or child.status is ChildStatus.GONE:
            return []
        if child.is_alive:
            child.is_removed = True
            self._stop(child)
        else:
            self._remove(child, Exit(ExitKind.STOPPED))
        return self._advance()

    def stop(self) -> list[Action]:
        """Stop the supervisor, on request."""
        self._end(Exit(ExitKind.STOPPED))
        return self._advance()

    # Steps.

    def _advance(self) -> list[Action]:
        """Take the next step of the end, the group's restart or the start in progress."""
        if self._ending is not None:
            self._stop_next(self._ending)
        elif self._group is not None:
            self._bring_down(self._group)
        else:
            self._start_next()
        actions, self._actions = self._actions, []
        return actions

    def _start_next(self) -> None:
        while self._to_start and self._children[self._to_start[0]].status is ChildStatus.GONE:
            self._to_start.pop(0)
        if self._to_start:
            child = self._children[self._to_start[0]]
            if child.status is ChildStatus.DOWN:
                self._start(child)
        elif not self._is_up:
            self._is_up = True
            self._actions.append(Up())

    def _start(self, child: _Child) -> None:
        child.status = ChildStatus.STARTING
        self._alive += 1
        self._actions.append(StartChild(child.spec.name))

    def _stop(self, child: _Child) -> None:
        if child.status is not ChildStatus.STOPPING:
            child.status = ChildStatus.STOPPING
            self._actions.append(StopChild(child.spec.name))

    def _remove(self, child: _Child, ended: Exit) -> None:
        child.status = ChildStatus.GONE
        child.is_removed = False
        if self._spec.dynamic:
            del self._children[child.spec.name]
        self._actions.append(RemoveChild(child.spec.name, ended))

    def _fail_first_start(self, child: _Child, ended: Exit) -> None:
        if self._spec.dynamic:
            self._remove(child, ended)
        else:
            self._actions.append(EndIncarnation(child.spec.name, ended))
            error = start_failed(f"{self._path}/{child.spec.name}", ended)
            self._end(Exit(ExitKind.CRASHED, error))

    def _apply_policy(self, child: _Child, ended: Exit, now: float, chance: float) -> None:
        name = child.spec.name
        decision, self._budget = decide(child.spec, ended, self._budget, now, chance)
        match decision:
            case ForgetChild():
                self._remove(child, ended)
                self._shut_down_after(child, ended)
            case RestartChild(delay_s):
                self._actions.append(EndIncarnation(name, ended))
                self._restart(child, delay_s)
            case GiveUp(restarts):
                self._actions.append(EndIncarnation(name, ended))
                self._end(Exit(ExitKind.CRASHED, self._exhausted(name, restarts, ended)))

    def _shut_down_after(self, child: _Child, ended: Exit) -> None:
        if not child.spec.significant:
            return
        others = any(
            each.spec.significant and each.status is not ChildStatus.GONE
            for each in self._children.values()
        )
        if shuts_down(self._spec.auto_shutdown, child.spec, ended, others=others):
            self._end(Exit(ExitKind.FINISHED))

    def _exhausted(self, name: str, restarts: int, ended: Exit) -> ActorError:
        error = RestartsExhausted(
            f"{self._path} gave up: {restarts} restarts within {self._spec.period_s:g} s, "
            f"the last of {self._path}/{name} ({ended.reason})"
        )
        error.__cause__ = ended.error
        return error

    # A restart.

    def _restart(self, child: _Child, delay_s: float) -> None:
        if self._spec.strategy is not Strategy.ONE_FOR_ONE:
            self._restart_group(child.spec.name, delay_s)
        elif delay_s <= 0:
            self._start(child)
        else:
            self._pauses[self._pause(delay_s)] = child

    def _pause(self, delay_s: float) -> int:
        self._tickets += 1
        self._actions.append(BackoffPause(self._tickets, delay_s))
        return self._tickets

    def _restart_group(self, name: str, delay_s: float) -> None:
        # Replaces a restart of fewer children that is in progress.
        names = restarted_with(self._spec.strategy, self._order, name)
        for member in (self._children[each] for each in names):
            if member.status is ChildStatus.GONE and member.spec.restart is not Restart.TEMPORARY:
                member.status = ChildStatus.DOWN
        self._to_start.clear()
        self._group = _Group(frozenset(names), list(names), delay_s)

    def _end_member(self, child: _Child, ended: Exit) -> None:
        # It was about to be stopped: a crash before that makes no difference.
        if child.spec.restart is Restart.TEMPORARY:
            self._remove(child, ended)
        else:
            self._actions.append(EndIncarnation(child.spec.name, ended))

    def _bring_down(self, group: _Group) -> None:
        child = self._last_alive(group.to_stop)
        if child is not None:
            self._stop(child)
        elif group.ticket is None and group.delay_s > 0:
            group.ticket = self._pause(group.delay_s)
        elif group.ticket is None:
            self._start_group(group)
            self._start_next()

    def _start_group(self, group: _Group) -> None:
        self._group = None
        self._to_start.extend(name for name in self._order if name in group.names)

    def _last_alive(self, names: list[str]) -> _Child | None:
        while names:
            child = self._children[names[-1]]
            if child.is_alive:
                return child
            names.pop()
        return None

    # The end.

    def _end(self, ended: Exit) -> None:
        if self._ending is not None:
            return
        self._ending = ended
        self._group = None
        self._to_start.clear()
        alive = [child for child in self._children.values() if child.is_alive]
        if self._spec.dynamic:
            for child in alive:
                self._stop(child)
        else:
            self._to_stop = [child.spec.name for child in alive]

    def _stop_next(self, ended: Exit) -> None:
        child = self._last_alive(self._to_stop)
        if child is not None:
            self._stop(child)
        elif self._alive == 0 and not self._is_over:
            self._is_over = True
            self._actions.append(EndSupervisor(ended))


def start_failed(path: str, ended: Exit) -> StartFailed:
    """Return the error for the caller that started a child, which failed to start."""
    cause = ended.error
    failure = StartFailed(
        f"{path} did not start: {describe(cause) if cause is not None else ended.reason}"
    )
    failure.__cause__ = cause
    return failure
