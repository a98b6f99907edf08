"""``Engine``: what a workflow can do. Every call is in a journal, so that no replay repeats it.

A call has a *position*: its number among the calls of its branch. A replay makes the same calls,
gets the outcomes from the journal in the order in which it got them before (``inputs``), at the
same times (``clock``), and continues with the first call that has none.

A call ends in a value, an error, or because the function cancels it, which is an outcome as well.
"""

from __future__ import annotations

import inspect
import math
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import attrs
import trio

from aegis.clock import utc_now
from aegis.workflows.calls import (
    MAX_PARALLEL,
    Outcome,
    about,
    digest_of,
    failure,
    is_cancelled,
    is_changed,
    is_failure,
    json_text,
    not_cancelled,
    packed,
    unpacked,
    value,
)
from aegis.workflows.child.clock import Timeline
from aegis.workflows.child.inputs import AwaitedCall, Inputs
from aegis.workflows.child.journal import Journal
from aegis.workflows.child.link import DaemonFrames
from aegis.workflows.child.shell import run_command
from aegis.workflows.results import (
    BashResult,
    Checkpoint,
    GroupReplies,
    TerminalResult,
    TimedOut,
    WorkflowChanged,
    error_of,
)

T = TypeVar("T")

MAX_LOG_CHARS = 10_000
"""The longest text of one ``log``."""

Local = Callable[[], Awaitable[Outcome]]


@attrs.define
class _Branch:
    """The calls that are made one after another: all of them, or those of one parallel branch."""

    path: str = ""
    made: int = 0
    current: str | None = None

    def take(self, call: str) -> str:
        """Return the next position. Raises ``RuntimeError`` while another call is made."""
        if self.current is not None:
            raise RuntimeError(
                f"{call} was called while {self.current} had not ended: engine calls at the same "
                "time go through engine.parallel, which gives each its place in the journal"
            )
        self.made, self.current = self.made + 1, call
        return f"{self.path}{self.made}"


_branch: ContextVar[_Branch] = ContextVar("branch")


