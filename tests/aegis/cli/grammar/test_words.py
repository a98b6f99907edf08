"""Words of a command line."""

from __future__ import annotations

import pytest

from aegis.cli.grammar.words import command_text, in_verbs


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
        ("term_fly is no tool", "term_fly is no tool"),
    ],
)
def test_a_sentence_names_verbs_and_leaves_other_text_alone(sentence: str, shown: str) -> None:
    assert in_verbs(sentence) == shown
    assert in_verbs(shown) == shown
