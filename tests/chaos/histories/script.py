"""A script: the steps of the clients of a history, and the faults meanwhile. Pure.

Each client does its steps one after the other, through all lives of the daemon. A step says all
that is needed to play it, so any part of a script is one as well: what a step meets may be another
thing then (no such terminal, say), and is judged as what it is.
"""

from __future__ import annotations

import attrs

from tests.chaos.strikes import Kind as StrikeKind

SHARED, DESK, SPARE = "shared", "desk", "spare"
"""The terminals: everybody runs commands on the first, one client alone types on the second, and
one client spawns and closes the third, on which everybody runs commands, too."""

BASH = "bash"
"""Their shell."""

TYPIST, KEEPER = 0, 1
"""The clients who do that, by their number."""


def handle_of(client: int) -> str:
    """What the client is called."""
    return f"client{client}"


# Steps.


@attrs.frozen(kw_only=True)
class Step:
    """Something that ``client`` does, ``pause_s`` seconds after its last one had ended.

    ``number`` is its place in the script that was drawn, and its name in smaller ones.
    """

    number: int
    client: int
    pause_s: float = 0.0


@attrs.frozen(kw_only=True)
class OnTerminal(Step):
    """Something that is done on ``terminal``."""

    terminal: str


@attrs.frozen(kw_only=True)
class RunStep(OnTerminal):
    """Run a command of ``kind``; ``gone_after_s``: its caller goes away so much later."""

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
    """Type ``keys`` that leave an empty line, then run a command: the line must be free for it."""

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
    """Run a long command; once it runs, end it by Ctrl-C, typed or as a signal."""

    by_keys: bool


@attrs.frozen(kw_only=True)
class SubscribeStep(OnTerminal):
    """Subscribe to the terminal."""

    pattern: str | None = None
    only_failures: bool = False


@attrs.frozen(kw_only=True)
class UnsubscribeStep(OnTerminal):
    """Be woken no more."""


@attrs.frozen(kw_only=True)
class SpawnStep(OnTerminal):
    """Spawn the terminal, whether there is one or not."""


@attrs.frozen(kw_only=True)
class CloseStep(OnTerminal):
    """Close it."""

    purge: bool = False


@attrs.frozen(kw_only=True)
class ReadRecordsStep(OnTerminal):
    """Read all records behind the last that this client read so."""


@attrs.frozen(kw_only=True)
class ReadOutputStep(OnTerminal):
    """Read output on from where this client left off."""

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
    """Give the window another size."""

    cols: int
    rows: int


@attrs.frozen(kw_only=True)
class ScreenStep(OnTerminal):
    """Look at the screen."""


@attrs.frozen(kw_only=True)
class ListStep(Step):
    """List the terminals."""


@attrs.frozen(kw_only=True)
class HandoffStep(Step):
    """Hand news to another client."""

    to: int


@attrs.frozen(kw_only=True)
class InboxStep(Step):
    """Read the inbox, or wait at it for so long; ``acknowledges`` what was shown before."""

    acknowledges: bool
    wait_s: float | None = None


# Faults.


@attrs.frozen(kw_only=True)
class ScriptFault:
    """Something that goes wrong once a step whose number is ``step`` or a higher one has begun."""

    step: int


@attrs.frozen(kw_only=True)
class KillFault(ScriptFault):
    """The daemon is killed with -9, so many seconds later."""

    after_s: float


@attrs.frozen(kw_only=True)
class PowerLossFault(ScriptFault):
    """The power fails, so many seconds later. ``draw`` picks what is on the disk afterwards."""

    after_s: float
    draw: int


@attrs.frozen(kw_only=True)
class DiskFault(ScriptFault):
    """``kind`` strikes the ``number``-th call of this name from then on."""

    call: str
    number: int
    kind: StrikeKind


@attrs.frozen(kw_only=True)
class PointFault(ScriptFault):
    """``kind`` strikes at the ``number``-th pass of a fault point from then on."""

    place: str
    number: int
    kind: StrikeKind


@attrs.frozen(kw_only=True)
class ShellKilledFault(ScriptFault):
    """The shell of a terminal is killed with -9, so many seconds later."""

    terminal: str
    after_s: float


@attrs.frozen(kw_only=True)
class ShellStoppedFault(ScriptFault):
    """The shell of a terminal is stopped, and goes on so many seconds later."""

    terminal: str
    seconds: float


@attrs.frozen(kw_only=True)
class NeverReadsFault(ScriptFault):
    """The client reads its inbox no more, until the end."""

    client: int


@attrs.frozen(kw_only=True)
class Script:
    """``seed`` is that of all that a script leaves open: the order of tasks, say.

    ``steps`` stand in the order of their numbers. ``stops``: the last life but one is stopped in
    order, and not killed.
    """

    seed: int
    clients: int
    steps: tuple[Step, ...]
    faults: tuple[ScriptFault, ...]
    stops: bool = True

    def of(self, client: int) -> tuple[Step, ...]:
        """The steps of one client."""
        return tuple(step for step in self.steps if step.client == client)
