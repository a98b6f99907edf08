"""``Rearming``: finds a shell at a prompt that nothing told of, and gives it its hook (again).

Three ways to lose the marks, by what the tty and ``/proc`` say while a command "runs":

- *Replaced*: the shell's process runs another program than the one that has the hook (``exec
  bash``), a shell that stands at its prompt. A line is typed there that reads the hook, with a new
  secret.
- *Unmarked*: our shell is in front in its line editor while its command should run. The probe key
  tells: the hook answers, and puts back what the prompts lost; or a program of the user's uses the
  line editor (``read -e``); or nothing answers, then the hook is gone and read again. While marks
  on one PTY wait for the other PTY the end of the command may be among them: they are let go first.
- *Unseen*: a command has ended, the prompt does not come, and the line editor waits: what the shell
  draws goes elsewhere (``exec 2>/dev/null``). The prompt stands.

The record of the command that ran ends as ``lost`` once the hook has answered. If it does not, the
integration is called "fallback", and the shell is typed to as one that has no hook is. If that is
not answered either, the command stays open, as it may well be.
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
from aegis.terminals.parse.boundaries import Phase
from aegis.terminals.shell.tracker import Tracker

log = structlog.get_logger("aegis.terminals")

MAX_TRIES = 2
"""First the hook of the shell's kind, then that of any program."""


class Rearming:
    """The care for the hook of one shell, whose files are in ``directory``."""

    def __init__(
        self, host: ProcessHost, process: ShellProcess, tracker: Tracker, directory: Path
    ) -> None:
        self._host = host
        self._process = process
        self.tracker = tracker
        self._directory = directory
        self._error_tty = tracker.adapter.error_tty
        self._image: ProgramImage | None = None
        self._forget()

    def _forget(self) -> None:
        """Nothing was tried with what runs now."""
        self._tried: ProgramImage | None = None
        self._tries = 0
        self._tried_at = -math.inf

    def answered(self) -> None:
        """The hook shows its first prompt: what runs now has it."""
        self._image = self._host.program_image(self._process.pid)
        self._forget()

    def look(self, front: Foreground | None) -> bool:
        """Do what is to be done about what stands in front; whether anything is under way."""
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
        if self.tracker.phase is Phase.RETURNING:
            self.tracker.prompt_unseen()
            return True
        if self.tracker.phase is not Phase.RUNNING or not self.tracker.is_pasting:
            return False
        return self.tracker.is_holding_back or self._is_unmarked(image)

    def _is_another(self, image: ProgramImage) -> bool:
        """Whether it is not the one that was started, or has the hook."""
        if self._image is None:
            return image.words != self.tracker.adapter.argv
        return image != self._image

    def _is_replaced(self, image: ProgramImage, front: Foreground) -> bool:
        name = prompting_shell(image.words)
        pastes = self.tracker.is_pasting
        if name is None or not is_at_prompt(name, front, pastes=pastes):
            return False
        return self._rearm(name, image)

    def _is_unanswered(self, image: ProgramImage, front: Foreground) -> bool:
        """The hook was to be read, and no mark has come of it."""
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

    def _rearm(self, name: str, image: ProgramImage) -> bool:
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
        self.tracker.rearm(rearmed)
        return True
