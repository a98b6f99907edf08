"""A driver with real processes of a stand-in agent."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from aegis.agents.drivers.driver import Service
from aegis.agents.messages import (
    CloseDriver,
    DriverEnded,
    DriverEvents,
    DriverReady,
    InterruptTurn,
    SendAnswer,
    SendTurn,
    SetModel,
)
from aegis.errors import Unavailable
from aegis.protocol.agent_events import PermissionAnswer, RequestWithdrawn, Result
from tests.aegis.agents.drivers.driving import URL, PlainClient, Slowness, driven, plan_for

pytestmark = pytest.mark.real


async def test_a_turn_is_answered_by_events_in_order_and_a_result(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("SAY one\nSAY two")
        await it.log.until(lambda: bool(it.log.results))
        assert it.log.texts == ["one", "two"]
        assert it.log.results == [Result(messages=["u1"], ok=True, reason="")]
        ended = await it.close()
        assert isinstance(it.log.reports[0], DriverReady)
        assert isinstance(it.log.events[-1], RequestWithdrawn)
        assert it.log.reports[-1] is ended
    assert ended == DriverEnded(launch=1, reason="stand-in was closed", exit_code=0)


async def test_orders_are_refused_with_a_sentence_before_the_agent_is_ready_and_after_its_end(
    tmp_path: Path,
) -> None:
    async with driven(plan_for(tmp_path)) as it:
        turn = SendTurn(uuid="u1", text="DIE 3")
        assert await it.driver.ask(turn) == "stand-in is not ready yet"
        await it.log.first(DriverReady)
        empty = SendTurn(uuid="u1", text="")
        assert await it.driver.ask(empty) == "a turn needs a text"
        unknown = SendAnswer(request="r", answer=PermissionAnswer(kind="deny"))
        assert await it.driver.ask(unknown) == "there is no request 'r'"
        closing = it.driver.send_request(CloseDriver())
        assert await it.driver.ask(turn) == "the process of stand-in has ended"
        await closing.wait()


async def test_an_interrupt_ends_the_turn_and_the_agent_goes_on(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("HANG", "u1")
        assert await it.driver.ask(InterruptTurn()) is None
        await it.turn("SAY again", "u2")
        await it.log.text("again")
        await it.log.until(lambda: len(it.log.results) == 2)
        assert [(each.messages, each.ok) for each in it.log.results] == [
            (["u1"], False),
            (["u2"], True),
        ]


async def test_a_change_of_the_model_is_answered_when_the_agent_has_answered(
    tmp_path: Path,
) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.log.first(DriverReady)
        assert await it.driver.ask(SetModel("opus")) is None
        assert await it.driver.ask(SetModel("none")) == "there is no such model"


async def test_a_change_that_the_agent_does_not_answer_is_refused_at_its_end(
    tmp_path: Path,
) -> None:
    async with driven(plan_for(tmp_path, eof_s=0.1, term_s=0.1)) as it:
        await it.turn("SAY deaf\nDEAF")
        await it.log.text("deaf")
        changing = it.driver.send_request(SetModel("opus"))
        second = await it.driver.ask(SetModel("sonnet"))
        assert second == "the model is being changed already: try again in a moment"
        await it.close()
        assert await changing.wait() == "stand-in ended before it answered"


ENDS = {
    "a failure": ("DIE 3", 3, "stand-in ended with exit code 3"),
    "success": ("DIE 0", 0, "stand-in ended with exit code 0"),
    "a signal": ("DIE -9", -9, "stand-in was ended by signal SIGKILL"),
    "a number that is no signal here": ("DIE -35", -35, "stand-in was ended by signal 35"),
}


@pytest.mark.parametrize("how", ENDS)
async def test_the_end_of_the_agent_is_reported_with_its_exit_code(
    tmp_path: Path, how: str
) -> None:
    order, code, reason = ENDS[how]
    async with driven(plan_for(tmp_path)) as it:
        await it.turn(f"SAY before\nERROR out of luck\n{order}")
        ended = await it.log.first(DriverEnded)
        assert it.log.texts == ["before"]
    assert ended == DriverEnded(launch=1, reason=reason, exit_code=code, stderr="out of luck")
    assert (tmp_path / "stderr").read_text() == "out of luck\n"
    assert (tmp_path / "stderr").stat().st_mode & 0o777 == 0o600


async def test_an_agent_that_ignores_term_is_killed_with_all_its_children(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path, eof_s=0.1, term_s=0.1)) as it:
        await it.turn("STUBBORN\nSTAY\nSPAWN setsid\nSPAWN double\nSPAWN bare\nSAY all")
        await it.log.text("all")
        children = [int(each.split()[1]) for each in it.log.texts[:-1]]
        assert len(children) == 3
        ended = await it.close()
        assert ended.exit_code == -signal.SIGKILL
        assert [pid for pid in children if is_alive(pid)] == []


async def test_children_of_an_agent_that_was_killed_are_ended(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path, term_s=0.1)) as it:
        await it.turn("SPAWN setsid\nSPAWN bare\nSAY pid\nHANG")
        await it.log.text("pid")
        children = [int(each.split()[1]) for each in it.log.texts[:-1]]
        os.kill(agent_of(children[0]), signal.SIGKILL)
        ended = await it.log.first(DriverEnded)
        assert ended.exit_code == -signal.SIGKILL
        assert [pid for pid in children if is_alive(pid)] == []
        assert not (await it.log.driver_end()).crashed


async def test_the_death_of_the_guard_ends_the_agent_and_is_named(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("STUBBORN\nSPAWN setsid\nSAY ready\nPARENT\nHANG")
        ended = await it.log.first(DriverEnded)
        assert it.processes == []
    assert ended.exit_code is None
    assert ended.reason == (
        "the guard process of stand-in was killed; all processes of stand-in were ended"
    )


async def test_an_agent_that_reads_no_input_is_ended_and_its_output_is_read_meanwhile(
    tmp_path: Path,
) -> None:
    async with driven(plan_for(tmp_path, write_within_s=0.5)) as it:
        await it.turn("SAY going\nDEAF")
        await it.log.text("going")
        for number in range(4):
            turn = SendTurn(uuid=f"u{number}", text="x" * 65_536)
            assert await it.driver.ask(turn) is None
        ended = await it.log.first(DriverEnded)
        assert it.processes == []
    assert ended.reason == "stand-in does not read its input; its process was ended"


async def test_the_queue_of_an_agent_that_reads_no_input_is_bounded(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("SAY going\nDEAF")
        await it.log.text("going")
        answers = [
            await it.driver.ask(SendTurn(uuid=f"u{number}", text="x" * 4_000_000))
            for number in range(12)
        ]
        assert answers[0] is None
        assert answers[-1] == "the process of stand-in has ended"
        ended = await it.log.first(DriverEnded)
    assert ended.reason == "stand-in does not read its input; its process was ended"


async def test_an_agent_that_closes_its_output_is_ended(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("SAY bye\nSILENT")
        ended = await it.log.first(DriverEnded)
        assert it.log.texts == ["bye"]
    assert ended.exit_code == -signal.SIGTERM


@pytest.mark.long
async def test_a_line_of_50_megabytes_costs_little_memory_and_the_agent_goes_on(
    tmp_path: Path,
) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("SAY before")
        await it.log.text("before")
        reset_peak()
        before = resident_bytes("VmRSS")
        await it.turn(f"LINE {50 * 2**20}\nSAY after", "u2")
        await it.log.text("after")
        assert resident_bytes("VmHWM") - before < 48 * 2**20


async def test_noise_is_skipped(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("NOISE 100000\nSAY after")
        await it.log.text("after")
        ended = await it.close()
    assert set(ended.stderr) == {"x"}
    assert len(ended.stderr) < 10_000


@pytest.mark.long
async def test_a_flood_of_events_waits_for_a_slow_session_and_is_complete(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path), slowness=0.002) as it:
        await it.turn("FLOOD 100000")
        before = resident_bytes("VmRSS")
        seen = 0
        while not it.log.results:
            # The texts are dropped here, so that only what the driver holds can grow.
            await it.log.until(lambda: bool(it.log.events))
            assert it.log.texts == [f"event {seen + each}" for each in range(len(it.log.texts))]
            seen += len(it.log.texts)
            it.log.reports.clear()
            if not it.log.results:
                it.log.events.clear()
        assert seen == 100_000
        assert resident_bytes("VmRSS") - before < 32 * 2**20


@pytest.mark.long
async def test_a_session_that_takes_nothing_stops_a_flood_of_large_events(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("SAY before")
        await it.log.text("before")
        it.session.tell(Slowness(3.0, reports=1))
        reset_peak()
        before = resident_bytes("VmRSS")
        await it.turn("FLOOD 100 1000000", "u2")
        await it.log.until(lambda: len(it.log.texts) > 1)
        assert resident_bytes("VmHWM") - before < 40 * 2**20
        await it.log.until(lambda: len(it.log.texts) == 101)


async def test_no_secret_is_in_an_argument_or_an_environment_of_the_tree(tmp_path: Path) -> None:
    inherited = {
        "PATH": os.environ["PATH"],
        "AEGIS_SECRET": URL,
        "PWD": "/elsewhere",
    }
    plan = plan_for(tmp_path, inherited=inherited, environment={"MINE": "yes"})
    async with driven(plan) as it:
        await it.turn("SPAWN setsid\nENVIRON")
        shown = json.loads("{" + await it.log.text("{"))
        for pid in (pid for pid in os.listdir("/proc") if pid.isdigit()):
            for name in ("cmdline", "environ"):
                if int(pid) != os.getpid():
                    assert URL.rpartition("/")[2].encode() not in read_bytes(f"/proc/{pid}/{name}")
    environ = shown["environ"]
    assert environ.pop("LC_CTYPE", "") in ("", "C.UTF-8")  # of the stand-in's own Python
    assert environ == {
        "PATH": os.environ["PATH"],
        "MINE": "yes",
        "PWD": str(tmp_path),
        "AEGIS_TERMINAL": plan.cookie,
    }


async def test_session_urls_are_hidden_in_the_end_of_standard_error(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        token = URL.rpartition("/")[2]
        await it.turn(f"ERROR at {URL}, or {token}\nDIE 1")
        ended = await it.log.first(DriverEnded)
    assert ended.stderr == "at \u2039secret\u203a, or \u2039secret\u203a"


@attrs.frozen
class Client(PlainClient):
    """A client whose answers come when a test lets them."""

    go: trio.Event

    def serve(self, method: str, params: Mapping[str, Any]) -> Service:
        return partial(self.answer, method)

    async def answer(self, method: str) -> Mapping[str, Any]:
        await self.go.wait()
        if method != "Bash":
            raise Unavailable("no")
        return {"behavior": "allow", "updatedInput": {"command": "true"}}


async def test_requests_to_the_client_are_served_beside_the_stream(tmp_path: Path) -> None:
    client = Client(trio.Event())
    async with driven(plan_for(tmp_path), client) as it:
        await it.turn("SAY before\nASK ls\nSAY after")
        await it.log.text("before")
        assert it.log.texts == ["before"]
        client.go.set()
        await it.log.text("after")


async def test_requests_are_refused_without_a_client(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("ASK ls\nSAY after")
        await it.log.text("after")


async def test_a_crash_of_the_driver_ends_the_agent(tmp_path: Path) -> None:
    class Broken(PlainClient):
        def serve(self, method: str, params: Mapping[str, Any]) -> Service:
            raise KeyError(method)

    async with driven(plan_for(tmp_path), Broken()) as it:
        await it.turn("STUBBORN\nSPAWN setsid\nSPAWN bare\nASK ls")
        await it.log.text("child")
        assert (await it.log.driver_end()).crashed
        assert it.processes == []
        children = [int(each.split()[1]) for each in it.log.texts]
        assert [pid for pid in children if is_alive(pid)] == []
    assert not any(isinstance(each, DriverEnded) for each in it.log.reports)


async def test_the_end_of_the_session_ends_the_agent(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path, eof_s=0.1)) as it:
        await it.turn("SAY here\nFLOOD 100000")
        await it.log.text("here")
        it.session.stop()
        await it.log.driver_end()
        assert it.processes == []


async def test_events_are_sent_in_batches(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path), slowness=0.01) as it:
        await it.turn("FLOOD 5000")
        await it.log.until(lambda: bool(it.log.results))
        sizes = [len(each.events) for each in it.log.reports if isinstance(each, DriverEvents)]
    assert max(sizes) == 256
    assert sum(sizes) >= 5000


def is_alive(pid: int) -> bool:
    stat = read_bytes(f"/proc/{pid}/stat")
    return bool(stat) and stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def agent_of(child: int) -> int:
    return int(read_bytes(f"/proc/{child}/stat").rpartition(b")")[2].split()[1])


def read_bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def resident_bytes(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith(field))
    return int(line.split()[1]) * 1024


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")
