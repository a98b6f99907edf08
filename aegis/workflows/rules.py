"""The rules of workflows: a state machine that knows neither disk nor processes. Pure.

``handle`` takes one event and returns the actions that follow, in order. A line that it writes gets
a number; ``Synced`` with that number says that it is durable. What depends on a line follows then:

    a start    → StoreMeta → MetaStored → the caller gets the id, Write(run)
    Write(run) → Synced → Launch: a process gets the journal and runs the function
    a call     → Write(begun) → Synced → Perform or Proceed → Done → Write(ended) → Synced → Deliver
    its end    → Write(returned) → Synced → EndRun, Settle → Settled → Write(settled) → StoreMeta

A line that the disk refused is a fact, and is written again later: until then nothing follows from
it. Only the change of a client is undone. A process that ends without a result is started again.
"""

from __future__ import annotations

from typing import Any

from aegis.errors import AegisError, Forbidden, InvalidRequest, StorageError
from aegis.protocol.naming import name_key
from aegis.protocol.requests import AnswerReceived
from aegis.protocol.workflows import WorkflowStarted
from aegis.shown_text import shortened
from aegis.workflows import events as e
from aegis.workflows import ledger
from aegis.workflows.book import AGAIN_S, Book, WrittenLine, marked
from aegis.workflows.calls import (
    IN_PROCESS,
    REPEATABLE,
    Outcome,
    cancelled,
    changed,
    failure,
    interrupted,
    is_cancelled,
    value,
)
from aegis.workflows.records import MAX_ERROR_CHARS, Call, End, Workflow
from aegis.workflows.starting import (
    new_workflow,
    other_arguments,
    refusal_of,
    refusal_of_call,
    refusal_of_reopening,
    session_of,
)
from aegis.workflows.store import Live, WorkflowStore

RELAUNCH_S = 1.0
"""Seconds until a process that ended is started again; twice as long after the second."""

MAX_DEATHS = 3
"""Processes of a workflow in a row that may end without the end of a call."""


