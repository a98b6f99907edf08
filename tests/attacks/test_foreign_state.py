"""State that this user's daemons did not make here: nothing of it is used, run or written.

It came with a checkout, belongs to another user, was copied from another root, or is a link.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aegis.client.line import ClientError
from aegis.daemon_process import hold_root
from aegis.doctor.finding import Level
from aegis.errors import StartupError
from aegis.journal.ledger import decode_line, encode_line
from aegis.state.registry import ID_FILE
from aegis.state.root import StatePaths
from aegis.terminals.hooks import zsh
from aegis.trust import LINE_FIFO
from tests.e2e.conftest import needs_zsh
from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

UP = ("--port", "0")
AT_ONCE_S = 30.0
"""Far above what a refusal takes, far below what a daemon that hangs would."""

TOKEN = "A" * 43


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    """A daemon of one test. That it refuses to start is in its log, and no failure here."""
    own = DaemonProcess(tmp_path)
    yield own
    code = own.stop() if own.is_running else None
    assert code in (0, 1, None)
    assert own.shell_processes() == []


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """What a planted program makes: it must never be there."""
    return tmp_path / "evidence"


@pytest.fixture
def script(tmp_path: Path, evidence: Path) -> Path:
    """A program that a hostile checkout would have run as a shell."""
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\ntouch {evidence}\nexec /bin/bash "$@"\n')
    script.chmod(0o755)
    return script


def meta(shell: Path, name: str = "build") -> bytes:
    """The settings of a terminal, as an attacker can write them."""
    fields: dict[str, object] = {
        "version": 1,
        "name": name,
        "life": "0123456789ab",
        "shell": str(shell),
        "cwd": "/",
        "env": {},
        "cols": 80,
        "rows": 24,
        "started_at": "2026-01-01T00:00:00.000Z",
        "stderr": "merged",
    }
    return encode_line(fields)


def workspace(*names: str) -> bytes:
    return json.dumps({"version": 1, "terminals": names}).encode()


def keys() -> bytes:
    return json.dumps({"version": 1, "operator": TOKEN, "sessions": {}}).encode()


def plant(state: StatePaths, files: dict[str, bytes]) -> None:
    """Put files below the state's directory, as git would."""
    for name, content in files.items():
        path = state.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(content)


def tree(directory: Path) -> dict[str, bytes | str]:
    """All that is below, by its path: content of files, kind of everything else."""
    found: dict[str, bytes | str] = {}
    for path in sorted(directory.rglob("*")):
        kind = path.lstat().st_mode
        plain = stat.S_ISREG(kind)
        found[str(path.relative_to(directory))] = path.read_bytes() if plain else f"{kind:o}"
    return found


def refusal(daemon: DaemonProcess, *options: str) -> str:
    """Start it, which it must refuse at once; gives what it says."""
    before = daemon.log if daemon._log.exists() else ""
    began = time.monotonic()
    daemon.launch(*UP, *options)
    assert not daemon.wait_ready(), "the daemon started"
    assert daemon.wait_stopped() == 1
    assert time.monotonic() - began < AT_ONCE_S
    said = daemon.log.removeprefix(before)
    assert "Traceback" not in said
    return said


def made(daemon: DaemonProcess) -> StatePaths:
    """A state of this user with all that a daemon keeps; the daemon has stopped."""
    daemon.start(*UP)
    for name in ("build", "web"):
        daemon.call("term_spawn", name=name)
        daemon.call("term_subscribe", name=name, from_handle="pm")
        daemon.call("term_run", name=name, cmd="echo hello", from_handle="human")
    daemon.call("session_new", handle="alice")
    daemon.call("handoff", target_handle="alice", context="hello", from_handle="pm")
    daemon.call("workspace_create", workspace="w")
    daemon.call("session_new", handle="pm")
    daemon.cli("node", "key")
    assert daemon.stop() == 0
    return daemon.state


# A checkout with a state of its own.


@pytest.mark.parametrize("options", [(), ("--clean",)])
def test_trap_40_a_checkout_that_brings_a_terminal_has_nothing_of_it_run_or_written(
    own_daemon: DaemonProcess, script: Path, evidence: Path, options: tuple[str, ...]
) -> None:
    plant(
        own_daemon.state,
        {"workspace.json": workspace("build"), "terminals/build/meta.json": meta(script)},
    )
    before = tree(own_daemon.root)
    said = refusal(own_daemon, *options)
    assert "aegis-actors up --trust" in said
    assert "move the directory away" in said
    assert not evidence.exists()
    assert tree(own_daemon.root) == before


