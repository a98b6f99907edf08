"""The parser for correct command lines of verbs that are declared as ``Verb``, without click.

``read_line`` returns None for anything else, such as ``--help``, a superfluous word or a bad
number. Then click parses the line again and prints the message; nothing has been run before.
Standard library only.
"""

from __future__ import annotations

import os

from aegis.cli.grammar.numbers import decimal, seconds, whole_number
from aegis.cli.grammar.verb import (
    DECIMAL,
    DIRECTORY,
    FLAG,
    TEXT,
    WHOLE,
    Globals,
    Parameter,
    Verb,
    VerbGroup,
)
from aegis.cli.grammar.verb_table import ALIASES, VERBS, load

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class CommandLine:
    """A parsed command line."""

    def __init__(
        self, verb: Verb, words: Sequence[str], before: Globals, given: dict[str, Any]
    ) -> None:
        self.verb = verb
        self.words = words
        self._before = before
        self.given = given

    def run(self) -> int:
        """Run the verb and return the exit code. Raises as ``Verb.run``."""
        return self.verb.run(self._before, self.given)


class _Unclear(Exception):
    """The line has to be parsed by click."""


def read_line(args: Sequence[str]) -> CommandLine | None:
    """Parse a command line; return None if click has to."""
    try:
        before, rest = _globals(json_behind_verb(args))
        verb, words, rest = _verb(rest)
        return CommandLine(verb, words, before, _values(verb, rest))
    except _Unclear:
        return None


def wants_json(args: Sequence[str]) -> bool:
    """Return whether ``--json`` is among the options of a line, which may be a wrong one."""
    try:
        _, rest = _globals(json_behind_verb(args))
        verb, _, rest = _verb(rest)
    except _Unclear:
        return "--json" in args[: args.index("--") if "--" in args else None]
    options, _ = _split(verb, rest, strict=False)
    return any(parameter.name == "as_json" for parameter, _ in options)


def json_behind_verb(args: Sequence[str]) -> Sequence[str]:
    """Move ``--json`` from before the verb to behind it, where the verb's own options are."""
    at = 0
    while at < len(args) and args[at].startswith("-") and args[at] != "--json":
        at += 1 if "=" in args[at] or args[at] not in ("--root", "--as") else 2
    if at >= len(args) or args[at] != "--json":
        return args
    rest = args[at + 1 :]
    verb = next((n for n, word in enumerate(rest) if not word.startswith("-")), len(rest))
    words = verb + (2 if rest[verb : verb + 1] and _is_group(rest[verb]) else 1)
    return [*args[:at], *rest[:words], "--json", *rest[words:]]


def _is_group(word: str) -> bool:
    found = load(VERBS.get(word))
    return hasattr(found, "members") or hasattr(found, "commands")


def options_forward(verb: Verb, args: Sequence[str]) -> list[str]:
    """Return the words of an ``options_first`` verb with its options before the first argument.

    An option may follow the first argument: what comes there is no option of a command, nor a text,
    yet. It may also follow a command in quotes (`'make test' --json`): a word with blanks is text
    for the shell, which takes no further arguments. Behind a command of separate words, everything
    is the command's own.
    """
    known = _known(verb)
    rest = list(args)
    options = _leading(known, rest)
    if not rest or rest[0].startswith("-"):
        return [*args]
    name = rest.pop(0)
    options += _leading(known, rest)
    is_marked = rest[:1] == ["--"]
    if is_marked:
        rest.pop(0)
    elif rest and any(each.isspace() for each in rest[0]):
        behind = rest[1:]
        moved = _leading(known, behind)
        if moved and not behind:
            options, rest = options + moved, rest[:1]
    return [*options, "--", name, *rest]


def _leading(known: Mapping[str, Parameter], rest: list[str]) -> list[str]:
    """Remove the options at the beginning of ``rest``, and return them."""
    found: list[str] = []
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        ahead = rest[1:]
        if _option(known, rest[0], ahead) is None:
            break
        found += rest[: len(rest) - len(ahead)]
        rest[:] = ahead
    return found


