"""The engine in the process of a workflow, with a daemon that is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from aegis import Engine, StepFailed, StepInterrupted, WorkflowChanged
from aegis.workflows.calls import Outcome, failure, is_failure, value
from aegis.workflows.child.journal import Journal

START = {"workflow_id": "0" * 26, "host": "here", "config": {}}


@attrs.define
class Daemon:
    """Answers calls, and keeps the journal of what was asked."""

    nursery: trio.Nursery
    outcomes: Callable[[dict[str, Any]], Outcome] = lambda frame: value(frame["name"])
    asked: list[dict[str, Any]] = attrs.field(factory=list)
    journal: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    take: Callable[[dict[str, Any]], None] = print

    async def send(self, frame: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        if frame["kind"] != "returned":
            self.take(self.answer(frame))

    def answer(self, frame: dict[str, Any]) -> dict[str, Any]:
        position = frame["position"]
        if frame["kind"] == "called":
            self.asked.append(frame)
            names = ("position", "name", "digest", "about")
            self.journal[position] = {each: frame[each] for each in names} | {"outcome": None}
            if frame["name"] in ("bash", "step"):
                return {"kind": "proceed", "position": position}
            outcome = self.outcomes(frame)
        else:
            outcome = frame["outcome"]
        self.journal[position]["outcome"] = outcome
        return {"kind": "answer", "position": position, "outcome": outcome}

    def engine(self) -> Engine:
        """Return the engine of the next process, with the journal so far."""
        journal = Journal()
        journal.add(self.journal.values())
        journal.take_order({"seen": [], "unseen": [*self.journal], "time": None, "at": None})
        self.asked.clear()
        engine = Engine(self, journal, START)  # type: ignore[arg-type]
        self.take = engine._take
        self.nursery.start_soon(engine._deliver)
        return engine

    @property
    def positions(self) -> list[str]:
        return [each["position"] for each in self.asked]


async def test_calls_have_their_numbers_and_a_replay_asks_for_none(nursery: trio.Nursery) -> None:
    daemon, done = Daemon(nursery), list[int]()

    def stepped() -> str:
        done.append(1)
        return "stepped"

    async def workflow(engine: Engine) -> list[Any]:
        first = await engine.spawn("p")
        second = await engine.step("s", stepped)
        return [first, second, await engine.send("h", "t")]

    result = await workflow(daemon.engine())
    assert (result, daemon.positions) == (["spawn", "stepped", "send"], ["1", "2", "3"])
    assert await workflow(daemon.engine()) == result
    assert (daemon.positions, done) == ([], [1])


async def test_branches_have_places_of_their_own_in_any_order(nursery: trio.Nursery) -> None:
    daemon = Daemon(nursery)

    async def branch(engine: Engine, first: float) -> str:
        await trio.sleep(first)
        await engine.delegate("q", f"{first}")
        return await engine.send("h", "t")

    async def workflow(engine: Engine, *pauses: float) -> list[Any]:
        await engine.spawn("p")
        return await engine.parallel([branch(engine, each) for each in pauses])

    await workflow(daemon.engine(), 0.02, 0.0)
    assert sorted(daemon.positions) == ["1", "2/0/1", "2/0/2", "2/1/1", "2/1/2"]
    assert await workflow(daemon.engine(), 0.02, 0.0) == ["send", "send"]
    assert daemon.positions == []


async def test_all_branches_end_and_then_what_they_raised_is_raised(nursery: trio.Nursery) -> None:
    daemon, ended = Daemon(nursery), []

    async def fails(text: str) -> None:
        raise ValueError(text)

    async def ends() -> None:
        await trio.sleep(0.01)
        ended.append(1)

    engine = daemon.engine()
    with pytest.raises(ValueError, match="one"):
        await engine.parallel([fails("one"), ends])
    with pytest.raises(ExceptionGroup) as caught:
        await engine.parallel([fails("one"), fails("two"), ends()])
    assert [str(each) for each in caught.value.exceptions] == ["one", "two"]
    assert ended == [1, 1]


async def test_two_calls_at_the_same_time_need_branches(nursery: trio.Nursery) -> None:
    engine = Daemon(nursery).engine()

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.send, "h", "a")
            nursery.start_soon(engine.send, "h", "b")

    with pytest.raises(ExceptionGroup) as caught:
        await both()
    assert "go through engine.parallel" in str(caught.value.exceptions[0])


async def test_another_call_at_a_position_is_refused_with_both_named(nursery: trio.Nursery) -> None:
    daemon = Daemon(nursery)
    await daemon.engine().send("h", "a")
    with pytest.raises(WorkflowChanged, match=r"send\('h', 'b'\) now, and was send\('h', 'a'\)"):
        await daemon.engine().send("h", "b")


async def test_a_step_is_found_by_its_name_when_calls_before_it_have_changed(
    nursery: trio.Nursery,
) -> None:
    daemon, done = Daemon(nursery), []
    engine = daemon.engine()
    await engine.step("a", lambda: done.append("a"))
    await engine.step("b", lambda: done.append("b"))
    engine = daemon.engine()
    await engine.step("b", lambda: done.append("b"))
    assert (done, daemon.positions) == (["a", "b"], [])


async def test_the_name_of_a_step_is_used_once(nursery: trio.Nursery) -> None:
    engine = Daemon(nursery).engine()
    await engine.step("a", lambda: 1)
    with pytest.raises(ValueError, match="was used before"):
        await engine.step("a", lambda: 1)


async def test_a_step_that_raises_fails_with_its_cause_and_in_a_replay_without(
    nursery: trio.Nursery,
) -> None:
    daemon = Daemon(nursery)

    def wrong() -> None:
        raise KeyError("x")

    with pytest.raises(StepFailed, match="step 's': KeyError: 'x'") as caught:
        await daemon.engine().step("s", wrong)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(StepFailed, match="KeyError") as caught:
        await daemon.engine().step("s", wrong)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("result", [{1}, object(), float("nan"), "x" * 300_000])
async def test_a_result_that_cannot_be_kept_exactly_or_is_too_large_fails_the_step(
    result: object, nursery: trio.Nursery
) -> None:
    with pytest.raises(StepFailed, match="the result of step 's'"):
        await Daemon(nursery).engine().step("s", lambda: result)


async def test_arguments_that_are_not_json_are_refused_before_the_call(
    nursery: trio.Nursery,
) -> None:
    daemon = Daemon(nursery)
    with pytest.raises(ValueError, match="the payload of checkpoint 'c' has a value of type set"):
        await daemon.engine().checkpoint("c", {1, 2})
    assert daemon.asked == []


async def test_an_interruption_is_raised_as_what_it_is(nursery: trio.Nursery) -> None:
    daemon = Daemon(
        nursery, outcomes=lambda _: failure("StepInterrupted", "call 1 was interrupted")
    )
    with pytest.raises(StepInterrupted, match="call 1 was interrupted"):
        await daemon.engine().terminal("t").run("make")


async def test_a_workflow_continues_behind_its_checkpoint(nursery: trio.Nursery) -> None:
    daemon = Daemon(nursery, outcomes=lambda frame: value(checkpoint_of(frame)))

    async def workflow(engine: Engine, upto: int) -> int:
        state = engine.resume_state()
        begin = 0 if state is None else state.payload
        for number in range(begin, upto):
            await engine.send("h", f"{number}")
            await engine.checkpoint("at", number + 1)
        return begin

    assert await workflow(daemon.engine(), 2) == 0
    assert daemon.positions == ["1", "2", "3", "4"]
    assert await workflow(daemon.engine(), 3) == 2
    assert daemon.positions == ["5", "6"]
    assert not any(is_failure(each["outcome"]) for each in daemon.journal.values())


def checkpoint_of(frame: dict[str, Any]) -> Any:
    given = frame["arguments"]
    if frame["name"] != "checkpoint":
        return "reply"
    return {"checkpoint": given["name"], "payload": given["payload"]}


async def test_checkpoints_are_for_the_main_path_only(nursery: trio.Nursery) -> None:
    engine = Daemon(nursery).engine()
    with pytest.raises(RuntimeError, match="main path"):
        await engine.parallel([lambda: engine.checkpoint("c")])


async def test_a_line_is_logged_once(
    capsys: pytest.CaptureFixture[str], nursery: trio.Nursery
) -> None:
    daemon = Daemon(nursery)

    async def workflow(engine: Engine) -> None:
        engine.log("before")
        await engine.send("h", "t")
        engine.log("after")

    await workflow(daemon.engine())
    assert "before" in capsys.readouterr().err
    await workflow(daemon.engine())
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == ["after"]


async def test_a_command_runs_in_its_directory_and_ends_with_its_background(
    tmp_path: Any, nursery: trio.Nursery
) -> None:
    engine = Daemon(nursery).engine()
    result = await engine.bash("pwd; sleep 100 & echo done", cwd=str(tmp_path))
    assert (result.exit, result.stdout) == (0, f"{tmp_path}\ndone\n")
    killed = await engine.bash("kill -9 $$")
    assert killed.exit == 137
    large = await engine.bash("head -c 200000 /dev/zero | tr '\\0' x")
    assert large.truncated
    assert len(large.stdout) <= 65_536
