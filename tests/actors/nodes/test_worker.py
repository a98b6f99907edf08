"""Workers: processes of their own, however they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from actors.errors import MisuseError, NodeError, WorkerGone
from actors.nodes import Beat, EndKind, Worker, open_runtime
from tests.actors.nodes.machine import exists, nothing_left, running, spec, until

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[3]
QUICK = Beat(every_s=0.2, lost_after_s=3.0)


@pytest.mark.every_python
async def test_messages_of_bytes_go_both_ways_in_order() -> None:
    async with open_runtime() as runtime, running(runtime, spec("echo", argument=b"hi")) as worker:
        assert await worker.receive() == b"hi"
        sent = [os.urandom(size) for size in (0, 1, 100, 65_536, 1_048_576)]
        for message in sent:
            await worker.send(message)
        assert [await worker.receive() for _ in sent] == sent
        await worker.send(b"bye")
        await worker.ended.wait()
        assert worker.end is not None
        assert worker.end.kind is EndKind.DONE


async def test_a_worker_that_is_done_leaves_what_it_said_and_nothing_else() -> None:
    with nothing_left():
        async with open_runtime() as runtime:
            async with running(runtime, spec("return_at_once")) as worker:
                await worker.ended.wait()
                assert await worker.receive() == b"last words"
                with pytest.raises(WorkerGone, match="has ended"):
                    await worker.receive()
                with pytest.raises(WorkerGone):
                    await worker.send(b"")
            assert runtime.remembered() == NOTHING_BUT_THE_ROOT


NOTHING_BUT_THE_ROOT = {
    "_actoruid2nursery": 0,
    "_contexts": 0,
    "_peer_connected": 0,
    "_peers": 0,
    "_registry": 1,
    "_rpc_tasks": 0,
    "_waiters": 1,
    "workers": 0,
    "joins": 0,
}
"""tractor registers the root with itself, by its uid and by its name."""


async def test_what_a_worker_raises_is_how_it_ended() -> None:
    async with (
        open_runtime() as runtime,
        running(runtime, spec("crash", argument=b"it broke")) as worker,
    ):
        await worker.ended.wait()
    assert worker.end is not None
    assert worker.end.kind is EndKind.CRASHED
    assert "ValueError: it broke" in worker.end.text
    assert "tests/actors/nodes/entries.py" in worker.end.text


async def test_exception_groups_are_strict_in_a_worker() -> None:
    async with open_runtime() as runtime, running(runtime, spec("crash_as_group")) as worker:
        assert await worker.receive() == b"a group"
        await worker.ended.wait()
    assert worker.end is not None
    assert "ValueError: one" in worker.end.text
    assert "KeyError: 'two'" in worker.end.text


async def test_exception_groups_are_strict_beside_workers() -> None:
    async def fail() -> None:
        raise ValueError("alone")

    async with open_runtime() as runtime, running(runtime, spec("echo")):
        with pytest.raises(ExceptionGroup):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fail)


async def test_what_is_raised_beside_a_worker_leaves_the_runtime_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_runtime():
            raise KeyError("mine")


async def test_a_process_that_exits_by_itself_has_crashed() -> None:
    async with (
        open_runtime() as runtime,
        running(runtime, spec("exit_with_code", argument=b"3")) as worker,
    ):
        await worker.send(b"exit")
        await worker.ended.wait()
    assert worker.end is not None
    assert (worker.end.kind, worker.end.text) == (
        EndKind.CRASHED,
        "Its process ended with code 3.",
    )


@pytest.mark.every_python
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
async def test_a_process_that_is_killed_is_noticed_and_fails_what_waits_for_it(
    number: signal.Signals,
) -> None:
    with nothing_left():
        async with open_runtime() as runtime, running(runtime, spec("echo")) as worker:
            await worker.receive()
            refused: list[WorkerGone] = []

            async def wait_for_message(worker: Worker = worker) -> None:
                try:
                    await worker.receive()
                except WorkerGone as error:
                    refused.append(error)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait_for_message)
                await trio.testing.wait_all_tasks_blocked()
                assert worker.pid is not None
                os.kill(worker.pid, number)
            await worker.ended.wait()
    assert worker.end is not None
    assert (worker.end.kind, worker.end.signal) == (EndKind.KILLED, number)
    assert len(refused) == 1


async def test_the_death_of_one_worker_touches_no_other() -> None:
    async with open_runtime() as runtime, running(runtime, spec("echo", argument=b"1")) as one:
        async with running(runtime, spec("echo", argument=b"2", name="other")) as other:
            await other.receive()
            other.kill()
            await other.ended.wait()
        assert await one.receive() == b"1"
        await one.send(b"still here")
        assert await one.receive() == b"still here"


@pytest.mark.long
async def test_a_stopped_process_is_lost_after_its_time_of_silence() -> None:
    with nothing_left():
        async with open_runtime() as runtime, running(runtime, spec("echo", beat=QUICK)) as worker:
            await worker.receive()
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGSTOP)
            with pytest.raises(WorkerGone):
                await worker.receive()
            await worker.ended.wait()
    assert worker.end is not None
    assert (worker.end.kind, worker.end.text) == (
        EndKind.LOST,
        "The other side was silent for too long.",
    )


@pytest.mark.long
async def test_a_process_whose_loop_is_held_up_is_lost_too() -> None:
    async with open_runtime() as runtime, running(runtime, spec("block", beat=QUICK)) as worker:
        assert await worker.receive() == b"blocking"
        await worker.ended.wait()
    assert worker.end is not None
    assert worker.end.kind is EndKind.LOST


async def test_a_connection_that_is_cut_is_noticed_at_once_and_its_process_ended() -> None:
    with nothing_left():
        async with open_runtime() as runtime:
            # With a time of silence longer than the guard: it is not the heartbeat that tells.
            patient = Beat(every_s=30, lost_after_s=3600)
            async with running(runtime, spec("drop_connection", beat=patient)) as worker:
                assert await worker.receive() == b"up"
                await worker.ended.wait()
    assert worker.end is not None
    assert worker.end.kind in (EndKind.LOST, EndKind.CRASHED)  # whoever notices first
    assert "silent" not in worker.end.text


async def test_a_stop_lets_it_clean_up_and_say_goodbye() -> None:
    async with open_runtime() as runtime, running(runtime, spec("clean_up")) as worker:
        assert await worker.receive() == b"up"
        worker.stop()
        assert await worker.receive() == b"cleaned up"
        await worker.ended.wait()
        assert worker.end is not None
        assert worker.end.kind is EndKind.STOPPED
        assert worker.end.text == ""


@pytest.mark.parametrize("function", ["never_let_go", "block"])
async def test_a_worker_that_does_not_stop_in_time_is_killed(function: str) -> None:
    with nothing_left():
        async with (
            open_runtime() as runtime,
            running(runtime, spec(function, stop_within_s=0.3)) as worker,
        ):
            await worker.receive()
            worker.stop()
            await worker.ended.wait()
    assert worker.end is not None
    assert worker.end.kind is EndKind.STOPPED
    assert "killed" in worker.end.text


async def test_a_cancelled_worker_is_killed_and_reaped() -> None:
    with nothing_left():
        async with open_runtime() as runtime:
            worker = Worker(runtime, spec("never_let_go"))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.run)
                await worker.wait_up()
                nursery.cancel_scope.cancel()
            assert worker.end is not None
            assert worker.end.kind is EndKind.STOPPED


async def test_a_worker_that_is_cancelled_while_it_starts_leaves_nothing() -> None:
    with nothing_left():
        async with open_runtime() as runtime:
            worker = Worker(runtime, spec("echo"))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.run)
                await until(lambda: worker.pid is not None)
                nursery.cancel_scope.cancel()
            assert worker.end is not None
            assert worker.end.kind is EndKind.STOPPED


async def test_a_worker_that_is_stopped_while_it_starts_has_stopped() -> None:
    with nothing_left():
        async with open_runtime() as runtime:
            worker = Worker(runtime, spec("echo"))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.run)
                await until(lambda: worker.pid is not None)
                worker.stop()
                with pytest.raises(WorkerGone):
                    await worker.wait_up()
            assert worker.end is not None
            assert worker.end.kind is EndKind.STOPPED


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("tests.actors.nodes.entries:nobody", "AttributeError"),
        ("tests.actors.nodes.nowhere:echo", "ModuleNotFoundError"),
        ("nonsense", "nonsense cannot be run"),
    ],
)
async def test_a_function_that_is_not_there_is_told(entry: str, why: str) -> None:
    with nothing_left():
        async with open_runtime() as runtime:
            wanted = spec("echo")
            worker = Worker(runtime, type(wanted)(name="w", entry=entry))
            end = await worker.run()
    assert end.kind is EndKind.NEVER_STARTED
    assert why in end.text
    assert entry in end.text


async def test_a_process_that_dies_before_it_connects_has_never_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with nothing_left():
        async with open_runtime() as runtime:
            end = await Worker(runtime, spec("echo")).run()
    assert end.kind is EndKind.NEVER_STARTED
    assert "ended with code" in end.text


async def test_a_worker_that_does_not_connect_in_time_has_never_started() -> None:
    with nothing_left():
        async with open_runtime() as runtime:
            worker = Worker(runtime, spec("echo", start_within_s=1.0))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.run)
                await until(lambda: worker.pid is not None)
                assert worker.pid is not None
                os.kill(worker.pid, signal.SIGSTOP)
            assert worker.end is not None
            assert worker.end.kind is EndKind.NEVER_STARTED
            assert worker.end.text == "It did not start in time."
            assert runtime.remembered() == NOTHING_BUT_THE_ROOT


async def test_neither_side_holds_more_of_the_other_than_the_window(tmp_path: Path) -> None:
    may_take = tmp_path / "go"
    wanted = spec("take_none", argument=str(may_take).encode())
    async with open_runtime() as runtime, running(runtime, wanted) as worker:
        assert await worker.receive() == b"up"
        sent: list[int] = []

        async def send() -> None:
            for number in range(200):
                await worker.send(b"%d" % number)
                sent.append(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await until(lambda: len(sent) == 64)
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert len(sent) == 64
            may_take.touch()
            got = [await worker.receive() for _ in range(200)]
        assert got == [b"%d" % number for number in range(200)]


@pytest.mark.long
async def test_a_message_that_waits_in_one_direction_holds_up_nothing_in_the_other() -> None:
    wanted = spec("send_many", argument=b"500 20000", beat=QUICK)
    async with open_runtime() as runtime, running(runtime, wanted) as worker:
        # Nobody receives for longer than a silence may last: its beats come through.
        await trio.sleep(2 * QUICK.lost_after_s)
        assert worker.end is None
        numbers = [int.from_bytes((await worker.receive())[:4], "big") for _ in range(500)]
        assert numbers == list(range(500))


async def test_a_message_that_is_too_long_is_refused_and_costs_nothing_else() -> None:
    async with open_runtime() as runtime, running(runtime, spec("echo")) as worker:
        assert await worker.receive() == b""
        with pytest.raises(NodeError, match="too long"):
            await worker.send(bytes(1_048_577))
        await worker.send(b"short")
        assert await worker.receive() == b"short"


async def test_who_gives_up_sending_cuts_no_message() -> None:
    async with open_runtime() as runtime, running(runtime, spec("echo")) as worker:
        assert await worker.receive() == b""
        for size in range(0, 1_000_000, 40_000):
            with trio.move_on_after(0):
                await worker.send(bytes(size))
        await worker.send(b"whole")
        while (message := await worker.receive()) != b"whole":
            assert set(message) <= {0}


async def test_a_worker_is_a_clean_process_that_shows_no_key() -> None:
    async with open_runtime() as runtime:
        secret = runtime.key.secret.hex()
        async with running(runtime, spec("describe", argument=secret.encode())) as worker:
            lines = (await worker.receive()).decode().splitlines()
            told = dict(line.split("=", 1) for line in lines)
            assert told == {
                "pid": str(worker.pid),
                "session": str(worker.pid),
                "trio": "True",
                "breakpoint": os.environ.get("PYTHONBREAKPOINT", ""),
                "path": "",
                "modules": "",
                "input": "/dev/null",
                "secret": "False",
                "ignored": "False",
                "main": "actors.nodes.workers.child",
            }


async def test_the_runtime_leaves_the_environment_and_the_path_as_they_were() -> None:
    before = dict(os.environ), list(sys.path)
    async with open_runtime() as runtime, running(runtime, spec("echo")):
        assert (dict(os.environ), list(sys.path)) == before
        assert sys.modules["trio"] is trio
        assert not hasattr(trio, "MultiError")


async def test_two_runtimes_one_after_the_other_work_and_two_at_once_are_refused() -> None:
    with nothing_left():
        for number in (b"1", b"2"):
            async with open_runtime() as runtime:
                with pytest.raises(MisuseError, match="open in this process already"):
                    async with open_runtime():
                        pass
                async with running(runtime, spec("echo", argument=number)) as worker:
                    assert await worker.receive() == number


async def test_a_runtime_that_is_left_ends_the_workers_that_still_run() -> None:
    async with trio.open_nursery() as nursery:
        async with open_runtime() as runtime:
            worker = Worker(runtime, spec("never_let_go"))
            nursery.start_soon(worker.run)
            await worker.wait_up()
        assert worker.end is not None
        assert worker.pid is not None
        assert not exists(worker.pid)


async def test_a_worker_lives_once() -> None:
    async with open_runtime() as runtime:
        async with running(runtime, spec("return_at_once")) as worker:
            await worker.ended.wait()
        with pytest.raises(MisuseError, match="runs only once"):
            await worker.run()


PARENT = """
import sys, trio
from actors.nodes import Beat
from actors.nodes import Worker
from actors.nodes import open_runtime
from tests.actors.nodes.machine import spec

