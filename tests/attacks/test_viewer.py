"""What programs, agents and clients say is shown by the command line without being obeyed.

Every verb is run as it was installed, and its very bytes are looked at: nothing that a terminal
would take as a command may be among them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from aegis.cli.grammar.click_program import cli
from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal
from tests.e2e.running import running
from tests.fakes.push_service import PushBrowser

pytestmark = pytest.mark.real

EVIL = (
    "\x1b[31mred\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil.example\x1b\\link"
    '\x1bP$q"p\x1b\\\x1b[6n\x1b[2J\x1bc\x9b31m\x9d0;t\x9c\x90q\x9c\b\b\b\x7f\x05\x0e\r'
    "\u202eesrever\u202c\u2066iso\u2069\u200e\u200f\u061c\u2028\u2029\ufeff\u200bend"
)
"""C0 and C1 controls, titles, the clipboard, links, answers, a reset, text that runs backward."""

OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
"""What a terminal, or whoever lays out its text, would obey; a line end and a tab it may."""

IN_OCTAL = "".join(f"\\0{byte:03o}" for byte in EVIL.encode())
PRINT_EVIL = f"printf %b '{IN_OCTAL}'"
"""A command that prints it, written without one dangerous character."""


def bytes_of(daemon: DaemonProcess, *words: str, root: Path | None = None) -> bytes:
    """All that ``aegis-actors`` printed, on both streams."""
    done = subprocess.run(
        [*daemon.program, *words],
        env={**daemon.environment, "PYTHONIOENCODING": "utf-8"},
        cwd=root or daemon.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=GUARD_S,
        check=False,
    )
    return done.stdout


def check(printed: bytes) -> str:
    """The text of what was printed, none of which is obeyed."""
    text = printed.decode("utf-8")  # and no byte that some terminals take for a C1 control
    found = OBEYED.search(text)
    assert found is None, f"{found[0]!r} in {text!r}"
    return text


@pytest.fixture
def poisoned(new_terminal: NewTerminal, daemon: DaemonProcess) -> LiveTerminal:
    """A terminal with all of that in its output, commands, title, directory and messages."""
    terminal = new_terminal()
    terminal.subscribe("eve")
    place = daemon.root / f"dir{EVIL.replace('/', '_')}"
    place.mkdir(exist_ok=True)
    terminal.run(f"cd {daemon.root}/dir*")
    terminal.run(f"{PRINT_EVIL}; {PRINT_EVIL} >&2; false # \u202e\u2066\u200f")
    terminal.run(f"printf '\\033]0;evil\\033[31m\\007'; {PRINT_EVIL}")
    daemon.call("handoff", target_handle="eve", context=EVIL)
    daemon.call("page_link", view=f"terminal:{terminal.name}", label=EVIL)
    browser = PushBrowser()  # at a host that there is not: nothing is sent
    daemon.call("push_subscribe", **browser.keys, label=EVIL[:120], requests=False)
    return terminal


VERBS: dict[str, list[str]] = {
    "status": ["status"],
    "tree": ["tree"],
    "term list": ["term", "list"],
    "term run": ["term", "run", "NAME", PRINT_EVIL],
    "term broadcast": ["term", "broadcast", "NAME", "--", PRINT_EVIL],
    "term read": ["term", "read", "NAME", "-n", "10"],
    "term output": ["term", "output", "NAME"],
    "term wait": ["term", "wait", "NAME", "--pattern", "red.*", "--cursor", "0", "--timeout", "1"],
    "term screen": ["term", "screen", "NAME"],
    "inbox read": ["inbox", "read", "--as", "eve", "--all"],
    "inbox wait": ["inbox", "wait", "--as", "eve", "--timeout", "0"],
    "workspace list": ["workspace", "list"],
    "workspace create": ["workspace", "create", "w", "dir"],
    "workspace exec": ["workspace", "exec", "w", PRINT_EVIL],
    "shell open": ["shell", "open", "w"],
    "shell read": ["shell", "read", "NAME", "--cursor", "0"],
    "history": ["history"],
    "session list": ["session", "list"],
    "page list": ["page", "list"],
    "push list": ["push", "list"],
    "doctor": ["doctor"],
    "config check": ["config", "check"],
}
"""A call of each verb that shows something of others."""

SHOWS_NOTHING_OF_OTHERS = {
    "web",
    "page link",
    "page revoke",
    "push remove",
    "request ask",
    "unit",
    "up",
    "join",
    "node key",
    "node forget",
    "down",
    "completion",
    "mcp",
    "acp",
    "term spawn",
    "term keys",
    "term signal",
    "term resize",
    "term subscribe",
    "term unsubscribe",
    "term close",
    "term attach",
    "workspace delete",
    "shell write",
    "shell signal",
    "shell close",
    "inbox send",
    "session new",
    "session revoke",
    "token rotate",
}
"""Verbs that only confirm; they are tried with names below. `term attach` hands output on as it is,
with what a window would answer left out: `tests/e2e/test_attach.py` tries that."""


OF_AGENTS = {
    *(f"agent {verb}" for verb in ("launch", "fork", "list", "profiles", "show", "send", "read")),
    "agent output",
    *(
        f"agent {verb}"
        for verb in (
            "interrupt",
            "rename",
            "restart",
            "set",
            "stop",
            "meta",
            "usage",
            "diff",
            "export",
            "worktree",
            "merge",
            "trust",
            "conversations",
            "takeover",
            "handback",
            "rewind",
            "wait",
        )
    ),
    *(f"request {verb}" for verb in ("list", "show", "answer")),
    *(f"queue {verb}" for verb in ("list", "add", "show", "task")),
    *(f"queue {verb}" for verb in ("cancel", "retry", "move", "pause", "resume")),
    *(f"group {verb}" for verb in ("list", "spawn", "broadcast", "wait")),
    *(f"group {verb}" for verb in ("show", "orders", "rename", "dissolve")),
    *(f"workflow {verb}" for verb in ("list", "run", "status", "steps", "cancel", "resume")),
    *("workflow retry", "workflow trust"),
}
"""Verbs that need an agent: tests in ``tests/e2e`` try them, such as ``test_queues.py``."""

FULL_SCREEN = {"tui"}
"""Verbs that draw a screen: tests in ``tests/aegis/tui`` try them."""

OF_CANVASES = {
    f"canvas {verb}"
    for verb in (
        *("list", "open", "read", "write", "append"),
        *("subscribe", "unsubscribe", "history"),
    )
}
"""Verbs that need a file: ``tests/e2e/test_canvases.py`` tries them."""


def all_verbs(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            assert inner is not None
            yield from all_verbs(inner, (*words, word))
    else:
        yield " ".join(words)


def test_every_verb_is_tried_here() -> None:
    elsewhere = OF_AGENTS | OF_CANVASES | FULL_SCREEN
    assert VERBS.keys() | SHOWS_NOTHING_OF_OTHERS | elsewhere == set(all_verbs(cli))


@pytest.mark.long
def test_no_verb_hands_on_what_a_terminal_would_obey(
    daemon: DaemonProcess, poisoned: LiveTerminal
) -> None:
    for verb, words in VERBS.items():
        given = [poisoned.name if word == "NAME" else word for word in words]
        text = check(bytes_of(daemon, *given))
        assert "Traceback" not in text, verb
        if verb in ("term run", "term read", "term output"):
            assert r"\u202eesrever" in text, verb
        depth = len(verb.split())
        check(bytes_of(daemon, *given[:depth], "--json", *given[depth:]))


def test_a_stream_that_is_followed_is_escaped_too(
    daemon: DaemonProcess, poisoned: LiveTerminal
) -> None:
    following = subprocess.Popen(
        [*daemon.program, "term", "output", poisoned.name, "--follow", "--cursor", "0"],
        env=daemon.environment,
        cwd=daemon.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    poisoned.run(f"{PRINT_EVIL}; echo the end")
    assert following.stdout is not None
    read, deadline = b"", time.monotonic() + GUARD_S
    while b"the end" not in read:
        assert time.monotonic() < deadline
        read += os.read(following.stdout.fileno(), 65_536)
    following.terminate()
    read += following.communicate(timeout=GUARD_S)[0]
    check(read)


def test_a_run_that_is_shown_as_it_comes_is_escaped_too(poisoned: LiveTerminal, gate: Gate) -> None:
    with running(poisoned, f"{PRINT_EVIL}; echo seen; {gate.hold}; {PRINT_EVIL}") as run:
        run.wait_for("seen\n")
        gate.open()
        code, out, err = run.end()
    assert code == 0
    assert out.count(r"\u202eesrever") == 2
    check((out + err).encode())


@pytest.mark.parametrize("verb", sorted(VERBS.keys() | SHOWS_NOTHING_OF_OTHERS))
def test_an_error_about_an_evil_word_is_escaped(
    daemon: DaemonProcess, tmp_path: Path, verb: str
) -> None:
    evil = EVIL.replace("\x00", "")
    for words in ([evil], [evil, evil], ["--as", evil], ["--root", evil], [f"--{evil}"]):
        if verb in ("down", "up", "token rotate") and words != [evil]:
            continue  # it would be done, and not refused
        check(bytes_of(daemon, *verb.split(), *words))


def test_an_evil_root_is_shown_escaped(daemon: DaemonProcess, tmp_path: Path) -> None:
    place = tmp_path / EVIL.replace("/", "_")
    place.mkdir()
    assert "no daemon runs" in check(bytes_of(daemon, "status", root=place))
    (place / ".aegis" / "state").mkdir(parents=True)
    (place / ".aegis" / "state" / "endpoint.json").write_text("{")
    check(bytes_of(daemon, "status", root=place))


@pytest.mark.parametrize(
    "text",
    [
        f"terminals: {{shell: {json.dumps(EVIL)}}}",
        f"{json.dumps(EVIL)}: 1",
        f"terminals: {{{json.dumps(EVIL)}: 1, cols: {json.dumps(EVIL)}}}",
        f"terminals: {{shell: '{EVIL}'}}",
        f"%TAG !{EVIL} x\n--- !{EVIL} 1",
    ],
)
def test_what_a_configuration_holds_is_shown_escaped(
    daemon: DaemonProcess, tmp_path: Path, text: str
) -> None:
    (tmp_path / ".aegis.yaml").write_text(text)
    for words in (["config", "check"], ["config", "check", "--json"], ["up"]):
        assert "Traceback" not in check(bytes_of(daemon, *words, root=tmp_path))


@pytest.mark.long
def test_the_name_of_a_configured_shell_is_shown_escaped(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    (tmp_path / ".aegis.yaml").write_text("terminals: {shell: 'x\u202ey'}")
    for words in (["config", "check"], ["config", "check", "--json"], ["doctor"]):
        assert r"x\u202ey" in check(bytes_of(daemon, *words, root=tmp_path))


def test_what_a_daemon_of_a_stranger_says_is_escaped(daemon: DaemonProcess) -> None:
    """The names of handles and sessions come from others as well."""
    check(bytes_of(daemon, "session", "new", "--handle", EVIL))
    check(bytes_of(daemon, "session", "revoke", EVIL))
    check(bytes_of(daemon, "token", "rotate", "--session", EVIL))
