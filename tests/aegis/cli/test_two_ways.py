"""An everyday command line is read without click, and means the same as with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aegis.cli.grammar.click_program import cli
from aegis.cli.grammar.parsing import read_line, wants_json
from aegis.cli.grammar.verb import Globals, Verb
from aegis.cli.printing.failures import PROGRAM, exit_code
from aegis.errors import NotFound
from tests.aegis.cli.test_daemon_verbs import STATUS
from tests.aegis.cli.test_inbox import message
from tests.aegis.cli.test_main import ENVIRONMENT, GUARD_S
from tests.aegis.cli.test_output import chunks
from tests.aegis.cli.test_term import DONE, SCREEN

if TYPE_CHECKING:
    from tests.fakes.line_server import LineServer

Make = Callable[..., dict[str, Any]]

EVERYDAY = [
    ["term", "list"],
    ["term", "spawn", "build", "--shell", "zsh", "--cwd=sub", "--env", "A=1", "--env=B=2"],
    ["term", "spawn", "build", "--cols", "100", "--rows=30", "--stderr", "separate"],
    ["term", "spawn", "build", "--env", "nothing"],
    ["term", "run", "build", "echo", "a b", "--json"],
    ["term", "run", "--timeout", "0.5", "build", "make"],
    ["term", "run", "build", "--timeout", "0.5", "make"],
    ["term", "run", "build", "make test", "--timeout=5"],
    ["term", "run", "build", "make test", "--bogus"],
    ["term", "run", "build", "--", "make", "--always-make"],
    ["term", "run", "build", "--bogus", "make"],
    ["term", "ls"],
    ["term", "rm", "build", "--purge"],
    ["term", "read", "build", "-n", "3"],
    ["term", "read", "--brief", "build", "--since=-1"],
    ["term", "read", "build", "-n", "3", "--since", "4"],
    ["term", "keys", "build", r"ls\r"],
    ["term", "keys", "--literal", "build", r"\q"],
    ["term", "keys", "build", r"\q"],
    ["term", "screen", "build"],
    ["term", "output", "build", "--cursor", "0", "--raw"],
    ["term", "output", "--follow", "build", "--json"],
    ["term", "wait", "build", "--seq", "1", "--idle", "2", "--timeout", "1e1"],
    ["term", "close", "build", "--purge"],
    ["term", "signal", "build", "int"],
    ["term", "resize", "build", "100", "40"],
    ["--as", "pm", "inbox", "read", "--after", "m1", "--all", "--limit", "5"],
    ["inbox", "wait", "--timeout", "5", "--as=pm"],
    ["inbox", "send", "pm", "all", "is", "--well"],
    ["inbox", "send", "pm", "all is well", "--key", "k1"],
    ["inbox", "send", "--json", "pm", "done"],
    ["status"],
]
"""Command lines of the verbs that are used all day; among them some that are refused."""

HEAVY = {
    *("click", "pathlib", "importlib.metadata", "typing", "dataclasses", "inspect", "asyncio"),
    *("contextlib", "urllib", "attrs", "cattrs", "trio", "argparse", "gettext", "locale"),
}
"""Modules that an everyday verb does without: each costs as much as its call of the daemon."""


def with_json(words: list[str]) -> list[str]:
    at = 2 if words[0] in ("term", "inbox") else 1
    at += 2 if words[0].startswith("-") else 0
    at += 1 if words[0].startswith("-") else 0
    return [*words[:at], "--json", *words[at:]]


@pytest.fixture
def answering(server: LineServer, record: Make, info: Make) -> LineServer:
    messages = {"messages": [message(1, "hi")], "next": "n1"}
    server.answers |= {
        "list_sessions": {"result": []},
        "term_list": {"result": [info(cwd="/tmp/é\x1b")]},
        "term_spawn": info(),
        "term_resize": info(),
        "term_run": record(exit=3),
        "term_read": {"result": [record(), record(seq=4)], "more": True},
        "term_keys": DONE,
        "term_signal": DONE,
        "term_screen": SCREEN,
        "term_output": {**chunks("")(), "running": False},
        "term_wait": {"reason": "ended", "match": None, "cursor": 7, "record": record(exit=1)},
        "term_close": {"ok": True, "leftover": ["dd (pid 17)"]},
        "inbox_read": messages,
        "inbox_wait": messages,
        "handoff": {"id": "m7", "status": "queued", "position": 2},
        "status": STATUS,
    }
    return server


def shortly(words: list[str]) -> int:
    line = read_line(words)
    assert line is not None, "click would be needed"
    path = " ".join((PROGRAM, *line.words))
    return exit_code(line.run, path, as_json=bool(line.given.get("as_json")))


def by_click(words: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    code = ended.value.code
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize("change", [list, with_json], ids=["text", "json"])
@pytest.mark.parametrize("words", EVERYDAY, ids=" ".join)
@pytest.mark.parametrize("failing", [False, True], ids=["answered", "refused"])
def test_both_ways_ask_and_print_the_same(
    answering: LineServer,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    change: Callable[[list[str]], list[str]],
    failing: bool,
) -> None:
    monkeypatch.chdir(answering.root)
    if failing:
        for name in answering.answers:
            answering.answers[name] = NotFound("there is no 'build'; aegis_term_spawn makes one")
    seen = []
    for way in (shortly, by_click):
        code = way(change(words))
        asked = []
        while not answering.requests.empty():
            asked.append(answering.requests.get())
        seen.append((code, capfd.readouterr(), asked))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("words", EVERYDAY, ids=" ".join)
def test_without_a_daemon_both_ways_print_the_same(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for change in (list, with_json):
        seen = [(way(change(words)), capfd.readouterr()) for way in (shortly, by_click)]
        assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["--version"],
        ["term"],
        ["bogus"],
        ["term", "bogus"],
        ["term", "list", "--help"],
        ["term", "list", "-h"],
        ["term", "list", "extra"],
        ["term", "list", "--bogus"],
        ["term", "list", "--json=1"],
        ["term", "read", "build", "-n3"],
        ["term", "read", "build", "-n", "x"],
        ["term", "read", "build", "-n"],
        ["term", "spawn", "build", "--stderr", "other"],
        ["term", "run", "build"],
        ["term", "run", "--timeout", "nan", "build", "true"],
        ["--root", "/nowhere", "status"],
        ["session", "new"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_what_is_not_everyday_is_left_to_click(words: list[str]) -> None:
    assert read_line(words) is None


VERBS = [
    *(["term", each] for each in ("list", "spawn", "run", "keys", "read", "screen", "output")),
    *(["term", each] for each in ("wait", "close", "signal", "resize", "subscribe", "broadcast")),
    *(["inbox", each] for each in ("read", "send", "wait")),
    *(["shell", each] for each in ("open", "read", "write")),
    ["workspace", "create"],
    ["workspace", "exec"],
    ["token", "rotate"],
    ["status"],
]
WORDS = [
    *("a", "7", "-7", "1.5", "1_0", "nan", "٣", "", "-", "--", "A=1", "/", "--json", "--json=1"),
    *("--root", "--root=/", "--as", "--as=x", "-n", "-n7", "-f", "--follow", "--follow=1", "--raw"),
    *("--timeout", "--timeout=3", "--timeout=-1", "--timeout=inf", "--seq", "--seq=+2", "--env"),
    *("--env=B=2", "--stderr", "--stderr=merged", "merged", "--no-plain", "--plain", "--purge"),
    *("--all", "--brief", "--since=-1", "--literal", "--keys", "--name=x", "--cwd", "--x", "-x"),
]


@given(
    before=st.lists(st.sampled_from(["--as=x", "--root=/", "--as", "x"]), max_size=2),
    verb=st.sampled_from(VERBS),
    rest=st.lists(st.sampled_from(WORDS), max_size=6),
)
@example(before=[], verb=["term", "run"], rest=["a", "--json", "--", "-x"])
@example(before=[], verb=["term", "broadcast"], rest=["a", "--", "--json", "--"])
def test_a_line_that_is_read_without_click_has_the_values_that_click_gives(
    before: list[str], verb: list[str], rest: list[str]
) -> None:
    words = [*before, *verb, *rest]
    line = read_line(words)
    with pytest.MonkeyPatch.context() as patch:
        runs: list[tuple[Verb, Any, Any, dict[str, Any]]] = []

        def run(self: Verb, before: Globals, given: dict[str, Any]) -> int:
            runs.append((self, before.root, before.handle, _plain(given)))
            return 0

        patch.setattr(Verb, "run", run)
        if line is None:
            return
        line.run()
        assert by_click(words) == 0
    assert runs[0] == runs[1]
    assert wants_json(words) == bool(line.given.get("as_json"))


def _plain(given: dict[str, Any]) -> dict[str, Any]:
    """The values, where it is no matter whether several are a list or a tuple."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["term", "list", "--json", "--bogus"], True),
        (["--as", "--json", "term", "list", "--bogus"], False),
        (["term", "run", "--bogus", "build", "x", "--json"], False),
        (["term", "run", "--json", "--timeout", "x", "build", "y"], True),
        (["term", "read", "--since", "--json"], False),
        (["term", "list", "--", "--json"], False),
        (["bogus", "--json"], True),
        (["doctor", "--json", "--bogus"], True),
    ],
)
def test_json_is_recognised_on_a_line_that_is_wrong(words: list[str], asked: bool) -> None:
    assert wants_json(words) is asked


@pytest.mark.real
@pytest.mark.every_python
@pytest.mark.parametrize("words", EVERYDAY, ids=" ".join)
def test_an_everyday_verb_loads_nothing_that_takes_long(
    answering: LineServer, words: list[str]
) -> None:
    code = (
        "import socket, json, sys; before = set(sys.modules)\n"
        f"sys.argv[1:] = {words!r}\n"
        "from aegis.cli.main import main\n"
        "try: main()\n"
        "finally: sys.stderr.write('\\n' + ' '.join(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=answering.root,
        env=ENVIRONMENT,
        capture_output=True,
        timeout=GUARD_S,
        check=False,
    )
    loaded = set(done.stderr.decode().splitlines()[-1].split())
    assert "aegis.cli.main" in loaded
    assert not {name for name in loaded if name in HEAVY or name.split(".")[0] in HEAVY}