class Engine:
    """The engine of one workflow: agents, queues, commands, people, and a journal.

    Methods raise ``EngineError``; ``ValueError`` for arguments and results that are not JSON or too
    large. ``timeout``, in seconds, cancels a call and raises ``TimedOut``, also in a replay.
    """

    def __init__(
        self,
        link: DaemonFrames,
        journal: Journal,
        start: Mapping[str, Any],
        timeline: Timeline | None = None,
    ) -> None:
        self._link = link
        self._journal = journal
        self._timeline = Timeline() if timeline is None else timeline
        self._inputs = Inputs(journal, self._timeline)
        self._changed: str | None = None
        self._main = _Branch()
        self._steps: set[str] = set()
        self.workflow_id: str = start["workflow_id"]
        """The id of this run."""
        self.host: str = start["host"]
        """The name of the machine."""
        self.config: Mapping[str, Any] = start["config"]
        """``root``, ``agents`` (names of profiles), ``default_agent`` and ``queues`` (by name)."""

    # The process, not the plugin.

    def _take(self, frame: dict[str, Any]) -> None:
        """Take a frame of the daemon."""
        self._inputs.take(frame)

    async def _deliver(self) -> None:
        """Deliver the outcomes of calls, without an end."""
        await self._inputs.run()

    # Agents.

    async def spawn(self, profile: str, *, workspace: str | None = None) -> str:
        """Open a session of a profile; return its handle. It is closed when the workflow ends."""
        handle: str = await self._call("spawn", {"profile": profile, "workspace": workspace})
        return handle

    async def send(self, handle: str, text: str, *, timeout: float | None = None) -> str:
        """Send a message to a session; return the last text of the turn that answers it.

        The message stays sent after a ``timeout``, and its turn continues.
        """
        with _limit(timeout, f"send to {handle!r}"):
            reply: str = await self._call("send", {"handle": handle, "text": text})
        return reply

    async def drain(self, handle: str, *, timeout: float | None = None) -> None:
        """Wait until a session has no unread message, and its turn has ended."""
        with _limit(timeout, f"drain of {handle!r}"):
            await self._call("drain", {"handle": handle})

    async def close(self, handle: str) -> None:
        """Close a session."""
        await self._call("close", {"handle": handle})

    async def delegate(self, queue: str, payload: str, *, timeout: float | None = None) -> str:
        """Give a task to a queue and wait for its end; return its result.

        Raises ``TaskFailed`` if it failed or was cancelled. After a ``timeout`` it stays in the
        queue.
        """
        with _limit(timeout, f"delegate to {queue!r}"):
            result: str = await self._call("delegate", {"queue": queue, "payload": payload})
        return result

    async def group(self, profiles: Sequence[str] = (), *, preset: str | None = None) -> Group:
        """Open a session of each profile as a group; it is dissolved when the workflow ends.

        All are opened, or none. ``preset`` is one of ``groups.presets``, instead of profiles.
        """
        arguments = {"profiles": [*profiles], "preset": preset}
        return Group(self, await self._call("group", arguments))

    # Commands.

    async def bash(
        self,
        cmd: str,
        *,
        cwd: str | None = None,
        timeout: float | None = None,
        retry: bool = False,
    ) -> BashResult:
        """Run a command with bash, in ``cwd`` (relative to the root; default: the root).

        What it leaves in the background ends with it. ``retry``: if a restart interrupts it, it is
        run again; otherwise ``StepInterrupted`` is raised.
        """
        arguments = {"cmd": cmd, "cwd": cwd, "timeout": timeout}

        async def run() -> Outcome:
            return await run_command(cmd, cwd, timeout)

        return BashResult(**await self._call("bash", arguments, run, retry=retry))

    async def bash_predicate(
        self,
        cmd: str,
        *,
        retry_with: str | Callable[[BashResult], Awaitable[object]] | None = None,
        max_retries: int = 3,
        cwd: str | None = None,
        timeout: float | None = None,
    ) -> bool:
        """Return whether a command succeeds, after at most ``max_retries`` repairs.

        ``retry_with`` repairs: a handle gets the command and its output as a message, a function
        the result. Without it the command is run once.
        """
        for left in range(max_retries if retry_with is not None else 0, -1, -1):
            result = await self.bash(cmd, cwd=cwd, timeout=timeout, retry=True)
            if result.exit == 0:
                return True
            if left and isinstance(retry_with, str):
                await self.send(retry_with, _repair_request(cmd, result))
            elif left and retry_with is not None:
                await retry_with(result)  # type: ignore[operator]
        return False

    def terminal(self, name: str) -> Terminal:
        """Return the shared terminal ``name``, to run commands on it."""
        return Terminal(self, name)

    # Control.

    async def parallel(
        self,
        branches: Sequence[Awaitable[Any] | Callable[[], Awaitable[Any]]],
        *,
        timeout: float | None = None,
    ) -> list[Any]:
        """Run awaitables (or functions that return one) at the same time; return their results.

        All are run to their end; a ``timeout`` cancels those that have not ended. If one raised,
        its exception is raised; if several did, a group.
        """
        with _limit(timeout, "parallel"):
            return await self._parallel(branches)

    async def _parallel(
        self, branches: Sequence[Awaitable[Any] | Callable[[], Awaitable[Any]]]
    ) -> list[Any]:
        self._check_changed()
        branch = self._branch()
        if len(branches) > MAX_PARALLEL:
            _discard(branches)
            raise ValueError(f"parallel takes at most {MAX_PARALLEL} branches, not {len(branches)}")
        position = branch.take("parallel")
        results: list[Any] = [None] * len(branches)
        errors: dict[int, Exception] = {}

        async def run(number: int, each: Awaitable[Any] | Callable[[], Awaitable[Any]]) -> None:
            _branch.set(_Branch(path=f"{position}/{number}/"))
            try:
                results[number] = await (each if inspect.isawaitable(each) else each())
            except Exception as error:
                errors[number] = error

        try:
            async with trio.open_nursery() as nursery:
                for number, each in enumerate(branches):
                    nursery.start_soon(run, number, each)
        finally:
            branch.current = None
        if len(errors) == 1:
            raise next(iter(errors.values()))
        if errors:
            raise ExceptionGroup("parallel", [errors[each] for each in sorted(errors)])
        return results

    async def step(
        self,
        name: str,
        fn: Callable[[], Any],
        *,
        timeout: float | None = None,
        retry: bool = False,
    ) -> Any:
        """Call ``fn`` once in the life of the workflow, and return its result, which is kept.

        ``fn`` may be async; only then a ``timeout`` can end it. Its result is made of plain values:
        None, True, numbers, text, bytes, lists, tuples, dicts. Each step has a name of its own: a
        finished one is not done again, wherever the workflow calls it. If ``fn`` raises,
        ``StepFailed`` is raised, also in a replay. ``retry`` as for ``bash``.
        """
        with _limit(timeout, f"step {name!r}"):
            return unpacked(await self._step(name, fn, retry=retry))

    async def _step(self, name: str, fn: Callable[[], Any], *, retry: bool) -> Any:
        self._check_changed()
        if name in self._steps:
            raise ValueError(f"step {name!r} was used before: give each step a name of its own")
        self._steps.add(name)
        cause: list[Exception] = []

        async def run() -> Outcome:
            try:
                result = fn()
                if inspect.isawaitable(result):
                    result = await result
                return value(packed(f"the result of step {name!r}", result))
            except Exception as error:
                cause.append(error)
                return failure("StepFailed", f"step {name!r}: {type(error).__name__}: {error}")

        try:
            return await self._call("step", {"name": name}, run, retry=retry)
        except Exception as error:
            if cause and error.__cause__ is None:
                raise error from cause[0]
            raise

    async def ask_human(
        self, question: str, options: Sequence[str] | None = None, *, timeout: float | None = None
    ) -> str | None:
        """Ask a person, and wait for the answer, over restarts too; None if they decline.

        ``options`` are the answers to choose from; without them any text is one. After a
        ``timeout`` the question is withdrawn, and takes no answer.
        """
        arguments = {"question": question, "options": None if options is None else [*options]}
        with _limit(timeout, "ask_human"):
            answer: str | None = await self._call("ask_human", arguments)
        return answer

    # The journal.

    async def checkpoint(self, name: str, payload: Any = None) -> None:
        """Keep a payload, which ``resume_state`` returns after a restart."""
        if self._branch() is not self._main:
            raise RuntimeError("checkpoint belongs to the main path, not into a parallel branch")
        kept = packed(f"the payload of checkpoint {name!r}", payload)
        await self._call("checkpoint", {"name": name, "payload": kept})

    def resume_state(self) -> Checkpoint | None:
        """Return the last checkpoint of an earlier process; None without one.

        The workflow continues behind it: the calls before the checkpoint are not replayed. Call it
        first, and skip what the checkpoint says is done.
        """
        if self._branch() is not self._main:
            raise RuntimeError("resume_state belongs to the main path, not into a parallel branch")
        found = self._journal.checkpoint()
        if found is None:
            return None
        position, name, payload = found
        self._main.made = max(self._main.made, position)
        self._inputs.skip(str(position))
        return Checkpoint(name=name, payload=unpacked(payload))

    def log(self, text: str) -> None:
        """Write a line to the workflow's log; once, however often the workflow is replayed."""
        self._check_changed()
        branch = self._branch()
        if not self._journal.has(f"{branch.path}{branch.made + 1}"):
            sys.stderr.write(f"{utc_now()} {text[:MAX_LOG_CHARS]}\n")
            sys.stderr.flush()

    # Calls.

    def _branch(self) -> _Branch:
        return _branch.get(self._main)

    async def _call(
        self,
        name: str,
        arguments: dict[str, Any],
        local: Local | None = None,
        *,
        retry: bool = False,
    ) -> Any:
        self._check_changed()
        # A command is run here, exactly as it is: the daemon needs no more than its digest.
        sent = {} if name == "bash" else arguments
        json_text(f"the call of {name}", sent)
        # A call that is cancelled before it begins leaves nothing in the journal.
        await trio.lowlevel.checkpoint_if_cancelled()
        branch, call = self._branch(), about(name, arguments)
        position = branch.take(call)
        try:
            digest = digest_of(name, arguments)
            if name == "step":
                position = self._journal.step(digest) or position
            known = self._journal.outcome(position, digest, call)
            frame = {
                "kind": "called",
                "position": position,
                "name": name,
                "arguments": sent,
                "digest": digest,
                "about": call,
                "retry": retry,
            }
            if known is not None and is_changed(known):
                outcome = known
            else:
                outcome = await self._made(frame if known is None else None, position, local)
        finally:
            branch.current = None
        if is_changed(outcome):
            await self._end_changed(outcome["error"]["message"])
        if is_failure(outcome):
            raise error_of(outcome["error"])
        return outcome["value"]

    async def _made(
        self, frame: dict[str, Any] | None, position: str, local: Local | None
    ) -> Outcome:
        """Make a call, unless its outcome is in the journal: then ``frame`` is None.

        Return its outcome, which is durable. Raises ``trio.Cancelled`` once it is durable that the
        function has cancelled the call.
        """
        waiting = self._inputs.expect(position)
        try:
            if frame is not None:
                await self._send(frame)
            if frame is not None and local is not None:
                await self._carry_out(waiting, position, local)
            await waiting.ended.wait()
        except BaseException as error:
            if self._changed is not None or not _is_cancellation(error):
                raise
            with trio.CancelScope(shield=True):
                if frame is not None and not waiting.ended.is_set():
                    # The daemon ignores it if the outcome is on its way.
                    await self._send({"kind": "left", "position": position})
                await waiting.ended.wait()
            if waiting.outcome is not None and not is_cancelled(waiting.outcome):
                return waiting.outcome
            raise
        assert waiting.outcome is not None
        if is_cancelled(waiting.outcome):
            return not_cancelled(position)
        return waiting.outcome

    async def _carry_out(self, waiting: AwaitedCall, position: str, local: Local) -> None:
        """Carry out a call in this process, once the daemon allows it, and send its outcome."""
        async with trio.open_nursery() as nursery:  # it may be refused instead

            async def end_when_refused() -> None:
                await waiting.ended.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(end_when_refused)
            await waiting.may_proceed.wait()
            await self._inputs.is_live.wait()  # until then its time limits would pass at once
            nursery.cancel_scope.cancel()
        if waiting.outcome is not None:
            return
        with self._timeline.read_by("call"):
            outcome = await local()
        await self._link.send({"kind": "done", "position": position, "outcome": outcome})

    async def _send(self, frame: dict[str, Any]) -> None:
        await self._link.send({**frame, **self._inputs.moment()})

    def _check_changed(self) -> None:
        if self._changed is not None:
            raise WorkflowChanged(self._changed)

    async def _end_changed(self, why: str) -> None:
        """End the run: no later call does anything, and what the function returns is no result."""
        self._changed = why
        traceback.print_stack()
        error = f"WorkflowChanged: {why}"
        await self._link.send({"kind": "returned", "end": "failed", "error": error})
        raise WorkflowChanged(why)


