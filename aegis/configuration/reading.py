"""Conversion of a tree of YAML nodes to a ``Configuration``, or to its errors. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import yaml

from actors.codec import structure
from aegis.configuration.document import compose, place_at
from aegis.configuration.problems import MAX_PROBLEMS, BadConfiguration, Problem, SourcePosition
from aegis.configuration.profile_rules import preset_problems, profile_problems, queue_problems
from aegis.configuration.sections import (
    Configuration,
    Parsed,
    every_key,
    named_sections,
    order_of,
    sections,
    single_keys,
    top_names,
)
from aegis.configuration.setting import Key, keys_of
from aegis.configuration.values import (
    MAX_SHOWN_CHARS,
    Guess,
    Mapped,
    Scalar,
    Several,
    Unfit,
    ValueKind,
)
from aegis.names import nearest, shorten
from aegis.protocol.naming import NAME_RULE, is_name, name_key

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
    configuration = structure(Configuration, document)
    agents, default = configuration.agents, configuration.default_agent
    found = (
        *profile_problems(agents, default),
        *queue_problems(configuration.queues, agents, default),
        *preset_problems(configuration.groups.presets, agents),
    )
    problems = [Problem(sentence, reader.places.get(key), key) for key, sentence in found]
    if problems:
        raise BadConfiguration(problems)
    return Parsed(configuration, order_of(reader.given))


class _Reader:
    """A visitor of the tree that collects all errors in the order of the file.

    ``given`` are the full names of the keys in the file; ``places`` are the places of their values,
    and of the values in mappings.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.given: list[str] = []
        self.places: dict[str, SourcePosition] = {}

    def document(self, root: yaml.Node) -> dict[str, Any]:
        """Return the values of each section in the file."""
        forms, named, single = sections(), named_sections(), single_keys()
        document: dict[str, Any] = {}
        if not isinstance(root, yaml.MappingNode):
            self._add(root, "", f"must be a mapping such as 'terminals:', not {_name_of(root)}")
            return document
        for name, node in self._entries(root, "", top_names()):
            if name in forms:
                document[name] = self._section(name, forms[name], node)
            elif name in named:
                document[name] = self._named(name, named[name], node)
            else:
                self._read(single[name], node, name, document)
        return document

    def _named(self, whole: str, form: type, node: yaml.Node) -> dict[str, Any]:
        """Return the sections of a mapping of names to sections of the same keys."""
        found: dict[str, Any] = {}
        if _is_nothing(node):
            return found
        if not isinstance(node, yaml.MappingNode):
            self._add(node, whole, f"{whole} must be a mapping of names, not {_name_of(node)}")
            return found
        names: dict[str, str] = {}
        for name, inner in self._entries(node, f"{whole}.", None):
            shown = repr(shorten(name, MAX_SHOWN_CHARS))
            if not is_name(name):
                self._add(inner, whole, f"{whole} has the name {shown}: use {NAME_RULE}")
            elif name_key(name) in names:
                other = names[name_key(name)]
                sentence = f"{whole} has {other!r} and {shown}: names are compared ignoring case"
                self._add(inner, whole, sentence)
            else:
                names[name_key(name)] = name
                found[name] = self._section(f"{whole}.{name}", form, inner)
        return found

    def _section(self, section: str, form: type, node: yaml.Node) -> dict[str, Any]:
        known = {key.name.rpartition(".")[2]: key for key in keys_of(section, form)}
        values: dict[str, Any] = {}
        if _is_nothing(node):
            return values
        if not isinstance(node, yaml.MappingNode):
            some = ", ".join(known)
            self._add(node, section, f"{section} must be a mapping of {some}, not {_name_of(node)}")
            return values
        for name, inner in self._entries(node, f"{section}.", known):
            self._read(known[name], inner, name, values)
        return values

    def _read(self, key: Key, node: yaml.Node, name: str, values: dict[str, Any]) -> None:
        """Read the value of one key into ``values``, unless it is an error."""
        before = len(self.problems)
        match key.kind:
            case Several() as kind:
                value: object = self._several(key.name, kind, node)
            case Mapped() as kind:
                value = self._mapped(key.name, kind, node)
            case kind:
                value = self._single(key.name, kind, node)
        if len(self.problems) == before:
            values[name] = value
            self.given.append(key.name)
            self.places[key.name] = place_at(node.start_mark)

    def _single(self, name: str, kind: ValueKind, node: yaml.Node) -> object:
        if not isinstance(node, yaml.ScalarNode):
            self._add(node, name, f"{name} must be {kind.expected}, not {_name_of(node)}")
            return None
        try:
            return kind.read(scalar_of(node))
        except Unfit as error:
            self._add(node, name, f"{name} {error}")
            return None

    def _several(self, name: str, kind: Several, node: yaml.Node) -> object:
        if isinstance(node, yaml.ScalarNode):
            return [self._single(name, kind.item, node)]
        if not isinstance(node, yaml.SequenceNode) or len(node.value) > kind.most:
            self._add(node, name, f"{name} must be {kind.expected}, not {_name_of(node)}")
            return None
        return [
            self._single(f"{name}, item {number},", kind.item, inner)
            for number, inner in enumerate(node.value, 1)
        ]

    def _mapped(self, name: str, kind: Mapped, node: yaml.Node) -> object:
        if _is_nothing(node):
            return {}
        if not isinstance(node, yaml.MappingNode) or len(node.value) > kind.most:
            self._add(node, name, f"{name} must be {kind.expected}, not {_name_of(node)}")
            return None
        values: dict[str, object] = {}
        for each, inner in self._entries(node, f"{name}.", None):
            if kind.name.fits(each):
                values[each] = self._item(f"{name}.{each}", kind.item, inner)
                self.places[f"{name}.{each}"] = place_at(inner.start_mark)
            else:
                shown = repr(shorten(each, MAX_SHOWN_CHARS))
                self._add(inner, name, f"{name} has {shown}, which is not {kind.name.expected}")
        return values

    def _item(self, name: str, kind: ValueKind | Several, node: yaml.Node) -> object:
        if isinstance(kind, Several):
            return self._several(name, kind, node)
        return self._single(name, kind, node)

    def _entries(
        self, mapping: yaml.MappingNode, prefix: str, known: Collection[str] | None
    ) -> Iterator[tuple[str, yaml.Node]]:
        """Yield the entries with known keys, each once; record the others as problems.

        None: every key is known.
        """
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
                if known is None or name in known:
                    yield name, value
                else:
                    self._add_unknown(key, prefix, name, known)

    def _add_unknown(self, node: yaml.Node, prefix: str, name: str, known: Collection[str]) -> None:
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
    others = [key.name for key in every_key() if key.name.rpartition(".")[2] == name.lower()]
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
