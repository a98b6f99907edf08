"""Conversion of a tree of YAML nodes to a ``Configuration``, or to its errors. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from actors.codec import structure
from aegis.configuration.document import compose, place_at
from aegis.configuration.problems import MAX_PROBLEMS, BadConfiguration, Problem
from aegis.configuration.sections import Configuration, Parsed, every_key, sections
from aegis.configuration.setting import Key, keys_of
from aegis.configuration.values import MAX_SHOWN_CHARS, Guess, Scalar, Unfit
from aegis.names import nearest, shorten

_GUESSES: dict[str, Guess] = {
    "str": "text",
    "null": "nothing",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "timestamp": "a date",
}


def parse(content: bytes) -> Parsed:
    """Parse the content of a file; an empty file means the defaults.

    Raises ``BadConfiguration`` with all errors, and no other exception.
    """
    root = compose(content)
    if root is None or _is_nothing(root):
        return Parsed()
    reader = _Reader()
    document = reader.document(root)
    if reader.problems:
        raise BadConfiguration(reader.problems)
    given = [f"{section}.{name}" for section, keys in document.items() for name in keys]
    order = [key.name for key in every_key()]
    return Parsed(structure(Configuration, document), tuple(sorted(given, key=order.index)))


class _Reader:
    """A visitor of the tree that collects all errors in the order of the file."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def document(self, root: yaml.Node) -> dict[str, dict[str, object]]:
        """Return the values of each section in the file."""
        known = sections()
        document: dict[str, dict[str, object]] = {}
        if not isinstance(root, yaml.MappingNode):
            self._add(root, "", f"must be a mapping such as 'terminals:', not {_name_of(root)}")
            return document
        for name, node in self._entries(root, "", known):
            document[name] = self._section(name, known[name], node)
        return document

    def _section(self, section: str, form: type, node: yaml.Node) -> dict[str, object]:
        known = {key.name.partition(".")[2]: key for key in keys_of(section, form)}
        values: dict[str, object] = {}
        if _is_nothing(node):
            return values
        if not isinstance(node, yaml.MappingNode):
            some = ", ".join(known)
            self._add(node, section, f"{section} must be a mapping of {some}, not {_name_of(node)}")
            return values
        for name, inner in self._entries(node, f"{section}.", known):
            self._read(known[name], inner, name, values)
        return values

    def _read(self, key: Key, node: yaml.Node, name: str, values: dict[str, object]) -> None:
        if not isinstance(node, yaml.ScalarNode):
            self._add(
                node, key.name, f"{key.name} must be {key.kind.expected}, not {_name_of(node)}"
            )
            return
        try:
            values[name] = key.kind.read(scalar_of(node))
        except Unfit as error:
            self._add(node, key.name, f"{key.name} {error}")

    def _entries(
        self, mapping: yaml.MappingNode, prefix: str, known: Iterable[str]
    ) -> Iterator[tuple[str, yaml.Node]]:
        """Yield the entries with known keys, each once; record the others as problems."""
        lines: dict[str, int] = {}
        for key, value in mapping.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name is None:
                self._add(key, prefix, f"a key must be a name, not {_name_of(key)}")
            elif name in lines:
                self._add(
                    key,
                    f"{prefix}{name}",
                    f"{prefix}{shorten(name, MAX_SHOWN_CHARS)} is repeated; it is already on line "
                    f"{lines[name]}: keep one of them",
                )
            else:
                lines[name] = key.start_mark.line + 1
                if name in known:
                    yield name, value
                else:
                    self._add_unknown(key, prefix, name, known)

    def _add_unknown(self, node: yaml.Node, prefix: str, name: str, known: Iterable[str]) -> None:
        if len(self.problems) >= MAX_PROBLEMS:
            sentence = ""  # only counted
        else:
            whole = f"{prefix}{name}"
            shown = f"{shorten(whole, MAX_SHOWN_CHARS)!r}"
            sentence = f"there is no key {shown}; {_hint(prefix, name, list(known))}"
        self._add(node, f"{prefix}{name}", sentence)

    def _add(self, node: yaml.Node, key: str, sentence: str) -> None:
        key = shorten(key.removesuffix("."), MAX_SHOWN_CHARS)
        self.problems.append(Problem(sentence, place_at(node.start_mark), key))


def scalar_of(node: yaml.ScalarNode) -> Scalar:
    """Convert a YAML scalar, with the type that YAML guesses."""
    guess = _GUESSES.get(node.tag.rpartition(":")[2], "text")
    return Scalar(node.value, guess, plain=node.style is None)


def _hint(prefix: str, name: str, known: list[str]) -> str:
    """Return a suggestion: a key of this section or of another one."""
    name = shorten(name, MAX_SHOWN_CHARS)
    close = nearest(name, known, most=1)
    if close:
        return f"did you mean {f'{prefix}{close[0]}'!r}?"
    others = [key.name for key in every_key() if key.name.partition(".")[2] == name.lower()]
    if others:
        return f"did you mean {others[0]!r}?"
    return f"the known keys are {', '.join(f'{prefix}{each}' for each in known)}"


def _is_nothing(node: yaml.Node) -> bool:
    if not isinstance(node, yaml.ScalarNode):
        return False
    scalar = scalar_of(node)
    return scalar.plain and scalar.guess == "nothing"


def _name_of(node: Any) -> str:
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return repr(shorten(node.value, MAX_SHOWN_CHARS))
