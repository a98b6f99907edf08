"""A script: the steps of the clients of a history, and the faults meanwhile. Pure.

Each client does its steps one after the other, through all incarnations of the daemon. A step has
all data that is needed to play it, so any part of a script is a script: a step may then meet
another state (a missing terminal, for example), and is checked against that state.
"""

from __future__ import annotations

import attrs

from tests.chaos.histories.canvas_script import (
    AppendCanvasStep as AppendCanvasStep,
)
from tests.chaos.histories.canvas_script import (
    CanvasStep as CanvasStep,
)
from tests.chaos.histories.canvas_script import (
    OutsideEditStep as OutsideEditStep,
)
from tests.chaos.histories.canvas_script import (
    ReadCanvasStep as ReadCanvasStep,
)
from tests.chaos.histories.canvas_script import (
    SubscribeCanvasStep as SubscribeCanvasStep,
)
from tests.chaos.histories.canvas_script import (
    WriteCanvasStep as WriteCanvasStep,
)
from tests.chaos.histories.group_script import (
    DissolveGroupStep as DissolveGroupStep,
)
from tests.chaos.histories.group_script import (
    GroupBroadcastStep as GroupBroadcastStep,
)
from tests.chaos.histories.group_script import (
    GroupStep as GroupStep,
)
from tests.chaos.histories.group_script import (
    GroupWaitStep as GroupWaitStep,
)
from tests.chaos.histories.group_script import (
    ShowGroupStep as ShowGroupStep,
)
from tests.chaos.histories.group_script import (
    SpawnGroupStep as SpawnGroupStep,
)
from tests.chaos.histories.script_faults import (
    AgentKilledFault as AgentKilledFault,
)
from tests.chaos.histories.script_faults import (
    DiskFault as DiskFault,
)
from tests.chaos.histories.script_faults import (
    ForgottenFault as ForgottenFault,
)
from tests.chaos.histories.script_faults import (
    KillFault as KillFault,
)
from tests.chaos.histories.script_faults import (
    NeverReadsFault as NeverReadsFault,
)
from tests.chaos.histories.script_faults import (
    OutsideEditFault as OutsideEditFault,
)
from tests.chaos.histories.script_faults import (
    PointFault as PointFault,
)
from tests.chaos.histories.script_faults import (
    PowerLossFault as PowerLossFault,
)
from tests.chaos.histories.script_faults import (
    ScriptFault as ScriptFault,
)
from tests.chaos.histories.script_faults import (
    ShellKilledFault as ShellKilledFault,
)
from tests.chaos.histories.script_faults import (
    ShellStoppedFault as ShellStoppedFault,
)
from tests.chaos.histories.script_faults import (
    UnstartableFault as UnstartableFault,
)
from tests.chaos.histories.script_faults import (
    WorkflowKilledFault as WorkflowKilledFault,
)
from tests.chaos.histories.script_steps import Step as Step
from tests.chaos.histories.task_script import (
    DelegateStep as DelegateStep,
)
from tests.chaos.histories.task_script import (
    EnqueueStep as EnqueueStep,
)
from tests.chaos.histories.task_script import (
    OrderTaskStep as OrderTaskStep,
)
from tests.chaos.histories.task_script import (
    PauseQueueStep as PauseQueueStep,
)
from tests.chaos.histories.task_script import (
    QueueStep as QueueStep,
)
from tests.chaos.histories.task_script import (
    ReadTasksStep as ReadTasksStep,
)
from tests.chaos.histories.workflow_script import (
    AnswerWorkflowStep as AnswerWorkflowStep,
)
from tests.chaos.histories.workflow_script import (
    OrderWorkflowStep as OrderWorkflowStep,
)
from tests.chaos.histories.workflow_script import (
    ReadWorkflowStep as ReadWorkflowStep,
)
from tests.chaos.histories.workflow_script import (
    RunWorkflowStep as RunWorkflowStep,
)
from tests.chaos.histories.workflow_script import (
    WorkflowStep as WorkflowStep,
)

SHARED, DESK, SPARE = "shared", "desk", "spare"
"""The terminals.

All clients run commands on the first and the third. One client alone types on the second, and one
client spawns and closes the third.
"""