async def main():
    async with open_runtime() as runtime, trio.open_nursery() as nursery:
        for function in sys.argv[1:]:
            worker = Worker(runtime, spec(function, name=function, beat=Beat(0.5, 3.0)))
            nursery.start_soon(worker.run)
            await worker.wait_up()
            await worker.receive()
            print(worker.pid, flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


@contextmanager
def parent_of(*functions: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process with workers that run these, and the numbers of theirs."""
    command = [sys.executable, "-c", PARENT, *functions]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            yield parent, [int(parent.stdout.readline()) for _ in functions]
        finally:
            parent.kill()


@pytest.mark.parametrize("stopped", [False, True])
async def test_a_parent_that_is_killed_leaves_no_orphan_whatever_its_workers_do(
    stopped: bool,
) -> None:
    with parent_of("echo", "never_let_go", "block") as (parent, pids):
        if stopped:
            os.kill(pids[0], signal.SIGSTOP)
        parent.kill()
        parent.wait()
        await until(lambda: not any(exists(pid) for pid in pids))


@pytest.mark.long
async def test_a_worker_that_hears_nothing_from_its_parent_ends_by_itself() -> None:
    with parent_of("echo") as (parent, [pid]):
        parent.send_signal(signal.SIGSTOP)
        # It stays a zombie: its parent cannot reap it.
        await until(lambda: not exists(pid))
