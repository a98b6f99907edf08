"""The faults of a script. Pure."""

from __future__ import annotations

import attrs

from tests.chaos.strikes import Kind as StrikeKind


@attrs.frozen(kw_only=True)
class ScriptFault:
    """A fault that is armed when the step ``step``, or a later one, begins."""

    step: int


@attrs.frozen(kw_only=True)
class KillFault(ScriptFault):
    """A kill with SIGKILL of the daemon, so many seconds later."""

    after_s: float


@attrs.frozen(kw_only=True)
class PowerLossFault(ScriptFault):
    """A loss of power, so many seconds later. ``draw`` picks the image of the disk."""

    after_s: float
    draw: int


@attrs.frozen(kw_only=True)
class DiskFault(ScriptFault):
    """A fault ``kind`` at the ``number``-th call of this name from then on."""

    call: str
    number: int
    kind: StrikeKind


@attrs.frozen(kw_only=True)
class PointFault(ScriptFault):
    """A fault ``kind`` at the ``number``-th pass of a fault point from then on."""

    place: str
    number: int
    kind: StrikeKind


@attrs.frozen(kw_only=True)
class ShellKilledFault(ScriptFault):
    """A kill with SIGKILL of the shell of a terminal, so many seconds later."""

    terminal: str
    after_s: float


@attrs.frozen(kw_only=True)
class ShellStoppedFault(ScriptFault):
    """A stop (SIGSTOP) of the shell of a terminal for so many seconds."""

    terminal: str
    seconds: float


@attrs.frozen(kw_only=True)
class AgentKilledFault(ScriptFault):
    """A kill with SIGKILL of an agent's process, so many seconds later. ``draw`` picks it."""

    after_s: float
    draw: int


@attrs.frozen(kw_only=True)
class WorkflowKilledFault(ScriptFault):
    """A kill with SIGKILL of a workflow's process, so many seconds later. ``draw`` picks it."""

    after_s: float
    draw: int


@attrs.frozen(kw_only=True)
class OutsideEditFault(ScriptFault):
    """An edit of a canvas's file by another program, at a fault point of its exchange.

    It is made at the ``number``-th pass from then on.
    """

    canvas: str
    section: str
    place: str
    number: int
    syncs: bool = True


@attrs.frozen(kw_only=True)
class ForgottenFault(ScriptFault):
    """The loss of a conversation that an agent's program keeps. ``draw`` picks it."""

    draw: int


@attrs.frozen(kw_only=True)
class UnstartableFault(ScriptFault):
    """The next ``starts`` processes of agents end before they are ready."""

    starts: int


@attrs.frozen(kw_only=True)
class NeverReadsFault(ScriptFault):
    """A client that does not read its inbox until the end."""

    client: int