BASH = "bash"
"""The shell of all terminals."""

TYPIST, KEEPER = 0, 1
"""The numbers of the client that types, and of the client that spawns and closes."""


ANN, BEN, CLEO, DAN = "ann", "ben", "cleo", "dan"
"""The handles of agent sessions; the first two are spawned at the start of a history with agents.

Any client may spawn each of the others, once.
"""

FAY, GUS = "fay", "gus"
"""The handles of forks: any client may fork a session under each of them, once."""

AGENTS = (ANN, BEN, CLEO, DAN, FAY, GUS)

ONCE, TWICE = "once", "twice"
"""The queues: of single attempts, one after another; of two attempts, two at a time."""

QUEUES = (ONCE, TWICE)

GROUPS = ("jury", "crew")
CANVASES = ("plan", "notes")

HUMAN = "human"
"""The sender of work from a person without a handle."""


def handle_of(client: int) -> str:
    """Return the handle of a client."""
    return f"client{client}"


# Steps.


@attrs.frozen(kw_only=True)
class OnTerminal(Step):
    """A step on ``terminal``."""

    terminal: str


@attrs.frozen(kw_only=True)
class RunStep(OnTerminal):
    """Run a command of ``kind``; ``gone_after_s``: its caller disconnects so much later."""

    kind: str
    gone_after_s: float | None = None


@attrs.frozen(kw_only=True)
class OpenQuoteStep(OnTerminal):
    """Run a command that the shell cannot finish reading."""


@attrs.frozen(kw_only=True)
class NothingStep(OnTerminal):
    """Run a comment."""


@attrs.frozen(kw_only=True)
class TypeStep(OnTerminal):
    """Type a command of ``kind`` with its Enter, and wait for its end."""

    kind: str


@attrs.frozen(kw_only=True)
class EraseStep(OnTerminal):
    """Type ``keys`` that leave an empty line, then run a command, which needs an empty line."""

    keys: str


@attrs.frozen(kw_only=True)
class TypeAheadStep(OnTerminal):
    """Type lines while one command runs and another one waits for the terminal.

    ``kinds`` are the lines, ``behind`` is the kind of the command that waits. ``is_first``: it is
    sent before the lines are typed. ``enter_after_s``: the last line gets its Enter so much later.
    """

    kinds: tuple[str, ...]
    behind: str
    is_first: bool
    enter_after_s: float | None = None


@attrs.frozen(kw_only=True)
class InterruptStep(OnTerminal):
    """Run a long command; once it runs, interrupt it by Ctrl-C, typed or as a signal."""

    by_keys: bool


@attrs.frozen(kw_only=True)
class SubscribeStep(OnTerminal):
    """Subscribe to the terminal."""

    pattern: str | None = None
    only_failures: bool = False


@attrs.frozen(kw_only=True)
class UnsubscribeStep(OnTerminal):
    """Unsubscribe from the terminal."""


@attrs.frozen(kw_only=True)
class SpawnStep(OnTerminal):
    """Spawn the terminal, which may exist already."""


@attrs.frozen(kw_only=True)
class CloseStep(OnTerminal):
    """Close the terminal."""

    purge: bool = False


@attrs.frozen(kw_only=True)
class ReadRecordsStep(OnTerminal):
    """Read all records after the last one that this client read."""


@attrs.frozen(kw_only=True)
class ReadOutputStep(OnTerminal):
    """Read the output after the read position of this client."""

    max_bytes: int
    plain: bool = True
    wait_s: float = 0.0


@attrs.frozen(kw_only=True)
class WaitStep(OnTerminal):
    """Wait for the end of a command, for a pattern or for quiet."""

    pattern: str | None = None
    idle_s: float | None = None
    timeout_s: float


@attrs.frozen(kw_only=True)
class BroadcastStep(Step):
    """Run a command of ``kind`` on several terminals at once."""

    terminals: tuple[str, ...]
    kind: str


@attrs.frozen(kw_only=True)
class ResizeStep(OnTerminal):
    """Resize the window."""

    cols: int
    rows: int


@attrs.frozen(kw_only=True)
class ScreenStep(OnTerminal):
    """Read the screen."""


