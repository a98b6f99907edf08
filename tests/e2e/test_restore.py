"""``up`` starts the terminals that were open, whoever ended the daemon before, and how."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aegis.client.line import CommandFailed
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal
from tests.resources.waiting import until

pytestmark = pytest.mark.real

PORT_0 = ("--port", "0")


def spawn(daemon: DaemonProcess, name: str, **arguments: object) -> LiveTerminal:
    return LiveTerminal(daemon, name, daemon.call("term_spawn", name=name, **arguments))


def listed(daemon: DaemonProcess) -> dict[str, dict[str, Any]]:
    return {info["name"]: info for info in daemon.call("term_list")["result"]}


def workspace(daemon: DaemonProcess) -> list[str]:
    document = json.loads(daemon.state.workspace.read_text())
    assert document["version"] == 1
    names: list[str] = document["terminals"]
    return names


def refused(
    daemon: DaemonProcess, name: str, call: str = "term_run", **arguments: object
) -> CommandFailed | None:
    """The error of a call there, if there is one."""
    try:
        daemon.call(call, name=name, **arguments)
    except CommandFailed as error:
        return error
    return None


ENDS: dict[str, Callable[[DaemonProcess], object]] = {
    "kill -9": DaemonProcess.kill,
    "SIGTERM": DaemonProcess.stop,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_the_open_terminals_come_back_with_their_settings_and_no_closed_one(
    own_daemon: DaemonProcess, tmp_path: Path, end: Callable[[DaemonProcess], object]
) -> None:
    own_daemon.start()
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    wide = spawn(own_daemon, "Wide", cols=100, rows=30, env={"GIVEN": "kept"}, cwd=str(directory))
    spawn(own_daemon, "plain").run("variable=gone")
    spawn(own_daemon, "closed").close()
    assert workspace(own_daemon) == ["Wide", "plain"]
    assert own_daemon.state.workspace.stat().st_mode & 0o777 == 0o600
    end(own_daemon)
    own_daemon.start()
    infos = listed(own_daemon)
    assert list(infos) == ["plain", "Wide"]
    keys = ("started_at", "cols", "rows", "shell", "cwd")
    assert [infos["Wide"][key] for key in keys] == [wide.info[key] for key in keys]
    assert infos["Wide"]["pid"] != wide.info["pid"]
    assert wide.run("echo $GIVEN $COLUMNS; pwd")["stdout"] == f"kept 100\n{directory}\n"
    record = own_daemon.call("term_run", name="plain", cmd="echo [$variable]")
    assert (record["seq"], record["stdout"]) == (1, "[]\n")
    assert own_daemon.refusal("term_run", name="closed", cmd="true").code == "unavailable"
    assert '"number": 2' in own_daemon.log


def noted_directory(terminal: LiveTerminal) -> str | None:
    """The directory in which a next daemon would start the shell."""
    note = Note.open(terminal.directory / "in_flight.json", Flusher())
    note.close()
    return (note.load() or {}).get("place")


def test_a_terminal_comes_back_in_the_directory_that_a_key_at_its_prompt_led_to(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    terminal = spawn(own_daemon, "build", shell="bash")
    report = "printf '\\e]7;file://%s/tmp\\a' $HOSTNAME"
    terminal.run(f"""go() {{ cd /tmp; {report}; }}; bind -x '"\\C-o": go'""")
    terminal.keys("\x0f")
    # The report comes before the prompt, and the directory of a prompt is the one that is kept.
    until(lambda: noted_directory(terminal) == "/tmp", "the directory is noted")
    own_daemon.kill()
    own_daemon.start()
    assert listed(own_daemon)["build"]["cwd"] == "/tmp"
    assert terminal.run("pwd")["stdout"] == "/tmp\n"


def test_a_terminal_comes_back_in_its_last_directory_if_there_is_one(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    own_daemon.start()
    there, gone = tmp_path / "there", tmp_path / "gone"
    for directory in (there, gone):
        directory.mkdir()
    spawned_in = {"moved": gone, "left": there, "lost": gone}
    terminals = [
        spawn(own_daemon, name, cwd=str(directory)) for name, directory in spawned_in.items()
    ]
    for terminal, directory in zip(terminals, (there, gone, gone), strict=True):
        terminal.run(f"cd '{directory}'")
        terminal.run("true")  # the prompt before it told of the directory
    own_daemon.kill()
    gone.rmdir()
    own_daemon.start()
    shown = [terminal.run("pwd")["stdout"].strip() for terminal in terminals]
    assert shown == [str(there), str(there), str(own_daemon.root)]


def test_up_clean_starts_nothing_deletes_nothing_and_a_spawn_goes_on(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    own_daemon.start()
    terminal = spawn(own_daemon, "build")
    first = terminal.run("echo first")
    terminal.start(f"setsid sleep 1000 & echo begun; {gate.hold}")
    gate.wait_reached()
    own_daemon.kill()
    own_daemon.start(*PORT_0, "--clean")
    assert listed(own_daemon) == {}
    assert workspace(own_daemon) == []
    assert own_daemon.shell_processes() == []
    assert terminal.read(last_n=1) == [first]
    spawn(own_daemon, "build")
    assert terminal.run("echo again")["seq"] == 2
    assert [each["end"] for each in terminal.records()] == ["exited", "killed_by_restart", "exited"]
    own_daemon.stop()
    own_daemon.start()
    assert list(listed(own_daemon)) == ["build"]


def test_a_terminal_that_cannot_be_started_is_listed_as_failed_and_the_others_live(
    own_daemon: DaemonProcess, tmp_path: Path, gate: Gate
) -> None:
    shell = tmp_path / "own" / "bash"
    shell.parent.mkdir()
    shell.symlink_to("/bin/bash")
    own_daemon.start()
    terminal = spawn(own_daemon, "lost", shell=str(shell))
    other = spawn(own_daemon, "other")
    terminal.run("echo kept")
    terminal.start(f"echo cut short; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("cut short")
    own_daemon.kill()
    shell.unlink()
    own_daemon.start()
    info = terminal.described()
    assert (info["state"], info["pid"], info["shell"]) == ("failed", None, str(shell))
    assert other.run("echo fine")["stdout"] == "fine\n"
    kept, killed = terminal.records()
    assert (kept["stdout"], killed["end"], killed["killed_by_restart"]) == (
        "kept\n",
        "killed_by_restart",
        True,
    )
    assert "cut short\n" in killed["stdout"]
    for command, arguments in (("term_run", {"cmd": "true"}), ("term_keys", {"keys": "x"})):
        error = own_daemon.refusal(command, name="LOST", **arguments)
        assert error.code == "unavailable"
        assert f"its shell '{shell}' is no executable program any more" in str(error)
        assert str(error).endswith("close it and spawn it anew")
    assert own_daemon.refusal("term_spawn", name="lost").code == "already_exists"
    assert workspace(own_daemon) == ["lost", "other"]
    terminal.close()
    assert workspace(own_daemon) == ["other"]
    assert own_daemon.refusal("term_run", name="lost", cmd="true").code == "unavailable"
    again = spawn(own_daemon, "lost")
    assert again.run("echo back")["seq"] == 2


def test_a_failed_terminal_can_be_purged(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    terminal = spawn(own_daemon, "lost")
    terminal.run("true")
    own_daemon.kill()
    ledger = terminal.directory / "ledger.jsonl"
    ledger.unlink()
    ledger.mkdir()
    own_daemon.start()
    assert terminal.described()["state"] == "failed"
    terminal.close(purge=True)
    assert not terminal.directory.exists()
    assert listed(own_daemon) == {}
    assert spawn(own_daemon, "lost").run("true")["seq"] == 0
    own_daemon.kill()  # the log tells of the crashes of the writer: no stop without failures


def test_many_terminals_are_restored_at_once(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    names = [f"t{number:02}" for number in range(20)]
    pending = [own_daemon.send("term_spawn", name=name) for name in names]
    assert {each.result()["name"] for each in pending} == set(names)
    assert workspace(own_daemon) == names
    own_daemon.kill()
    own_daemon.start()
    assert list(listed(own_daemon)) == names
    runs = [own_daemon.send("term_run", name=name, cmd="echo $$") for name in names]
    assert len({each.result()["stdout"] for each in runs}) == len(names)
    closes = [own_daemon.send("term_close", name=name) for name in names]
    assert [each.result() for each in closes] == [{"ok": True, "leftover": []}] * len(names)
    assert workspace(own_daemon) == []


@pytest.mark.parametrize("point", ["workspace.write.before", "workspace.write.after"])
def test_a_kill_while_the_workspace_is_written_leaves_the_old_or_the_new(
    own_daemon: DaemonProcess, point: str
) -> None:
    # Passes: the spawns of one and two, then the close of one.
    own_daemon.start(faults=f"{point}@3=kill")
    spawn(own_daemon, "one")
    spawn(own_daemon, "two")
    assert own_daemon.send("term_close", name="one").outcome()[0] == "lost"
    own_daemon.wait_stopped()
    before = ["one", "two"] if point.endswith("before") else ["two"]
    assert workspace(own_daemon) == before
    own_daemon.start()
    assert list(listed(own_daemon)) == before


def test_a_kill_in_the_middle_of_a_purge_leaves_nothing_and_a_spawn_begins_anew(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start(faults="purge.rename.after@1=kill")
    terminal = spawn(own_daemon, "build")
    terminal.run("echo old")
    life = json.loads((terminal.directory / "meta.json").read_text())["life"]
    assert own_daemon.send("term_close", name="build", purge=True).outcome()[0] == "lost"
    own_daemon.wait_stopped()
    assert [path.name[0] for path in own_daemon.state.terminals.iterdir()] == ["."]
    own_daemon.start()
    assert list(own_daemon.state.terminals.iterdir()) == []
    assert own_daemon.refusal("term_read", name="build").code == "not_found"
    spawn(own_daemon, "build")
    assert terminal.run("echo new")["seq"] == 0
    assert json.loads((terminal.directory / "meta.json").read_text())["life"] != life


def test_a_kill_in_the_middle_of_a_spawn_leaves_nothing_and_no_record_is_taken_for_that(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    spawn(own_daemon, "used").run("true")
    own_daemon.call("term_close", name="used")
    own_daemon.stop()
    terminals = own_daemon.state.terminals
    (terminals / "used" / "meta.json").unlink()
    # The names in the order in which a spawn makes them.
    for number, names in enumerate(([], ["ledger.jsonl"], ["ledger.jsonl", "meta.json.new"])):
        directory = terminals / f"unfinished-{number}"
        directory.mkdir(mode=0o700)
        for name in names:
            (directory / name).touch(mode=0o600)
    own_daemon.start()
    assert [each.name for each in terminals.iterdir()] == ["used"]
    assert own_daemon.call("term_read", name="used")["result"][0]["cmd"] == "true"
    spawn(own_daemon, "unfinished-2")
    own_daemon.expected = frozenset({"terminal used"})  # it has lost its settings


def test_a_purge_removes_every_file_and_works_for_a_closed_terminal(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    terminal = spawn(own_daemon, "build")
    terminal.run("true")
    (terminal.directory / "subscribers.json").write_text("{}")
    (terminal.directory / "meta.json.damaged-00000000").write_text("x")
    terminal.close()
    assert terminal.records()
    own_daemon.call("term_close", name="BUILD", purge=True)
    assert list(own_daemon.state.terminals.iterdir()) == []
    assert own_daemon.refusal("term_close", name="build", purge=True).code == "not_found"


class LimitedDaemon(DaemonProcess):
    """A daemon that may open ``most`` files."""

    most = 1024

    @property
    def program(self) -> list[str]:
        return ["prlimit", f"--nofile={self.most}:{self.most}", *super().program]


@pytest.mark.long
def test_terminals_for_which_no_descriptors_are_free_have_failed_and_the_daemon_serves(
    tmp_path: Path,
) -> None:
    daemon = LimitedDaemon(tmp_path)
    daemon.start()
    names = [f"t{number:02}" for number in range(24)]
    pending = [daemon.send("term_spawn", name=name) for name in names]
    for each in pending:
        each.result()
    daemon.kill()
    daemon.most = 112
    daemon.start()
    try:
        infos = listed(daemon)
        assert list(infos) == names
        failed = [name for name in names if infos[name]["state"] == "failed"]
        assert 0 < len(failed) < len(names)
        assert all("ulimit -n" in infos[name]["notice"] for name in failed)
        alive = next(name for name in names if name not in failed)
        until(
            lambda: refused(daemon, alive, cmd="true") is None,
            "a terminal that was started runs commands",
        )
        # What the starts had open at once is free by now, and is enough for some of them or all:
        # each is started or refused.
        for name in failed:
            refused(daemon, name, cmd="true")
        # The next call, too, is refused if they have left no descriptor to look at its process.
        until(
            lambda: refused(daemon, failed[0], "term_close") is None,
            "a terminal that has failed is closed",
        )
        assert workspace(daemon) == [name for name in names if name != failed[0]]
    finally:
        code = daemon.stop()
    assert code == 0
    assert daemon.shell_processes() == []
