"""What somebody reads whose call got no answer: a table of what can be missing, and of commands."""

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
    NoReply,
)
from aegis.protocol.table import BY_NAME, COMMANDS, Entry
from aegis.servers.unanswered import REMEDIES, unanswered

FRONT = "root/terminals/build/terminal"
CONNECTION = "root/connections/line_1"

ERRORS = [
    ActorCrashed(f"{FRONT} crashed: KeyError: 'x'", path=FRONT),
    ActorCrashed(f"{CONNECTION} crashed: KeyError: 'x'", path=CONNECTION),
    ActorStopped(f"{FRONT} has stopped; it cannot answer", path=FRONT),
    MailboxFull(f"the mailbox of {FRONT} is full (1024 messages); try later", path=FRONT),
    AskDeadline("no answer within 80 s"),
    AskCycle(f"asking RunCommand would wait for itself: {FRONT} -> {FRONT}", path=FRONT),
    NoReply(f"{FRONT} ended RunCommand without a reply", path=FRONT),
]


def sentence(error: AskError, command: str) -> str:
    return str(unanswered(error, BY_NAME[command], {"name": "build"}, CONNECTION))


def test_every_command_says_what_became_of_a_call_and_what_to_do() -> None:
    assert set(REMEDIES) == {entry.name for entry in COMMANDS}


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
            "was typed it goes on: look for its record with aegis_term_read before you run it "
            "again",
        ),
        (
            "term_list",
            "the directory of terminals had an internal error while it handled this call; nothing "
            "is lost: call again",
        ),
        (
            "handoff",
            "the inbox had an internal error while it handled this call; your message may have "
            "been delivered: sent again, it may be there twice",
        ),
    ],
)
def test_a_crash_reads_as_what_became_of_the_call(command: str, words: str) -> None:
    assert sentence(ERRORS[0], command) == words


@pytest.mark.parametrize("command", ["term_run", "term_list", "handoff", "down"])
def test_what_its_own_connection_had_in_hand_reached_nobody(command: str) -> None:
    assert sentence(ERRORS[1], command) == (
        "this connection had an internal error before your call reached anybody; nothing was "
        "done: call again"
    )


def test_a_call_that_was_not_taken_and_one_that_is_too_late_are_told_apart() -> None:
    assert sentence(ERRORS[3], "term_run").endswith("yours was not taken: try again later")
    assert "gave no answer in time" in sentence(ERRORS[4], "term_run")


def test_a_terminal_that_ended_says_where_to_look() -> None:
    assert "aegis_term_list shows how it stands" in sentence(ERRORS[2], "term_run")
