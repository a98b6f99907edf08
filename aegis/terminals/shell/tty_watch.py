"""``TtyWatch``: checks whether a quiet command of one shell waits for input at its terminal.

A command that prints, or ends within a tenth of a second, is not checked: it costs a flag only. The
checks are triggered by timers of the shell's actor, and run as its helper tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import trio

from actors import Context
from aegis.processes.foreground import read_foreground
from aegis.processes.input_wait import is_certain, needs_input, next_check_after
from aegis.processes.process_host import ShellProcess
from aegis.processes.process_scan import GroupScan
from aegis.protocol.terminals import NeedsInput
from aegis.terminals import messages as msg
from aegis.terminals.hooks.choice import is_supported
from aegis.terminals.hooks.programs import Replacement, multiplexer_in, prompting_shell
from aegis.terminals.output.program_watch import ProgramWatch
from aegis.terminals.shell.messages import LookAtTty
from aegis.terminals.shell.rearming import Rearming

TURNS_TO_READ = 2
"""Turns of the loop after which all output from before a check, such as a prompt, is read."""


class TtyWatch:
    """The watch over one shell; ``notify`` is called with each ``NeedsInputChanged``.

    ``rearming`` restores the shell's hook. ``name`` is the shell's; ``context`` is that of its
    actor, which calls ``on_timer`` for each ``LookAtTty``. ``program`` gets checks and keys.
    ``replaced`` is called with a program that start-up files have run in place of the shell,
    and returns whether the shell is being ended for it.
    """

    def __init__(
        self,
        name: str,
        process: ShellProcess,
        rearming: Rearming,
        groups: GroupScan,
        context: Context,
        notify: Callable[[Any], None],
        program: ProgramWatch,
        replaced: Callable[[Replacement], bool] | None = None,
    ) -> None:
        self._name = name
        self._process = process
        self._tracker = rearming.tracker
        self.rearming = rearming
        self._groups = groups
        self._context = context
        self._notify = notify
        self._program = program
        self._replaced = replaced
        self._is_due = False
        self._was_active = False
        self._quiet_s = 0.0
        self._next_s = 0.0
        self.needs_input: NeedsInput | None = None
        self._may_need_input: NeedsInput | None = None

    def on_activity(self) -> None:
        """Note output or keys: no command waits for input now, and the quiet begins again."""
        self._was_active = True
        self._set_needs_input(None)
        self.check_again()

    def on_keys(self, keys: bytes) -> None:
        """Note keys of a client."""
        self.on_activity()
        self._program.typed(keys)

    def check_again(self) -> None:
        """Start the timer if a command runs: the tracker may have released its start mark."""
        if not self._is_due and self._tracker.is_at_work:
            self._begin()

    def on_timer(self) -> None:
        """Check the terminal, if the command is still quiet."""
        if self._tracker.is_at_work and not self._was_active:
            self._quiet_s += self._next_s
            self._context.start_soon(self._look)
        elif self._replaced is not None and not self._tracker.was_prompted:
            # A multiplexer may print all the time.
            self._context.start_soon(self._look)
        else:
            self._set_needs_input(None)
            self._continue()

    def _continue(self) -> None:
        self._is_due = False
        if self._tracker.is_at_work:
            if self._was_active:
                self._begin()
            else:
                self._wait()

    def _begin(self) -> None:
        self._was_active, self._quiet_s = False, 0.0
        self._wait()

    def _wait(self) -> None:
        self._is_due, self._next_s = True, next_check_after(self._quiet_s)
        self._context.after(self._next_s, LookAtTty(shell=self._name))

    async def _look(self) -> None:
        if self._replaced is not None and not self._tracker.was_prompted:
            found = await self._replacement()
            is_late = self._tracker.was_prompted
            if found is not None and not is_late and self._replaced(found):
                return
        front = await read_foreground(self._process, self._groups)
        for _ in range(TURNS_TO_READ):
            await trio.lowlevel.checkpoint()
        if self._was_active or not self._tracker.is_at_work:
            self._set_needs_input(None)
        elif self.rearming.look(front):
            self._was_active = True
        else:
            self._program.checked(front, self._quiet_s)
            needs = needs_input(front, self._quiet_s)
            prompts = self._tracker.printed.ends_within_line
            is_sure = front is not None and is_certain(front, prompts=prompts)
            self._set_needs_input(needs if is_sure else None, None if is_sure else needs)
        self._continue()

    async def _replacement(self) -> Replacement | None:
        """Return the program that runs in place of a shell that has shown no prompt yet."""
        host, pid = self._groups.host, self._process.pid
        image, adapter = host.program_image(pid), self._tracker.adapter
        name = None if image is None else prompting_shell(image.words)
        if image is not None and image.words != adapter.argv and name and is_supported(name):
            path, given = host.executable_of(pid), host.environment_of(pid)
            # What its start-up files have set stays, without the variables of its hook.
            dropped = {"SHLVL", "OLDPWD", "_", *adapter.environment({})}
            inherited = {key: text for key, text in given.items() if key not in dropped}
            return Replacement(name=name, shell=path or name, inherited=inherited)
        tty, group = self._process.line_discipline(), self._process.foreground_pgrp()
        if tty is None or tty.is_canonical or group is None:
            return None  # a program that shows a session reads single keys
        names = [] if image is None else [PurePath(image.words[0]).name]
        for each in (pid, group, *await self._groups.members(group)):
            process = host.process_of(each)
            names += [] if process is None else [process.name]
        return multiplexer_in(names)

    def _set_needs_input(self, needs: NeedsInput | None, may: NeedsInput | None = None) -> None:
        if (needs, may) != (self.needs_input, self._may_need_input):
            self.needs_input, self._may_need_input = needs, may
            self._notify(msg.NeedsInputChanged(needs_input=needs, may_need_input=may))
