"""Recordings of agents in their own terminal interface, with the scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import attrs
import trio

from tests.agents_real.clis import CLIS, KEY, Cli
from tests.agents_real.model import Model
from tests.agents_real.scripts import script
from tests.agents_real.tui.stage import Stage

HOME = Path("/tmp/w/home")
WORK = Path("/tmp/w/project")

ASKS_FIRST = "make the first file"
ASKS_SECOND = "make the second file"
ASKS_LAST = "say a word"
FIRST_DONE, LAST_DONE = "First is finished.", "Last is finished."


@attrs.frozen(kw_only=True)
class Tui:
    """An agent's terminal interface: texts that it shows, and keys that it takes."""

    cli: str
    ready: str
    """Shown as soon as it takes a prompt."""
    asks: str
    """Shown while it asks for permission."""
    approve: str = "\r"
    leave: tuple[str, ...] = ("\x03", "\x03")
    program: str = ""
    """Its program below the directory of the package, if it is not that of the CLI."""
    is_script: bool | None = None
    arguments: tuple[str, ...] = ()
    prepare: Callable[[Path, Path], object] = lambda home, work: None
    """Write further configuration below a home, for work in a directory."""
    dialogs: tuple[tuple[str, str], ...] = ()
    """Dialogs of the start, and the keys that answer them."""

    def the_cli(self) -> Cli:
        """Return the CLI with its package and configuration."""
        found = next(cli for cli in CLIS if cli.name == self.cli)
        if self.program:
            is_script = found.is_script if self.is_script is None else self.is_script
            return attrs.evolve(found, program=self.program, is_script=is_script)
        return found


def teach(model: Model, cli: Cli) -> None:
    """Give the model its answers: slow ones, two with a command that the agent asks about."""
    first, second = (_asking(cli, name) for name in ("first", "second"))
    model.teach(
        {
            ASKS_FIRST: script("WAIT 7", first, "WAIT 2", f"SAY {FIRST_DONE}"),
            ASKS_SECOND: script("WAIT 1", second, "SAY The second was refused."),
            ASKS_LAST: script("WAIT 3", f"SAY {LAST_DONE}"),
        }
    )


def _asking(cli: Cli, name: str) -> str:
    return cli.asking.format(file=f"{name}.txt")


async def play(stage: Stage, tui: Tui) -> None:
    """A slow answer, a permission given after 9 s, one left with Esc, a third turn, a resize."""
    for text, keys in tui.dialogs:
        await stage.waits("question", text, because="a dialog of the start is shown")
        await trio.sleep(2)
        await stage.keys(keys, works="the dialog was answered")
    await stage.waits("idle", tui.ready, because="the agent takes a prompt", settle=True)
    await trio.sleep(6)
    await _prompt(stage, ASKS_FIRST)
    await stage.waits("permission", tui.asks, because="a permission prompt is shown")
    await trio.sleep(9)
    await stage.keys(tui.approve, works="the permission was given")
    await stage.waits("idle", FIRST_DONE, because="the turn is over")
    await trio.sleep(8)
    await _prompt(stage, ASKS_SECOND)
    await stage.waits("permission", tui.asks, because="a permission prompt is shown")
    await trio.sleep(8)
    await stage.keys("\x1b")
    # What the agent does after a refusal differs: it stops, or asks the model again.
    await stage.until(lambda: tui.asks not in stage.text(), "the end of the permission prompt")
    stage.truth("needs_input", "idle", because="the permission was left with Esc")
    await trio.sleep(8)
    await _prompt(stage, ASKS_LAST)
    await stage.waits("idle", LAST_DONE, because="the turn is over")
    await trio.sleep(6)
    stage.resize(30, 100)
    await trio.sleep(7)
    *before, last = tui.leave
    for keys in before:
        await stage.keys(keys)
        await trio.sleep(0.7)
    await stage.keys(last, works="it was asked to end")


async def _prompt(stage: Stage, text: str) -> None:
    await stage.type(text)
    await trio.sleep(0.5)
    await stage.keys("\r", works="the prompt was sent")


def _claude(home: Path, work: Path) -> None:
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {str(work): {"hasTrustDialogAccepted": True}},
    }
    (home / ".claude.json").write_text(json.dumps(known))


def _opencode(home: Path, work: Path) -> None:
    file = home / ".config" / "opencode" / "opencode.json"
    settings = {**json.loads(file.read_text()), "permission": {"bash": "ask", "edit": "ask"}}
    file.write_text(json.dumps(settings))


def _codex(home: Path, work: Path) -> None:
    file = home / ".codex" / "config.toml"
    trusted = f'\n[projects."{work}"]\ntrust_level = "trusted"\n'
    file.write_text(f'approval_policy = "on-request"\n{file.read_text()}{trusted}')


PROMPT_SIGN = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"

TUIS = {
    "claude": Tui(cli="claude", ready=PROMPT_SIGN, asks="Do you want", prepare=_claude),
    "codex": Tui(
        cli="codex",
        program="node_modules/.bin/codex",
        ready="scripted default",
        asks="Would you like",
        approve="y",
        leave=("\x03",),
        prepare=_codex,
    ),
    "gemini": Tui(cli="gemini", ready="Type your message", asks="Allow"),
    "opencode": Tui(
        cli="opencode",
        ready="Ask anything",
        asks="Permission",
        leave=("\x03",),
        prepare=_opencode,
    ),
    "kimi": Tui(cli="kimi", ready="context:", asks="Approve", leave=("\x04",)),
}
