"""``aegis-actors doctor`` beside a real daemon, on real broken states, and with real shells."""

from __future__ import annotations

import json
from shutil import which
from typing import Any

import pytest

from aegis import __version__
from aegis.state.registration import claim_state
from tests.e2e.harness import DaemonProcess

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
    assert " → aegis-actors doctor --repair" in keys
    assert "\x1b" not in done.stdout
