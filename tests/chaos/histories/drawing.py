"""The drawing of a script from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

from tests.chaos.commands import SIMULATED, Kind
from tests.chaos.histories import agent_drawing as agents
from tests.chaos.histories import canvas_drawing as canvases
from tests.chaos.histories import group_drawing as groups
from tests.chaos.histories import script as s
from tests.chaos.histories import task_drawing as tasks
from tests.chaos.histories import workflow_drawing as workflows
from tests.chaos.strikes import Kind as StrikeKind
from tests.chaos.strikes import kinds_of_call, kinds_of_point

MIN_CLIENTS, MIN_STEPS = 3, 1
MOST_FAULTS = 6

WITH_AGENTS = 0.4
"""The share of histories with agents; more than half of their steps are about agents."""

WITH_QUEUES = 0.5
"""The share of those that use queues too."""

WITH_PERSONS = 0.4
"""The share of those in which people command agents, and take them over."""

WITH_GROUPS = 0.35
"""The share of those that use groups too."""

WITH_CANVASES = 0.3
"""The share of histories that use canvases, with agents or without."""

WITH_WORKFLOWS = 0.3
"""The share of histories that use workflows, with agents or without."""

PAUSE_S = 0.02
"""The average pause, in seconds, between two steps of a client."""

CALLS: Mapping[str, tuple[int, int]] = {
    "write": (3, 20),
    "pwrite": (3, 20),
    "fdatasync": (5, 12),
    "fsync": (2, 8),
    "open": (2, 20),
    "dup": (1, 10),
    "size": (1, 20),
    "pread": (2, 20),
    "ftruncate": (1, 3),
    "rename": (1, 4),
    "unlink": (1, 3),
    "mkdir": (1, 2),
    "rmdir": (1, 1),
    "list_directory": (1, 3),
    "is_directory": (1, 3),
}
"""The calls of the disk that may be struck: weight, and the most calls that precede the strike."""

POINTS: Mapping[str, int] = {
    "ledger.append.before": 6,
    "ledger.append.after": 6,
    "ledger.sync.before": 6,
    "ledger.sync.after": 6,
    "note.write.before": 12,
    "note.write.after": 12,
    "command.type.before": 6,
    "mark.start.after": 6,
    "mark.end.after": 6,
    "reply.send.before": 6,
    "workspace.write.before": 1,
    "workspace.write.after": 1,
    "purge.rename.after": 1,
    "shell.start.before": 2,
    "shell.start.after": 2,
    "shell.end.before": 2,
    "shell.end.after": 2,
    "inbox.append.before": 6,
    "inbox.append.after": 6,
    "inbox.confirm.before": 6,
    "actor.receive.before[Terminal]": 40,
    "actor.receive.after[Terminal]": 40,
    "actor.receive.before[Shell]": 40,
    "actor.receive.after[Shell]": 40,
    "actor.receive.before[LedgerWriter]": 8,
    "actor.receive.after[LedgerWriter]": 8,
    "actor.receive.before[Inbox]": 15,
    "actor.receive.after[Inbox]": 15,
    "actor.receive.before[InboxRouter]": 15,
    "actor.receive.before[TerminalDirectory]": 6,
    "actor.setup.before[Terminal]": 2,
    "actor.setup.after[Shell]": 2,
    "actor.setup.after[Inbox]": 2,
    "actor.teardown.before[Terminal]": 2,
    "actor.teardown.after[LedgerWriter]": 2,
}
"""The fault points that may be struck, with the most passes that precede the strike."""

AHEAD: Mapping[str, int] = {
    "note.write.before": 12,
    "note.write.after": 12,
    "command.type.before": 2,
    "mark.start.after": 6,
    "mark.end.after": 4,
    "actor.receive.before[Terminal]": 30,
    "actor.receive.before[Shell]": 30,
}
"""The fault points that are struck during type-ahead, with the most passes before the strike."""

WAITS = frozenset(
    {
        "ledger.sync.before",
        "ledger.sync.after",
        "shell.start.before",
        "shell.start.after",
        "shell.end.before",
        "shell.end.after",
    }
)
"""The fault points that may stall: not those of the runtime, see ``_point_fault``."""

Drawer: TypeAlias = Callable[[Any, dict[str, Any]], s.Step]
FaultDrawer: TypeAlias = Callable[[Any, int], s.ScriptFault]


class _Drawing:
    """The state of a drawing."""

    def __init__(self, seed: int, clients: int) -> None:
        self.chance = Random(f"{seed}/history")
        self.clients = clients
        self.steps: Mapping[Drawer, int] = {}
        self.faults: Mapping[FaultDrawer, int] = {}
        self.points: Mapping[str, int] = {}
        self.calls: Mapping[str, tuple[int, int]] = {}

    def one_of(self, choices: Sequence[str]) -> str:
        return self.chance.choice(choices)

    def kind_of(self, kinds: Mapping[str, Kind]) -> str:
        [name] = self.chance.choices(list(kinds), [kind.weight for kind in kinds.values()])
        return name

    def seconds(self, most: float) -> float:
        return round(self.chance.uniform(0, most), 4)

    def step(self, number: int) -> s.Step:
        """Return the step with this number, of a random client."""
        client = number % self.clients if number < self.clients else self._client()
        pause_s = round(self.chance.expovariate(1 / PAUSE_S), 4)
        drawers = {**_STEPS, **_OF_CLIENT.get(client, {}), **self.steps}
        [drawer] = self.chance.choices(list(drawers), list(drawers.values()))
        return drawer(self, {"number": number, "client": client, "pause_s": pause_s})

    def _client(self) -> int:
        return self.chance.randrange(self.clients)

    def another(self, client: int) -> int:
        return (client + self.chance.randrange(1, self.clients)) % self.clients


def make_script(seed: int, *, clients: int = 3, steps: int = 50) -> s.Script:
    """Return the script of ``seed``: the steps of the clients, and the faults.

    Raises ``ValueError`` for fewer than three clients, or no step.
    """
    if clients < MIN_CLIENTS or steps < MIN_STEPS:
        raise ValueError(f"a history needs {MIN_CLIENTS} clients and {MIN_STEPS} step at least")
    drawing = _Drawing(seed, clients)
    has_agents = Random(f"{seed}/agents").random() < WITH_AGENTS
    if has_agents:
        drawing.steps, drawing.faults, drawing.points = agents.STEPS, agents.FAULTS, agents.POINTS
    if has_agents and Random(f"{seed}/queues").random() < WITH_QUEUES:
        drawing.steps = {**drawing.steps, **tasks.STEPS}
        drawing.points = {**drawing.points, **tasks.POINTS}
    if has_agents and Random(f"{seed}/persons").random() < WITH_PERSONS:
        drawing.steps = {**drawing.steps, **agents.STEPS_OF_PERSONS}
        drawing.points = {**drawing.points, **agents.POINTS_OF_PERSONS}
    if has_agents and Random(f"{seed}/groups").random() < WITH_GROUPS:
        drawing.steps = {**drawing.steps, **groups.STEPS}
        drawing.points = {**drawing.points, **groups.POINTS}
    if Random(f"{seed}/canvases").random() < WITH_CANVASES:
        drawing.steps = {**drawing.steps, **canvases.STEPS}
        drawing.points = {**drawing.points, **canvases.POINTS}
        drawing.faults = {**drawing.faults, **canvases.FAULTS}
        drawing.calls = canvases.CALLS
    if Random(f"{seed}/workflows").random() < WITH_WORKFLOWS:
        drawing.steps = {**drawing.steps, **workflows.STEPS}
        drawing.points = {**drawing.points, **workflows.POINTS}
        drawing.faults = {**drawing.faults, **workflows.FAULTS}
    drawn = tuple(drawing.step(number) for number in range(steps))
    faults = [_fault(drawing, steps) for _ in range(drawing.chance.randint(1, MOST_FAULTS))]
    ahead = [step.number for step in drawn if isinstance(step, s.TypeAheadStep)]
    faults += [_fault_ahead(drawing, number) for number in ahead if drawing.chance.random() < 0.4]
    return s.Script(
        seed=seed,
        clients=clients,
        steps=drawn,
        faults=tuple(sorted(faults, key=lambda fault: fault.step)),
        stops=drawing.chance.random() < 0.5,
        has_agents=has_agents,
    )


# Steps.

_RUNNABLE = (s.SHARED, s.SHARED, s.SPARE)
_ALL = (s.SHARED, s.DESK, s.SPARE)


def _run(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    gone = drawing.seconds(0.1) if drawing.chance.random() < 0.1 else None
    where = drawing.one_of(_RUNNABLE)
    return s.RunStep(
        **who, terminal=where, kind=drawing.kind_of(SIMULATED.kinds), gone_after_s=gone
    )


def _run_at_desk(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.RunStep(**who, terminal=s.DESK, kind=drawing.kind_of(SIMULATED.kinds))


def _open_quote(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.OpenQuoteStep(**who, terminal=drawing.one_of(_RUNNABLE))


def _nothing(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.NothingStep(**who, terminal=drawing.one_of(_RUNNABLE))


def _type(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.TypeStep(**who, terminal=s.DESK, kind=drawing.kind_of(SIMULATED.typed))


_ERASED = ("x\x7f", "half\x15", "ab\x7f\x7f", "half\x15y\x7f")
"""Keys that leave an empty line."""


def _erase(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.EraseStep(**who, terminal=s.DESK, keys=drawing.one_of(_ERASED))


def _type_ahead(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    late = drawing.seconds(0.3) if drawing.chance.random() < 0.3 else None
    return s.TypeAheadStep(
        **who,
        terminal=s.DESK,
        kinds=tuple(drawing.kind_of(SIMULATED.typed) for _ in range(drawing.chance.randint(1, 3))),
        behind=drawing.one_of(SIMULATED.behind),
        is_first=drawing.chance.random() < 0.5,
        enter_after_s=late,
    )


def _interrupt(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    by_keys = drawing.chance.random() < 0.5
    return s.InterruptStep(**who, terminal=s.DESK, by_keys=by_keys)


def _subscribe(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    pattern = "echo @[a-z]+[.][0-9]*[02468]@" if drawing.chance.random() < 0.2 else None
    failures = drawing.chance.random() < 0.2
    return s.SubscribeStep(
        **who, terminal=drawing.one_of(_ALL), pattern=pattern, only_failures=failures
    )


def _unsubscribe(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.UnsubscribeStep(**who, terminal=drawing.one_of(_ALL))


def _spawn(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.SpawnStep(**who, terminal=s.SPARE)


def _close(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.CloseStep(**who, terminal=s.SPARE, purge=drawing.chance.random() < 0.4)


def _read_records(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.ReadRecordsStep(**who, terminal=drawing.one_of(_ALL))


def _read_output(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.ReadOutputStep(
        **who,
        terminal=drawing.one_of(_ALL),
        max_bytes=drawing.chance.choice((256, 1000, 65_536)),
        plain=drawing.chance.random() < 0.5,
        wait_s=drawing.chance.choice((0.0, 0.1)),
    )


def _wait(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    how = drawing.chance.randrange(3)
    return s.WaitStep(
        **who,
        terminal=drawing.one_of(_ALL),
        pattern="late|[0-9]0$" if how == 1 else None,
        idle_s=0.05 if how == 2 else None,
        timeout_s=drawing.chance.choice((0.05, 0.5)),
    )


def _broadcast(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    kind = drawing.one_of(("quick", "several lines", "failing"))
    return s.BroadcastStep(**who, terminals=(s.SHARED, s.SPARE), kind=kind)


def _resize(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    cols, rows = drawing.chance.randint(60, 120), drawing.chance.randint(10, 50)
    return s.ResizeStep(**who, terminal=drawing.one_of(_ALL), cols=cols, rows=rows)


def _screen(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.ScreenStep(**who, terminal=drawing.one_of(_ALL))


def _list(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.ListStep(**who)


def _handoff(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    return s.HandoffStep(**who, to=drawing.another(who["client"]))


def _inbox(drawing: _Drawing, who: dict[str, Any]) -> s.Step:
    wait_s = drawing.chance.choice((None, 0.05, 0.3))
    return s.InboxStep(**who, acknowledges=drawing.chance.random() < 0.7, wait_s=wait_s)


_STEPS: Mapping[Drawer, int] = {
    _run: 34,
    _open_quote: 1,
    _nothing: 1,
    _subscribe: 6,
    _unsubscribe: 2,
    _read_records: 4,
    _read_output: 4,
    _wait: 4,
    _broadcast: 3,
    _resize: 1,
    _screen: 1,
    _list: 1,
    _handoff: 5,
    _inbox: 8,
}
"""The steps of every client, with their weights."""

_OF_CLIENT: Mapping[int, Mapping[Drawer, int]] = {
    s.TYPIST: {_type: 24, _type_ahead: 16, _erase: 12, _interrupt: 8, _run_at_desk: 16},
    s.KEEPER: {_spawn: 12, _close: 10},
}
"""The steps of single clients, with their weights."""


# Faults.


def _fault(drawing: _Drawing, steps: int) -> s.ScriptFault:
    step = drawing.chance.randrange(steps)
    drawers = {**_FAULTS, **drawing.faults}
    [drawer] = drawing.chance.choices(list(drawers), list(drawers.values()))
    return drawer(drawing, step)


def _kill(drawing: _Drawing, step: int) -> s.ScriptFault:
    return s.KillFault(step=step, after_s=drawing.seconds(0.1))


def _power_loss(drawing: _Drawing, step: int) -> s.ScriptFault:
    draw = drawing.chance.getrandbits(32)
    return s.PowerLossFault(step=step, after_s=drawing.seconds(0.1), draw=draw)


def _disk_fault(drawing: _Drawing, step: int) -> s.ScriptFault:
    calls = {**CALLS, **drawing.calls}
    [call] = drawing.chance.choices(list(calls), [weight for weight, _ in calls.values()])
    number = drawing.chance.randint(1, calls[call][1])
    kind = drawing.chance.choice(kinds_of_call(call))
    return s.DiskFault(step=step, call=call, number=number, kind=kind)


def _point_fault(drawing: _Drawing, step: int) -> s.ScriptFault:
    points = {**POINTS, **drawing.points}
    place = drawing.one_of(tuple(points))
    number = drawing.chance.randint(1, points[place])
    kinds = kinds_of_point(place, may_wait=place in WAITS)
    if place.startswith("actor.teardown.before"):
        kinds = (StrikeKind.DIE,)  # a crash there means that no teardown runs: all of it is left
    kind = drawing.chance.choice(kinds)
    return s.PointFault(step=step, place=place, number=number, kind=kind)


def _fault_ahead(drawing: _Drawing, step: int) -> s.ScriptFault:
    """Return a fault that is likely to strike while lines typed ahead of a run are read."""
    if drawing.chance.random() < 0.3:
        return s.KillFault(step=step, after_s=drawing.seconds(0.3))
    place = drawing.one_of(tuple(AHEAD))
    number = drawing.chance.randint(1, AHEAD[place])
    kind = drawing.chance.choice((StrikeKind.DIE, StrikeKind.CRASH))
    return s.PointFault(step=step, place=place, number=number, kind=kind)


def _shell_killed(drawing: _Drawing, step: int) -> s.ScriptFault:
    where = drawing.one_of(_ALL)
    return s.ShellKilledFault(step=step, terminal=where, after_s=drawing.seconds(0.1))


def _shell_stopped(drawing: _Drawing, step: int) -> s.ScriptFault:
    where = drawing.one_of(_ALL)
    return s.ShellStoppedFault(step=step, terminal=where, seconds=drawing.seconds(0.5))


def _never_reads(drawing: _Drawing, step: int) -> s.ScriptFault:
    return s.NeverReadsFault(step=step, client=drawing.chance.randrange(drawing.clients))


_FAULTS: Mapping[FaultDrawer, int] = {
    _kill: 3,
    _power_loss: 2,
    _disk_fault: 5,
    _point_fault: 5,
    _shell_killed: 1,
    _shell_stopped: 1,
    _never_reads: 1,
}
