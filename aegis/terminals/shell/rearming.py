"""``Rearming``: detects a shell at a prompt that sent no mark, and installs its hook again.

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
from pathlib import Path

import structlog
import trio

from aegis.processes.input_wait import Foreground, is_at_prompt
from aegis.processes.process_host import ProcessHost, ProgramImage, ShellProcess
from aegis.terminals.hooks.adapter import REARM_S
from aegis.terminals.hooks.choice import rearm_shell
from aegis.terminals.hooks.programs import prompting_shell
from aegis.terminals.parse.boundaries import ShellPhase
from aegis.terminals.shell.tracker import Tracker

log = structlog.get_logger("aegis.terminals")

MAX_TRIES = 2
"""First the hook for the kind of shell, then the one for any program."""


class Rearming:
    """The supervision of one shell's hook; the shell's files are in ``directory``."""

    def __init__(
        self, host: ProcessHost, process: ShellProcess, tracker: Tracker, directory: Path
    ) -> None:
        self._host = host
        self._process = process
        self.tracker = tracker
        self._directory = directory
        self._error_tty = tracker.adapter.error_tty
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
        if self.tracker.phase is ShellPhase.RETURNING:
            self.tracker.prompt_unseen()
            return True
        if self.tracker.phase is not ShellPhase.RUNNING or not self.tracker.is_pasting:
            return False
        return self.tracker.is_holding_back or self._is_unmarked(image)

    def _is_another(self, image: ProgramImage) -> bool:
        """Whether the program is neither the one that was started nor the one with the hook."""
        if self._image is None:
            return image.words != self.tracker.adapter.argv
        return image != self._image

    def _is_replaced(self, image: ProgramImage, front: Foreground) -> bool:
        name = prompting_shell(image.words)
        pastes = self.tracker.is_pasting
        if name is None or not is_at_prompt(name, front, pastes=pastes):
            return False
        return self._rearm(name, image, is_replaced=True)

    def _is_unanswered(self, image: ProgramImage, front: Foreground) -> bool:
        """Try the fallback if an installed hook has sent no mark in time."""
        if self._tries == MAX_TRIES or trio.current_time() < self._tried_at + REARM_S:
            return False
        if not self._is_replaced(image, front):
            return False
        self.tracker.fell_back()
        return True

    def _is_unmarked(self, image: ProgramImage) -> bool:
        answered = self.tracker.editor_answered
        if answered is None:
            self.tracker.probe_editor()
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
        self.tracker.rearm(rearmed, is_replaced=is_replaced)
        return True
