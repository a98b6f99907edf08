"""The rules of groups: a state machine that knows neither disk nor sessions. Pure.

``handle`` takes one event and returns the actions that follow, in order. A line that it writes gets
a number; ``Synced`` with that number says that it is durable. What depends on a line follows then:

    members    → Write(created | forming) → Synced → Form: their sessions are opened
    all open   → Write(formed)            → Synced → the caller gets the group
    one is not → Unform: all are closed   → Write(unformed) → Synced → the caller gets the reason
    an order   → Write(broadcast)         → Synced → the caller gets the id, Follow: each member
    a reply    → Write(ended)             → Synced → the waiters get it; after the last, Notify
    a winner   → Write(cancelled)         → Synced → Withdraw: each loser; the waiters get them
    dissolve   → Write(dissolving)        → Synced → Close → Write(dissolved) → Synced → the caller

A group is in the state ``ledger`` gives it, which changes when a line is durable; but members that
are being started are seen at once, so that a second one joins the same group. The first end of a
member that is durable counts. If the disk refuses, a caller's change is undone, and the caller gets
the reason; replies and other facts are written again later.
"""

from __future__ import annotations

from collections.abc import Iterable

from aegis.clock import utc_now
from aegis.errors import AegisError, InvalidRequest, StorageError
from aegis.groups import checks, ledger
from aegis.groups import events as e
from aegis.groups.briefs import brief
from aegis.groups.group import Broadcast, End, Group, end_of
from aegis.groups.ledger import Line
from aegis.groups.lines import Unsynced
from aegis.groups.state import GroupState
from aegis.groups.views import Shown, group_info, handles_of, replies
from aegis.groups.waits import Waiter, Waiters
from aegis.journal.ledger import Append
from aegis.journal.pending_lines import PendingLines
from aegis.protocol.groups import BroadcastSent
from aegis.turns.watch import TurnOutcome

DECIDED = "another member's reply was taken"
DISSOLVED = "the group was dissolved"