@attrs.frozen
class Group:
    """A group of sessions of the workflow."""

    _engine: Engine = attrs.field(repr=False)
    name: str

    async def broadcast(
        self,
        objective: str,
        *,
        output_format: str = "",
        tool_guidance: str = "",
        boundaries: str = "",
        reducer: str = "concat",
        timeout: float | None = None,
    ) -> GroupReplies:
        """Give all members the same order; return their replies when all have replied or cannot.

        After a ``timeout`` the order stays given. ``reducer``: ``concat``, ``join_by_handle``,
        ``last_wins`` or ``majority_vote``.
        """
        arguments = {
            "group": self.name,
            "objective": objective,
            "output_format": output_format,
            "tool_guidance": tool_guidance,
            "boundaries": boundaries,
            "reducer": reducer,
        }
        with _limit(timeout, f"broadcast to {self.name!r}"):
            return GroupReplies(**await self._engine._call("broadcast", arguments))


@attrs.frozen
class Terminal:
    """A shared terminal, for commands that people and agents see."""

    _engine: Engine = attrs.field(repr=False)
    name: str

    async def run(
        self, cmd: str, *, timeout: float | None = None, retry: bool = False
    ) -> TerminalResult:
        """Run a command and wait for its end; ``retry`` as for ``Engine.bash``."""
        arguments = {"terminal": self.name, "cmd": cmd, "timeout": timeout}
        return TerminalResult(**await self._engine._call("terminal", arguments, retry=retry))


@contextmanager
def _limit(seconds: float | None, what: str) -> Iterator[None]:
    """Cancel the block after some seconds. Raises ``TimedOut``."""
    with trio.move_on_after(math.inf if seconds is None else seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise TimedOut(f"{what} did not end within {seconds:g} seconds")


def _is_cancellation(error: BaseException) -> bool:
    """Return whether an exception is a cancellation and nothing else."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)


def _repair_request(cmd: str, result: BashResult) -> str:
    ended = "did not end in time" if result.timed_out else f"ended with exit code {result.exit}"
    output = "\n".join(each for each in (result.stdout, result.stderr) if each)
    return f"This command {ended}; repair the cause:\n{cmd}\n──\n{output}"


def _discard(branches: Sequence[Any]) -> None:
    """Close coroutines that will not be awaited, which Python would warn about."""
    for each in branches:
        if inspect.iscoroutine(each):
            each.close()
