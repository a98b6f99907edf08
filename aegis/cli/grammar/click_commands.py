"""Click commands, made from the ``Verb`` and ``VerbGroup`` objects of ``aegis.cli.grammar.verb``.

click provides help, completion and the messages about wrong usage.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any

import click
from click.exceptions import NoSuchCommand

from aegis.cli.grammar import numbers
from aegis.cli.grammar.parsing import options_forward
from aegis.cli.grammar.verb import (
    DECIMAL,
    DIRECTORY,
    FLAG,
    SECONDS,
    TEXT,
    WHOLE,
    Globals,
    Parameter,
    Verb,
    VerbGroup,
)
from aegis.cli.grammar.verb_table import ALIASES, HINTS
from aegis.cli.printing.failures import UsageError

_BEHIND = "aegis.words behind the dashes"


class Number(click.ParamType[float]):
    """A number in ASCII digits; ``read`` raises ``ValueError`` for anything else."""

    def __init__(self, name: str, read: Callable[[str], float]) -> None:
        self.name = name
        self._read = read

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse a text; return a number unchanged."""
        try:
            return self._read(value) if isinstance(value, str) else float(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class WholeRange(click.IntRange):
    """``click.IntRange`` for numbers written in ASCII digits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(_ascii(self, numbers.whole_number, value, param, ctx), param, ctx)


class DecimalRange(click.FloatRange):
    """``click.FloatRange`` for finite numbers written in ASCII digits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(_ascii(self, numbers.decimal, value, param, ctx), param, ctx)


def _ascii(
    kind: click.ParamType[Any],
    read: Callable[[str], float],
    value: Any,
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> Any:
    try:
        return read(value) if isinstance(value, str) else value
    except ValueError:
        kind.fail(f"{value!r} is not a valid {kind.name}", param, ctx)


_FAMILIAR: Mapping[str, tuple[str, ...]] = {
    "cat": ("output", "read", "show"),
    "connect": ("attach",),
    "create": ("spawn", "open", "new"),
    "delete": ("close", "remove", "purge"),
    "enter": ("attach",),
    "exec": ("run",),
    "history": ("read",),
    "info": ("list", "show"),
    "input": ("keys",),
    "interrupt": ("signal",),
    "join": ("attach",),
    "kill": ("signal", "close"),
    "log": ("output", "read"),
    "logs": ("output", "read"),
    "ls": ("list",),
    "new": ("spawn", "open"),
    "open": ("spawn",),
    "ps": ("list",),
    "records": ("read",),
    "remove": ("close", "purge"),
    "rm": ("close", "remove", "purge"),
    "send": ("keys",),
    "show": ("screen", "read"),
    "start": ("spawn", "launch"),
    "stop": ("close",),
    "tail": ("output",),
    "type": ("keys",),
    "view": ("screen", "attach"),
    "watch": ("attach",),
}
"""Words of other programs, each with the verbs that it may mean."""

_LIKENESS = 0.75
"""How much a verb must look like a word to be suggested: ``close`` looks like ``logs`` by 0.67."""


_KINDS: dict[str, click.ParamType[Any]] = {
    TEXT: click.STRING,
    WHOLE: Number("integer", numbers.whole_number),
    SECONDS: Number("float", numbers.seconds),
    DECIMAL: Number("float", numbers.decimal),
    DIRECTORY: click.Path(exists=True, file_okay=False),
}


def command_at(place: str, name: str) -> click.Command:
    """Import ``place`` (``module:name``) and return its command, called ``name``."""
    module, _, attribute = place.partition(":")
    return command_of(getattr(importlib.import_module(module), attribute), name)


def command_of(found: Verb | VerbGroup | click.Command, name: str) -> click.Command:
    """Convert a verb or a group to a click command; return a click command unchanged."""
    if isinstance(found, click.Command):
        return found
    if isinstance(found, VerbGroup):
        members = {
            each: command_at(member, each) if isinstance(member, str) else command_of(member, each)
            for each, member in found.members.items()
        }
        return Nouns(name, commands=members, help=found.doc)
    kind: Callable[..., click.Command] = click.Command
    if found.behind_dashes is not None:
        kind = _BehindDashes
    if found.options_first:
        kind = partial(_OptionsFirst, found)
    return kind(
        name,
        callback=_callback(found),
        params=[_parameter(each) for each in found.parameters],
        help=found.doc,
    )


def _callback(verb: Verb) -> Callable[..., int]:
    def run(**given: Any) -> int:
        context = click.get_current_context()
        if verb.behind_dashes is not None:
            given[verb.behind_dashes] = context.meta[_BEHIND]
        try:
            return verb.run(context.find_object(Globals) or Globals(), given)
        except UsageError as error:
            raise click.UsageError(str(error), context) from None

    return run


def _parameter(each: Parameter) -> click.Parameter:
    if not each.options:
        return click.Argument(
            [each.name],
            type=_type(each),
            metavar=each.metavar,
            required=each.required,
            nargs=-1 if each.many else 1,
        )
    if each.kind == FLAG:
        spelled = "/".join((each.options[0], each.negation)) if each.negation else None
        words = [spelled] if spelled else list(each.options)
        return click.Option([*words, each.name], is_flag=True, default=each.default, help=each.help)
    made = click.Option(
        [*each.options, each.name],
        type=_type(each),
        metavar=each.metavar,
        show_default=each.show_default,
        required=each.required,
        multiple=each.many,
        help=each.help,
    )
    if each.default is not None:  # an explicit None would be a default for click
        made.default = each.default
    return made


def _type(each: Parameter) -> click.ParamType[Any]:
    return click.Choice(each.kind) if isinstance(each.kind, tuple) else _KINDS[each.kind]


class Nouns(click.Group):
    """A group that takes words of other tools for its verbs, or names the verbs they may mean."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = ALIASES.get(self.name or "", {}).get(cmd_name, cmd_name)
        return super().get_command(ctx, verb)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        hint = HINTS.get(f"{self.name} {args[0]}")
        if hint is not None:
            raise NoSuchCommand(args[0], f"No such command '{args[0]}': {hint}", ctx=ctx)
        try:
            _, command, rest = super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            word = error.command_name
            meant = [each for each in _FAMILIAR.get(word, ()) if each in self.commands]
            meant = meant or get_close_matches(word, self.commands, cutoff=_LIKENESS)
            hint = f" Did you mean {' or '.join(map(repr, meant))}?" if meant else ""
            sentence = f"No such command {word!r}.{hint}"
            raise NoSuchCommand(word, sentence, ctx=ctx) from None
        return command.name if command else None, command, rest


class _OptionsFirst(click.Command):
    """A command whose words behind the first argument are arguments, even with a dash."""

    def __init__(self, verb: Verb, name: str, **settings: Any) -> None:
        context_settings = {"allow_interspersed_args": False}
        super().__init__(name, context_settings=context_settings, **settings)
        self._verb = verb

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, options_forward(self._verb, args))


class _BehindDashes(click.Command):
    """A command whose words after the first ``--`` are kept apart; click drops the ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_BEHIND] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "--", "COMMAND..."]