class Groups:
    """All groups of a daemon; ``shown`` returns the current handles of sessions."""

    def __init__(self, shown: Shown = str) -> None:
        self.state = GroupState(shown)
        self._lines: PendingLines[Unsynced] = PendingLines()
        self._waiters = Waiters()
        self._formers: dict[str, int] = {}
        self._not_formed: dict[str, AegisError] = {}
        self._dissolvers: dict[str, list[int]] = {}
        self._ending: dict[tuple[str, str], TurnOutcome | None] = {}
        self._out: list[e.Action] = []

    # Events.

    def handle(self, event: e.Event) -> list[e.Action]:
        """Return the actions that follow from ``event``."""
        self._out = []
        try:
            self._take(event)
        except AegisError as error:
            caller = getattr(event, "caller", None)
            assert caller is not None, "only a client's event is refused"
            self._out.append(e.Fail(caller=caller, error=error))
        return self._out

    def _take(self, event: e.Event) -> None:
        match event:
            case e.Recovering(ledgers=ledgers):
                self._recover(ledgers)
            case e.Synced(number=number):
                self._synced(self._lines.synced(number))
            case e.Refused():
                self._refused(event)
            case e.Again():
                for address in self._lines.refused_ledgers:
                    self._put(self._lines.again(address))
            case e.Formed() | e.NotFormed() | e.Unformed():
                self._of_forming(event)
            case e.Ended() | e.Withdrawn() | e.Notified() | e.Closed():
                group = self.state.groups.get(event.group)
                if group is not None:
                    self._of_members(event, group)
            case _:
                self._of_client(event)

    def _of_client(
        self,
        event: e.Spawning | e.Broadcasting | e.Waiting | e.GivingUp | e.Dissolving | e.Renaming,
    ) -> None:
        match event:
            case e.Spawning():
                self._spawn(event)
            case e.Broadcasting():
                self._broadcast(event)
            case e.Waiting():
                self._wait(event)
            case e.GivingUp(caller=caller):
                waiter = self._waiters.leave(caller)
                if waiter is not None:
                    self._serve(waiter, timed_out=True)
            case e.Dissolving():
                self._dissolve(event)
            case e.Renaming():
                self._rename(event)

    # Members.

    def check_spawn(self, event: e.Spawning) -> Group | None:
        """Return the group that members are to join; None: it is new. Raises ``AegisError``."""
        group, wanted = self.state.find(event.name), len(event.forming.members)
        if group is not None and event.must_be_new:
            raise checks.exists_already(group)
        refusal = checks.refusal_of_members(group, len(self.state.groups), wanted)
        if refusal is not None:
            raise refusal
        if group is None:
            self.state.check_name(event.name)
        else:
            self._check_open(group)
        return group

    def _spawn(self, event: e.Spawning) -> None:
        group, forming = self.check_spawn(event), event.forming
        self._formers[forming.id] = event.caller
        if group is None:
            group = Group(
                id=event.id,
                address=event.name,
                name=event.name,
                owner=event.owner,
                created=utc_now(),
            )
            line = ledger.created_line(group, forming)
        else:
            line = ledger.forming_line(group, forming)
        self.state.put(ledger.changed(group, ledger.forming_line(group, forming)))
        self._write(group, line)
        self._changed(group)

    def _of_forming(self, event: e.Formed | e.NotFormed | e.Unformed) -> None:
        group = self.state.groups.get(event.group)
        if group is None or event.id not in group.forming:
            return
        match event:
            case e.Formed(members=members):
                self._write(group, ledger.formed_line(group, event.id, members))
            case e.NotFormed(error=error):
                self._not_formed[event.id] = error
                self._out.append(e.Unform(group=group, forming=group.forming[event.id]))
            case e.Unformed():
                self._write(group, ledger.unformed_line(group, event.id))

    # Broadcasts.

    def _broadcast(self, event: e.Broadcasting) -> None:
        request, group = event.request, self.state.get(event.request.group)
        text, known = brief(request), group.known(request.key, event.sender)
        if known is not None:
            if known.text != text:
                raise checks.other_text(request.key or "", known)
            sent = BroadcastSent(broadcast_id=known.id)
            self._out.append(e.Return(caller=event.caller, value=sent))
            return
        self._check_open(group)
        refusal = checks.refusal_of_broadcast(request, group, self.state.shown)
        if refusal is not None:
            raise refusal
        broadcast = Broadcast(
            id=event.id,
            sender=event.sender,
            callback=request.callback,
            key=request.key,
            objective=request.objective,
            text=text,
            at=utc_now(),
            members=tuple(group.members),
        )
        if any(each.kind == "broadcast" and each.group == group.id for each in self._lines):
            raise checks.in_flight(group, broadcast, self.state.shown)
        self._write(group, ledger.broadcast_line(group, broadcast), [event.caller])

    def _of_members(
        self, event: e.Ended | e.Withdrawn | e.Notified | e.Closed, group: Group
    ) -> None:
        match event:
            case e.Ended(broadcast=id_, member=member, outcome=outcome):
                self._end(group, id_, member, outcome)
            case e.Withdrawn(broadcast=id_, member=member):
                self._write(group, ledger.withdrawn_line(group, id_, member))
            case e.Notified(broadcast=id_):
                self._write(group, ledger.notified_line(group, id_))
            case e.Closed():
                self._write(group, ledger.dissolved_line(group))

    def _end(self, group: Group, id_: str, member: str, outcome: TurnOutcome) -> None:
        """Write the end of a member in a broadcast, unless one is stored or being written."""
        broadcast = group.broadcasts.get(id_)
        if broadcast is None or member in broadcast.ends:
            return
        if (id_, member) in self._ending:
            self._ending[id_, member] = outcome  # it counts if the line is refused
            return
        self._ending[id_, member] = None
        self._write(group, ledger.ended_line(group, id_, member, end_of(outcome, utc_now())))

    def _drop(self, group: Group, broadcast: Broadcast, reason: str, *, withdraw: bool) -> None:
        """Write that the members without an end are not awaited any more."""
        losers = [each for each in broadcast.pending if (broadcast.id, each) not in self._ending]
        if not losers:
            return
        for each in losers:
            self._ending[broadcast.id, each] = None
        end = End(
            end="cancelled", at=utc_now(), reason=reason, is_dropped=True, is_withdrawn=not withdraw
        )
        self._write(group, ledger.cancelled_line(group, broadcast.id, losers, end))

    # Waits.

    def _wait(self, event: e.Waiting) -> None:
        group = self.state.get(event.request.group)
        broadcast = self.state.broadcast(group, event.request.broadcast_id)
        self._waiters.add(Waiter(event.caller, group.id, broadcast.id, event.request))
        self._look(group, broadcast)

    def _look(self, group: Group, broadcast: Broadcast) -> None:
        """Answer the waiters for which there are replies enough; drop the losers of a winner."""
        for waiter in self._waiters.of(broadcast.id):
            if waiter.is_served(broadcast):
                self._waiters.leave(waiter.caller)
                self._serve(waiter, timed_out=False)
            elif waiter.cancels and broadcast.replied:
                self._drop(group, broadcast, DECIDED, withdraw=True)

    def _serve(self, waiter: Waiter, *, timed_out: bool) -> None:
        group = self.state.groups.get(waiter.group)
        broadcast = None if group is None else group.broadcasts.get(waiter.broadcast)
        if group is None or broadcast is None:
            error = InvalidRequest(f"broadcast {waiter.broadcast} is not kept any more")
            self._out.append(e.Fail(caller=waiter.caller, error=error))
            return
        shown = self.state.shown
        value = replies(group, broadcast, shown, waiter.reducer, timed_out=timed_out)
        handles = handles_of(group, broadcast, shown)
        ask = {handles[each]: each for each in broadcast.pending}
        self._out.append(e.Return(caller=waiter.caller, value=value, ask=ask))

    # The group as a whole.

    def _dissolve(self, event: e.Dissolving) -> None:
        group = self.state.get(event.name)
        if group.forming:
            raise checks.still_forming(group)
        waiting = self._dissolvers.setdefault(group.id, [])
        waiting.append(event.caller)
        if len(waiting) == 1 and group.phase == "open":
            self._write(group, ledger.dissolving_line(group))

    def _rename(self, event: e.Renaming) -> None:
        group = self.state.get(event.name)
        self._check_open(group)
        self.state.check_name(event.new_name, of=group.id)
        if event.new_name == group.name:
            self._answer(group, [event.caller])
            return
        self.state.reserved[group.id] = event.new_name
        self._write(group, ledger.renamed_line(group, event.new_name), [event.caller])

    def _check_open(self, group: Group) -> None:
        """Raise ``Unavailable`` if a group is being dissolved, or that is being written."""
        if group.phase != "open" or group.id in self._dissolvers:
            raise checks.is_dissolving(group)

    # The ledgers.

    def _write(self, group: Group, fields: Line, callers: Iterable[int] = ()) -> None:
        line = Unsynced(group.address, group.id, fields, [*callers])
        self._put(self._lines.write(line))

    def _put(self, writes: Iterable[tuple[str, Append]]) -> None:
        self._out += [e.Write(address=address, append=append) for address, append in writes]

    def _synced(self, line: Unsynced) -> None:
        before = self.state.groups.get(line.group)
        if before is None:
            return
        group = before
        if line.kind not in ("created", "forming"):
            group = ledger.changed(before, line.fields)
            self.state.put(group)
        self._changed(group)
        match line.kind:
            case "created" | "forming" | "formed" | "unformed":
                self._forming_synced(line, group)
            case "broadcast":
                self._broadcast_synced(line, group)
            case "ended" | "cancelled":
                self._ends_synced(line, before, group)
            case "renamed":
                self.state.reserved.pop(group.id, None)
                self._answer(group, line.callers)
            case "dissolving":
                self._close(group)
            case "dissolved":
                self._answer(group, self._dissolvers.pop(group.id, []))
        if group.is_gone:
            self._release(group.address)

    def _close(self, group: Group) -> None:
        """Await no reply any more, and close the members."""
        if group.current is not None:
            self._drop(group, group.current, DISSOLVED, withdraw=False)
        self._out.append(e.Close(group=group))

    def _release(self, address: str) -> None:
        """Close a ledger, unless a group of it is left, or a line of it is being written."""
        groups = [each.address for each in self.state.groups.values()]
        if address not in (*groups, *(each.ledger for each in self._lines)):
            self._out.append(e.Release(address=address))

    def _forming_synced(self, line: Unsynced, group: Group) -> None:
        id_ = line.forming
        match line.kind:
            case "created" | "forming":
                self._out.append(e.Form(group=group, forming=group.forming[id_]))
            case "formed":
                self._answer(group, self._former(id_))
            case "unformed":
                error = self._not_formed.pop(id_)
                self._out += [e.Fail(caller=each, error=error) for each in self._former(id_)]

    def _broadcast_synced(self, line: Unsynced, group: Group) -> None:
        broadcast = group.newest
        assert broadcast is not None
        sent = BroadcastSent(broadcast_id=broadcast.id)
        self._out += [e.Return(caller=each, value=sent) for each in line.callers]
        self._follow(group, broadcast)

    def _ends_synced(self, line: Unsynced, before: Group, group: Group) -> None:
        id_ = str(line.fields["id"])
        for member in group.broadcasts[id_].ends:
            self._ending.pop((id_, member), None)
        broadcast, was = group.broadcasts[id_], before.broadcasts[id_]
        self._withdraw(
            group, broadcast, [each for each in broadcast.to_withdraw if each in was.pending]
        )
        self._look(group, broadcast)
        if broadcast.is_over and not was.is_over and broadcast.callback:
            self._out.append(e.Notify(group=group, broadcast=id_))

    def _follow(self, group: Group, broadcast: Broadcast) -> None:
        self._out += [
            e.Follow(group=group, broadcast=broadcast.id, member=group.members[each])
            for each in broadcast.pending
        ]

    def _withdraw(self, group: Group, broadcast: Broadcast, members: Iterable[str]) -> None:
        self._out += [
            e.Withdraw(group=group, broadcast=broadcast.id, member=group.members[each])
            for each in members
        ]

    def _answer(self, group: Group, callers: Iterable[int]) -> None:
        info = group_info(group, self.state.shown)
        self._out += [e.Return(caller=each, value=info) for each in callers]

    def _former(self, forming: str) -> list[int]:
        """Return the caller that has members started; none after a restart."""
        return [self._formers.pop(forming)] if forming in self._formers else []

    def _changed(self, group: Group) -> None:
        self._out.append(e.Changed(group=group.id))

    # A disk that refuses.

    def _refused(self, event: e.Refused) -> None:
        error = StorageError(event.sentence)
        facts: list[Unsynced] = []
        for line in reversed(self._lines.refused(event.address)):
            callers = self._undone(line)
            if callers is None:
                facts.insert(0, line)
            else:
                self._out += [e.Fail(caller=each, error=error) for each in callers]
        if facts:
            self._lines.keep(facts)
            self._out.append(e.WriteAgain())

    def _undone(self, line: Unsynced) -> list[int] | None:
        """Undo what depends on a line; return the callers whose change it was.

        None for a fact, which is written all the same.
        """
        group = self.state.groups.get(line.group)
        match line.kind:
            case "created" | "forming" if group is not None:
                id_ = line.forming
                self.state.put(ledger.changed(group, ledger.unformed_line(group, id_)))
                self._changed(group)
                return self._former(id_)
            case "broadcast":
                return line.callers
            case "renamed":
                self.state.reserved.pop(line.group, None)
                return line.callers
            case "dissolving":
                return self._dissolvers.pop(line.group, [])
            case "cancelled" if group is not None and group.phase == "open":
                return self._not_dropped(line, group)
        return None

    def _not_dropped(self, line: Unsynced, group: Group) -> list[int]:
        """Await the losers of a broadcast again; return the callers that wanted them dropped."""
        id_, members = str(line.fields["id"]), line.fields["members"]
        assert isinstance(members, list)
        outcomes = [(each, self._ending.pop((id_, each), None)) for each in members]
        callers = [each.caller for each in self._waiters.of(id_) if each.cancels]
        for each in callers:
            self._waiters.leave(each)
        for member, outcome in outcomes:
            if outcome is not None:
                self._end(group, id_, member, outcome)
        return callers

    # Recovery.

    def _recover(self, ledgers: Iterable[e.Loaded]) -> None:
        for loaded in ledgers:
            self.state.load(loaded)
        for group in self.state.groups.values():
            self._out += [e.Form(group=group, forming=each) for each in group.forming.values()]
            if group.phase == "dissolving":
                self._close(group)
            for broadcast in group.broadcasts.values():
                if group.phase == "open":
                    self._follow(group, broadcast)
                self._withdraw(group, broadcast, broadcast.to_withdraw)
                if broadcast.is_over and broadcast.callback and not broadcast.is_notified:
                    self._out.append(e.Notify(group=group, broadcast=broadcast.id))
