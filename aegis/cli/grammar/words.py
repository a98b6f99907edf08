"""Conversion of words to a shell command, and of tool names in sentences to verbs. Pure."""

from __future__ import annotations

import re

from aegis.cli.grammar.verb_table import verb_of_tool

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    class NamedParameter(Protocol):
        """A parameter of a verb; a protocol, because the module of verbs imports this one."""

        @property
        def name(self) -> str: ...

        @property
        def options(self) -> Sequence[str]: ...


def command_text(words: Sequence[str]) -> str:
    """Return ``words`` as text for a shell: one word is text already, several are quoted each."""
    if len(words) == 1:
        return words[0]
    import shlex

    return shlex.join(words)


# Not compiled here: only sentences of the daemon are searched.
_TOOL = (
    r"(?<![\w'\"])"
    r"(?:aegis_(?P<prefixed>[a-z_]+)|(?P<bare>[a-z]+_[a-z_]+))"
    r"(?:\((?P<arguments>[^()]*)\))?"
    r"(?![\w'\"])"
)
_ARGUMENT = r"(\w+)=(?:\"([^\"]*)\"|([^,\s\"]+))"


def in_verbs(sentence: str) -> str:
    """Replace the tools that a sentence of the daemon names by the verbs of the command line.

    The argument ``from_handle`` becomes the option.

    ``aegis_term_read(name="build", since_seq=3)`` becomes ``aegis-actors term read build --since
    3``. Text in quotes is a user's own and is kept.
    """
    return re.sub(_TOOL, _in_verb, sentence)


def _in_verb(found: re.Match[str]) -> str:
    if found[0] == "from_handle":
        return "--as HANDLE"
    verb = verb_of_tool(found["prefixed"] or found["bare"])
    if verb is None:
        return found[0]
    words, parameters = f"aegis-actors {verb[0]}", getattr(verb[1], "parameters", ())
    if found["arguments"] is None:
        return words
    values = {name: text or bare for name, text, bare in re.findall(_ARGUMENT, found["arguments"])}
    if not values.keys() <= {each.name for each in parameters}:
        return f"{words}({found['arguments']})"
    return " ".join((words, *_words_of(parameters, values)))


def _words_of(parameters: Sequence[NamedParameter], values: Mapping[str, str]) -> list[str]:
    given = [each for each in parameters if each.name in values]
    words = [values[each.name] for each in given if not each.options]
    for each in given:
        words += [each.options[0], values[each.name]] if each.options else []
    import shlex

    return [shlex.quote(word) for word in words]
