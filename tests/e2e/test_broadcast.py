"""One command on several terminals at once, through every face."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Connect, NewTerminal
from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal, Pending

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

NewGate = Callable[[], Gate]


def broadcast(
    terminals: list[LiveTerminal], cmd: str, timeout: float = 30, **arguments: object
) -> Pending:
    names = [each.name for each in terminals]
    daemon = terminals[0].daemon
    return daemon.send("term_broadcast", names=names, cmd=cmd, timeout=timeout, **arguments)


def by_name(reply: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each["record"] or each["error"] for each in reply["result"]}


@pytest.fixture
def three(new_terminal: NewTerminal) -> list[LiveTerminal]:
    return [new_terminal() for _ in range(3)]


@pytest.fixture
def meeting(tmp_path: Path) -> str:
    """Shell text that ends on a terminal only if it runs on three of them at once.

    Each takes a number. 0 writes to 2, which then writes to 1, which then writes to 0; a pipe opens
    when both of its ends do.
    """
    for number in range(3):
        os.mkfifo(tmp_path / f"m{number}")
    pipes = [f"{tmp_path}/m{number}" for number in range(3)]
    claim = f"for n in 0 1 2; do mkdir {tmp_path}/n$n 2>/dev/null && break; done"
    return (
        f"{claim}; case $n in 0) echo 0 >{pipes[0]}; cat {pipes[1]};; "
        f"1) cat {pipes[2]}; echo 1 >{pipes[1]};; 2) cat {pipes[0]}; echo 2 >{pipes[2]};; esac"
    )


def test_it_runs_on_all_of_them_at_once(three: list[LiveTerminal], meeting: str) -> None:
    reply = broadcast(three, meeting).result()
    assert [each["name"] for each in reply["result"]] == [each.name for each in three]
    records = [each["record"] for each in reply["result"]]
    assert [(each["exit"], each["end"], each["seq"]) for each in records] == [(0, "exited", 0)] * 3
    assert sorted(each["stdout"] for each in records) == ["0\n", "1\n", "2\n"]
    assert "more" not in reply
    for terminal, record in zip(three, records, strict=True):
        assert terminal.records() == [record]


def test_each_record_names_who_asked(three: list[LiveTerminal], handle: str) -> None:
    wakes = three[1].subscribe(f"{handle}-2")
    reply = broadcast(three, "echo hi", from_handle=handle).result()
    assert {each["record"]["writer"] for each in reply["result"]} == {f"agent:{handle}"}
    assert wakes.next()["sender"] == f"term:{three[1].name}"


def test_one_that_cannot_has_its_reason_and_the_others_their_records(
    daemon: DaemonProcess, new_terminal: NewTerminal, new_gate: NewGate
) -> None:
    good, busy, closed = (new_terminal() for _ in range(3))
    closed.close()
    gate = new_gate()
    running = busy.start(gate.hold)
    gate.wait_reached()
    names = [good.name, busy.name, "no-such-terminal", closed.name]
    reply = daemon.call("term_broadcast", names=names, cmd="echo hi", timeout=5)
    gate.open()
    running.result()
    assert [each["name"] for each in reply["result"]] == names
    outcome = by_name(reply)
    assert outcome[good.name]["stdout"] == "hi\n"
    assert f"terminal '{busy.name}' was busy: human runs" in outcome[busy.name]
    assert "there is no terminal 'no-such-terminal'" in outcome["no-such-terminal"]
    assert f"terminal '{closed.name}' is closed" in outcome[closed.name]
    assert [each["cmd"] for each in busy.records()] == [gate.hold]


def test_who_runs_out_of_time_has_the_record_so_far(
    three: list[LiveTerminal], new_gate: NewGate, tmp_path: Path
) -> None:
    gate = new_gate()
    claim = tmp_path / "claimed"
    cmd = f"if mkdir {claim} 2>/dev/null; then {gate.hold}; fi"
    reply = broadcast(three, cmd, timeout=5).result()
    late = [each["record"] for each in reply["result"] if each["record"]["timed_out"]]
    assert [(each["exit"], each["end"]) for each in late] == [(None, None)]
    gate.open()


@pytest.mark.parametrize("leave", ["hang_up", "cancel"])
def test_whoever_goes_away_leaves_what_was_typed_and_drops_what_was_queued(
    new_terminal: NewTerminal, new_gate: NewGate, leave: str
) -> None:
    free, busy = new_terminal(), new_terminal()
    blocking, own = new_gate(), new_gate()
    running = busy.start(blocking.hold)
    blocking.wait_reached()
    lost = broadcast([free, busy], own.hold)
    own.wait_reached()  # on the free one; it queues on the other
    getattr(lost, leave)()
    assert free.daemon.call("term_list")["result"]
    own.open()
    blocking.open()
    running.result()
    after = busy.run("echo after")
    assert after["seq"] == 1
    assert [each["cmd"] for each in busy.records()] == [blocking.hold, "echo after"]
    free.run("true")
    assert [each["cmd"] for each in free.records()] == [own.hold, "true"]


@pytest.mark.long
def test_long_outputs_are_cut_to_one_reply(
    three: list[LiveTerminal], new_terminal: NewTerminal
) -> None:
    terminals = [*three, *(new_terminal() for _ in range(17))]
    reply = broadcast(terminals, "seq 100000").result()
    assert reply["more"] is True
    assert len(json.dumps(reply, separators=(",", ":"))) <= 1024 * 1024
    for each in reply["result"]:
        assert each["record"]["stdout"].startswith("1\n2\n")
        assert each["record"]["stdout"].endswith("\n100000\n")
        assert each["record"]["output_bytes"] == 588_895
    [whole] = three[0].records()
    assert len(whole["stdout"]) > len(reply["result"][0]["record"]["stdout"])


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_an_agent_can_do_it_over_mcp(
    daemon: DaemonProcess, three: list[LiveTerminal], connect_mcp: Connect, handle: str, era: str
) -> None:
    names = [each.name for each in three]
    async with connect_mcp(daemon, era, handle) as client:
        arguments = {"names": [*names, "nobody"], "cmd": "echo hi"}
        result = await client.call_tool("aegis_term_broadcast", arguments)
        assert not result.is_error
        assert result.structured_content is not None
        *records, missing = result.structured_content["result"]
        assert [each["record"]["stdout"] for each in records] == ["hi\n"] * 3
        assert missing["record"] is None
        bad = await client.call_tool("aegis_term_broadcast", {**arguments, "names": [names[0]] * 2})
        assert bad.is_error


def test_the_command_line_shows_all_and_fails_if_one_did(
    daemon: DaemonProcess, three: list[LiveTerminal]
) -> None:
    names = [each.name for each in three]
    three[2].run("alias answer=false")
    for terminal in three[:2]:
        terminal.run("alias answer=true")
    done = daemon.cli("term", "broadcast", *names, "--", "answer")
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if line.startswith("── ")] == [
        f"── {name} ──" for name in names
    ]
    assert daemon.cli("term", "broadcast", *names[:2], "--", "answer").returncode == 0
