"""Which shell a spawn gets."""

from __future__ import annotations

import shutil

import pytest

from aegis.errors import InvalidRequest
from aegis.terminals.directory.spawning import find_shell
from tests.aegis.terminals.conftest import needs_zsh


@needs_zsh
def test_without_a_wish_it_is_the_shell_of_the_daemons_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = shutil.which("zsh")
    monkeypatch.setenv("SHELL", str(path))
    assert find_shell(None) == path
    assert find_shell("bash") == shutil.which("bash")
    monkeypatch.setenv("SHELL", "/bin/bash")
    assert find_shell("zsh") == path


@pytest.mark.parametrize("default", ["", "/usr/bin/python3", "/bin/false"])
def test_a_default_that_is_no_shell_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, default: str
) -> None:
    monkeypatch.setenv("SHELL", default)
    assert find_shell(None) == shutil.which("bash")


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no executable program"):
        find_shell("/no/such/zsh")
