"""``aegis-actors doctor`` beside a real daemon, on real broken states, and with real shells."""

from __future__ import annotations

import json
from shutil import which
from typing import Any

import pytest

from aegis import __version__
from aegis.state.registration import claim_state
from tests.e2e.harness import DaemonProcess, Gate, processes_with
from tests.e2e.streams import Refused, stream_client
from tests.resources.waiting import until

pytestmark = pytest.mark.real


def findings(daemon: DaemonProcess, *options: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """What ``doctor --json`` found, by subject; the last of each."""
    done = daemon.cli("doctor", "--json", *options)
    assert done.returncode == code, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document["root"] == str(daemon.root)
    return {each["subject"]: each for each in document["findings"]}


@pytest.mark.long
def test_each_shell_of_the_machine_runs_a_command(daemon: DaemonProcess) -> None:
    found = findings(daemon)
    for shell in ("bash", "zsh", "fish"):
        if which(shell) is None:
            assert f"shell {shell}" not in found
        else:
            assert found[f"shell {shell}"]["level"] == "ok"
            assert "exact boundaries" in found[f"shell {shell}"]["sentence"]


@pytest.mark.long
def test_a_shell_whose_start_up_files_end_it_is_a_problem(own_daemon: DaemonProcess) -> None:
    (own_daemon.home / ".bashrc").write_text("exit 3\n")
    found = findings(own_daemon, code=1)
    assert found["shell bash"]["level"] == "problem"
    assert "start-up files" in found["shell bash"]["remedy"]


@pytest.mark.long
def test_the_daemon_that_runs_is_told_with_its_version(daemon: DaemonProcess) -> None:
    terminal = daemon.terminal("seen")
    terminal.run("true")
    found = findings(daemon)
    assert found["daemon"]["level"] == "ok"
    assert f"version {__version__} runs (pid {daemon.process.pid})" in found["daemon"]["sentence"]
    ours = {name: each for name, each in found.items() if not name.startswith("agent ")}
    assert {each["level"] for each in ours.values()} == {"ok"}


@pytest.mark.long
def test_a_daemon_examines_itself_for_the_operator(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    own_daemon.terminal("build").run("true")
    meta = own_daemon.state.terminals / "build" / "meta.json"
    intact = meta.read_bytes()
    meta.write_text("{")
    reply = own_daemon.call("doctor")
    assert (reply["root"], reply["left_out"]) == (str(own_daemon.root), 0)
    problems = [each for each in reply["findings"] if each["level"] == "problem"]
    assert len(problems) == 1, problems
    [problem] = problems
    assert problem["subject"] == "terminal build"
    assert "meta.json is damaged" in problem["sentence"]
    assert problem["remedy"] == "close the terminal and spawn it again with its settings"
    subjects = {each["subject"] for each in reply["findings"]}
    assert {"daemon", "shell bash", "agent claude"} <= subjects
    assert findings(own_daemon, code=1)["terminal build"] == problem
    meta.write_bytes(intact)


@pytest.mark.long
def test_what_only_a_repair_mends_says_that_no_daemon_may_run(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    own_daemon.state.keys.chmod(0o644)
    found = {each["subject"]: each for each in own_daemon.call("doctor")["findings"]}
    assert found["modes"]["level"] == "problem"
    assert found["modes"]["remedy"] == "with no daemon running: aegis-actors doctor --repair"
    own_daemon.state.keys.chmod(0o600)


async def test_a_session_may_not_examine(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    secret = own_daemon.call("session_new", handle="eve")["url"].rpartition("/")[2]
    async with stream_client(own_daemon, session=secret) as eve:
        with pytest.raises(Refused, match="for the operator only"):
            await eve.call("doctor")


@pytest.mark.long
def test_callers_at_the_same_time_share_one_examination(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    count = own_daemon.root / "count"
    (own_daemon.home / ".bashrc").write_text(f"echo >> {count}; {gate.hold}\n")
    own_daemon.start()
    both = [own_daemon.send("doctor").has_arrived() for _ in range(2)]
    gate.open()
    first, second = (each.result() for each in both)
    assert first == second
    assert count.read_text() == "\n"


@pytest.mark.long
@pytest.mark.parametrize("is_killed", [False, True], ids=["stop", "kill"])
def test_a_daemon_that_ends_leaves_no_examination(
    own_daemon: DaemonProcess, is_killed: bool
) -> None:
    reached = own_daemon.root / "reached"
    (own_daemon.home / ".bashrc").write_text(f"echo >> {reached}; sleep 600\n")
    own_daemon.start()
    pending = own_daemon.send("doctor")
    until(reached.exists, "the temporary daemon tries bash")
    assert own_daemon.shell_processes("@doctor")
    if is_killed:
        own_daemon.kill()
        own_daemon.start()
    else:
        own_daemon.stop()
    assert pending.outcome()[0] != "reply"
    until(lambda: not own_daemon.shell_processes("@doctor"), "the examination has ended")
    until(lambda: not processes_with(f"HOME={own_daemon.home}") or is_killed, "and its shells")


@pytest.mark.long
def test_a_repair_beside_a_daemon_is_refused(daemon: DaemonProcess) -> None:
    found = findings(daemon, "--repair", code=1)
    assert "a daemon already runs" in found["repair"]["sentence"]


@pytest.mark.long
def test_after_a_crash_it_says_what_is_left_and_a_repair_loses_nothing(
    own_daemon: DaemonProcess,
) -> None:
    daemon = own_daemon
    daemon.start()
    terminal = daemon.terminal("build")
    records = [terminal.run(f"echo {number}") for number in range(3)]
    daemon.kill()
    ledger = terminal.directory / "ledger.jsonl"
    with ledger.open("ab") as file:
        file.write(b'{"seq":3,"cmd":"to')
    ledger.chmod(0o644)
    daemon.state.keys.write_text("{")

    found = findings(daemon, code=1)
    assert found["modes"]["level"] == found["keys"]["level"] == "problem"
    assert found["terminal build"]["level"] == found["leftovers"]["level"] == "warning"
    assert found["daemon"]["sentence"] == "none runs for this root"

    found = findings(daemon, "--repair")
    assert {each["level"] for each in found.values()} == {"ok"}
    [torn] = terminal.directory.glob("ledger.jsonl.torn-*")
    assert torn.read_bytes() == b'{"seq":3,"cmd":"to'
    aside = {each.name for each in (daemon.state.directory / "aside").iterdir()}
    assert {"endpoint.json.0", "keys.json.0"} <= aside

    daemon.start()
    assert daemon.terminal("build").records() == records
    assert daemon.terminal("build").run("echo 3")["seq"] == 3


def test_each_line_says_how_bad_it_is_and_what_to_do(own_daemon: DaemonProcess) -> None:
    state = own_daemon.state
    claim_state(state)
    state.keys.write_text("\x1b[31mno keys")
    state.keys.chmod(0o600)
    done = own_daemon.cli("doctor")
    assert (done.returncode, done.stderr) == (1, "↳ 1 problem\n")
    lines = done.stdout.splitlines()
    assert {line[:9].rstrip() for line in lines} <= {"ok", "warning", "problem"}
    [keys] = [line for line in lines if line.startswith("problem")]
    assert "keys.json cannot be used" in keys
    assert " → with no daemon running: aegis-actors doctor --repair" in keys
    assert "\x1b" not in done.stdout
