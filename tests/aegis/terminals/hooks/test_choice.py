"""Preparing a shell's start, and which can have standard error apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from aegis.errors import InvalidRequest
from aegis.terminals.directory.spawning import check_can_separate
from aegis.terminals.hooks.choice import ERROR_TTY_FILE, can_separate, prepare_shell
from aegis.terminals.hooks.submission import SPLIT_KEY


def test_the_hook_is_told_the_terminal_of_standard_error_and_forgets_it(tmp_path: Path) -> None:
    apart = prepare_shell("/bin/bash", tmp_path, "/dev/pts/7")
    assert apart.error_tty == "/dev/pts/7"
    assert (tmp_path / ERROR_TTY_FILE).read_text() == "/dev/pts/7\n"
    assert apart.encode("ls").endswith(b"ls\x1b[201~" + SPLIT_KEY + b"\r")
    together = prepare_shell("/bin/bash", tmp_path, None)
    assert together.error_tty is None
    assert not (tmp_path / ERROR_TTY_FILE).exists()
    assert SPLIT_KEY not in together.encode("ls")


def test_a_shell_without_a_hook_for_it_is_refused_with_the_remedy() -> None:
    check_can_separate("/usr/bin/bash")
    assert not can_separate("/usr/bin/fish")
    with pytest.raises(InvalidRequest, match="needs bash or zsh, not '/usr/bin/fish': leave"):
        check_can_separate("/usr/bin/fish")
