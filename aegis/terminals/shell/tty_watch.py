"""``TtyWatch``: looks at the terminal of one shell while a command on it is quiet.

What prints is not looked at, nor what ends within a tenth of a second: for those a flag is all it
costs. The looks are timers of the shell's actor, and a look is a helper task of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from actors import Context
from aegis.processes.foreground import read_foreground
from aegis.processes.input_wait import needs_input, next_check_after
from aegis.processes.process_host import ShellProcess
from aegis.processes.process_scan import GroupScan
from aegis.protocol.terminals import NeedsInput
from aegis.terminals import messages as msg
from aegis.terminals.shell.messages import LookAtTty
from aegis.terminals.shell.rearming import Rearming

TURNS_TO_READ = 2
"""After so many turns of the loop all is read that was printed before a look, such as a prompt."""


class TtyWatch:
    """The watch over one shell; ``tell`` gets ``NeedsInputChanged`` whenever that changes.

    ``rearming`` cares for its hook. ``name`` is the shell's, ``context`` that of its actor, which
    calls ``rang`` for each ``LookAtTty``.
    """

    def __init__(
        self,
        name: str,
        process: ShellProcess,
        rearming: Rearming,
        groups: GroupScan,
        context: Context,
        tell: Callable[[Any], None],
    ) -> None:
        self._name = name
        self._process = process
        self._tracker = rearming.tracker
        self.rearming = rearming
        self._groups = groups
        self._context = context
        self._tell = tell
        self._is_due = False
        self._was_stirred = False
        self._quiet_s = 0.0
        self._next_s = 0.0
        self.needs_input: NeedsInput | None = None

    def stirred(self) -> None:
        """Output or keys have come: what waited does not, and quiet begins anew."""
        self._was_stirred = True
        if self.needs_input is not None:
            self._found(None)
        self.looked_again()

    def looked_again(self) -> None:
        """What the tracker had held back may have begun a command."""
        if not self._is_due and self._tracker.is_at_work:
            self._begin()

    def rang(self) -> None:
        """The time of a look has come."""
        if self._tracker.is_at_work and not self._was_stirred:
            self._quiet_s += self._next_s
            self._context.start_soon(self._look)
        else:
            self._found(None)
            self._go_on()

    def _go_on(self) -> None:
        self._is_due = False
        if self._tracker.is_at_work:
            if self._was_stirred:
                self._begin()
            else:
                self._wait()

    def _begin(self) -> None:
        self._was_stirred, self._quiet_s = False, 0.0
        self._wait()

    def _wait(self) -> None:
        self._is_due, self._next_s = True, next_check_after(self._quiet_s)
        self._context.after(self._next_s, LookAtTty(shell=self._name))

    async def _look(self) -> None:
        front = await read_foreground(self._process, self._groups)
        for _ in range(TURNS_TO_READ):
            await trio.lowlevel.checkpoint()
        if self._was_stirred or not self._tracker.is_at_work:
            self._found(None)
        elif self.rearming.look(front):
            self._was_stirred = True
        else:
            self._found(needs_input(front, self._quiet_s))
        self._go_on()

    def _found(self, needs: NeedsInput | None) -> None:
        if needs != self.needs_input:
            self.needs_input = needs
            self._tell(msg.NeedsInputChanged(needs_input=needs))