class Workflows:
    """All workflows of a daemon."""

    def __init__(self) -> None:
        self.store = WorkflowStore()
        self._book = Book(self.store)

    def handle(self, event: e.Event, now: float) -> list[e.Action]:
        """Return the actions that follow from ``event`` at ``now``, in seconds since 1970."""
        self._book.begin(now)
        try:
            self._take(event)
        except AegisError as error:
            caller = getattr(event, "caller", None)
            assert caller is not None, "only a client's event is refused"
            self._book.out.append(e.Fail(caller=caller, error=error))
        return self._book.out

    def _take(self, event: e.Event) -> None:
        match event:
            case e.Recovering(workflows=workflows):
                for each in workflows:
                    self._recover(each)
            case e.Tick():
                self._tick()
            case e.Synced() | e.Refused() | e.MetaStored() | e.MetaRefused():
                self._of_disk(event)
            case e.Starting() | e.Cancelling() | e.Reopening() | e.Answered():
                self._of_person(event)
            case e.Called() | e.Left() | e.Done() | e.Returned() | e.RunEnded():
                live = self.store.live.get(event.id)
                if live is not None and live.is_up and event.run == live.workflow.runs:
                    self._of_run(live, event)
            case e.Settled(id=id_) if id_ in self.store.live:
                self._book.change(self.store.live[id_], ledger.settled_line())

    def _of_disk(self, event: e.Synced | e.Refused | e.MetaStored | e.MetaRefused) -> None:
        match event:
            case e.Synced(number=number):
                self._synced(self._book.synced(number))
            case e.Refused():
                self._refuse(event)
            case e.MetaStored() | e.MetaRefused():
                self._meta(event)

    # Clients.

    def _of_person(self, event: e.Starting | e.Cancelling | e.Reopening | e.Answered) -> None:
        match event:
            case e.Starting():
                self._start(event)
            case e.Cancelling():
                self._cancel(event)
            case e.Reopening():
                self._reopen(event)
            case e.Answered():
                self._answered(event)

    def _start(self, event: e.Starting) -> None:
        request = event.request
        known = self.store.of_key(event.sender, request.key)
        if known is not None:
            if (known.name, known.kwargs) != (request.name, request.kwargs):
                raise other_arguments(request, known)
            live = self.store.live.get(known.id)
            if live is not None and not live.is_stored:
                live.callers.append(event.caller)
            else:
                self._return_started(known, [event.caller])
            return
        refusal = refusal_of(request, self.store.running)
        if refusal is not None:
            raise refusal
        workflow = new_workflow(event, self._book.moment)
        self.store.add(Live(workflow=workflow, callers=[event.caller]))
        self._book.out.append(e.StoreMeta(workflow=workflow))

    def _cancel(self, event: e.Cancelling) -> None:
        workflow = self.store.workflow(event.id)
        if event.by is not None and name_key(workflow.sender) != name_key(f"agent:{event.by}"):
            raise Forbidden(
                f"workflow {workflow.id} was started by {workflow.sender}, who may cancel it, as a "
                "person may"
            )
        live = self.store.live.get(event.id)
        if live is None or workflow.has_ended or live.ending:
            phase = workflow.phase if workflow.has_ended else "ending"
            raise InvalidRequest(f"workflow {workflow.id} has ended already: it is {phase}")
        by = "human" if event.by is None else f"agent:{event.by}"
        self._end(live, "cancelled", error=f"it was cancelled by {by}", callers=[event.caller])

    def _reopen(self, event: e.Reopening) -> None:
        workflow = event.loaded.workflow
        known = self.store.workflow(workflow.id)
        refusal = refusal_of_reopening(
            known, is_live=known.id in self.store.live, running=self.store.running
        )
        if refusal is not None:
            raise refusal
        # With the outcomes, by which the line decides what may be done again.
        live = Live(workflow=workflow, calls={**event.loaded.calls}, is_stored=True, before=known)
        self.store.add(live)
        line = ledger.retried_line() if event.from_beginning else ledger.resumed_line()
        self._book.write(live, line, [event.caller])

    def _answered(self, event: e.Answered) -> None:
        found, reason = self.store.call(event.call_id), "its workflow has ended"
        if found is None:
            reason = "its workflow has ended, or was run again from its beginning"
        elif is_cancelled(found[1].outcome):
            reason = "its workflow did not wait for the answer any longer"
        elif found[1].outcome is not None:
            reason = ""
        elif not found[0].ending and not found[0].workflow.has_ended:
            self._finish(*found, event.outcome, [event.caller])
            return
        received = AnswerReceived(applied=not reason, reason=reason)
        self._book.out.append(e.Return(caller=event.caller, value=received))

    # Runs.

    def _of_run(self, live: Live, event: e.RunEvent) -> None:
        if live.ending:
            live.held.append(event)  # until its end is durable, or undone
            return
        match event:
            case e.RunEnded():
                self._died(live, event)
            case e.Called():
                self._called(live, event)
            case e.Left():
                self._left(live, event)
            case e.Done(position=position, outcome=outcome):
                call = live.calls.get(position)
                if call is not None and call.outcome is None and position in live.asked:
                    self._finish(live, call, outcome)
            case e.Returned(end=end, result=result, error=error):
                self._end(live, end, result=result, error=error)

    def _left(self, live: Live, event: e.Left) -> None:
        """End a call that the function has cancelled, unless its outcome is on its way."""
        call = live.calls.get(event.position)
        if call is None or call.outcome is not None or event.position not in live.asked:
            return
        self._book.out.append(e.Abandon(id=live.workflow.id, position=event.position))
        self._finish(live, call, cancelled(event.position, call.about), moment=event.moment)

    def _called(self, live: Live, event: e.Called) -> None:
        position, call = event.position, live.calls.get(event.position)
        if position in live.asked:
            message = f"call {position} is made twice: run calls at the same time with parallel"
            self._book.deliver(live, position, failure("CallFailed", message))
            return
        live.asked[position] = event.arguments
        self._book.changed(live)
        if call is None:
            self._begin(live, event)
        elif call.digest != event.digest:
            del live.asked[position]
            self._book.deliver(live, position, changed(position, call.about, event.about))
        elif call.outcome is not None:
            if self._book.is_ending(live, position):
                return  # a person has just answered: it is delivered once it is durable
            del live.asked[position]
            # The process has the outcomes from before its start: it asks for a later one only.
            ended = failure("CallFailed", f"call {position} has ended before")
            self._book.deliver(live, position, live.late.get(position, ended))
        elif call.name in REPEATABLE:
            if event.moment.seen:
                self._book.change(live, ledger.seen_line(event.moment, self._book.now))
            self._perform(live, position, is_new=False)
        elif event.retry or call.may_repeat:
            self._write_begun(live, event)
        else:
            self._finish(live, call, interrupted(position, call.about))

    def _begin(self, live: Live, event: e.Called) -> None:
        refusal = refusal_of_call(len(live.calls), live.size)
        if refusal is not None:
            del live.asked[event.position]
            self._book.deliver(live, event.position, failure("CallFailed", refusal))
            return
        self._write_begun(live, event)
        if event.name == "checkpoint":
            call = live.calls[event.position]
            named = {"checkpoint": event.arguments["name"], "payload": event.arguments["payload"]}
            self._finish(live, call, value(named))

    def _write_begun(self, live: Live, event: e.Called) -> None:
        call = Call(
            position=event.position, name=event.name, digest=event.digest, about=event.about
        )
        line = ledger.begun_line(call, session_of(live.workflow, event))
        self._book.change(live, {**line, **ledger.seen_fields(event.moment, self._book.now)})

    def _perform(self, live: Live, position: str, *, is_new: bool) -> None:
        call, arguments = live.calls[position], live.asked[position]
        if call.name in IN_PROCESS:
            self._book.out.append(e.Proceed(id=live.workflow.id, position=position))
            return
        named: dict[str, Any] = {"name": call.name, "arguments": arguments, "is_new": is_new}
        self._book.out.append(e.Perform(workflow=live.workflow, position=position, **named))

    def _finish(
        self,
        live: Live,
        call: Call,
        outcome: Outcome,
        callers: list[int] | None = None,
        moment: ledger.Moment = ledger.NOTHING_SEEN,
    ) -> None:
        live.deaths = 0
        line = ledger.ended_line(call.position, outcome)
        self._book.change(live, {**line, **ledger.seen_fields(moment, self._book.now)}, callers)

    def _died(self, live: Live, event: e.RunEnded) -> None:
        live.is_up = False
        live.asked.clear()
        live.deaths += 1
        # The next process makes the calls again that the daemon was carrying out for this one.
        self._book.out.append(e.EndRun(id=live.workflow.id))
        if event.is_final:
            self._end(live, "failed", error=event.reason)
        elif live.deaths >= MAX_DEATHS:
            error = f"its process ended {live.deaths} times without progress: {event.reason}"
            self._end(live, "failed", error=error)
        else:
            live.problem = f"its process will be started again: {event.reason}"
            self._book.wake(RELAUNCH_S * 2 ** (live.deaths - 1), f"run {live.workflow.id}")
            self._book.changed(live)

    def _launch(self, live: Live) -> None:
        """Start a process, unless one runs or will, or the workflow ends."""
        if live.is_up or live.launching or live.ending or live.workflow.has_ended:
            return
        live.problem, live.launching, live.reached = "", True, False
        self._book.change(live, ledger.run_line(live.workflow.runs + 1))

    # The end.

    def _end(
        self,
        live: Live,
        end: End,
        *,
        result: str | None = None,
        error: str | None = None,
        callers: list[int] | None = None,
    ) -> None:
        """Write the end of a workflow; the first that is written wins."""
        live.ending = True
        error = None if error is None else shortened(error, MAX_ERROR_CHARS)
        line = ledger.returned_line(end, self._book.moment, result=result, error=error)
        self._book.write(live, line, callers)

    # Durable lines.

    def _synced(self, line: WrittenLine) -> None:
        live = self.store.live.get(line.id)
        if live is None:
            return
        live.unsynced -= 1
        match line.fields:
            case {"kind": "begun", "position": str(position)}:
                self._begun(live, position)
            case {"kind": "ended", "position": str(position), "outcome": dict(outcome)}:
                self._call_ended(live, position, outcome, line.callers)
            case {"kind": "returned"}:
                self._book.apply(live, line.fields)
                self._ended(live)
                self._return_info(live.workflow.id, line.callers)
            case {"kind": "resumed" | "retried"}:
                # Only now: before, the end that was stored last holds.
                self._book.apply(live, line.fields)
                self._book.out.append(e.StoreMeta(workflow=live.workflow))
                live.callers += line.callers
            case {"kind": "settled"}:
                self._book.out.append(e.StoreMeta(workflow=live.workflow))
            case {"kind": "run", "number": int(number)} if number == live.workflow.runs:
                live.reached = True
        self._launch_when_synced(live)

    def _launch_when_synced(self, live: Live) -> None:
        """Start the process of the newest run once the journal that it reads is complete."""
        if live.launching and live.reached and not live.unsynced and not live.workflow.has_ended:
            live.launching, live.is_up = False, True
            live.late.clear()
            self._book.out.append(e.Launch(workflow=live.workflow))

    def _begun(self, live: Live, position: str) -> None:
        call = live.calls.get(position)
        is_asked = live.is_up and not live.ending and position in live.asked
        if is_asked and call is not None and call.outcome is None:
            self._perform(live, position, is_new=True)

    def _call_ended(self, live: Live, position: str, outcome: Outcome, callers: list[int]) -> None:
        self._withdraw(live, position)
        for caller in callers:
            self._book.out.append(e.Return(caller=caller, value=AnswerReceived(applied=True)))
        if live.asked.pop(position, None) is not None:
            self._book.deliver(live, position, outcome)
        elif live.is_up:
            live.late[position] = outcome
        self._book.changed(live)

    def _withdraw(self, live: Live, position: str) -> None:
        """Withdraw the question of a call that was cancelled."""
        call = live.calls.get(position)
        if call is not None and call.name == "ask_human" and is_cancelled(call.outcome):
            self._book.out.append(e.Withdraw(workflow=live.workflow, position=position))

    def _ended(self, live: Live) -> None:
        """Go on after the end of a workflow is durable."""
        live.ending, live.is_up, live.launching = False, False, False
        live.asked.clear()
        live.held.clear()
        self._book.out.append(e.EndRun(id=live.workflow.id))
        self._book.out.append(e.Settle(workflow=live.workflow))

    # The meta.

    def _meta(self, event: e.MetaStored | e.MetaRefused) -> None:
        live = self.store.live.get(event.id)
        if live is None:
            return
        callers, live.callers = live.callers, []
        if isinstance(event, e.MetaStored):
            if live.workflow.is_settled:
                self._settled(live)
                return
            if live.is_stored:
                self._return_info(event.id, callers)
            else:
                live.is_stored = True
                self._return_started(live.workflow, callers)
            self._launch(live)
        elif not live.is_stored:
            self.store.remove(event.id)
            self._book.out += [e.Drop(id=event.id), *self._failures(callers, event.sentence)]
        else:
            live.callers = callers
            live.problem = event.sentence
            self._book.wake(AGAIN_S, f"meta {event.id}")
            self._book.changed(live)

    def _settled(self, live: Live) -> None:
        id_ = live.workflow.id
        self._book.out.append(e.Release(id=id_))
        self._book.out += [e.Drop(id=each) for each in self.store.settle(live.workflow)]
        self._book.out.append(e.Changed(id=id_))

    def _return_started(self, workflow: Workflow, callers: list[int]) -> None:
        started = WorkflowStarted(workflow_id=workflow.id, status=workflow.phase)
        self._book.out += [e.Return(caller=each, value=started) for each in callers]

    def _return_info(self, id_: str, callers: list[int]) -> None:
        self._book.out += [e.Return(caller=each, value=self.store.info(id_)) for each in callers]

    @staticmethod
    def _failures(callers: list[int], sentence: str) -> list[e.Action]:
        return [e.Fail(caller=each, error=StorageError(sentence)) for each in callers]

    # A disk that refuses.

    def _refuse(self, event: e.Refused) -> None:
        lines, live = self._book.refused(event.id), self.store.live.get(event.id)
        if live is None:
            return
        kept = []
        for line in lines:
            if line.callers and self._undo(live, line, event.sentence):
                live.unsynced -= 1
            else:
                kept.append(line)
        if event.id in self.store.live:
            self._book.keep(live, kept, event.sentence)
            self._launch_when_synced(live)

    def _undo(self, live: Live, line: WrittenLine, sentence: str) -> bool:
        """Undo the change of a client; False for a fact, to be written all the same."""
        match line.fields:
            case {"kind": "returned"}:
                live.ending, held, live.held = False, live.held, []
                for event in held:
                    self._of_run(live, event)
                self._launch(live)
            case {"kind": "resumed" | "retried"}:
                self._book.out.append(e.Release(id=live.workflow.id))
                assert live.before is not None
                self.store.settle(live.before)
            case _:
                return False
        self._book.out += self._failures(line.callers, sentence)
        return True

    def _tick(self) -> None:
        for kind, id_ in self._book.due():
            live = self.store.live.get(id_)
            if live is None:
                continue
            if kind == "lines":
                self._book.write_again(live)
            elif kind == "meta":
                self._book.out.append(e.StoreMeta(workflow=live.workflow))
            else:
                self._launch(live)

    # Recovery.

    def _recover(self, loaded: e.Loaded) -> None:
        workflow = loaded.workflow
        if loaded.is_marked:
            self._book.out += [e.Drop(id=each) for each in self.store.settle(workflow)]
            return
        calls = {each: marked(call) for each, call in loaded.calls.items()}
        live = Live(workflow=workflow, calls=calls, is_stored=True, problem=loaded.problem)
        self.store.add(live)
        if loaded.problem:
            return
        if workflow.is_settled:
            self._book.out.append(e.StoreMeta(workflow=workflow))
        elif workflow.has_ended:
            self._book.out.append(e.Settle(workflow=workflow))
        else:
            for position in calls:
                self._withdraw(live, position)  # the daemon may have ended before it was
            self._launch(live)
