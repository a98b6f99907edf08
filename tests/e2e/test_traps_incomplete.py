"""A text that is not complete, where the usual way out of it is closed."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import NewTerminal, on_both_shells
from tests.e2e.harness import GUARD_S

pytestmark = pytest.mark.real


@on_both_shells
@pytest.mark.parametrize("stderr", ["merged", "separate"])
def test_incomplete_input_is_dropped_by_a_shell_that_ignores_ctrl_c(
    new_terminal: NewTerminal, stderr: str
) -> None:
    terminal = new_terminal(stderr=stderr)
    terminal.run("trap '' INT")
    for cmd in ("echo 'abc", "for x in 1 2; do", "echo $(", 'echo "'):
        assert terminal.refusal(cmd, timeout=GUARD_S).code == "incomplete_input"
        assert terminal.run("echo next")["stdout"] == "next\n"
    assert "''" in terminal.run("trap")["stdout"]
