"""Checks of a quiet shell: whether its command waits for input, and whether its marks are missed.

A command that prints, or ends within a tenth of a second, is not checked: it costs a flag only. The
checks are triggered by timers of the shell's actor, and run as its helper tasks.

Marks are lost in three ways, recognised by the tty and ``/proc`` while a command "runs":

- *Replaced*: the shell's process runs another program than the one that has the hook (``exec
  bash``), a shell at its prompt. A line is typed that makes it read the hook, with a new secret.
- *Unmarked*: the shell is in the foreground in its line editor while its command should run. The
  probe key decides: the hook answers, and restores the marks of the prompts; or a program of the
  user uses the line editor (``read -e``); or there is no answer, so the hook is lost and read
  again. Marks on one PTY that wait for the other PTY are released first: the end of the command may
  be among them.
- *Unseen*: a command has ended, no prompt is printed, and the line editor waits: the shell draws to
  another file (``exec 2>/dev/null``). The shell counts as prompted.

The record of the current command ends as ``lost`` once the hook has answered. If it does not
answer, the integration is "fallback", and the shell gets input like one without a hook. If there is
no answer to that either, the command stays open: it may still run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath

import structlog
import trio

from actors import Context
from aegis.processes.foreground import read_foreground
from aegis.processes.input_wait import (
    Foreground,
    is_at_prompt,
    is_certain,
    needs_input,
    next_check_after,
)
from aegis.processes.process_host import ProcessHost, ProgramImage, ShellProcess
from aegis.processes.process_scan import GroupScan
from aegis.protocol.terminals import NeedsInput
from aegis.terminals import messages as msg
from aegis.terminals.hooks.adapter import REARM_S
from aegis.terminals.hooks.choice import is_supported, rearm_shell
from aegis.terminals.hooks.programs import Replacement, multiplexer_in, prompting_shell
from aegis.terminals.output.program_watch import ProgramWatch
from aegis.terminals.parse.boundaries import ShellPhase
from aegis.terminals.shell.messages import LookAtTty
from aegis.terminals.shell.pipeline import ShellEvent, ShellPipeline

log = structlog.get_logger("aegis.terminals")

Handle = Callable[[Iterable[ShellEvent]], None]
"""Handle the events of a shell."""

MAX_TRIES = 2
"""First the hook for the kind of shell, then the one for any program."""


class Rearming:
    """The supervision of one shell's hook; the shell's files are in ``directory``."""

    def __init__(
        self,
        host: ProcessHost,
        process: ShellProcess,
        pipeline: ShellPipeline,
        handle: Handle,
        directory: Path,
    ) -> None:
        self._host = host
        self._process = process
        self.pipeline = pipeline
        self.handle = handle
        self._directory = directory
        self._error_tty = pipeline.rules.adapter.error_tty
        self._image: ProgramImage | None = None
        self._reset()

    def _reset(self) -> None:
        """Reset the attempts."""
        self._tried: ProgramImage | None = None
        self._tries = 0
        self._tried_at = -math.inf

    def answered(self) -> None:
        """Note the first prompt of the hook: the current program has it."""
        self._image = self._host.program_image(self._process.pid)
        self._reset()

    def look(self, front: Foreground | None) -> bool:
        """Check the foreground, and act if marks are lost; return whether an action began."""
        if front is None or front.group != self._process.pid:
            return False
        image = self._host.program_image(self._process.pid)
        if image is None:
            return False
        if image == self._tried:
            return self._is_unanswered(image, front)
        if self._is_another(image):
            return self._is_replaced(image, front)
        if not front.edits_line:
            return False
        phase = self.pipeline.rules.boundaries.phase
        if phase is ShellPhase.RETURNING:
            self.handle(self.pipeline.prompt_unseen(trio.current_time()))
            return True
        if phase is not ShellPhase.RUNNING or not self.pipeline.is_pasting:
            return False
        return self.pipeline.is_holding_back or self._is_unmarked(image)

    def _is_another(self, image: ProgramImage) -> bool:
        """Whether the program is neither the one that was started nor the one with the hook."""
        if self._image is None:
            return image.words != self.pipeline.rules.adapter.argv
        return image != self._image

    def _is_replaced(self, image: ProgramImage, front: Foreground) -> bool:
        name = prompting_shell(image.words)
        pastes = self.pipeline.is_pasting
        if name is None or not is_at_prompt(name, front, pastes=pastes):
            return False
        return self._rearm(name, image, is_replaced=True)

    def _is_unanswered(self, image: ProgramImage, front: Foreground) -> bool:
        """Try the fallback if an installed hook has sent no mark in time."""
        if self._tries == MAX_TRIES or trio.current_time() < self._tried_at + REARM_S:
            return False
        if not self._is_replaced(image, front):
            return False
        self.handle(self.pipeline.fell_back())
        return True

    def _is_unmarked(self, image: ProgramImage) -> bool:
        answered = self.pipeline.editor_answered
        if answered is None:
            self.handle(self.pipeline.probe_editor())
            return True
        name = prompting_shell(image.words)
        if answered or name is None:
            return False
        return self._rearm(name, image)

    def _rearm(self, name: str, image: ProgramImage, *, is_replaced: bool = False) -> bool:
        self._tries = self._tries + 1 if image == self._tried else 1
        self._tried, self._tried_at = image, trio.current_time()
        try:
            rearmed = rearm_shell(
                name,
                image.words,
                self._directory,
                error_tty=self._error_tty,
                typed=self._tries == MAX_TRIES,
            )
        except OSError as error:
            log.warning("hook not written", error=str(error))
            return False
        now = trio.current_time()
        self.handle(self.pipeline.rearm(rearmed, now, is_replaced=is_replaced))
        return True


TURNS_TO_READ = 2
"""Turns of the loop after which all output from before a check, such as a prompt, is read."""


class TtyWatch:
    """The watch over one shell, whose hook ``rearming`` restores.

    ``name`` is the shell's; ``context`` is that of its
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
        program: ProgramWatch,
        replaced: Callable[[Replacement], bool] | None = None,
    ) -> None:
        self._name = name
        self._process = process
        self._pipeline = rearming.pipeline
        self.rearming = rearming
        self._groups = groups
        self._context = context
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
        if self.needs_input is not None or self._may_need_input is not None:
            self._set_needs_input(None)
        if not self._is_due:
            self.check_again()

    def on_keys(self, keys: bytes) -> None:
        """Note keys of a client."""
        self.on_activity()
        if self._program.is_running:
            self._program.typed(keys)

    def check_again(self) -> None:
        """Start the timer if a command runs: the tracker may have released its start mark."""
        if not self._is_due and self._pipeline.is_at_work:
            self._begin()

    def on_timer(self) -> None:
        """Check the terminal, if the command is still quiet."""
        if self._pipeline.is_at_work and not self._was_active:
            self._quiet_s += self._next_s
            self._context.start_soon(self._look)
        elif self._replaced is not None and not self._pipeline.was_prompted:
            # A multiplexer may print all the time.
            self._context.start_soon(self._look)
        else:
            self._set_needs_input(None)
            self._continue()

    def _continue(self) -> None:
        self._is_due = False
        if self._pipeline.is_at_work:
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
        if self._replaced is not None and not self._pipeline.was_prompted:
            found = await self._replacement()
            is_late = self._pipeline.was_prompted
            if found is not None and not is_late and self._replaced(found):
                return
        front = await read_foreground(self._process, self._groups)
        for _ in range(TURNS_TO_READ):
            await trio.lowlevel.checkpoint()
        if self._was_active or not self._pipeline.is_at_work:
            self._set_needs_input(None)
        elif self.rearming.look(front):
            self._was_active = True
        else:
            self._program.checked(front, self._quiet_s)
            needs = needs_input(front, self._quiet_s)
            prompts = self._pipeline.printed.ends_within_line
            is_sure = front is not None and is_certain(front, prompts=prompts)
            self._set_needs_input(needs if is_sure else None, None if is_sure else needs)
        self._continue()

    async def _replacement(self) -> Replacement | None:
        """Return the program that runs in place of a shell that has shown no prompt yet."""
        host, pid = self._groups.host, self._process.pid
        image, adapter = host.program_image(pid), self._pipeline.rules.adapter
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
            changed = msg.NeedsInputChanged(needs_input=needs, may_need_input=may)
            self.rearming.handle([changed])
