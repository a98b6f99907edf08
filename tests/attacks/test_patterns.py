"""Patterns made to take for ever: in every argument of every command that is one."""

from __future__ import annotations

import attrs
import pytest

from aegis.client.line import CommandFailed
from aegis.protocol.table import BY_NAME
from tests.attacks.conftest import Watch
from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

CATASTROPHES = {
    "nested repetition": "(a+)+$",
    "alternatives": "(a|a)*b",
    "nested stars": "((a*)*)*c",
    "overlapping": "(a|aa)+$",
    "many optional": "a?" * 100 + "a" * 100,
    "counted": "(a{1,100}){1,100}b",
    "counted thrice": "((a{100}){100}){100}",
    "a look behind": "(?<=a+)b",
    "a reference back": r"(a+)\1+b",
    "of a megabyte": "a" * 1_000_000,
    "deeply nested": "(" * 10_000 + ")" * 10_000,
    "any character": ".*" * 50 + "x",
    "of every letter": r"[\p{L}]{1000}",
}

TAKERS: dict[str, dict[str, object]] = {
    "term_wait": {"timeout": 2.0, "cursor": 0},
    "term_subscribe": {"from_handle": "eve"},
}
"""Each command with an argument that is a pattern, and what else it needs."""


def test_every_argument_that_is_a_pattern_is_attacked_here() -> None:
    found = {
        name
        for name, entry in BY_NAME.items()
        for field in attrs.fields(entry.command)
        if "pattern" in field.name
    }
    assert found == set(TAKERS)


@pytest.mark.parametrize("pattern", CATASTROPHES.values(), ids=CATASTROPHES)
@pytest.mark.parametrize("command", TAKERS)
def test_a_catastrophic_pattern_is_refused_or_found_out_in_time(
    daemon: DaemonProcess,
    new_terminal: NewTerminal,
    watched: Watch,
    command: str,
    pattern: str,
    request: pytest.FixtureRequest,
) -> None:
    terminal = new_terminal()
    terminal.run("printf 'a%.0s' {1..50000}; echo")
    attack = f"{command}, pattern: {request.node.callspec.id}"
    with watched(daemon, attack) as other:
        told = outcome(daemon, command, name=terminal.name, pattern=pattern, **TAKERS[command])
        assert told in ("taken", "invalid_request")
        terminal.run("printf 'a%.0s' {1..50000}; echo")  # what a subscription looks through
    assert other.grown < 64


def outcome(daemon: DaemonProcess, command: str, /, **arguments: object) -> str:
    """Whether the pattern was taken, or the code of the refusal."""
    try:
        daemon.call(command, **arguments)
    except CommandFailed as error:
        return error.code
    return "taken"
