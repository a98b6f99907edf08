"""The steps of a simulated client: a request each, and the log of its reply."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import attrs
import trio

from aegis.errors import IncompleteInput
from aegis.protocol import control
from aegis.protocol import output as out
from aegis.protocol import terminals as api
from aegis.protocol.broadcast import Broadcast
from aegis.protocol.derived.wire import to_plain
from tests.chaos.checking.evidence import Command, SeenRecord
from tests.chaos.checking.observations import (
    Broadcasted,
    Change,
    ChangeKind,
    Disturbance,
    Harm,
    Listing,
    Subscribing,
)
from tests.chaos.commands import HERE, LONG, OPEN, SIMULATED, Kind
from tests.chaos.histories import script as s
from tests.chaos.histories.asking import Answered
from tests.chaos.histories.reading import Reading

PATIENCE_S = 30.0
"""The longest wait, in seconds, for an event that is expected at once."""

INTERRUPTS = 3
"""The most attempts of an interrupt: a stopped shell may lose one."""


ENTERS = 10
"""The most attempts of an Enter: for a moment there may be no shell."""


class StepPlayer(Reading):
    """The player of the steps of a client."""

    async def do(self, step: s.Step) -> None:
        if isinstance(step, s.AgentStep | s.AnswerStep):
            await self._agents.do(step)
        elif isinstance(step, s.QueueStep | s.OrderTaskStep):
            await self._tasks.do(step)
        elif isinstance(step, s.GroupStep):
            await self._groups.do(step)
        elif isinstance(step, s.CanvasStep):
            await self._canvases.do(step)
        elif isinstance(step, s.WorkflowStep):
            await self._workflows.do(step)
        else:
            await _DOERS[type(step)](self, step)

    # Commands.

    async def run(self, step: s.RunStep) -> None:
        """Run a command; answer it if it reads a line."""
        kind = SIMULATED.kinds[step.kind]
        reply = (await self._run(kind, step.terminal, str(step.number), step.gone_after_s)).value
        if kind.answer and reply is not None and reply.needs_input is not None:
            await self._answer(step, kind, reply.seq)

    async def check(self, terminal: str) -> None:
        """Run a command to check that the terminal works."""
        await self._run(SIMULATED.kinds["quick"], terminal, "end")

    async def _run(
        self, kind: Kind, terminal: str, number: str, gone_after_s: float | None = None
    ) -> Answered:
        command = self._command(kind, terminal, number)
        request = api.RunCommand(
            name=terminal, cmd=command.text, timeout=kind.timeout_s, from_handle=self._who
        )
        note = partial(self._sent, command)
        return await self._ask(request, note, gone_after_s=gone_after_s)

    def _command(
        self, kind: Kind, terminal: str, number: str, *, typed: bool = False, where: str = ""
    ) -> Command:
        return SIMULATED.command(
            kind,
            token=f"@{where or terminal}.{number}@",
            terminal=terminal,
            writer=self._who,
            life=self._book.life,
            typed=typed,
        )

    def _sent(self, command: Command, answered: Answered) -> None:
        self._book.sent(command, answered.span)
        if answered.was_never_typed or isinstance(answered.error, IncompleteInput):
            self._book.refused.append(command.token)
        if isinstance(answered.value, api.CommandRecord):
            record: Any = to_plain(answered.value)
            self._book.seen.append(SeenRecord(command.terminal, record, answered.span))

    async def _answer(self, step: s.RunStep | s.TypeAheadStep, kind: Kind, seq: int) -> None:
        """Answer a command that waits for a line, by a comment in case that a shell reads it."""
        line = kind.answer.replace("%", f"@{step.terminal}.{step.number}@")
        await self._keys(step.terminal, f"{line}\r", "keys", text=line)
        await self._wait(step.terminal, PATIENCE_S, seq=seq)

    async def open_quote(self, step: s.OpenQuoteStep) -> None:
        command = self._command(Kind(text=OPEN), step.terminal, str(step.number))
        request = api.RunCommand(name=step.terminal, cmd=command.text, from_handle=self._who)
        await self._ask(request, partial(self._sent, command))

    async def nothing(self, step: s.NothingStep) -> None:
        command = self._command(Kind(text="", stdout=""), step.terminal, str(step.number))
        command = attrs.evolve(command, text=f"# {command.token}", is_silent=True)
        request = api.RunCommand(name=step.terminal, cmd=command.text, from_handle=self._who)
        await self._ask(request, partial(self._sent, command))

    async def type(self, step: s.TypeStep) -> None:
        """Type a command on an idle terminal, and run another one to see its end."""
        if not await self._is_quiet(step.terminal):
            return
        command = self._command(
            SIMULATED.typed[step.kind], step.terminal, str(step.number), typed=True
        )
        request = api.SendKeys(name=step.terminal, keys=f"{command.text}\r", from_handle=self._who)
        await self._ask(request, partial(self._sent, command))
        await self._run(SIMULATED.kinds["quick"], step.terminal, f"{step.number}.then")

    async def erase(self, step: s.EraseStep) -> None:
        """Type half a line and erase it on an idle terminal; then run a command."""
        if await self._is_quiet(step.terminal):
            await self._keys(step.terminal, step.keys, "keys")
            await self._run(SIMULATED.kinds["quick"], step.terminal, f"{step.number}.then")

    async def type_ahead(self, step: s.TypeAheadStep) -> None:
        """Type lines while a command runs and another waits; wait for the end of all."""
        if not await self._is_quiet(step.terminal):
            return
        number, behind = str(step.number), SIMULATED.kinds[step.behind]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                self._run, SIMULATED.kinds["slow output"], step.terminal, f"{number}.now"
            )
            await self._wait(step.terminal, 1, pattern=f"^@{step.terminal}[.]{number}[.]now@$")
            if step.is_first:
                nursery.start_soon(self._run_behind, step, behind)
            await self._type_lines(step)
            if not step.is_first:
                nursery.start_soon(self._run_behind, step, behind)
        await self._run(SIMULATED.kinds["quick"], step.terminal, f"{number}.then")

    async def _run_behind(self, step: s.TypeAheadStep, kind: Kind) -> None:
        reply = (await self._run(kind, step.terminal, f"{step.number}.behind")).value
        if kind.answer and reply is not None and reply.needs_input is not None:
            await self._answer(step, kind, reply.seq)

    async def _type_lines(self, step: s.TypeAheadStep) -> None:
        commands = [
            self._command(
                SIMULATED.typed[kind], step.terminal, f"{step.number}.{index}", typed=True
            )
            for index, kind in enumerate(step.kinds)
        ]
        text = "\r".join(command.text for command in commands)
        is_half = step.enter_after_s is not None
        keys = text if is_half else f"{text}\r"
        request = api.SendKeys(name=step.terminal, keys=keys, from_handle=self._who)
        await self._ask(request, partial(self._typed_ahead, step.terminal, commands, text))
        if step.enter_after_s is not None:
            await trio.sleep(step.enter_after_s)
            await self._press_enter(step.terminal)

    def _typed_ahead(
        self, terminal: str, commands: Sequence[Command], text: str, answered: Answered
    ) -> None:
        for command in commands:
            self._sent(command, answered)
        self._disturbed("keys", terminal, text, answered)

    async def _press_enter(self, terminal: str) -> None:
        """Press Enter after a part of a line: other commands wait for an empty line."""
        request = api.SendKeys(name=terminal, keys="\r", from_handle=self._who)
        for _ in range(ENTERS):
            if (await self._ask(request)).value is not None:
                return
            await trio.sleep(PATIENCE_S / ENTERS)

    async def _is_quiet(self, terminal: str) -> bool:
        waited = await self._ask(out.WaitTerminal(name=terminal, timeout=PATIENCE_S))
        return waited.value is not None and waited.value.reason == "ended"

    async def interrupt(self, step: s.InterruptStep) -> None:
        """Run a long command, and interrupt it by Ctrl-C once it runs."""
        kind = LONG if step.by_keys else attrs.evolve(LONG, stdout="%\n\n")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._interrupt, step, nursery.cancel_scope)
            await self._run(kind, step.terminal, str(step.number))
            nursery.cancel_scope.cancel()

    async def _interrupt(self, step: s.InterruptStep, scope: trio.CancelScope) -> None:
        token = f"^@{step.terminal}[.]{step.number}@$"
        for _ in range(INTERRUPTS):
            seen = await self._wait(step.terminal, PATIENCE_S / INTERRUPTS, pattern=token)
            if seen.value is None or seen.value.reason != "matched":
                continue
            if step.by_keys:
                await self._keys(step.terminal, "\x03", "interrupt")
            else:
                await self._signal(step.terminal)
            await trio.sleep(PATIENCE_S / INTERRUPTS)

    async def _keys(self, terminal: str, keys: str, harm: Harm, text: str = "") -> None:
        request = api.SendKeys(name=terminal, keys=keys, from_handle=self._who)
        await self._ask(request, partial(self._disturbed, harm, terminal, text))

    async def _signal(self, terminal: str) -> None:
        request = control.SignalTerminal(name=terminal, signal="INT", from_handle=self._who)
        await self._ask(request, partial(self._disturbed, "signal", terminal, ""))

    def _disturbed(self, harm: Harm, terminal: str, text: str, answered: Answered) -> None:
        if answered.error is not None and answered.is_certain:
            return
        number = None if harm == "keys" else signal.SIGINT
        self._book.disturbances.append(
            Disturbance(kind=harm, terminal=terminal, span=answered.span, number=number, text=text)
        )

    async def broadcast(self, step: s.BroadcastStep) -> None:
        """Run one command on several terminals: each prints its own token."""
        kind = SIMULATED.kinds[step.kind]
        commands = [self._command(kind, name, str(step.number)) for name in step.terminals]
        text = self._command(kind, s.SHARED, str(step.number), where=f"${HERE}").text
        request = Broadcast(
            names=list(step.terminals), cmd=text, timeout=kind.timeout_s, from_handle=self._who
        )
        await self._ask(request, partial(self._cast, step, commands, text))

    def _cast(
        self, step: s.BroadcastStep, commands: Sequence[Command], text: str, answered: Answered
    ) -> None:
        book = self._book
        for each in commands:
            book.sent(attrs.evolve(each, text=text), answered.span)
        if answered.value is None:
            return
        document: Any = to_plain(answered.value)
        outcomes = document["result"]
        book.broadcasts.append(
            Broadcasted(
                span=answered.span,
                named=step.terminals,
                answered=tuple(each["name"] for each in outcomes),
                records=tuple(each["record"] for each in outcomes),
                errors=tuple(each["error"] for each in outcomes),
            )
        )

    # Subscriptions, and the list of terminals.

    async def subscribe(self, step: s.SubscribeStep) -> None:
        request = api.Subscribe(
            name=step.terminal,
            pattern=step.pattern,
            only_failures=step.only_failures,
            from_handle=self._who,
        )
        await self._ask(request, partial(self._subscribed, step))

    async def unsubscribe(self, step: s.UnsubscribeStep) -> None:
        request = api.Unsubscribe(name=step.terminal, from_handle=self._who)
        await self._ask(request, partial(self._subscribed, step))

    def _subscribed(self, step: s.SubscribeStep | s.UnsubscribeStep, answered: Answered) -> None:
        on = isinstance(step, s.SubscribeStep)
        self._book.subscriptions.append(
            Subscribing(
                handle=self._who,
                terminal=step.terminal,
                span=answered.span,
                done=answered.is_done,
                on=on,
                pattern=step.pattern if isinstance(step, s.SubscribeStep) else None,
                only_failures=isinstance(step, s.SubscribeStep) and step.only_failures,
            )
        )

    async def spawn(self, step: s.SpawnStep) -> None:
        request = api.SpawnTerminal(
            name=step.terminal,
            shell=s.BASH,
            env={HERE: step.terminal},
            from_handle=self._who,
        )
        await self._ask(request, partial(self._changed, "spawn", step.terminal))

    async def close(self, step: s.CloseStep) -> None:
        request = api.CloseTerminal(name=step.terminal, purge=step.purge, from_handle=self._who)
        kind: ChangeKind = "purge" if step.purge else "close"
        self._find_id(step.terminal)
        await self._ask(request, partial(self._changed, kind, step.terminal))

    def _changed(self, kind: ChangeKind, terminal: str, answered: Answered) -> None:
        done = answered.is_done
        known = self._find_id(terminal) if kind == "spawn" else None
        self._book.changes.append(
            Change(
                kind=kind,
                terminal=terminal,
                span=answered.span,
                done=done,
                id=known if done else None,
            )
        )

    async def list(self, step: s.ListStep) -> None:
        answered = await self._ask(api.ListTerminals(from_handle=self._who))
        if answered.value is not None:
            names = tuple(info.name for info in answered.value.result)
            self._book.listings.append(Listing(span=answered.span, terminals=names))


_DOERS: dict[type[s.Step], Callable[[StepPlayer, Any], Awaitable[None]]] = {
    s.RunStep: StepPlayer.run,
    s.OpenQuoteStep: StepPlayer.open_quote,
    s.NothingStep: StepPlayer.nothing,
    s.TypeStep: StepPlayer.type,
    s.EraseStep: StepPlayer.erase,
    s.TypeAheadStep: StepPlayer.type_ahead,
    s.InterruptStep: StepPlayer.interrupt,
    s.BroadcastStep: StepPlayer.broadcast,
    s.SubscribeStep: StepPlayer.subscribe,
    s.UnsubscribeStep: StepPlayer.unsubscribe,
    s.SpawnStep: StepPlayer.spawn,
    s.CloseStep: StepPlayer.close,
    s.ListStep: StepPlayer.list,
    s.ReadRecordsStep: StepPlayer.read_records,
    s.ReadOutputStep: StepPlayer.read_output,
    s.WaitStep: StepPlayer.wait,
    s.ScreenStep: StepPlayer.screen,
    s.ResizeStep: StepPlayer.resize,
    s.HandoffStep: StepPlayer.hand_off,
    s.InboxStep: StepPlayer.inbox,
}