def _globals(args: Sequence[str]) -> tuple[Globals, Sequence[str]]:
    """Return the options before the verb, and the rest."""
    found: dict[str, str] = {}
    at = 0
    while at < len(args) and args[at].startswith("-"):
        name, has_value, value = args[at].partition("=")
        if name not in ("--root", "--as"):
            raise _Unclear
        if not has_value:
            at += 1
            if at == len(args):
                raise _Unclear
            value = args[at]
        found[name] = _directory(value) if name == "--root" else value
        at += 1
    return Globals(found.get("--root"), found.get("--as")), args[at:]


def _verb(args: Sequence[str]) -> tuple[Verb, Sequence[str], Sequence[str]]:
    """Return the verb, its words, and the rest."""
    place: Any = VERBS.get(args[0]) if args else None
    found = load(place)
    if isinstance(found, VerbGroup) and len(args) > 1:
        word = ALIASES.get(args[0], {}).get(args[1], args[1])
        member = load(found.members.get(word))
        if isinstance(member, Verb):
            return member, [args[0], word], args[2:]
    if isinstance(found, Verb):
        return found, args[:1], args[1:]
    raise _Unclear


def _values(verb: Verb, args: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {
        each.name: () if each.many else each.default for each in verb.parameters
    }
    if verb.behind_dashes is not None:
        at = args.index("--") if "--" in args else len(args)
        values[verb.behind_dashes] = list(args[at + 1 :])
        args = args[:at]
    options, words = _split(verb, args, strict=True)
    for parameter, text in options:
        value = _value(parameter, text)
        values[parameter.name] = (*values[parameter.name], value) if parameter.many else value
    if any(
        each.required and each.options and values[each.name] is None for each in verb.parameters
    ):
        raise _Unclear
    return values | _arguments(verb, words)


def _arguments(verb: Verb, words: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for parameter in (each for each in verb.parameters if not each.options):
        if parameter.required and not words:
            raise _Unclear
        taken = len(words) if parameter.many else min(1, len(words))
        found = tuple(_value(parameter, word) for word in words[:taken])
        if parameter.many:
            values[parameter.name] = found
        elif found:
            values[parameter.name] = found[0]
        words = words[taken:]
    if words:
        raise _Unclear
    return values


def _split(
    verb: Verb, args: Sequence[str], *, strict: bool
) -> tuple[list[tuple[Parameter, str]], list[str]]:
    """Return the options with their values, and the other words.

    For an option that cannot be parsed, raises ``_Unclear`` or, if not ``strict``, leaves it out.
    """
    known = _known(verb)
    if verb.options_first:
        args = options_forward(verb, args)
    options: list[tuple[Parameter, str]] = []
    words: list[str] = []
    rest = list(args)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return options, words + rest
        if word[:1] != "-" or word == "-":
            words.append(word)
            if verb.options_first:
                return options, words + rest
        elif found := _option(known, word, rest):
            options.append(found)
        elif strict:
            raise _Unclear
    return options, words


def _known(verb: Verb) -> dict[str, Parameter]:
    known = {word: each for each in verb.parameters for word in each.options}
    return known | {each.negation: each for each in verb.parameters if each.negation is not None}


def _option(
    known: Mapping[str, Parameter], word: str, rest: list[str]
) -> tuple[Parameter, str] | None:
    """Return the option ``word`` and its value, which may be popped from ``rest``."""
    name, has_value, value = word.partition("=")
    parameter = known.get(name)
    if parameter is None:
        return None
    if parameter.kind == FLAG:
        return None if has_value else (parameter, name)
    if has_value:
        return (parameter, value) if name.startswith("--") else None
    return (parameter, rest.pop(0)) if rest else None


def _value(parameter: Parameter, text: str) -> object:
    kind = parameter.kind
    if kind == TEXT:
        return text
    if kind == FLAG:
        return text != parameter.negation
    if kind == DIRECTORY:
        return _directory(text)
    if isinstance(kind, tuple):
        if text not in kind:
            raise _Unclear
        return text
    try:
        return {WHOLE: whole_number, DECIMAL: decimal}.get(kind, seconds)(text)
    except ValueError:
        raise _Unclear from None


def _directory(text: str) -> str:
    if not (os.path.isdir(text) and os.access(text, os.R_OK)):  # noqa: PTH112
        raise _Unclear
    return text