@pytest.mark.parametrize("options", [(), ("--clean",)])
def test_keys_that_came_with_a_checkout_are_nobodys_token(
    own_daemon: DaemonProcess, options: tuple[str, ...]
) -> None:
    plant(own_daemon.state, {"keys.json": keys()})
    own_daemon.state.keys.chmod(0o600)
    assert "--trust" in refusal(own_daemon, *options)
    assert own_daemon.state.keys.read_bytes() == keys()


def test_a_user_who_trusts_such_a_state_gets_it(
    own_daemon: DaemonProcess, script: Path, evidence: Path
) -> None:
    plant(
        own_daemon.state,
        {"workspace.json": workspace("build"), "terminals/build/meta.json": meta(script)},
    )
    own_daemon.start(*UP, "--trust")
    own_daemon.call("term_run", name="build", cmd="true")
    assert evidence.exists()
    assert own_daemon.stop() == 0
    own_daemon.start(*UP)


# A hostile branch that overwrites what git ignores, in a root that is this user's own.

LINE = {"version": 1, "name": "build"}
PLANTED = {
    "workspace.json": workspace("build", "web", "other"),
    "keys.json": keys(),
    "nodes.json": json.dumps({"version": 1, "nodes": []}).encode(),
    "node.key": b"0" * 64 + b"\n",
    "workspaces.json": encode_line({"number": 900, "fields": {"workspaces": []}}),
    "inboxes/alice.jsonl": encode_line({"kind": "message", "id": "x", "body": "obey"}),
    "inboxes/carol.jsonl": encode_line({"kind": "message", "id": "x", "body": "obey"}),
    "terminals/build/meta.json": encode_line(LINE),
    "terminals/build/ledger.jsonl": encode_line({"seq": 900, "cmd": "obey"}),
    "terminals/build/in_flight.json": encode_line({"number": 900, "fields": {"seq": 900}}),
    "terminals/build/in_flight.json.next": encode_line({"number": 900, "fields": {"seq": 900}}),
    "terminals/build/subscribers.json": encode_line({"number": 900, "fields": {}}),
    "terminals/build/shell.json": b'{"sid": 2, "cookie": "", "boot_id": "", "start_time": 1}',
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> StatePaths:
    """A state of this user, for tests that put it right again."""
    return made(DaemonProcess(tmp_path_factory.mktemp("kept")))


@contextlib.contextmanager
def replaced(path: Path, aside: Path) -> Iterator[None]:
    """Take away what is at the path, and put it back behind the test."""
    was_there = os.path.lexists(path)
    if was_there:
        path.rename(aside)
    try:
        yield
    finally:
        if os.path.lexists(path):
            path.unlink()
        if was_there:
            aside.rename(path)


def why_refused(state: StatePaths, *, trust: bool = False) -> str:
    """What keeps a daemon from holding this root."""
    with pytest.raises(StartupError) as refused, hold_root(state, trust=trust):
        pass
    return str(refused.value)


@pytest.mark.parametrize("name", PLANTED)
def test_a_file_that_a_branch_has_overwritten_makes_the_state_foreign(
    kept: StatePaths, tmp_path: Path, name: str
) -> None:
    with hold_root(kept):
        pass
    path = kept.directory / name
    with replaced(path, tmp_path / "aside"):
        plant(kept, {name: PLANTED[name]})
        path.chmod(0o600)
        said = why_refused(kept)
        assert name in said
        assert "aegis-actors up --trust" in said
        assert path.read_bytes() == PLANTED[name]
    with hold_root(kept):
        pass


@pytest.mark.parametrize("options", [(), ("--clean",)])
def test_a_daemon_does_not_start_over_a_file_that_a_branch_has_overwritten(
    own_daemon: DaemonProcess, options: tuple[str, ...]
) -> None:
    state = made(own_daemon)
    plant(state, {"keys.json": PLANTED["keys.json"]})
    said = refusal(own_daemon, *options)
    assert "keys.json" in said
    assert "aegis-actors up --trust" in said


def test_a_checkout_of_a_hostile_branch_starts_no_program_of_it(
    own_daemon: DaemonProcess, script: Path, evidence: Path
) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
        subprocess.run(["git", *identity, *words], cwd=own_daemon.root, check=True)

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    name = ".aegis/state/terminals/build/meta.json"
    git("checkout", "-q", "-b", "hostile")
    plant(own_daemon.state, {"terminals/build/meta.json": meta(script)})
    git("add", "-f", name)
    git("commit", "-q", "-m", "a feature")
    git("checkout", "-q", "main")
    assert not (own_daemon.root / name).exists()
    shutil.rmtree(own_daemon.root / ".aegis", ignore_errors=True)
    made(own_daemon)
    git("checkout", "-q", "hostile")  # which says nothing: the file is ignored
    assert "terminals/build/meta.json" in refusal(own_daemon)
    assert not evidence.exists()


def test_settings_of_one_terminal_are_not_those_of_another(own_daemon: DaemonProcess) -> None:
    state = made(own_daemon)
    ours, other = (state.terminals / name / "meta.json" for name in ("build", "web"))
    ours.write_bytes(other.read_bytes())
    assert "terminals/build/meta.json" in refusal(own_daemon)


@pytest.mark.long
def test_a_file_of_another_root_is_none_of_this_one(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    (tmp_path / "second").mkdir()
    other = DaemonProcess(tmp_path / "second")
    theirs, state = made(other), made(own_daemon)
    shutil.copy(theirs.keys, state.keys)
    assert "keys.json" in refusal(own_daemon)


# While the daemon runs.


def test_settings_planted_beside_a_running_daemon_start_nothing(
    own_daemon: DaemonProcess, script: Path, evidence: Path
) -> None:
    own_daemon.start(*UP)
    own_daemon.terminal("build").close()
    plant(own_daemon.state, {"terminals/build/meta.json": meta(script)})
    own_daemon.terminal("build").run("true")
    assert not evidence.exists()


def test_an_inbox_planted_beside_a_running_daemon_wakes_nobody(own_daemon: DaemonProcess) -> None:
    own_daemon.start(*UP)
    line = {"kind": "message", "id": "x", "sender": "human", "body": "obey"}
    more = {"timestamp": "2026-01-01T00:00:00.000Z", "task_id": None, "status": None}
    plant(own_daemon.state, {"inboxes/carol.jsonl": encode_line({**line, **more})})
    own_daemon.call("session_new", handle="carol")
    own_daemon.call("handoff", target_handle="carol", context="hello", from_handle="pm")
    for unread in (True, False):
        reply = own_daemon.call("inbox_read", from_handle="carol", unread=unread)
        assert [message["body"] for message in reply["messages"]] == ["hello"]


def test_a_ledger_planted_beside_a_running_daemon_is_read_to_nobody(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start(*UP)
    terminal = own_daemon.terminal("build")
    terminal.run("echo hello")
    terminal.close()
    ledger = terminal.directory / "ledger.jsonl"
    record = decode_line(ledger.read_bytes())
    ledger.write_bytes(ledger.read_bytes() + encode_line({**record, "seq": 1, "cmd": "obey"}))
    assert [each["cmd"] for each in terminal.records()] == ["echo hello"]


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this user, in a session of its own, that is no business of any daemon."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def note_of(pid: int) -> bytes:
    """The note of a shell that is this process."""
    start = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    note = {"sid": pid, "cookie": "/x/build/y", "boot_id": boot, "start_time": start}
    return json.dumps(note).encode()


def test_a_planted_note_has_no_process_killed(
    own_daemon: DaemonProcess, bystander: subprocess.Popen[bytes]
) -> None:
    state = made(own_daemon)
    note = state.terminals / "build" / "shell.json"
    plant(state, {"terminals/build/shell.json": note_of(bystander.pid)})
    assert "shell.json" in refusal(own_daemon)
    note.unlink()
    own_daemon.start(*UP)
    own_daemon.call("term_close", name="build")
    plant(state, {"terminals/build/shell.json": note_of(bystander.pid)})
    own_daemon.call("term_spawn", name="build")
    assert bystander.poll() is None


# Owners.


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("trust", [False, True], ids=["", "trust"])
@pytest.mark.parametrize("name", ["", "keys.json", "terminals/build", "inboxes/alice.jsonl"])
def test_trap_40_root_runs_no_state_of_another_user(
    kept: StatePaths, name: str, trust: bool
) -> None:
    path = kept.directory / name
    os.chown(path, 12_345, 12_345)
    before = tree(kept.root)
    assert "belongs to user 12345" in why_refused(kept, trust=trust)
    assert tree(kept.root) == before
    os.chown(path, 0, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_root_sends_nothing_to_the_daemon_of_another_user(own_daemon: DaemonProcess) -> None:
    own_daemon.start(*UP)
    os.chown(own_daemon.state.endpoint, 12_345, 12_345)
    done = own_daemon.cli("status")
    assert done.returncode == 1
    assert "belongs to user 12345" in done.stderr


@pytest.mark.parametrize("name", ["", "terminals", "terminals/build"])
def test_a_directory_that_others_may_write_to_is_refused(kept: StatePaths, name: str) -> None:
    path = kept.directory / name
    path.chmod(0o777)
    assert "chmod go-w" in why_refused(kept, trust=True)
    path.chmod(0o700)


# Links, second names, and what blocks.

LINKED = (
    "lock",
    "version",
    "port",
    "keys.json",
    "node.key",
    "state.id",
    "workspace.json",
    "workspaces.json",
    ".gitignore",
    "inboxes/alice.jsonl",
    "terminals/build/meta.json",
    "terminals/build/ledger.jsonl",
    "terminals/build/raw.log",
    "terminals/build/in_flight.json",
    "terminals/build/subscribers.json",
    "terminals/build/init.secret",
)
TEMPORARY = (
    "keys.json.new",
    "workspace.json.new",
    "endpoint.json.new",
    "port.new",
    "terminals/build/meta.json.new",
    "terminals/build/in_flight.json.next",
)


NOT_OURS = "ssh-ed25519 AAAA\nwithout a newline"


@pytest.mark.parametrize("trust", [False, True], ids=["", "trust"])
@pytest.mark.parametrize("own", [True, False], ids=["own", "foreign"])
@pytest.mark.parametrize("name", [*LINKED, *TEMPORARY])
def test_trap_40_a_link_is_not_followed(
    kept: StatePaths, tmp_path: Path, name: str, own: bool, trust: bool
) -> None:
    outside, path, state_id = tmp_path / "outside", kept.directory / name, kept.directory / ID_FILE
    outside.write_text(NOT_OURS)
    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(path, tmp_path / "aside"))
        if not own and path != state_id:
            stack.enter_context(replaced(state_id, tmp_path / "id"))
        path.symlink_to(outside)
        said = why_refused(kept, trust=trust)
        assert name in said
        assert "symbolic link" in said
    assert outside.read_text() == NOT_OURS


@pytest.mark.parametrize("trust", [False, True], ids=["", "trust"])
@pytest.mark.parametrize("name", LINKED)
def test_a_file_with_a_second_name_is_not_used(
    kept: StatePaths, tmp_path: Path, name: str, trust: bool
) -> None:
    outside, path = tmp_path / "outside", kept.directory / name
    outside.write_text(NOT_OURS)
    with replaced(path, tmp_path / "aside"):
        path.hardlink_to(outside)
        assert "second name" in why_refused(kept, trust=trust)
    assert outside.read_text() == NOT_OURS


@pytest.mark.parametrize("name", [*LINKED, *TEMPORARY])
def test_a_fifo_blocks_nobody(kept: StatePaths, tmp_path: Path, name: str) -> None:
    path = kept.directory / name
    with replaced(path, tmp_path / "aside"):
        os.mkfifo(path, 0o600)
        assert "FIFO" in why_refused(kept)


@pytest.mark.parametrize("name", ["lock", "terminals/build/ledger.jsonl"])
def test_a_daemon_writes_to_nothing_that_a_link_leads_to(
    own_daemon: DaemonProcess, tmp_path: Path, name: str
) -> None:
    state, outside = made(own_daemon), tmp_path / "outside"
    outside.write_text(NOT_OURS)
    path = state.directory / name
    path.unlink()
    path.symlink_to(outside)
    for options in ((), ("--clean",), ("--trust",)):
        assert "symbolic link" in refusal(own_daemon, *options)
    assert outside.read_text() == NOT_OURS


@pytest.mark.parametrize(
    "name", [".", "terminals", "inboxes", "terminals/build", "terminals/build/.zdotdir", ".."]
)
def test_a_directory_that_is_a_link_is_not_entered(
    kept: StatePaths, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    path = Path(os.path.normpath(kept.directory / name))
    with replaced(path, outside):
        outside.mkdir(exist_ok=True)
        path.symlink_to(outside)
        before = tree(outside)
        for trust in (False, True):
            assert "symbolic link" in why_refused(kept, trust=trust)
        assert tree(outside) == before
        path.unlink()
        if not (kept.directory / name).exists() and name.endswith(".zdotdir"):
            outside.rmdir()


@pytest.mark.parametrize("name", ["ledger.jsonl", "meta.json", "init.secret", "raw.log"])
def test_a_link_put_beside_a_running_daemon_is_not_followed(
    own_daemon: DaemonProcess, tmp_path: Path, name: str
) -> None:
    own_daemon.start(*UP)
    terminal = own_daemon.terminal("build")
    terminal.run("echo hello")
    terminal.close()
    outside = tmp_path / "outside"
    outside.write_text("not ours\ntorn")
    path = terminal.directory / name
    path.unlink(missing_ok=True)
    path.symlink_to(outside)
    with contextlib.suppress(ClientError):
        own_daemon.terminal("build").run("echo again")
    assert outside.read_text() == "not ours\ntorn"


def test_a_terminal_is_not_made_where_its_directory_was_replaced_by_a_link(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    own_daemon.start(*UP)
    own_daemon.terminal("build").close(purge=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (own_daemon.state.terminals / "build").symlink_to(outside)
    refused = own_daemon.refusal("term_spawn", name="build")
    assert "symbolic link" in str(refused)
    assert list(outside.iterdir()) == []


# Clients.


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket that an attacker listens at."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "trap"))
        listening.listen()
        listening.setblocking(False)
        yield listening


def planted_endpoint(listening: socket.socket) -> dict[str, Any]:
    url = "http://127.0.0.1:1"
    where = {"url": url, "mcp": f"{url}/mcp", "ws": f"{url}/ws"}
    return {"version": 1, "pid": 1, **where, "socket": listening.getsockname(), "token": TOKEN}


@pytest.mark.parametrize("verb", [["status"], ["term", "run", "build", "true"]])
@pytest.mark.parametrize("own", [True, False], ids=["own", "foreign"])
def test_no_client_follows_an_endpoint_that_no_daemon_of_this_user_wrote(
    own_daemon: DaemonProcess, trap: socket.socket, own: bool, verb: list[str]
) -> None:
    if own:
        made(own_daemon)
    plant(own_daemon.state, {"endpoint.json": json.dumps(planted_endpoint(trap)).encode()})
    done = own_daemon.cli(*verb)
    assert done.returncode != 0
    assert "endpoint.json is not used" in done.stderr
    with pytest.raises(BlockingIOError):
        trap.accept()


def test_an_endpoint_that_is_a_fifo_holds_up_no_client(own_daemon: DaemonProcess) -> None:
    state = made(own_daemon)
    os.mkfifo(state.endpoint)
    done = own_daemon.cli("status")
    assert done.returncode == 1
    assert "FIFO" in done.stderr


def test_a_client_with_another_registry_is_told_what_it_lacks(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    own_daemon.start(*UP)
    own_daemon.variables = {"XDG_STATE_HOME": str(tmp_path / "another")}
    done = own_daemon.cli("status")
    assert done.returncode == 1
    assert "use the HOME and XDG_STATE_HOME that it has" in done.stderr


# A copy, a move, another path to the same directory.


@pytest.mark.long
def test_a_copy_of_a_root_is_another_root(own_daemon: DaemonProcess, tmp_path: Path) -> None:
    made(own_daemon)
    (tmp_path / "copies").mkdir()
    copy = DaemonProcess(tmp_path / "copies")
    shutil.rmtree(copy.root)
    shutil.copytree(own_daemon.root, copy.root)
    said = refusal(copy)
    assert f"it is a copy of the state of {own_daemon.root}" in said
    copy.start(*UP, "--trust")
    own_daemon.start(*UP)
    assert copy.call("status")["root"] == str(copy.root)
    assert len(copy.terminal("build").records()) == 1
    assert own_daemon.stop() == copy.stop() == 0
    for each in (copy, own_daemon):
        each.start(*UP)
        assert each.stop() == 0


def test_a_copy_made_beside_a_running_daemon_leads_no_client_to_it(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    own_daemon.start(*UP)
    (tmp_path / "copies").mkdir()
    copy = DaemonProcess(tmp_path / "copies")
    shutil.rmtree(copy.root)
    own = own_daemon.state.directory
    shutil.copytree(own_daemon.root, copy.root, ignore=lambda *_: ["aegis.sock"])
    done = copy.cli("status")
    assert done.returncode == 1
    assert f"a copy of the state of {own.parents[1]}" in done.stderr


def test_a_root_that_was_moved_needs_no_word(own_daemon: DaemonProcess, tmp_path: Path) -> None:
    made(own_daemon)
    (tmp_path / "later").mkdir()
    moved = DaemonProcess(tmp_path / "later")
    moved.root.rmdir()
    own_daemon.root.rename(moved.root)
    moved.start(*UP)
    assert len(moved.terminal("build").records()) == 1
    assert moved.stop() == 0
    moved.start(*UP)
    assert moved.stop() == 0


def test_a_root_is_the_same_by_any_path(own_daemon: DaemonProcess, tmp_path: Path) -> None:
    made(own_daemon)
    link = tmp_path / "link"
    link.symlink_to(own_daemon.root)
    own_daemon.start(*UP)
    done = own_daemon.cli("--root", str(link), "status")
    assert done.returncode == 0, done.stderr


# Without a registry that lasts, and from an older version.


@pytest.mark.long
def test_without_a_lasting_home_each_start_trusts_and_all_is_there(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    made(own_daemon)
    for life in range(3):
        registry = tmp_path / f"registry{life}"
        own_daemon.variables = {"XDG_STATE_HOME": str(registry)}
        if life:
            assert "does not know it" in refusal(own_daemon)
        own_daemon.launch(*UP, "--trust")
        assert own_daemon.wait_ready()
        shown = own_daemon.json("term", "read", "build", "--json")
        assert [each["cmd"] for each in shown["result"]] == ["echo hello"] * (1 + life)
        assert own_daemon.cli("term", "run", "build", "echo hello").returncode == 0
        unread = own_daemon.json("--as", "alice", "inbox", "read", "--json")
        assert [each["body"] for each in unread["messages"]] == ["hello"]
        infos = own_daemon.json("term", "list", "--json")["result"]
        assert [info["subscribers"] for info in infos] == [["pm"], ["pm"]]
        assert own_daemon.stop() == 0


def unsigned(state: StatePaths) -> None:
    """Make it a state as daemons before this version left it."""
    (state.directory / "state.id").unlink()
    for path in state.directory.rglob("*"):
        if path.name in ("ledger.jsonl", "meta.json") or path.parent == state.inboxes:
            lines = path.read_bytes().splitlines(keepends=True)
            path.write_bytes(b"".join(encode_line(decode_line(line)) for line in lines))
        elif path.name in ("in_flight.json", "subscribers.json", "workspaces.json"):
            path.write_bytes(b"".join(map(slot, path.read_bytes().splitlines(keepends=True))))
        elif path.suffix == ".json" and path.is_file():
            document = json.loads(path.read_bytes())
            document.pop("mac", None)
            path.write_text(json.dumps(document))
    state.node_key.write_bytes(state.node_key.read_bytes()[:65])


def slot(line: bytes) -> bytes:
    text = line.rstrip(b" \n")
    return line if not text else encode_line(decode_line(text + b"\n")).ljust(len(line))


@pytest.mark.long
def test_a_state_of_an_older_version_is_taken_over_once_with_all_that_is_in_it(
    own_daemon: DaemonProcess,
) -> None:
    state = made(own_daemon)
    token = json.loads(state.keys.read_bytes())["operator"]
    unsigned(state)
    assert "an older aegis-actors" in refusal(own_daemon)
    own_daemon.start(*UP, "--trust")
    for _ in range(2):
        assert own_daemon.endpoint.token == token
        assert [each["seq"] for each in own_daemon.terminal("build").records()] == [0]
        assert own_daemon.terminal("build").described()["subscribers"] == ["pm"]
        unread = own_daemon.call("inbox_read", from_handle="alice")["messages"]
        assert [each["body"] for each in unread] == ["hello"]
        assert len(own_daemon.call("inbox_read", from_handle="pm")["messages"]) == 2
        assert [each["workspace_id"] for each in own_daemon.call("workspace_list")["result"]] == [
            "w"
        ]
        assert own_daemon.stop() == 0
        own_daemon.start(*UP)


def test_trust_twice_changes_nothing(own_daemon: DaemonProcess) -> None:
    state = made(own_daemon)
    own_daemon.start(*UP, "--trust")
    assert own_daemon.stop() == 0
    first = [(state.directory / "state.id").read_bytes(), state.keys.read_bytes()]
    own_daemon.start(*UP, "--trust")
    assert [(state.directory / "state.id").read_bytes(), state.keys.read_bytes()] == first


# The configuration.


def test_a_configuration_that_names_a_program_is_trusted_by_its_content(
    own_daemon: DaemonProcess, script: Path, evidence: Path
) -> None:
    path = own_daemon.root / ".aegis.yaml"
    path.write_text(f"terminals: {{shell: {script}}}\n")
    said = refusal(own_daemon)
    assert f"terminals.shell is '{script}'" in said
    assert "aegis-actors up --trust" in said
    assert not own_daemon.state.directory.exists()
    own_daemon.start(*UP, "--trust")
    assert own_daemon.stop() == 0
    own_daemon.start(*UP)
    own_daemon.terminal("build").run("true")
    assert own_daemon.stop() == 0
    assert evidence.exists()
    path.write_text(f"terminals: {{shell: {script}, cols: 99}}\n")
    assert "as they are now" in refusal(own_daemon)


@pytest.mark.parametrize(
    ("profile", "shown"),
    [
        ("provider: acp, command: /evil, asking_mode: a", "agents.x.command is '/evil'"),
        ("env: {PATH: /evil}", "agents.x.env is 'PATH'"),
        ("permission: full", "agents.x.permission is 'full'"),
        ("answers_requests: true", "agents.x.answers_requests is true"),
        ("project_settings: true", "agents.x.project_settings is true"),
    ],
)
def test_a_profile_that_names_a_program_or_gives_rights_is_trusted_by_the_content(
    own_daemon: DaemonProcess, profile: str, shown: str
) -> None:
    (own_daemon.root / ".aegis.yaml").write_text(f"agents: {{x: {{{profile}}}}}\n")
    assert shown in refusal(own_daemon)
    assert not own_daemon.state.directory.exists()


def test_a_configuration_that_names_no_program_needs_no_trust(own_daemon: DaemonProcess) -> None:
    (own_daemon.root / ".aegis.yaml").write_text(
        "terminals: {cols: 99}\nagents: {x: {provider: gemini, permission: read, prompt: Hello}}\n"
    )
    own_daemon.start(*UP)


# The doctor.


@pytest.mark.long
def test_the_doctor_says_what_is_foreign_and_repairs_nothing_of_it(
    own_daemon: DaemonProcess, script: Path
) -> None:
    plant(
        own_daemon.state,
        {"workspace.json": workspace("build"), "terminals/build/meta.json": meta(script)},
    )
    before = tree(own_daemon.root)
    for words in (["doctor"], ["doctor", "--repair"]):
        done = own_daemon.cli(*words)
        assert done.returncode == 1
        assert "trust: " in done.stdout
        assert "aegis-actors up --trust" in done.stdout
        assert tree(own_daemon.root) == before
    assert "--trust" in refusal(own_daemon)


def test_the_doctor_names_a_file_that_was_overwritten(own_daemon: DaemonProcess) -> None:
    state = made(own_daemon)
    assert own_daemon.examine()["trust"].level is Level.OK
    plant(state, {"terminals/build/meta.json": encode_line(LINE)})
    found = own_daemon.examine(repair=True)
    assert "terminals/build/meta.json" in found["trust"].sentence
    assert "terminals/build/meta.json" in refusal(own_daemon)


@needs_zsh
def test_the_fifo_that_a_killed_zsh_left_is_no_foreign_file(own_daemon: DaemonProcess) -> None:
    own_daemon.start(*UP)
    own_daemon.call("term_spawn", name="z", shell=shutil.which("zsh"))
    own_daemon.kill()
    fifo = Path(f"{StatePaths(own_daemon.root).terminals / 'z'}{LINE_FIFO}")
    assert stat.S_ISFIFO(fifo.lstat().st_mode)
    own_daemon.start(*UP)
    assert own_daemon.call("term_run", name="z", cmd="echo again")["stdout"] == "again\n"


def test_a_file_in_the_place_of_the_fifo_is_not_written_to(tmp_path: Path) -> None:
    adapter = zsh.prepare("zsh", tmp_path)
    path = Path(f"{tmp_path}{LINE_FIFO}")
    path.unlink()
    path.write_text(NOT_OURS)
    assert adapter.ask_line() is None
    assert path.read_text() == NOT_OURS
