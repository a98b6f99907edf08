"""The error sentences for calls that were not answered, for each cause and command."""

from __future__ import annotations

import re

import pytest

from actors import (
    ActorCrashed,
    ActorStopped,
    AskCycle,
    AskDeadline,
    AskError,
    MailboxFull,
    NodeDied,
    NoReply,
)
from actors.errors import Unreachable
from aegis.protocol.entry import Entry
from aegis.protocol.table import BY_NAME, COMMANDS
from aegis.servers.unanswered import node_of, unanswered

FRONT = "root/terminals/build/terminal"
CONNECTION = "root/connections/line_1"

ERRORS = [
    ActorCrashed(f"{FRONT} crashed: KeyError: 'x'", path=FRONT),
    ActorCrashed(f"{CONNECTION} crashed: KeyError: 'x'", path=CONNECTION),
    ActorStopped(f"{FRONT} has stopped; it cannot answer", path=FRONT),
    MailboxFull(f"the mailbox of {FRONT} is full (1024 messages); try later", path=FRONT),
    AskDeadline("no answer within 80 s"),
    AskCycle(f"asking RunCommand would wait for itself: {FRONT} -> {FRONT}", path=FRONT),
    Unreachable("the link to gpu1 is cut", path="root/nodes/gpu1/terminals/build/terminal"),
    NoReply(f"{FRONT} ended RunCommand without a reply", path=FRONT),
    NodeDied(f"{FRONT} went down with worker w1: killed by signal 9", path=FRONT),
]


def sentence(error: AskError, command: str) -> str:
    return str(unanswered(error, BY_NAME[command], {"name": "build"}, CONNECTION))


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_no_sentence_has_the_words_of_the_runtime(error: AskError, entry: Entry) -> None:
    shown = sentence(error, entry.name)
    assert not re.search(r"root/|Error\b|actor|mailbox|\n", shown), shown
    assert not re.search(r"[.;:]$", shown), shown


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "term_run",
            "terminal 'build' had an internal error while it handled this call; if your command "
            "was typed, it keeps running: look for its record with aegis_term_read before you "
            "run it again",
        ),
        (
            "term_list",
            "the directory of terminals had an internal error while it handled this call; nothing "
            "is lost: call again",
        ),
        (
            "handoff",
            "the inbox had an internal error while it handled this call; your message may have "
            "been delivered: if you send it again without the same key, it may arrive twice",
        ),
    ],
)
def test_a_crash_reads_as_what_became_of_the_call(command: str, words: str) -> None:
    assert sentence(ERRORS[0], command) == words


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "term_run",
            "if your command was typed, it was killed: look for its record with aegis_term_read "
            "before you run it again",
        ),
        ("term_subscribe", "it may have been carried out; calling again does no harm"),
    ],
)
def test_the_death_of_a_worker_reads_as_what_it_killed(command: str, words: str) -> None:
    lost = "terminal 'build' lost its worker while it handled this call, and is being started again"
    assert sentence(ERRORS[-1], command) == f"{lost}; {words}"
    assert sentence(ERRORS[-1], "shell_signal") == (
        "the shell lost its worker while it handled this call, and is being started again; its "
        "target was killed"
    )


@pytest.mark.parametrize("command", ["term_run", "term_list", "handoff", "down"])
def test_a_call_that_failed_in_its_own_connection_was_not_passed_on(command: str) -> None:
    assert sentence(ERRORS[1], command) == (
        "this connection had an internal error before your call was passed on; nothing was "
        "done: call again"
    )


def test_a_call_that_was_not_taken_and_one_that_is_too_late_are_told_apart() -> None:
    assert sentence(ERRORS[3], "term_run").endswith("yours was rejected: try again later")
    assert "did not answer in time" in sentence(ERRORS[4], "term_run")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("term_read", "nothing is lost: call again"),
        (
            "term_run",
            "if your command was typed, it keeps running: look for its record with aegis_term_read "
            "before you run it again",
        ),
    ],
)
def test_a_terminal_on_an_unreachable_host_keeps_running(command: str, told: str) -> None:
    cut = Unreachable("cut", path="root/nodes/gpu1/terminals/build/terminal")
    assert sentence(cut, command) == (
        "terminal 'build' is on node 'gpu1', which is unreachable; it keeps running there and "
        f"answers when the connection is restored; {told}"
    )


def test_other_unreachable_actors_are_named_with_their_node_if_it_is_known() -> None:
    cut = Unreachable("cut", path="root/nodes/gpu1/terminal-directory")
    assert str(unanswered(cut, BY_NAME["term_list"], {}, CONNECTION)).startswith(
        "the directory of terminals did not answer: node 'gpu1' is unreachable; "
    )
    nobody = Unreachable("cut", path="root/workers/w1/terminal-host")
    assert "did not answer: its node is unreachable" in sentence(nobody, "term_run")


@pytest.mark.parametrize(
    ("path", "node"),
    [
        ("root/nodes/gpu1/terminals/build/terminal", "gpu1"),
        ("root/nodes/gpu1", "gpu1"),
        ("root/nodes", None),
        ("root/nodes/", None),
        ("root/workers/w1/terminals", None),
        ("root/terminals/nodes/x", None),
        ("", None),
    ],
)
def test_the_node_is_a_part_of_the_path(path: str, node: str | None) -> None:
    assert node_of(path) == node


def test_a_terminal_that_ended_says_where_to_look() -> None:
    assert "see its state with aegis_term_list" in sentence(ERRORS[2], "term_run")
