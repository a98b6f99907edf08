"""The list of all sections of the configuration. Pure.

To add a section, declare it as a class in its own module and add one field to ``Configuration``.
A field ``dict[str, Section]`` is a mapping of names to sections of the same keys; a field that is a
``setting`` is a key outside of any section.
"""

from __future__ import annotations

from typing import Any, get_args, get_origin

import attrs

from actors.codec import is_attrs_class, resolved_fields
from aegis.configuration.agents import AgentSection
from aegis.configuration.canvases import CanvasesSection
from aegis.configuration.groups import GroupsSection
from aegis.configuration.keep import KeepSection
from aegis.configuration.lifecycle import LifecycleSection
from aegis.configuration.limits import LimitsSection
from aegis.configuration.nodes import NodesSection
from aegis.configuration.queues import QueueSection
from aegis.configuration.setting import Key, key_of, keys_of, setting
from aegis.configuration.telegram import TelegramSection
from aegis.configuration.terminals import TerminalsSection
from aegis.configuration.values import OneLine, Several
from aegis.configuration.worktrees import WorktreesSection
from aegis.protocol.naming import NAME_PATTERN

PLUGIN_DIR = ".aegis/plugins"
PLUGIN_DIR_PATTERN = r"(?!/)(?!(.*/)?\.\.(/|$)).+"
MAX_PLUGIN_DIRS = 16

MAX_BYTES = 256 * 1024
"""Maximum length of the file."""


@attrs.frozen(kw_only=True)
class Configuration:
    """The values of ``.aegis.yaml``, and defaults for the other keys."""

    terminals: TerminalsSection = attrs.field(factory=TerminalsSection)
    nodes: NodesSection = attrs.field(factory=NodesSection)
    agents: dict[str, AgentSection] = attrs.field(factory=dict)
    default_agent: str | None = setting(
        OneLine("the name of a profile", NAME_PATTERN, 64),
        default=None,
        otherwise="none",
        doc="Profile of a session that is started without one.",
    )
    queues: dict[str, QueueSection] = attrs.field(factory=dict)
    canvases: CanvasesSection = attrs.field(factory=CanvasesSection)
    plugin_dirs: tuple[str, ...] = setting(
        Several(OneLine("a path below the root", PLUGIN_DIR_PATTERN, 200), MAX_PLUGIN_DIRS),
        default=(PLUGIN_DIR,),
        doc="Directories of plugins, whose workflows can be run, below the root.",
    )
    groups: GroupsSection = attrs.field(factory=GroupsSection)
    limits: LimitsSection = attrs.field(factory=LimitsSection)
    keep: KeepSection = attrs.field(factory=KeepSection)
    lifecycle: LifecycleSection = attrs.field(factory=LifecycleSection)
    worktrees: WorktreesSection = attrs.field(factory=WorktreesSection)
    telegram: TelegramSection = attrs.field(factory=TelegramSection)


@attrs.frozen
class Parsed:
    """A configuration, the full names of the keys in its file, and the digest of the file."""

    configuration: Configuration = attrs.field(factory=Configuration)
    given: tuple[str, ...] = ()
    digest: str = ""


def top_names() -> list[str]:
    """Return the names at the top of the file, in order."""
    return list(_forms())


def sections() -> dict[str, type]:
    """Return the sections by name, in order."""
    return {name: form for name, form in _forms().items() if is_attrs_class(form)}


def named_sections() -> dict[str, type]:
    """Return the fields that map names to sections of the same keys: the class of each."""
    forms = _forms().items()
    return {name: get_args(form)[1] for name, form in forms if get_origin(form) is dict}


def single_keys() -> dict[str, Key]:
    """Return the keys outside of any section, in order."""
    fields = resolved_fields(Configuration)
    return {each.name: key_of(each.name, each) for each in fields if "kind" in each.metadata}


def every_key() -> list[Key]:
    """Return every key whose full name is fixed, in order."""
    return [key for name in _forms() for key in _keys(name)]


def effective_values(configuration: Configuration) -> dict[str, object]:
    """Return the value of each key, by its full name; ``agents.NAME.KEY`` for each profile."""
    values: dict[str, object] = {}
    for name in _forms():
        found = getattr(configuration, name)
        if name in named_sections():
            for each, section in found.items():
                values |= _values_of(f"{name}.{each}", section)
        elif name in sections():
            values |= _values_of(name, found)
        else:
            values[name] = found
    return values


def order_of(given: list[str]) -> tuple[str, ...]:
    """Return full names of keys in the order of the sections; names of profiles as in the file."""
    order = [key.name for key in every_key()]
    forms = list(_forms())

    def place(name: str) -> tuple[int, int]:
        return forms.index(name.partition(".")[0]), order.index(name) if name in order else 0

    return tuple(sorted(given, key=place))


def _keys(name: str) -> list[Key]:
    single = single_keys()
    if name in single:
        return [single[name]]
    form = sections().get(name)
    return [] if form is None else list(keys_of(name, form))


def _values_of(prefix: str, section: object) -> dict[str, object]:
    fields = resolved_fields(type(section))
    return {f"{prefix}.{field.name}": getattr(section, field.name) for field in fields}


def _forms() -> dict[str, Any]:
    """Return the type of each field of ``Configuration``."""
    return {field.name: field.type for field in resolved_fields(Configuration)}
