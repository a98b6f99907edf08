"""The keys, what commands take from them, and the page that lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from actors.codec import resolved_fields
from aegis.configuration.agents import AgentSection
from aegis.configuration.page import configuration_page
from aegis.configuration.queues import QueueSection
from aegis.configuration.sections import (
    Configuration,
    effective_values,
    every_key,
    named_sections,
    sections,
)
from aegis.configuration.setting import keys_of
from aegis.configuration.terminals import DEFAULT_RAW_LOG_BYTES, TerminalsSection
from aegis.configuration.values import DecimalNumber, ProgramName, WholeNumber
from aegis.journal.raw_log import BUFFER_BYTES, LIMIT_BYTES
from aegis.protocol.command import Command
from aegis.protocol.derived.defaults import settings_of
from aegis.protocol.table import COMMANDS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "configuration.md"

PROFILE_KEYS = list(keys_of("agents.x", AgentSection))
KEYS = {key.name: key for key in every_key()}

SET = [
    pytest.param(entry.command, argument, setting, id=f"{entry.name}.{argument}")
    for entry in COMMANDS
    for argument, setting in settings_of(entry.command).items()
]


def test_the_page_is_made_from_the_keys() -> None:
    assert PAGE.read_text(encoding="utf-8") == configuration_page()


def test_every_key_is_named_once_with_what_it_does() -> None:
    assert list(KEYS) == [
        "terminals.shell",
        "terminals.cols",
        "terminals.rows",
        "terminals.raw_log_bytes",
        "terminals.timeout_s",
        "nodes.workers",
        "default_agent",
        "canvases.directories",
        "plugin_dirs",
        "groups.presets",
        "limits.sessions",
        "limits.spawn_depth",
        "limits.spawns_per_hour",
        "limits.messages_per_hour",
        "limits.transcript_bytes",
        "limits.usd_per_day",
        "keep.newest",
        "keep.days",
        "keep.most",
        "keep.archive_bytes",
        "lifecycle.idle_s",
        "lifecycle.stale_s",
        "worktrees.made_again",
        "telegram.chat_id",
        "telegram.user_ids",
        "telegram.api",
    ]
    assert list(sections()) == [
        "terminals",
        "nodes",
        "canvases",
        "groups",
        "limits",
        "keep",
        "lifecycle",
        "worktrees",
        "telegram",
    ]
    assert named_sections() == {"agents": AgentSection, "queues": QueueSection}
    for key in [*KEYS.values(), *PROFILE_KEYS]:
        assert key.doc.endswith(".")
        assert key.kind.expected
        assert key.default is not None or key.otherwise


def test_every_default_fits_its_own_key() -> None:
    for key in [*KEYS.values(), *PROFILE_KEYS]:
        assert key.kind.fits(key.default) or (key.default is None and key.otherwise), key.name
    assert AgentSection() == AgentSection()


def test_the_effective_values_are_those_of_the_configuration() -> None:
    changed = Configuration(terminals=TerminalsSection(cols=132, shell="fish"))
    assert effective_values(changed) == {
        **{name: key.default for name, key in KEYS.items()},
        "terminals.cols": 132,
        "terminals.shell": "fish",
    }


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"cols": 1}, "cols must be a whole number from 2 to 1000, not 1"),
        ({"rows": 2.0}, "rows must be a whole number from 1 to 1000, not 2.0"),
        ({"timeout_s": 5}, "timeout_s must be a number from 0.01 to 86400, not 5"),
        ({"shell": "a/b"}, "shell must be the name of a program or an absolute path, not 'a/b'"),
    ],
)
def test_a_section_made_by_code_is_checked_too(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        TerminalsSection(**values)


@pytest.mark.parametrize(("command", "argument", "setting"), SET)
def test_a_command_takes_its_default_from_a_key_with_the_same_one_and_the_same_bounds(
    command: type[Command[Any]], argument: str, setting: str
) -> None:
    [field] = [each for each in resolved_fields(command) if each.name == argument]
    key = KEYS[setting]
    assert (type(field.default), field.default) == (type(key.default), key.default)
    limits = field.metadata["schema"]
    if isinstance(key.kind, WholeNumber | DecimalNumber):
        assert (limits["minimum"], limits["maximum"]) == (key.kind.low, key.kind.high)
    else:
        assert isinstance(key.kind, ProgramName)
        assert field.validator is not None
        field.validator(None, field, "x" * key.kind.max_chars)
        with pytest.raises(ValueError, match=f"{key.kind.max_chars} characters"):
            field.validator(None, field, "x" * (key.kind.max_chars + 1))


def test_the_commands_that_take_a_default_are_those_of_the_page() -> None:
    taken: dict[str, set[str]] = {}
    for entry in COMMANDS:
        for setting in settings_of(entry.command).values():
            taken.setdefault(setting, set()).add(entry.name)
    assert taken == {
        "terminals.shell": {"term_spawn", "shell_open"},
        "terminals.cols": {"term_spawn", "shell_open"},
        "terminals.rows": {"term_spawn", "shell_open"},
        "terminals.timeout_s": {"term_run", "term_wait", "term_broadcast", "workspace_exec"},
    }


def test_the_raw_log_has_the_same_default_and_room_for_what_is_written_at_once() -> None:
    assert DEFAULT_RAW_LOG_BYTES == LIMIT_BYTES
    kind = KEYS["terminals.raw_log_bytes"].kind
    assert isinstance(kind, WholeNumber)
    assert kind.low >= BUFFER_BYTES


def test_sections_are_frozen() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Configuration().terminals.cols = 5  # type: ignore[misc]
