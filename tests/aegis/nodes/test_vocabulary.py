"""What crosses between processes: all that a terminal elsewhere needs, and nothing that cannot."""

from __future__ import annotations

import pytest

from actors.codec.reading import reader_of
from actors.codec.writing import writer_of
from actors.errors import AskError
from aegis import errors
from aegis.errors import AegisError
from aegis.nodes.vocabulary import VOCABULARY, known_to_daemon, known_to_nodes
from aegis.protocol.table import COMMANDS
from aegis.terminals.directory.directory import TerminalDirectory
from aegis.terminals.front_port import Front
from aegis.terminals.shell.messages import ShellMessage

CROSSING = sorted(VOCABULARY.classes, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", CROSSING, ids=lambda cls: cls.__name__)
def test_every_class_of_it_is_carried_by_the_codec(cls: type) -> None:
    reader_of(cls)
    writer_of(cls)


@pytest.mark.parametrize(
    "entry",
    [entry for entry in COMMANDS if entry.command in Front.accepts()],
    ids=lambda entry: entry.name,
)
def test_every_command_to_a_terminal_crosses_with_its_answer(entry: object) -> None:
    assert entry.command in VOCABULARY.classes  # type: ignore[attr-defined]
    assert entry.reply in VOCABULARY.classes  # type: ignore[attr-defined]


def test_what_only_the_parts_of_one_terminal_say_to_each_other_does_not_cross() -> None:
    inside = {"Introduction", "CommandEnded", "Submit", "AppendRecord", "FetchOutput"}
    assert not inside & {cls.__name__ for cls in VOCABULARY.classes}


def test_requests_to_a_terminal_are_accepted_by_its_front_or_shell() -> None:
    from aegis.nodes.vocabulary import TO_HOSTS, TO_TERMINALS

    accepted = Front.accepts() | set(ShellMessage.__args__)
    assert set(TO_TERMINALS) <= accepted
    assert set(TO_HOSTS) <= TerminalDirectory.accepts()


REFUSALS = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, AegisError)
]


@pytest.mark.parametrize("cls", REFUSALS, ids=lambda cls: cls.__name__)
def test_every_refusal_arrives_as_what_it_is(cls: type[AegisError]) -> None:
    kind, text, path = VOCABULARY.failure_of(cls("no"))
    arrived = VOCABULARY.error_of(kind, text, path)
    assert (type(arrived), str(arrived)) == (cls, "no")


def test_a_refusal_of_a_class_that_is_not_known_arrives_as_the_nearest() -> None:
    class Special(errors.Busy):
        pass

    kind, text, path = VOCABULARY.failure_of(Special("no"))
    assert type(VOCABULARY.error_of(kind, text, path)) is errors.Busy


def test_who_gave_no_answer_is_known_on_the_other_side() -> None:
    kind, text, path = VOCABULARY.failure_of(AskError("gone", path="root/x"))
    arrived = VOCABULARY.error_of(kind, text, path)
    assert isinstance(arrived, AskError)
    assert arrived.path == "root/x"


def test_names_cross_where_they_are_needed() -> None:
    assert known_to_nodes("service", "inboxes")
    assert not known_to_nodes("service", "terminals")
    assert not known_to_nodes("terminal", "build")
    assert known_to_daemon("terminal", "build")
    assert not known_to_daemon("service", "terminals")
