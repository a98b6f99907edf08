"""Trap 38: directories, programs and arguments whose names UTF-8 cannot carry, from outside."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.codec import resolved_fields
from aegis.client.client import connect
from aegis.client.line import CommandFailed
from aegis.doctor.finding import has_problem
from aegis.protocol.stream_table import BY_STREAM
from aegis.protocol.table import COMMANDS
from tests.aegis.servers.test_odd_text import TEXTS, bent
from tests.attacks.raw import bearer, tcp
from tests.e2e.conftest import Connect, NewTerminal
from tests.e2e.harness import GUARD_S, DaemonProcess, LiveTerminal

pytestmark = [
    pytest.mark.real,
    # The client leaves the event streams of the older era to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

BYTES = b"d\xff\xfe'\\\n\xc3\xa9"
"""A name with bytes that are not UTF-8, and with each character that the notation escapes."""

NOTATION = r"d\xff\xfe\'\\\x0a" + "é"
"""The same name inside of ``$'…'``."""


def shown(parent: Path, name: str = NOTATION) -> str:
    """The directory ``name`` below ``parent`` as replies show it."""
    return f"$'{parent}/{name}'"


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A directory whose path UTF-8 cannot carry."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + BYTES))
    path.mkdir()
    return path


@pytest.fixture
def inside(new_terminal: NewTerminal, tmp_path: Path, odd: Path) -> LiveTerminal:
    """A terminal whose shell is in that directory, and which ran a command there."""
    assert odd.is_dir()
    terminal = new_terminal(cwd=str(tmp_path))
    assert terminal.run("cd d*")["exit"] == 0
    assert terminal.run("echo hi")["stdout"] == "hi\n"
    return terminal


def test_trap_38_a_directory_that_is_not_utf8_is_shown_in_a_notation_by_every_command(
    daemon: DaemonProcess, inside: LiveTerminal, tmp_path: Path
) -> None:
    assert inside.described()["cwd"] == shown(tmp_path)
    records = inside.records()
    assert [record["cmd"] for record in records] == ["cd d*", "echo hi"]
    assert records[1]["cwd"] == shown(tmp_path)
    reply = daemon.call("term_wait", name=inside.name, seq=1)
    assert (reply["reason"], reply["record"]["cwd"]) == ("ended", shown(tmp_path))
    assert daemon.call("term_output", name=inside.name, seq=1)["text"] == "hi\n"


def test_the_notation_means_the_same_directory_to_spawn_and_to_a_shell(
    daemon: DaemonProcess, inside: LiveTerminal, new_terminal: NewTerminal, odd: Path
) -> None:
    cwd = inside.described()["cwd"]
    other = new_terminal(cwd=cwd)
    assert other.info["cwd"] == cwd
    assert os.fsencode(Path(f"/proc/{other.info['pid']}/cwd").readlink()) == os.fsencode(odd)
    third = new_terminal()
    assert third.run(f"cd {cwd}")["exit"] == 0, "bash and zsh read the notation too"
    assert third.described()["cwd"] == cwd


def test_a_directory_that_the_notation_names_and_that_is_not_there_is_named_in_the_refusal(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    assert tmp_path.is_dir()
    error = daemon.refusal("term_spawn", name="nowhere", cwd=r"$'/none\xff'")
    assert error.code == "invalid_request"
    assert str(error).startswith(r"""cwd "$'/none\\xff'" does not exist""")
    holds_nul = daemon.refusal("term_spawn", name="nowhere", cwd=r"$'/tmp/\x00'")
    assert "holds a NUL" in str(holds_nul)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_mcp_clients_of_both_eras_are_answered_there(
    daemon: DaemonProcess, connect_mcp: Connect, inside: LiveTerminal, mode: str
) -> None:
    async def main() -> None:
        async with connect_mcp(daemon, mode, "alice") as client:
            with trio.fail_after(GUARD_S):
                listed = await client.call_tool("aegis_term_list", {})
                ran = await client.call_tool(
                    "aegis_term_run", {"name": inside.name, "cmd": "echo over mcp"}
                )
                read = await client.call_tool("aegis_term_read", {"name": inside.name})
                ledger = await client.read_resource(f"aegis://terminals/{inside.name}/ledger")
        assert not listed.is_error
        assert ran.structured_content["stdout"] == "over mcp\n"
        assert [each["cmd"] for each in read.structured_content["result"]][-1] == "echo over mcp"
        text = getattr(ledger.contents[0], "text", "")
        assert json.loads(text)["result"][0]["cmd"] == "cd d*"

    trio.run(main)


def test_the_python_client_is_answered_there(
    daemon: DaemonProcess, inside: LiveTerminal, tmp_path: Path
) -> None:
    async def main() -> None:
        async with connect(daemon.root) as client:
            with trio.fail_after(GUARD_S):
                infos = await client.terminals.list()
                records = await client.terminals.read(inside.name)
        assert shown(tmp_path) in [info.cwd for info in infos.result]
        assert [record.cwd for record in records.result][-1] == shown(tmp_path)

    trio.run(main)


def test_the_command_line_shows_the_notation_and_takes_bytes(
    daemon: DaemonProcess, inside: LiveTerminal, odd: Path, tmp_path: Path
) -> None:
    done = daemon.cli("term", "list")
    assert (done.returncode, shown(tmp_path) in done.stdout) == (0, True)
    name = f"{inside.name}-cli"
    spawned = json_of(daemon, odd, "term", "spawn", name, "--cwd", os.fsdecode(odd), "--json")
    assert spawned["cwd"] == shown(tmp_path)
    daemon.call("term_close", name=name)
    spawned = json_of(daemon, odd, "term", "spawn", name, "--cwd", ".", "--json")
    assert spawned["cwd"] == shown(tmp_path)
    daemon.call("term_close", name=name)


def json_of(daemon: DaemonProcess, cwd: Path, *words: str) -> Any:
    done = subprocess.run(
        [*daemon.program, "--root", str(daemon.root), *words],
        env=daemon.environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=GUARD_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_arguments_of_the_command_line_that_are_no_text_are_refused_in_a_sentence(
    daemon: DaemonProcess, terminal: LiveTerminal
) -> None:
    odd = os.fsdecode(b"a\xff")
    for words in (
        ["term", "run", terminal.name, odd],
        ["term", "spawn", odd],
        ["term", "spawn", "odd", "--env", f"A={odd}"],
        ["term", "spawn", "odd", "--shell", odd],
        ["term", "keys", "--literal", terminal.name, odd],
        ["inbox", "send", "bob", odd],
        ["term", "read", odd],
        [odd],
        ["--root", odd, "term", "list"],
    ):
        done = subprocess.run(
            [*daemon.program, *words],
            env=daemon.environment,
            cwd=daemon.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GUARD_S,
            check=False,
        )
        told = done.stderr.decode("utf-8")
        assert done.returncode in (1, 2, 125), (words, told)
        assert told.startswith("aegis-actors: "), (words, told)
        assert "Traceback" not in told


def test_a_program_that_is_not_utf8_is_named_where_it_waits_for_input(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    program = Path(os.fsdecode(os.fsencode(tmp_path) + b"/p\xff"))
    program.write_text("#!/bin/bash\nread -p 'what? ' x\necho got $x\n")
    program.chmod(0o755)
    waiting = terminal.run(f"cd {tmp_path}; ./p?")
    assert waiting["needs_input"]["kind"] == "input"
    terminal.keys("this\r")
    reply = terminal.daemon.call("term_wait", name=terminal.name, seq=waiting["seq"])
    assert reply["record"]["exit"] == 0


@pytest.mark.parametrize("options", [[], ["--workers", "1"]], ids=["one process", "a worker"])
def test_a_terminal_comes_back_in_its_last_directory(
    own_daemon: DaemonProcess, odd: Path, tmp_path: Path, options: list[str]
) -> None:
    own_daemon.start("--port", "0", *options)
    first = own_daemon.terminal("a")
    assert first.run(f"cd {tmp_path}; cd d*")["exit"] == 0
    assert first.run("echo hi")["stdout"] == "hi\n"
    spawned = own_daemon.call("term_spawn", name="b", cwd=shown(tmp_path))
    assert spawned["cwd"] == shown(tmp_path)
    own_daemon.kill()
    own_daemon.start("--port", "0", *options)
    for name in "ab":
        again = own_daemon.terminal(name)
        assert again.run("true")["cwd"] == shown(tmp_path)
        assert os.fsencode(Path(f"/proc/{again.described()['pid']}/cwd").readlink()) == os.fsencode(
            odd
        )


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["--workers", "1"]], ids=["one process", "a worker"])
def test_a_daemon_serves_a_root_and_a_home_that_are_not_utf8(
    tmp_path: Path, options: list[str]
) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff"))
    root.mkdir()
    daemon = DaemonProcess(root)
    daemon.start("--port", "0", *options)
    try:
        info = daemon.call("term_spawn", name="a")
        assert info["cwd"].startswith("$'")
        assert r"/r\xff" in info["cwd"]
        terminal = LiveTerminal(daemon, "a", info)
        home = terminal.run('printf %s "$HOME" | od -An -tx1; cd')["stdout"]
        assert bytes.fromhex(home) == os.fsencode(daemon.home), "the environment is handed on"
        assert terminal.run("true")["cwd"].startswith("$'")
        assert r"r\xff" in daemon.call("status")["root"]
        done = daemon.cli("status")
        assert (done.returncode, "r\\xff" in done.stdout) == (0, True)
        assert daemon.cli("doctor").returncode in (0, 1)
        made = daemon.call("workspace_create", workspace="w")
        assert made["directory"].startswith("$'")
        ran = daemon.call("workspace_exec", workspace="w", command="pwd")
        assert ran["exit"] == 0
    finally:
        assert daemon.stop() == 0
    daemon.check_left_nothing()


ODD_TEXTS = [
    "\x1b]0;t\x07\x9b31m\x7f",
    "\u202eesrever\u202c\u2066\u200f\u061c",
    "\ufeff\U0010ffff\u2028",
]


def test_commands_messages_and_wakes_with_odd_text_are_kept_exactly_through_a_kill(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start("--port", "0")
    own_daemon.call("term_spawn", name="a")
    own_daemon.call("term_subscribe", name="a", from_handle="bob")
    own_daemon.call("inbox_read", from_handle="eve")
    cmds = [f": '{text}'" for text in ODD_TEXTS]
    for cmd in cmds:
        own_daemon.call("term_run", name="a", cmd=cmd)
        own_daemon.call("handoff", target_handle="eve", context=f"{cmd}\0\r")
    own_daemon.kill()
    own_daemon.start("--port", "0")
    records = own_daemon.call("term_read", name="a", since_seq=-1)
    assert [record["cmd"] for record in records["result"]] == cmds
    assert "damaged" not in records
    messages = own_daemon.call("inbox_read", from_handle="eve")["messages"]
    assert all(any(f"{cmd}\0\r" in each["text"] for each in messages) for cmd in cmds)
    assert own_daemon.call("inbox_wait", from_handle="bob", timeout=60)["messages"]
    assert not has_problem(own_daemon.examine().values())
    assert not own_daemon.failures()


def test_a_title_and_output_that_are_not_utf8_are_shown(terminal: LiveTerminal) -> None:
    done = terminal.run(r"printf '\033]0;a\377b\007out\377\n'")
    assert done["stdout"] == "out\ufffd\n"
    screen = terminal.daemon.call("term_screen", name=terminal.name)
    screen["title"].encode()
    assert screen["title"].startswith("a")


def test_term_read_and_doctor_tell_of_lines_that_cannot_be_read(own_daemon: DaemonProcess) -> None:
    own_daemon.expected = frozenset({"terminal a"})
    own_daemon.start("--port", "0")
    terminal = own_daemon.terminal("a")
    for number in range(3):
        terminal.run(f"echo {number}")
    assert own_daemon.stop() == 0
    ledger = terminal.directory / "ledger.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(lines[0] + lines[1].replace(b"echo 1", b"echo X") + lines[2])
    own_daemon.start("--port", "0")
    assert own_daemon.call("term_read", name="a")["damaged"] == 1
    done = own_daemon.cli("term", "read", "a")
    assert done.returncode == 0
    assert "1 lines of the ledger of a cannot be read" in done.stderr
    assert "1 lines have a bad checksum" in own_daemon.examine()["terminal a"].sentence
    assert "damaged lines skipped" in own_daemon.log


def test_every_argument_of_a_stream_is_taken_or_refused_and_the_connection_lives_on(
    daemon: DaemonProcess,
) -> None:
    numbers = itertools.count(1)
    with tcp(daemon) as raw:
        assert raw.upgrade(**bearer(daemon)) == 101
        for entry in BY_STREAM.values():
            for field in resolved_fields(entry.arguments):
                for text in ("\ud800", "a\udcff", *ODD_TEXTS, "a\0"):
                    number = next(numbers)
                    arguments = {"name": "nowhere", field.name: text}
                    frame = {"type": "open", "id": number, "stream": entry.name}
                    raw.send_frame({**frame, "arguments": arguments})
                    answer = json.loads(raw.frame()[1])
                    assert (answer["type"], answer["id"]) == ("error", number)
                    assert answer["message"]
        raw.send_frame({"type": "request", "id": 0, "command": "term_list"})
        assert json.loads(raw.frame()[1])["type"] == "reply"


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_directories_are_shown_and_found_in_a_locale_without_their_letters(
    own_daemon: DaemonProcess, tmp_path: Path, odd: Path
) -> None:
    own_daemon.variables = dict(C_LOCALE)
    own_daemon.start("--port", "0")
    plain = tmp_path / "größer"
    plain.mkdir()
    for number, (path, text) in enumerate(((plain, str(plain)), (odd, shown(tmp_path)))):
        spawned = own_daemon.call("term_spawn", name=f"a{number}", cwd=text)
        assert spawned["cwd"] == text
        done = own_daemon.cli("term", "spawn", f"b{number}", "--cwd", str(path), "--json")
        assert json.loads(done.stdout)["cwd"] == text
        assert own_daemon.call("term_run", name=f"a{number}", cmd="true")["cwd"] == text


@pytest.mark.parametrize("kind", TEXTS)
def test_every_argument_of_every_command_has_one_answer_from_a_real_daemon(
    own_daemon: DaemonProcess, kind: str
) -> None:
    own_daemon.start("--port", "0")
    own_daemon.call("term_spawn", name="a")
    own_daemon.call("inbox_read", from_handle="a")
    failed: list[tuple[str, str, str]] = []
    with own_daemon.connect() as client:
        for entry in COMMANDS:
            names = {field.name for field in resolved_fields(entry.command)}
            short = {"timeout": 0.3} if "timeout" in names else {}
            for place, arguments in bent(entry, TEXTS[kind]):
                if entry.name == "down" and arguments.keys() <= {"from_handle"}:
                    continue
                try:
                    client.call(entry.name, {**arguments, **short})
                except CommandFailed as error:
                    failed += [(entry.name, place, str(error))] * (error.code == "internal")
        assert client.call("status", {})["pid"] == own_daemon.process.pid
    assert failed == []
    assert own_daemon.call("term_list")["result"] is not None
