"""Trap 22: damaged, missing and unwritable state costs what it must and nothing else."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aegis.state.registration import claim_state
from tests.e2e.harness import DaemonProcess, LiveTerminal

pytestmark = pytest.mark.real


def spawn(daemon: DaemonProcess, name: str, **arguments: object) -> LiveTerminal:
    return LiveTerminal(daemon, name, daemon.call("term_spawn", name=name, **arguments))


@pytest.fixture
def killed(own_daemon: DaemonProcess) -> LiveTerminal:
    """A terminal with three records, of a daemon that was killed; ``other`` is open beside it."""
    own_daemon.expected = frozenset({"damage", "ledgers", "modes", "terminal build"})
    own_daemon.start()
    terminal = spawn(own_daemon, "build", cols=99)
    spawn(own_daemon, "other")
    for number in range(3):
        terminal.run(f"echo {number}")
    own_daemon.kill()
    return terminal


def goes_on(terminal: LiveTerminal, seq: int) -> None:
    """The terminal and the one beside it work; its next record has this number."""
    assert terminal.run("echo on")["seq"] == seq
    assert terminal.daemon.call("term_run", name="other", cmd="echo too")["stdout"] == "too\n"


def kept_aside(directory: Path, name: str) -> list[bytes]:
    return [path.read_bytes() for path in directory.glob(f"{name}.damaged-*")]


def tear_tail(ledger: Path) -> None:
    ledger.write_bytes(ledger.read_bytes() + b'{"seq":3,"cmd":"to')


def damage_middle(ledger: Path) -> None:
    first, second, third = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(first + second.replace(b'"seq":1', b'"seq":7') + third)


def damage_last(ledger: Path) -> None:
    first, second, third = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(first + second + third.replace(b'"seq":2', b'"seq":9'))


def fill_with_noise(ledger: Path) -> None:
    ledger.write_bytes(b"\xff\0\n" * 3)


@pytest.mark.parametrize(
    ("damage", "shown", "next_seq"),
    [
        (tear_tail, [0, 1, 2], 3),
        (damage_middle, [0, 2], 3),
        (damage_last, [0, 1, 2], 3),  # the note still tells of the last one
        (fill_with_noise, [2], 3),
    ],
)
def test_trap_22_a_damaged_ledger_goes_on_above_all_numbers_that_were_given(
    killed: LiveTerminal, damage: Callable[[Path], None], shown: list[int], next_seq: int
) -> None:
    damage(killed.directory / "ledger.jsonl")
    killed.daemon.start()
    records = killed.records()
    assert [each["seq"] for each in records] == shown
    last = records[-1]
    assert (last["cmd"], last["exit"], last["stdout"]) == ("echo 2", 0, "2\n")
    assert (last["end"], last["killed_by_restart"]) == ("exited", False)
    goes_on(killed, next_seq)


def test_trap_22_torn_and_damaged_lines_are_kept_and_the_log_says_where(
    killed: LiveTerminal,
) -> None:
    ledger = killed.directory / "ledger.jsonl"
    damage_middle(ledger)
    damaged = ledger.read_bytes()
    tear_tail(ledger)
    torn = ledger.read_bytes().removeprefix(damaged)
    killed.daemon.start()
    for _ in range(3):
        assert [each["seq"] for each in killed.records()] == [0, 2]
    goes_on(killed, 3)
    [aside] = killed.directory.glob("ledger.jsonl.torn-*")
    assert aside.read_bytes() == torn
    assert ledger.read_bytes().startswith(damaged)
    told = [json.loads(line) for line in killed.daemon.log.splitlines()]
    [cut] = [each for each in told if each["event"] == "torn line cut off"]
    assert cut["kept_as"] == aside.name
    [skipped] = [each for each in told if each["event"] == "damaged lines skipped"]
    assert (skipped["lines"], len(skipped["where"])) == (1, 1)
    assert skipped["file"] == str(ledger.relative_to(killed.daemon.root))


@pytest.mark.parametrize(
    "content", [None, b"", b"\xff\0{", b"{}\n", b'{"version":1,"crc":"00000000"}\n', b"[" * 10_000]
)
def test_trap_22_without_its_settings_a_terminal_comes_back_with_the_usual_ones(
    killed: LiveTerminal, content: bytes | None
) -> None:
    meta = killed.directory / "meta.json"
    meta.unlink()
    if content is not None:
        meta.write_bytes(content)
    killed.daemon.start()
    info = killed.described()
    assert (info["cols"], info["rows"], Path(info["shell"]).name) == (80, 24, "bash")
    assert info["cwd"] == str(killed.daemon.root)
    assert [each["seq"] for each in killed.records()] == [0, 1, 2]
    goes_on(killed, 3)
    assert "restored without its settings" in killed.daemon.log
    assert kept_aside(killed.directory, "meta.json") == ([] if content is None else [content])
    life = json.loads(meta.read_text())["life"]
    killed.daemon.stop()
    killed.daemon.start()
    assert json.loads(meta.read_text())["life"] == life


@pytest.mark.parametrize("name", ["shell.json", "in_flight.json", "raw.base"])
@pytest.mark.parametrize("content", [b"", b"\xff\0{", b'{"sid": true, "number": -1}' * 400])
def test_trap_22_a_damaged_note_loses_no_record(
    killed: LiveTerminal, name: str, content: bytes
) -> None:
    (killed.directory / name).write_bytes(content)
    killed.daemon.start()
    assert [each["seq"] for each in killed.records()] == [0, 1, 2]
    goes_on(killed, 3)
    assert len(killed.daemon.shell_processes("build/")) == 1


@pytest.mark.parametrize(
    "content", [b"", b"\xff\0{", b"[]", b'{"terminals": ["build"]}', b'{"version": 1}', b"[" * 9999]
)
def test_trap_22_a_damaged_workspace_is_set_aside_and_nothing_else_is_lost(
    killed: LiveTerminal, content: bytes
) -> None:
    daemon = killed.daemon
    daemon.state.workspace.write_bytes(content)
    daemon.start()
    assert daemon.call("term_list") == {"result": [], "of_agents": []}
    assert kept_aside(daemon.state.directory, "workspace.json") == [content]
    assert "damaged file set aside" in daemon.log
    assert [each["seq"] for each in killed.records()] == [0, 1, 2]
    for name in ("build", "other"):
        spawn(daemon, name)
    goes_on(killed, 3)


def test_trap_22_names_in_the_workspace_that_are_no_names_are_passed_over(
    killed: LiveTerminal,
) -> None:
    names = ["../../up", "", "build", "BUILD", 7, None, "other", "a/b", ".purged-x", "x" * 65]
    killed.daemon.sign(killed.daemon.state.workspace, {"version": 1, "terminals": names})
    killed.daemon.start()
    infos = killed.daemon.call("term_list")["result"]
    assert [info["name"].lower() for info in infos] == ["build", "other"]
    assert not (killed.daemon.root / "up").exists()
    goes_on(killed, 3)


def refused_start(daemon: DaemonProcess) -> str:
    """The sentence with which ``up`` refuses."""
    done = daemon.cli("up", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    [line] = [each for each in done.stderr.splitlines() if not each.startswith("{")]
    return line


def test_trap_22_a_workspace_of_a_newer_version_is_refused_in_one_sentence(
    killed: LiveTerminal,
) -> None:
    workspace = killed.daemon.state.workspace
    content = '{"version": 2, "terminals": {"build": {}}}'
    workspace.write_text(content)
    line = refused_start(killed.daemon)
    assert line.endswith("is of version 2, made by a newer aegis-actors: upgrade this one")
    assert workspace.read_text() == content


def test_trap_22_a_workspace_that_cannot_be_read_is_told_in_one_sentence(
    killed: LiveTerminal,
) -> None:
    workspace = killed.daemon.state.workspace
    workspace.unlink()
    workspace.mkdir()
    line = refused_start(killed.daemon)
    assert "workspace.json: Is a directory" in line
    assert "move it away to start with none" in line


def test_trap_22_a_file_in_place_of_a_terminals_directory_fails_that_terminal_alone(
    killed: LiveTerminal, tmp_path: Path
) -> None:
    killed.directory.rename(tmp_path / "moved")
    killed.directory.write_text("no directory")
    killed.daemon.start()
    assert killed.described()["state"] == "failed"
    error = killed.refusal("true")
    assert (error.code, "a file is in the directory's place" in str(error)) == (
        "unavailable",
        True,
    )
    assert killed.daemon.call("term_run", name="other", cmd="echo too")["stdout"] == "too\n"
    killed.close()
    killed.directory.unlink()
    (tmp_path / "moved").rename(killed.directory)
    spawn(killed.daemon, "build")
    goes_on(killed, 3)


def test_trap_22_a_file_in_place_of_all_terminals_is_told_to_whoever_spawns(
    own_daemon: DaemonProcess,
) -> None:
    claim_state(own_daemon.state)
    own_daemon.state.terminals.write_text("no directory")
    own_daemon.start()
    error = own_daemon.refusal("term_spawn", name="build")
    assert (error.code, "a file is in the directory's place" in str(error)) == (
        "storage",
        True,
    )
    assert own_daemon.shell_processes() == []
    own_daemon.state.terminals.unlink()
    spawn(own_daemon, "build")


@contextmanager
def read_only(directory: Path) -> Iterator[None]:
    """The directory, mounted over itself so that nobody may write to it, root neither."""
    mount = ["mount", "--bind", str(directory), str(directory)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a directory read-only needs root")
    try:
        remount = ["mount", "-o", "remount,ro,bind", str(directory)]
        subprocess.run(remount, capture_output=True, check=True)
        yield
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def test_trap_22_a_read_only_state_is_told_in_one_sentence(killed: LiveTerminal) -> None:
    with read_only(killed.daemon.state.directory):
        line = refused_start(killed.daemon)
    assert "Read-only file system" in line
    killed.daemon.start()
    goes_on(killed, 3)


def test_trap_22_a_read_only_terminal_fails_alone_and_works_once_it_is_writable(
    killed: LiveTerminal,
) -> None:
    daemon = killed.daemon
    with read_only(killed.directory):
        daemon.start()
        assert killed.described()["state"] == "failed"
        error = killed.refusal("true")
        assert "mount the file system writable, then try again" in str(error)
        assert daemon.call("term_run", name="other", cmd="echo too")["stdout"] == "too\n"
        assert [each["seq"] for each in killed.records()] == [0, 1, 2]
        killed.close()
    spawn(daemon, "build")
    goes_on(killed, 3)
    daemon.kill()  # the log tells of actors that could not start
