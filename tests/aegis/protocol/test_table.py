"""The command set, and the unions of messages that are written out beside it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from actors.messages import message_classes
from aegis.nodes.vocabulary import VOCABULARY
from aegis.protocol.entry import Entry, Owner
from aegis.protocol.table import COMMANDS, ShellCommand, TerminalCommand
from aegis.terminals.directory.directory import TerminalDirectory
from aegis.terminals.front_port import Front
from aegis.terminals.shell.shell import Shell

AEGIS = Path(__file__).resolve().parents[3] / "aegis"

each_command = pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)


def test_names_and_classes_are_unique_and_described() -> None:
    assert len({entry.name for entry in COMMANDS}) == len(COMMANDS)
    assert len({entry.tool for entry in COMMANDS}) == len(COMMANDS)
    assert len({entry.command for entry in COMMANDS}) == len(COMMANDS)
    assert all(entry.doc and entry.remedy for entry in COMMANDS)


def test_the_union_of_terminal_commands_has_the_commands_of_that_owner() -> None:
    owned = {entry.command for entry in COMMANDS if entry.owner is Owner.TERMINAL}
    assert set(message_classes(TerminalCommand)) == owned
    assert set(message_classes(ShellCommand)) <= owned


@each_command
def test_the_actors_that_answer_a_command_accept_it(entry: Entry) -> None:
    in_directory = entry.owner in (Owner.TERMINAL, Owner.TERMINALS)
    assert (entry.command in TerminalDirectory.accepts()) == in_directory
    assert (entry.command in Front.accepts()) == (entry.owner is Owner.TERMINAL)
    assert (entry.command in Shell.accepts()) == (entry.command in message_classes(ShellCommand))


@each_command
def test_only_commands_that_cross_are_in_the_vocabulary_of_nodes(entry: Entry) -> None:
    assert (entry.command in VOCABULARY.classes) == entry.crosses
    assert not entry.crosses or entry.reply in VOCABULARY.classes


def test_texts_in_the_sources_name_only_tools_that_exist() -> None:
    tools = {entry.tool for entry in COMMANDS}
    for path in AEGIS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = set(re.findall(r"(?<!\w)aegis_[a-z]+_[a-z]+\b", node.value))
                assert named <= tools, path
