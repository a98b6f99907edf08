"""TAB in real shells: the script is read as the page says, and a line is completed and run."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from shutil import which

import pexpect
import pytest

from tests.e2e.harness import GUARD_S, DaemonProcess

pytestmark = pytest.mark.real

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile"], 'eval "$(aegis-actors completion bash)"'),
    "zsh": (
        ["zsh", "-f"],
        'autoload -Uz compinit && compinit -u -D; eval "$(aegis-actors completion zsh)"',
    ),
    "fish": (["fish", "--no-config"], "aegis-actors completion fish | source"),
}


@pytest.fixture(params=SHELLS)
def session(request: pytest.FixtureRequest, daemon: DaemonProcess) -> Iterator[pexpect.spawn]:
    """A shell at its prompt, in the root, that has read the script."""
    [program, *options], setup = SHELLS[request.param]
    if which(program) is None:
        pytest.skip(f"{program} is not installed")
    environment = {**daemon.environment, "TERM": "dumb", "PS1": "$ "}
    spawned = pexpect.spawn(
        program,
        options,
        env=environment,
        cwd=str(daemon.root),
        encoding="utf-8",
        timeout=GUARD_S,
        dimensions=(40, 200),
    )
    # The words are put together by the shell, so that the echo of the line is not taken for them.
    spawned.send(f"{setup}; echo is-'ready'\r")
    spawned.expect_exact("is-ready")
    yield spawned
    spawned.kill(signal.SIGKILL)
    spawned.wait()  # close() gives it half a second, and then fails
    spawned.close()


def test_a_verb_an_option_and_the_name_of_a_terminal_are_completed(
    daemon: DaemonProcess, session: pexpect.spawn
) -> None:
    terminal = daemon.terminal("unmistakable")
    terminal.run("echo 'seen-'here")
    session.send("aegis-actors te\tscr\tunmis\t\r")
    session.expect_exact("seen-here")


def test_a_name_with_blanks_is_one_word(daemon: DaemonProcess, session: pexpect.spawn) -> None:
    daemon.call("canvas_open", name="plan", file="plan.md")
    daemon.call(
        "canvas_write_section",
        name="plan",
        section="Release notes",
        content="whole-" + "section",
        force=True,
    )
    session.send("aegis-actors canvas read pl\tRel\t\r")
    session.expect_exact("whole-section")


def test_without_a_daemon_nothing_is_said(daemon: DaemonProcess, session: pexpect.spawn) -> None:
    session.send("aegis-actors --root / term read x\t")
    session.send("\x15echo nothing-'said'\r")
    session.expect_exact("nothing-said")
    assert "Traceback" not in session.before
    assert "no daemon" not in session.before


@pytest.mark.skipif(which("fish") is None, reason="fish is not installed")
def test_fish_shows_what_a_verb_does_past_a_comma_too(daemon: DaemonProcess) -> None:
    asked = 'aegis-actors completion fish | source; complete -C "aegis-actors doct"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", asked],
        env=daemon.environment,
        cwd=daemon.root,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=True,
    )
    assert done.stdout == "doctor\tCheck that everything works, and print...\n"
