"""The program as a click group: help, completion, wrong usage, and the verbs written with click.

A verb's module is imported when the verb is used.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import click
from click.exceptions import NoArgsIsHelpError, NoSuchCommand

from aegis.cli.grammar.click_commands import command_at
from aegis.cli.grammar.parsing import json_behind_verb, wants_json
from aegis.cli.grammar.verb import HANDLE, ROOT, Globals
from aegis.cli.grammar.verb_table import HINTS, VERBS
from aegis.cli.printing.failures import INTERRUPTED, PROGRAM, exit_code, print_notes, report

COMPLETING = "_AEGIS_ACTORS_COMPLETE"
"""The variable that a shell sets when TAB is pressed."""


class RootGroup(click.Group):
    """The click group of all verbs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        return command_at(VERBS[cmd_name], cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            if hint := HINTS.get(error.command_name):
                sentence = f"No such command '{error.command_name}': {hint}"
                raise NoSuchCommand(error.command_name, sentence, ctx=ctx) from None
            below = self._below(ctx, error.command_name)
            if not below:
                raise NoSuchCommand(error.command_name, possibilities=VERBS, ctx=ctx) from None
            sentence = f"No such command '{error.command_name}'. Did you mean {below}?"
            raise NoSuchCommand(error.command_name, sentence, ctx=ctx) from None

    def _below(self, ctx: click.Context, name: str) -> str:
        """Return the verbs of two words that end in ``name``: ``'term run'``."""
        groups = [(verb, self.get_command(ctx, verb)) for verb in VERBS]
        found = [
            f"'{verb} {name}'"
            for verb, group in groups
            if isinstance(group, click.Group) and name in group.commands
        ]
        return " or ".join(found)

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        if COMPLETING in os.environ:
            importlib.import_module("aegis.cli.completion").register()
        given = sys.argv[1:] if args is None else list(args)
        as_json = wants_json(given)
        run = partial(self._run, _in_verbs(json_behind_verb(given)), as_json=as_json, **extra)
        sys.exit(exit_code(run, PROGRAM, as_json=as_json))

    def _run(self, args: list[str], *, as_json: bool, **extra: Any) -> int:
        streams = sys.stdout, sys.stderr
        try:
            code = super().main(args, PROGRAM, **extra | {"standalone_mode": False})
        except click.Abort as error:
            report("interrupted", "interrupted", as_json=as_json)
            print_notes(error.__cause__)
            return INTERRUPTED
        except SystemExit:
            if sys.stdout is streams[0]:
                raise
            # When the reader of the output is gone, click wraps the stream and exits.
            sys.stdout, sys.stderr = streams
            raise BrokenPipeError from None
        except NoArgsIsHelpError as error:
            error.show()
            return error.exit_code
        except click.ClickException as error:
            kind = "usage" if isinstance(error, click.UsageError) else "failed"
            report(_sentence(error), kind, as_json=as_json)
            return error.exit_code
        return code if isinstance(code, int) else 0


def _in_verbs(args: Sequence[str]) -> list[str]:
    """Replace the words ``help`` and ``version`` by the options that do the same."""
    if args[:1] == ["help"]:
        return [*args[1:], "--help"]
    return ["--version"] if args == ["version"] else [*args]


def _sentence(error: click.ClickException) -> str:
    lines = map(str.strip, error.format_message().splitlines())
    sentence = " ".join(lines).removesuffix(".")
    context = getattr(error, "ctx", None)
    return sentence if context is None else f"{sentence}; see: {context.command_path} --help"


@click.group(cls=RootGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "--version", "-V", package_name=PROGRAM, prog_name=PROGRAM)
@click.option("--root", type=click.Path(exists=True, file_okay=False), help=ROOT.help)
@click.option("--as", "handle", metavar=HANDLE.metavar, help=HANDLE.help)
@click.pass_context
def cli(context: click.Context, root: str | None, handle: str | None) -> None:
    """Live shared terminals for coding agents and people, served by one daemon per directory.

    Start the daemon with `aegis-actors up` in the directory of your work. In another window, start
    a terminal with `aegis-actors term spawn NAME` and run a command on it with `aegis-actors term
    run NAME COMMAND`.
    """
    context.obj = Globals(root, handle)
