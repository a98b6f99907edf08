"""What ends a wait, in every combination, through a real daemon."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Connect
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal, Pending

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]


def wait(terminal: LiveTerminal, **arguments: object) -> dict[str, Any]:
    arguments = {"timeout": GUARD_S, **arguments}
    return terminal.daemon.call("term_wait", name=terminal.name, **arguments)


def waiting(terminal: LiveTerminal, **arguments: object) -> Pending:
    """A wait that the terminal knows of."""
    arguments = {"timeout": GUARD_S, **arguments}
    return terminal.daemon.send("term_wait", name=terminal.name, **arguments).has_arrived()


def text_from(terminal: LiveTerminal, cursor: int) -> str:
    text: str = terminal.daemon.call("term_output", name=terminal.name, cursor=cursor)["text"]
    return text


# Nothing runs.


def test_nothing_runs_and_no_condition_the_last_record_answers(terminal: LiveTerminal) -> None:
    none = wait(terminal)
    assert (none["reason"], none["match"], none["record"]) == ("ended", None, None)
    terminal.run("echo one")
    record = terminal.run("(exit 3)")
    ended = wait(terminal)
    assert ended == {
        "reason": "ended",
        "match": None,
        "cursor": record["raw_end"],
        "record": record,
    }


def test_a_seq_that_is_done_answers_at_once(terminal: LiveTerminal) -> None:
    records = [terminal.run(f"echo {number}") for number in range(3)]
    for record in records:
        assert wait(terminal, seq=record["seq"])["record"] == record
    found = wait(terminal, seq=1, pattern="^1$")
    assert (found["reason"], found["match"], found["record"]) == ("matched", "1", records[1])
    assert found["cursor"] == records[1]["raw_start"] + 1
    missed = wait(terminal, seq=1, pattern="^2$", idle_s=3_600)
    assert (missed["reason"], missed["record"]) == ("ended", records[1])


def test_an_unknown_seq_is_an_error(terminal: LiveTerminal, gate: Gate) -> None:
    def refusal(seq: int) -> tuple[str, str]:
        error = terminal.daemon.refusal("term_wait", name=terminal.name, seq=seq)
        return error.code, str(error)

    assert "there is none yet" in refusal(0)[1]
    terminal.run("true")
    code, sentence = refusal(1)
    assert (code, "no command with seq 1; the newest is 0" in sentence) == ("not_found", True)
    running = terminal.start(gate.hold)
    gate.wait_reached()
    assert refusal(2)[0] == "not_found"
    gate.open()
    running.result()


def test_a_condition_on_an_idle_terminal_waits_for_the_next_command(terminal: LiveTerminal) -> None:
    terminal.run("echo old news")
    first = waiting(terminal, pattern="never")
    second = waiting(terminal, pattern="^new")
    record = terminal.run("echo new news")
    ended = first.result()
    assert (ended["reason"], ended["record"]) == ("ended", record)
    matched = second.result()
    assert (matched["reason"], matched["match"]) == ("matched", "new")
    assert text_from(terminal, matched["cursor"]).startswith(" news\n")


def test_what_a_background_job_prints_matches(terminal: LiveTerminal, gate: Gate) -> None:
    terminal.run(f"( {gate.hold}; echo server listens on port 8080 ) &")
    gate.wait_reached()
    pending = waiting(terminal, pattern=r"port \d+")
    gate.open()
    matched = pending.result()
    assert (matched["reason"], matched["match"]) == ("matched", "port 8080")
    assert matched["record"] is None


def test_a_cursor_says_where_to_begin_to_look(terminal: LiveTerminal) -> None:
    first = terminal.run("echo old word")
    second = terminal.run("echo new word")
    found = wait(terminal, pattern="word", cursor=first["raw_start"])
    assert found["cursor"] == first["raw_start"] + len("old word")
    found = wait(terminal, pattern="word", cursor=found["cursor"])
    assert second["raw_start"] - 60 < found["cursor"] <= second["raw_start"] + len("new word")
    assert wait(terminal, pattern="word", cursor=second["raw_end"], timeout=0.2)["match"] is None


# A command runs.


def test_the_running_command_ends(terminal: LiveTerminal, gate: Gate) -> None:
    running = terminal.start(f"echo some; {gate.hold}; (exit 5)")
    gate.wait_reached()
    by_default = waiting(terminal)
    by_seq = waiting(terminal, seq=0)
    by_pattern = waiting(terminal, pattern="no such text")
    gate.open()
    record = running.result()
    for pending in (by_default, by_seq, by_pattern):
        ended = pending.result()
        assert (ended["reason"], ended["record"]) == ("ended", record)
        assert ended["cursor"] >= record["raw_end"]


def test_text_that_was_printed_before_the_wait_matches(terminal: LiveTerminal, gate: Gate) -> None:
    running = terminal.start(
        f"printf 'first\\nready: \\033[32myes\\033[0m\\n'; {gate.hold}; echo end"
    )
    gate.wait_reached()
    matched = wait(terminal, pattern="^ready: (yes|no)$")
    assert (matched["reason"], matched["match"], matched["record"]) == (
        "matched",
        "ready: yes",
        None,
    )
    behind = waiting(terminal, pattern="e.", cursor=matched["cursor"])
    gate.open()
    assert behind.result()["match"] == "en"
    running.result()


def test_a_chain_of_waits_misses_nothing(terminal: LiveTerminal) -> None:
    running = terminal.start("for i in {1..50}; do echo word $i; done")
    record = running.result()
    cursor, found = record["raw_start"], []
    for _ in range(50):
        matched = wait(terminal, seq=0, pattern=r"word \d+$", cursor=cursor)
        found.append(matched["match"])
        cursor = matched["cursor"]
    assert found == [f"word {number}" for number in range(1, 51)]
    assert wait(terminal, seq=0, pattern="word", cursor=cursor)["reason"] == "ended"


def test_a_match_in_the_last_words_counts_before_the_end(
    terminal: LiveTerminal, gate: Gate
) -> None:
    running = terminal.start(f"{gate.hold}; printf 'all tests passed'")
    gate.wait_reached()
    pending = waiting(terminal, pattern="passed")
    gate.open()
    running.result()
    assert pending.result()["reason"] == "matched"


def test_quiet_ends_a_wait_while_the_command_runs(terminal: LiveTerminal, gate: Gate) -> None:
    running = terminal.start(f"echo prompt; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("prompt")
    idle = wait(terminal, idle_s=0.3)
    assert (idle["reason"], idle["record"]) == ("idle", None)
    both = wait(terminal, idle_s=0.3, pattern="no such")
    assert (both["reason"], both["cursor"]) == ("idle", idle["cursor"])
    gate.open()
    running.result()


@pytest.mark.long
def test_output_puts_quiet_off(terminal: LiveTerminal) -> None:
    # Far longer than a pause of the command, and shorter than the whole of it.
    pending = waiting(terminal, idle_s=5.0)
    record = terminal.run("for i in {1..60}; do echo $i; sleep 0.1; done")
    ended = pending.result()
    assert (ended["reason"], ended["record"]) == ("ended", record)


def test_time_runs_out(terminal: LiveTerminal, gate: Gate) -> None:
    running = terminal.start(f"echo some; {gate.hold}")
    gate.wait_reached()
    for conditions in ({}, {"pattern": "no such"}, {"idle_s": 100}, {"seq": 0}):
        late = wait(terminal, timeout=0.2, **conditions)
        assert (late["reason"], late["match"], late["record"]) == ("timeout", None, None)
    gate.open()
    running.result()


def test_a_flood_is_searched_and_a_dear_pattern_holds_nobody_up(
    terminal: LiveTerminal, gate: Gate
) -> None:
    # The echo of the line, which may come after the call, does not match.
    running = terminal.start(f"seq 1 300000; {gate.hold}; echo nee''dle")
    pending = waiting(terminal, pattern="need(le)+")
    dear = waiting(terminal, pattern=r"(\d*)*(1|11)+x")
    gate.wait_reached()
    gate.open()
    record = running.result()
    assert pending.result()["match"] == "needle"
    assert dear.result()["record"] == record


# The terminal ends.


def test_a_close_ends_every_wait(terminal: LiveTerminal, gate: Gate) -> None:
    idle = waiting(terminal, pattern="never", cursor=0)
    running = terminal.start(f"echo some; {gate.hold}")
    gate.wait_reached()
    pending = [waiting(terminal), waiting(terminal, seq=0, pattern="no such")]
    terminal.close()
    record = running.result()
    assert record["end"] == "closed"
    for each in (idle, *pending):
        closed = each.result()
        assert (closed["reason"], closed["record"]) == ("closed", record)


def test_a_close_ends_a_wait_on_an_idle_terminal(terminal: LiveTerminal) -> None:
    pending = waiting(terminal, pattern="never")
    terminal.close()
    closed = pending.result()
    assert (closed["reason"], closed["match"], closed["record"]) == ("closed", None, None)


def test_a_closed_terminal_answers_with_what_it_recorded(terminal: LiveTerminal) -> None:
    record = terminal.run("echo last")
    terminal.close()
    assert wait(terminal)["record"] == wait(terminal, seq=0)["record"] == record
    assert wait(terminal, pattern="x")["reason"] == "closed"
    assert terminal.daemon.refusal("term_wait", name=terminal.name, seq=1).code == "not_found"


def test_the_end_of_the_shell_ends_its_command(terminal: LiveTerminal) -> None:
    pending = waiting(terminal, pattern="never")
    record = terminal.run("echo bye; exit 4")
    ended = pending.result()
    assert (ended["reason"], ended["record"]) == ("ended", record)
    assert (record["end"], record["exit"]) == ("shell_exit", 4)


# Clients that come and go.


def test_who_goes_away_is_forgotten(terminal: LiveTerminal, gate: Gate) -> None:
    running = terminal.start(gate.hold)
    gate.wait_reached()
    many = [waiting(terminal) for _ in range(256)]
    error = terminal.daemon.refusal("term_wait", name=terminal.name)
    assert (error.code, "256 calls already wait" in str(error)) == ("busy", True)
    for pending in many[1:]:
        pending.cancel()
    last = waiting(terminal)
    gate.open()
    record = running.result()
    assert many[0].result()["record"] == last.result()["record"] == record


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_mcp_client_waits_for_a_command_that_outlived_its_call(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect, mode: str, gate: Gate
) -> None:
    async with connect_mcp(daemon, mode, "alice") as client:
        run = {"name": terminal.name, "cmd": f"{gate.hold}; echo late", "timeout": 0.3}
        so_far = (await client.call_tool("aegis_term_run", run)).structured_content
        assert so_far["timed_out"]
        gate.open()
        wait = {"name": terminal.name, "seq": so_far["seq"], "timeout": GUARD_S}
        ended = await client.call_tool("aegis_term_wait", wait)
        assert ended.structured_content["reason"] == "ended"
        assert ended.structured_content["record"]["stdout"] == "late\n"
        missing = await client.call_tool("aegis_term_wait", wait | {"seq": 9})
        assert missing.is_error
        assert "no command with seq 9" in str(missing.content[0])


def test_a_wait_outlives_no_front_and_says_so(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    gate = Gate(own_daemon.root)
    running = terminal.start(gate.hold)
    gate.wait_reached()
    pending = waiting(terminal)
    assert own_daemon.stop() == 0
    assert pending.outcome() in (("reply", ""), ("error", "unavailable"), ("lost", ""))
    running.outcome()
    gate.close()
