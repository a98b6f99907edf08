"""Which words start a shell that then stands at its prompt."""

from __future__ import annotations

import pytest

from aegis.terminals.hooks.programs import prompting_shell


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("bash", "bash"),
        ("-bash", "bash"),
        ("/usr/bin/bash --norc", "bash"),
        ("bash --rcfile /tmp/file -i", "bash"),
        ("bash -o vi +o history -O extglob", "bash"),
        ("bash -il", "bash"),
        ("zsh -f", "zsh"),
        ("/bin/fish -C commands", "fish"),
        ("dash", "dash"),
        ("/bin/busybox sh", "sh"),
        ("busybox ash -l", "ash"),
        ("busybox vi", None),
        ("busybox", None),
        ("bash script.sh", None),
        ("bash -i script.sh", None),
        ("bash -c commands", None),
        ("bash -ic commands", None),
        ("fish --command=commands", None),
        ("fish --command commands", None),
        ("bash -", None),
        ("python3", None),
        ("vim bash", None),
        ("", None),
    ],
)
def test_a_shell_that_was_given_nothing_to_run_prompts(words: str, name: str | None) -> None:
    assert prompting_shell(words.split()) == name
