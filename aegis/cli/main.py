"""``aegis-actors``: finds the verb, and turns every failure into one line and an exit code.

Exit codes: 0 done, 1 failed, 2 usage or configuration, 130 interrupted; ``term run`` has its own.
A verb's file is imported only when the verb is used.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
from click.exceptions import NoArgsIsHelpError, NoSuchCommand

from aegis.cli.show import say
from aegis.cli.verb import Globals, handle_option, root_option
from aegis.cli.words import in_verbs
from aegis.client.line import ClientError

PROGRAM = "aegis-actors"
INTERRUPTED = 130

COMPLETING = "_AEGIS_ACTORS_COMPLETE"
"""Set where a shell asks what may stand behind TAB."""

_VERBS = {
    "up": "aegis.cli.up:up",
    "down": "aegis.cli.daemon:down",
    "status": "aegis.cli.daemon:status",
    "tree": "aegis.cli.daemon:tree",
    "term": "aegis.cli.term:term",
    "workspace": "aegis.cli.workspace:workspace",
    "shell": "aegis.cli.shell:shell",
    "inbox": "aegis.cli.inbox:inbox",
    "session": "aegis.cli.session:session",
    "token": "aegis.cli.session:token",
    "node": "aegis.cli.node:node",
    "join": "aegis.cli.node:join",
    "mcp": "aegis.cli.mcp:mcp",
    "doctor": "aegis.cli.doctor:doctor",
    "config": "aegis.cli.config:config",
    "completion": "aegis.cli.completion:completion",
    "chaos": "aegis.cli.chaos:chaos",
}


class Program(click.Group):
    """The top of the command line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which help shows them."""
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, its file imported now."""
        if cmd_name not in _VERBS:
            return None
        module, _, name = _VERBS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb and what stands behind it; of an unknown one, what may have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            below = self._below(ctx, error.command_name)
            if not below:
                raise NoSuchCommand(error.command_name, possibilities=_VERBS, ctx=ctx) from None
            sentence = f"No such command '{error.command_name}'. Did you mean {below}?"
            raise NoSuchCommand(error.command_name, sentence, ctx=ctx) from None

    def _below(self, ctx: click.Context, name: str) -> str:
        """The verbs of two words that end in ``name``: ``'term run'``."""
        groups = [(verb, self.get_command(ctx, verb)) for verb in _VERBS]
        found = [
            f"'{verb} {name}'"
            for verb, group in groups
            if isinstance(group, click.Group) and name in group.commands
        ]
        return " or ".join(found)

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run, and exit with the verb's exit code. The program has one name, however called."""
        extra["standalone_mode"] = False
        if COMPLETING in os.environ:
            importlib.import_module("aegis.cli.completing").register()
        try:
            code = super().main(args, PROGRAM, **extra)
            sys.stdout.flush()
        except click.Abort:
            _fail("interrupted", INTERRUPTED)
        except NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            _fail(_sentence(error), error.exit_code)
        except ClientError as error:
            _fail(in_verbs(str(error)), 1)
        except BrokenPipeError:
            _silence_stdout()
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)


def _fail(sentence: str, code: int) -> NoReturn:
    say(f"{PROGRAM}: {sentence}")
    sys.exit(code)


def _sentence(error: click.ClickException) -> str:
    lines = map(str.strip, error.format_message().splitlines())
    sentence = " ".join(lines).removesuffix(".")
    context = getattr(error, "ctx", None)
    return sentence if context is None else f"{sentence}; see: {context.command_path} --help"


def _silence_stdout() -> None:
    """Whoever read our output is gone: what is still buffered goes nowhere, without a word."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name=PROGRAM, prog_name=PROGRAM)
@root_option
@handle_option
@click.pass_context
def cli(context: click.Context, root: Path | None, handle: str | None) -> None:
    """Live shared terminals for coding agents and people, held by one daemon per directory.

    Begin with `up` in the directory of your work, and `term spawn NAME` in another window.
    """
    context.obj = Globals(root, handle)


def main() -> NoReturn:
    """The entry point of the installed program."""
    for stream in (sys.stdout, sys.stderr):
        # A locale that cannot write a character must not end the program.
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    cli.main()
