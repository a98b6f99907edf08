"""What the daemon's owner has set stands where a caller says nothing, and only there."""

from __future__ import annotations

import pytest

from aegis.errors import InvalidRequest
from aegis.protocol.derived.defaults import settings_of, with_settings
from aegis.protocol.derived.wire import command_from
from aegis.protocol.table import BY_NAME
from aegis.protocol.terminals import SpawnTerminal

SETTINGS = {
    "terminals.shell": "fish",
    "terminals.cols": 132,
    "terminals.rows": 40,
    "terminals.timeout_s": 300.0,
    "terminals.raw_log_bytes": 65_536,
}


@pytest.mark.parametrize(
    ("name", "given", "filled"),
    [
        ("term_spawn", {"name": "b"}, {"shell": "fish", "cols": 132, "rows": 40}),
        ("term_spawn", {"name": "b", "cols": 90}, {"shell": "fish", "rows": 40}),
        ("term_spawn", {"name": "b", "cols": "wide"}, {"shell": "fish", "rows": 40}),
        ("term_spawn", {"name": "b", "shell": None}, {"cols": 132, "rows": 40}),
        ("shell_open", {"workspace": "w"}, {"shell": "fish", "cols": 132, "rows": 40}),
        ("term_run", {"name": "b", "cmd": "x"}, {"timeout": 300.0}),
        ("term_run", {"name": "b", "cmd": "x", "timeout": 5}, {}),
        ("term_wait", {"name": "b"}, {"timeout": 300.0}),
        ("term_broadcast", {"names": ["b"], "cmd": "x"}, {"timeout": 300.0}),
        ("workspace_exec", {"workspace": "w", "command": "x"}, {"timeout": 300.0}),
        ("inbox_wait", {}, {}),
        ("term_resize", {"name": "b"}, {}),
        ("term_list", {}, {}),
    ],
)
def test_what_a_caller_leaves_out_is_filled_in(
    name: str, given: dict[str, object], filled: dict[str, object]
) -> None:
    before = dict(given)
    assert with_settings(BY_NAME[name], given, SETTINGS) == {**given, **filled}
    assert given == before


def test_what_nobody_set_is_left_to_the_command() -> None:
    entry = BY_NAME["term_spawn"]
    for settings in ({}, {"terminals.shell": None}):
        assert with_settings(entry, {"name": "b"}, settings) == {"name": "b"}
    assert command_from(entry, {"name": "b"}) == SpawnTerminal(name="b", cols=80, rows=24)


def test_a_wrong_argument_is_refused_as_it_came() -> None:
    entry = BY_NAME["term_run"]
    arguments = with_settings(entry, {"name": "b", "cmd": "x", "timeout": "soon"}, SETTINGS)
    with pytest.raises(InvalidRequest, match='timeout must be a number, not "soon"'):
        command_from(entry, arguments)


def test_only_fields_that_say_so_are_filled_in() -> None:
    assert settings_of(SpawnTerminal) == {
        "shell": "terminals.shell",
        "cols": "terminals.cols",
        "rows": "terminals.rows",
    }