@attrs.frozen(kw_only=True)
class ListStep(Step):
    """List the terminals."""


@attrs.frozen(kw_only=True)
class HandoffStep(Step):
    """Send a message to another client."""

    to: int


@attrs.frozen(kw_only=True)
class InboxStep(Step):
    """Read the inbox, or wait so many seconds; ``acknowledges`` the messages shown before."""

    acknowledges: bool
    wait_s: float | None = None


# Steps on agent sessions. ``by`` is the handle of a session that calls, as its tools do.


@attrs.frozen(kw_only=True)
class AgentStep(Step):
    """A step on the session ``agent``."""

    agent: str
    by: str | None = None


@attrs.frozen(kw_only=True)
class SpawnAgentStep(AgentStep):
    """Spawn a session; ``work`` is the kind of its first order. ``is_unnamed``: with no handle."""

    work: str | None = None
    is_unnamed: bool = False


@attrs.frozen(kw_only=True)
class WorkStep(AgentStep):
    """Send an order of ``kind`` to the session."""

    kind: str


@attrs.frozen(kw_only=True)
class InterruptAgentStep(AgentStep):
    """Interrupt the session's turn."""


@attrs.frozen(kw_only=True)
class RestartAgentStep(AgentStep):
    """Restart the session's program."""


@attrs.frozen(kw_only=True)
class CloseAgentStep(AgentStep):
    """Close the session."""


@attrs.frozen(kw_only=True)
class ResumeAgentStep(AgentStep):
    """Resume the session, which may be closed; ``work`` is the kind of an order with it."""

    work: str | None = None


@attrs.frozen(kw_only=True)
class ClearStep(AgentStep):
    """Send the session the command that begins another conversation."""


@attrs.frozen(kw_only=True)
class TakeOverStep(AgentStep):
    """Take over the session's conversation; ``interrupts`` its turn."""

    interrupts: bool = False


@attrs.frozen(kw_only=True)
class HandBackStep(AgentStep):
    """Hand the conversation back."""


@attrs.frozen(kw_only=True)
class ForkAgentStep(AgentStep):
    """Fork the session as ``fork``; ``work`` is the kind of the first order of the fork."""

    fork: str
    work: str | None = None


@attrs.frozen(kw_only=True)
class PurgeAgentStep(AgentStep):
    """Close the session and delete its files."""


@attrs.frozen(kw_only=True)
class SubscribeAgentStep(AgentStep):
    """Subscribe the session to a terminal, whose wakes become turns."""

    terminal: str


@attrs.frozen(kw_only=True)
class ShowAgentStep(AgentStep):
    """Read the state of the session, and the list of all."""


@attrs.frozen(kw_only=True)
class ReadSessionStep(AgentStep):
    """Read the newest entries of the transcript."""


@attrs.frozen(kw_only=True)
class AnswerStep(Step):
    """Answer an open request, or with ``is_late`` a closed one; ``draw`` picks it.

    ``is_shown``: with its own digest. ``twice``: by two calls at once, with different answers.
    """

    draw: int
    answer: str
    is_shown: bool = True
    is_late: bool = False
    twice: bool = False


# Steps on queues.


@attrs.frozen(kw_only=True)
class Script:
    """A script. ``seed`` sets the rest of a run, such as the order of tasks.

    ``steps`` are in the order of their numbers. ``stops``: the last incarnation but one is stopped
    in order, and not killed. ``has_agents``: two sessions are spawned at the start.
    """

    seed: int
    clients: int
    steps: tuple[Step, ...]
    faults: tuple[ScriptFault, ...]
    stops: bool = True
    has_agents: bool = False

    @property
    def uses_agents(self) -> bool:
        """Return whether there may be agents, of clients or of workflows."""
        return self.has_agents or any(
            isinstance(step, RunWorkflowStep) and step.has_calls for step in self.steps
        )

    @property
    def has_persons(self) -> bool:
        """Return whether people give agents commands, or take them over."""
        return any(isinstance(each, ClearStep | TakeOverStep) for each in self.steps)

    def of(self, client: int) -> tuple[Step, ...]:
        """Return the steps of one client."""
        return tuple(step for step in self.steps if step.client == client)
