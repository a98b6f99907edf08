"""Words of a command line."""

from __future__ import annotations

import re

import click
import pytest

from aegis.cli.grammar.click_program import cli
from aegis.cli.grammar.words import command_text, in_verbs
from aegis.inboxes.rows import WakeFold
from aegis.protocol.entry import Entry
from aegis.protocol.table import COMMANDS

each_command = pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)


@pytest.mark.parametrize(
    ("words", "text"),
    [(["cd /tmp && ls"], "cd /tmp && ls"), (["grep", "a b", "*"], "grep 'a b' '*'")],
)
def test_one_word_is_text_and_several_are_quoted_each(words: list[str], text: str) -> None:
    assert command_text(words) == text


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("aegis_term_spawn makes one", "aegis-actors term spawn makes one"),
        (
            "shell_open opens one, and workspace_list names them",
            "aegis-actors shell open opens one, and aegis-actors workspace list names them",
        ),
        ("there is no terminal 'aegis_term_run'", "there is no terminal 'aegis_term_run'"),
        ("my_term_list and term_listing stay", "my_term_list and term_listing stay"),
        ("aegis_node_forget frees them", "aegis-actors node forget frees them"),
        ("term_fly is no tool, shell_exit no verb", "term_fly is no tool, shell_exit no verb"),
        ("the status of the tree is down", "the status of the tree is down"),
        (
            "look (aegis_term_read) before you run it again",
            "look (aegis-actors term read) before you run it again",
        ),
        (
            'read: aegis_term_read(name="b-1", since_seq=-1)',
            "read: aegis-actors term read b-1 --since -1",
        ),
        (
            "aegis_term_read(bogus=1) keeps what no verb has",
            "aegis-actors term read(bogus=1) keeps what no verb has",
        ),
    ],
)
def test_a_sentence_names_verbs_and_leaves_other_text_alone(sentence: str, shown: str) -> None:
    assert in_verbs(sentence) == shown
    assert in_verbs(shown) == shown


@each_command
def test_every_tool_is_shown_as_the_verb_of_its_entry(entry: Entry) -> None:
    shown = entry.tool if entry.verb is None else f"aegis-actors {entry.verb}"
    sentence = re.sub(" --(any|purge)", "", in_verbs(f"{entry.tool}: look with {entry.tool}."))
    assert sentence == f"{shown}: look with {shown}."


@each_command
def test_the_verb_of_every_entry_exists(entry: Entry) -> None:
    context = click.Context(cli)
    found: click.Command | None = cli
    for word in (entry.verb or "").split():
        assert isinstance(found, click.Group)
        found = found.get_command(context, word)
    assert found is not None


@each_command
def test_the_remedies_of_every_entry_name_verbs_only(entry: Entry) -> None:
    tools = {each.tool for each in COMMANDS} | {each.name for each in COMMANDS if "_" in each.name}
    for remedy in (entry.remedy, entry.remedy_if_worker_died or ""):
        assert not tools & set(in_verbs(remedy).replace(":", " ").replace(";", " ").split())


def test_the_call_that_reads_folded_messages_is_shown_with_its_arguments() -> None:
    body = WakeFold.of(number=1, seq=7).body("build")
    assert in_verbs(body).endswith("aegis-actors term read build --since 6")
