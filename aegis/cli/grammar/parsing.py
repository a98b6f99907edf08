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
    Group,
    Parameter,
    Verb,
)
from aegis.cli.grammar.verb_table import VERBS, load

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Line:
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


def read_line(args: Sequence[str]) -> Line | None:
    """Parse a command line; return None if click has to."""
    try:
        before, rest = _globals(args)
        verb, words, rest = _verb(rest)
        return Line(verb, words, before, _values(verb, rest))
    except _Unclear:
        return None


def wants_json(args: Sequence[str]) -> bool:
    """Return whether ``--json`` is among the options of a line, which may be a wrong one."""
    try:
        _, rest = _globals(args)
        verb, _, rest = _verb(rest)
    except _Unclear:
        return "--json" in args[: args.index("--") if "--" in args else None]
    options, _ = _split(verb, rest, strict=False)
    return any(parameter.name == "as_json" for parameter, _ in options)


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
    if isinstance(found, Group) and len(args) > 1:
        member = load(found.members.get(args[1]))
        if isinstance(member, Verb):
            return member, args[:2], args[2:]
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
    known = {word: each for each in verb.parameters for word in each.options}
    known |= {each.negation: each for each in verb.parameters if each.negation is not None}
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
