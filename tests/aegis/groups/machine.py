"""The rules of groups without a disk and without sessions: a test syncs lines and plays members."""

from __future__ import annotations

from typing import Any, TypeVar

from aegis.errors import AegisError, Unavailable
from aegis.groups import events as e
from aegis.groups.group import Broadcast, Forming, Group, Member
from aegis.groups.ledger import Fold
from aegis.groups.rules import Groups
from aegis.protocol.groups import BroadcastToGroup, GroupReplies, WaitForAll, WaitForAny
from aegis.turns.watch import TurnEnd, TurnOutcome

A = TypeVar("A")


def id_of(number: int) -> str:
    return f"{number:026d}"


class Machine:
    """The rules, with the ledgers of their groups and the actions of the last event.

    With ``syncs`` each line is durable at once.
    """

    def __init__(self, *, syncs: bool = True) -> None:
        self.syncs = syncs
        self.count = 0
        self.ledgers: dict[str, list[dict[str, object]]] = {}
        self.unsynced: list[e.Write] = []
        self.done: list[e.Action] = []
        self.begin()

    def begin(self) -> list[e.Action]:
        """Begin a life of the daemon with what is in the ledgers."""
        self.rules, self.unsynced = Groups(), []
        loaded = [
            e.Loaded(address=each, groups=[*self.fold(each).groups.values()])
            for each in self.ledgers
        ]
        return self.send(e.Recovering(ledgers=loaded))

    def fold(self, address: str) -> Fold:
        fold = Fold(address)
        for line in self.ledgers[address]:
            fold.apply(line)
        assert fold.skipped == 0
        return fold

    def send(self, event: e.Event) -> list[e.Action]:
        """Send an event; return its actions, and those of the lines that are synced with it."""
        self.done = [*self._sent(event)]
        while self.syncs and self.unsynced:
            self.done += self.sync()
        return self.done

    def _sent(self, event: e.Event) -> list[e.Action]:
        actions = self.rules.handle(event)
        self.unsynced += [each for each in actions if isinstance(each, e.Write)]
        return actions

    def sync(self) -> list[e.Action]:
        """Make the oldest line durable."""
        write = self.unsynced.pop(0)
        self.ledgers.setdefault(write.address, []).append(dict(write.append.line))
        return self._sent(e.Synced(number=write.append.number))

    def refuse(self, address: str) -> list[e.Action]:
        """Let the disk refuse all lines of a ledger that are not synced."""
        self.unsynced = [each for each in self.unsynced if each.address != address]
        self.done = self._sent(e.Refused(address=address, sentence="the disk is full"))
        return self.done

    # Clients.

    def spawn(
        self, name: str = "g", members: int = 1, *, mixed: bool = False, by: str | None = None
    ) -> str:
        """Have members started; return the id of these."""
        caller = self._caller()
        sessions = [f"s{caller}-{number}" for number in range(members)]
        new = tuple(Member(session=each, handle="", profile="p") for each in sessions)
        event = e.Spawning(
            name=name,
            id=id_of(caller),
            owner="human" if by is None else f"agent:{by}",
            forming=Forming(id=f"f{caller}", members=new, by=by),
            must_be_new=mixed,
            caller=caller,
        )
        self.send(event)
        return f"f{caller}"

    def form(self, action: e.Form) -> None:
        """Open the sessions of members: their handles are made from the sessions."""
        members = [
            Member(session=each.session, handle=f"h-{each.session}", profile=each.profile)
            for each in action.forming.members
        ]
        self.send(e.Formed(group=action.group.id, id=action.forming.id, members=members))

    def grown(self, name: str = "g", members: int = 3) -> Group:
        """Return a new group whose members have been started."""
        self.spawn(name, members, mixed=True)
        [form] = self.actions(e.Form)
        self.form(form)
        return self.group(name)

    def fails(self, action: e.Form, error: AegisError | None = None) -> None:
        reason = error or Unavailable("no session is left")
        self.send(e.NotFormed(group=action.group.id, id=action.forming.id, error=reason))

    def broadcast(self, name: str = "g", objective: str = "do", **fields: Any) -> str:
        """Give a group an order; return the id that it has if it is new."""
        caller, sender = self._caller(), fields.pop("sender", "human")
        request = BroadcastToGroup(group=name, objective=objective, **fields)
        self.send(e.Broadcasting(request=request, id=id_of(caller), sender=sender, caller=caller))
        return id_of(caller)

    def wait_all(self, name: str = "g", **fields: Any) -> int:
        caller = self._caller()
        self.send(e.Waiting(request=WaitForAll(group=name, **fields), caller=caller))
        return caller

    def wait_any(self, name: str = "g", **fields: Any) -> int:
        caller = self._caller()
        self.send(e.Waiting(request=WaitForAny(group=name, **fields), caller=caller))
        return caller

    def gives_up(self, caller: int) -> None:
        self.send(e.GivingUp(caller=caller))

    def dissolve(self, name: str = "g") -> None:
        self.send(e.Dissolving(name=name, caller=self._caller()))

    def rename(self, name: str, new_name: str) -> None:
        self.send(e.Renaming(name=name, new_name=new_name, caller=self._caller()))

    # Members.

    def replies(self, broadcast: str, member: int, text: str, end: TurnEnd = "completed") -> None:
        """End the turn of a member, by its number, of the group of a broadcast."""
        group = self.group_of(broadcast)
        session = [*group.members][member]
        reason = "" if end == "completed" else f"its turn was {end}"
        outcome = TurnOutcome(end=end, text=text, reason=reason, turn=1, seq=9)
        event = e.Ended(group=group.id, broadcast=broadcast, member=session, outcome=outcome)
        self.send(event)

    # What there is.

    def group(self, name: str = "g") -> Group:
        return self.rules.state.get(name)

    def group_of(self, broadcast: str) -> Group:
        groups = self.rules.state.groups.values()
        return next(each for each in groups if broadcast in each.broadcasts)

    def stored(self, broadcast: str) -> Broadcast:
        return self.group_of(broadcast).broadcasts[broadcast]

    def actions(self, kind: type[A]) -> list[A]:
        """Return the actions of this kind that followed from the last event."""
        return [each for each in self.done if isinstance(each, kind)]

    def refusal(self) -> str:
        """Return why the last client was refused."""
        [failed] = self.actions(e.Fail)
        return str(failed.error)

    def returned(self) -> GroupReplies:
        """Return the replies that the last event answered a caller with."""
        [found] = self.actions(e.Return)
        assert isinstance(found.value, GroupReplies)
        return found.value

    def kinds(self, address: str = "g") -> list[object]:
        return [each["kind"] for each in self.ledgers.get(address, [])]

    def _caller(self) -> int:
        self.count += 1
        return self.count
