"""The rules of workflows without a disk and without processes: a test syncs and plays them."""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

from aegis.protocol.workflows import RunWorkflow
from aegis.workflows import events as e
from aegis.workflows.calls import Outcome, about, digest_of, value
from aegis.workflows.ledger import Fold
from aegis.workflows.records import Call, Workflow
from aegis.workflows.rules import Workflows

A = TypeVar("A")

NOW = 1_779_458_605.0


def workflow_id(number: int) -> str:
    return f"{number:026d}"


class Machine:
    """The rules, with the files of their workflows and the actions of the last event.

    With ``syncs`` each line and each meta is durable at once.
    """

    def __init__(self, *, syncs: bool = True) -> None:
        self.syncs = syncs
        self.now = NOW
        self.count = 0
        self.metas: dict[str, Workflow] = {}
        self.ledgers: dict[str, list[dict[str, object]]] = {}
        self.unsynced: list[e.Write | e.StoreMeta] = []
        self.done: list[e.Action] = []
        self.begin()

    def begin(self) -> list[e.Action]:
        """Begin a life of the daemon with what is in the files."""
        self.rules, self.unsynced = Workflows(), []
        loaded = []
        for id_, meta in self.metas.items():
            if meta.is_settled:
                loaded.append(e.Loaded(workflow=meta, is_marked=True))
            else:
                fold = self.fold(id_)
                loaded.append(e.Loaded(workflow=fold.workflow, calls=fold.calls))
        return self.send(e.Recovering(workflows=loaded))

    def fold(self, id_: str) -> Fold:
        given = {each: getattr(self.metas[id_], each) for each in GIVEN}
        fold = Fold(Workflow(**given))
        for line in self.ledgers.get(id_, []):
            fold.apply(line)
        assert fold.skipped == 0
        return fold

    def journal(self, id_: str) -> dict[str, Call]:
        return self.fold(id_).calls

    def send(self, event: e.Event) -> list[e.Action]:
        """Send an event; return its actions, and those of what is synced with it."""
        self.done = [*self._sent(event)]
        while self.syncs and self.unsynced:
            self.done += self.sync()
        return self.done

    def _sent(self, event: e.Event) -> list[e.Action]:
        actions = self.rules.handle(event, self.now)
        self.unsynced += [each for each in actions if isinstance(each, e.Write | e.StoreMeta)]
        return actions

    def sync(self) -> list[e.Action]:
        """Make the oldest line or meta durable."""
        first = self.unsynced.pop(0)
        if isinstance(first, e.StoreMeta):
            self.metas[first.workflow.id] = first.workflow
            return self._sent(e.MetaStored(id=first.workflow.id))
        self.ledgers.setdefault(first.id, []).append(dict(first.append.line))
        return self._sent(e.Synced(number=first.append.number))

    def refuse(self, id_: str) -> list[e.Action]:
        """Let the disk refuse all lines of a workflow that are not synced."""
        kept = [each for each in self.unsynced if not isinstance(each, e.Write) or each.id != id_]
        self.unsynced = kept
        self.done = self._sent(e.Refused(id=id_, sentence="the disk is full"))
        return self.done

    # Clients.

    def start(self, name: str = "work", *, sender: str = "human", **fields: Any) -> str:
        """Run a workflow; return the id that it has if it is new."""
        self.count += 1
        request = RunWorkflow(name=name, **fields)
        starting = e.Starting(
            request=request,
            id=workflow_id(self.count),
            sender=sender,
            file="plugin",
            caller=self.count,
        )
        self.send(starting)
        return workflow_id(self.count)

    def cancel(self, id_: str, by: str | None = None) -> None:
        self.count += 1
        self.send(e.Cancelling(id=id_, by=by, caller=self.count))

    def reopen(self, id_: str, *, from_beginning: bool = False) -> None:
        self.count += 1
        fold = self.fold(id_)
        loaded = e.Loaded(workflow=fold.workflow, calls=fold.calls)
        self.send(e.Reopening(loaded=loaded, from_beginning=from_beginning, caller=self.count))

    # Processes.

    def run(self, id_: str) -> int:
        return self.workflow(id_).runs

    def calls(self, id_: str, position: str, call: str = "step", **more: Any) -> None:
        retry = more.pop("retry", False)
        arguments = more or {"name": f"s{position}"}
        self.send(
            e.Called(
                id=id_,
                run=self.run(id_),
                position=position,
                name=call,
                arguments=arguments,
                digest=digest_of(call, arguments),
                about=about(call, arguments),
                retry=retry,
            )
        )

    def does(self, id_: str, position: str, outcome: Outcome | None = None) -> None:
        found = value("did") if outcome is None else outcome
        self.send(e.Done(id=id_, run=self.run(id_), position=position, outcome=found))

    def returns(self, id_: str, result: str = '"done"') -> None:
        self.send(e.Returned(id=id_, run=self.run(id_), end="completed", result=result))

    def dies(self, id_: str, *, is_final: bool = False) -> None:
        ended = e.RunEnded(id=id_, run=self.run(id_), reason="it was killed", is_final=is_final)
        self.send(ended)

    def answers(self, call_id: str, text: str = "yes") -> None:
        self.count += 1
        self.send(e.Answered(call_id=call_id, outcome=value(text), caller=self.count))

    def settles(self, id_: str) -> None:
        self.send(e.Settled(id=id_))

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.send(e.Tick())

    # Looking.

    def workflow(self, id_: str) -> Workflow:
        return self.rules.store.workflow(id_)

    def kinds(self, id_: str) -> list[object]:
        return [each["kind"] for each in self.ledgers.get(id_, [])]

    def actions(self, kind: type[A]) -> list[A]:
        """Return the actions of this kind that followed from the last event."""
        return [each for each in self.done if isinstance(each, kind)]


GIVEN = ("id", "name", "file", "kwargs", "sender", "callback", "key", "started")

assert set(GIVEN) <= {each.name for each in attrs.fields(Workflow)}
