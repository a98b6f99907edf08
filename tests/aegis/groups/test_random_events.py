"""Random events for the rules of groups, with crashes and a disk that refuses, against promises."""

from __future__ import annotations

import random
from collections import Counter

import attrs
import pytest

from aegis.errors import Unavailable
from aegis.groups import events as e
from aegis.groups.group import Member
from aegis.protocol.groups import BroadcastSent, GroupInfo, GroupReplies
from aegis.turns.watch import TurnEnd, TurnOutcome
from tests.aegis.groups.machine import Machine

STEPS = 250
NAMES = ("one", "two", "three")
ENDS: tuple[TurnEnd, ...] = ("completed", "completed", "completed", "failed", "interrupted")


@attrs.define
class Turn:
    """A member's turn about a broadcast; its outcome is durable once it is there."""

    follow: e.Follow
    outcome: TurnOutcome | None = None
    is_reported: bool = False


class World:
    """The machine with sessions that open, answer and close at random; what they did is kept."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.machine = Machine(syncs=False)
        self.open: set[str] = set()
        self.turns: dict[tuple[str, str], Turn] = {}
        self.tasks: list[e.Action] = []
        self.sent: dict[str, list[str]] = {}
        self.notified: Counter[str] = Counter()
        self.withdrawn: set[tuple[str, str]] = set()
        self.answers = 0

    # What the actor does with the actions.

    def take(self, actions: list[e.Action]) -> None:
        for action in actions:
            match action:
                case e.Follow(broadcast=id_, member=member):
                    assert self.is_stored(id_, "broadcast"), "it is durable"
                    turn = self.turns.setdefault((id_, member.session), Turn(action))
                    turn.is_reported = False
                case e.Form() | e.Unform() | e.Withdraw() | e.Notify() | e.Close():
                    self.tasks.append(action)
                case e.Return(value=value):
                    self.check_answer(value)
                case _:
                    pass

    def check_answer(self, value: GroupInfo | GroupReplies | BroadcastSent) -> None:
        match value:
            case BroadcastSent(broadcast_id=id_):
                assert self.is_stored(id_, "broadcast"), "it is durable"
                self.sent[id_] = [
                    each.session for each in self.machine.group_of(id_).members.values()
                ]
            case GroupReplies(broadcast_id=id_, by_member=texts):
                self.answers += 1
                for handle, text in texts.items():
                    assert text == self.text(id_, handle.removeprefix("h-")), "of this broadcast"
                    assert self.is_stored(id_, "ended", handle.removeprefix("h-"))

    def text(self, broadcast: str, session: str) -> str:
        return f"{session} answers {broadcast}"

    def is_stored(self, broadcast: str, kind: str, member: str | None = None) -> bool:
        lines = (each for ledger in self.machine.ledgers.values() for each in ledger)
        for line in lines:
            inner = line.get("broadcast")
            id_ = inner["id"] if isinstance(inner, dict) else line.get("id")
            if (line["kind"], id_) == (kind, broadcast) and line.get("member", member) == member:
                return True
        return False

    # One random step.

    def step(self) -> None:
        machine, chance, name = self.machine, self.chance, self.chance.choice(NAMES)
        match chance.randrange(16):
            case 0:
                machine.spawn(name, chance.randint(1, 3), mixed=chance.random() < 0.5)
            case 1 | 2:
                machine.broadcast(name, key=chance.choice([None, "k", "l"]))
            case 3:
                machine.wait_all(name)
            case 4:
                machine.wait_any(name, cancel_losers=chance.random() < 0.7)
            case 5 | 6 | 7 | 8:
                for _ in range(min(len(machine.unsynced), chance.randint(1, 4))):
                    self.take(machine.sync())
                return
            case 9 if chance.random() < 0.3:
                machine.rename(name, chance.choice(NAMES))
            case 10 if chance.random() < 0.3:
                machine.dissolve(name)
            case 11 if chance.random() < 0.3 and machine.unsynced:
                machine.refuse(chance.choice(machine.unsynced).address)
            case 12 if chance.random() < 0.3:
                self.crash()
                return
            case 13:
                machine.gives_up(chance.randint(1, machine.count + 1))
            case 14:
                machine.send(e.Again())
            case _:
                self.play()
                return
        self.take(machine.done)

    def play(self) -> bool:
        """Let a task of the actor or a turn of a session go on; return whether there was one."""
        waiting = [each for each in self.turns.values() if not each.is_reported]
        if self.tasks and (not waiting or self.chance.random() < 0.5):
            self.run(self.tasks.pop(self.chance.randrange(len(self.tasks))))
        elif waiting:
            self.end(self.chance.choice(waiting))
        else:
            return False
        self.take(self.machine.done)
        return True

    def run(self, task: e.Action) -> None:
        machine = self.machine
        match task:
            case e.Form(group=group, forming=forming):
                opened = {each.session for each in forming.members}
                if self.chance.random() < 0.2:
                    self.open |= {*self.chance.sample(sorted(opened), len(opened) // 2)}
                    error = Unavailable("no session is left")
                    machine.send(e.NotFormed(group=group.id, id=forming.id, error=error))
                else:
                    self.open |= opened
                    machine.form(task)
            case e.Unform(group=group, forming=forming):
                self.open -= {each.session for each in forming.members}
                machine.send(e.Unformed(group=group.id, id=forming.id))
            case e.Withdraw(group=group, broadcast=id_, member=member):
                assert self.is_dropped(id_, member), "it is durable that it lost"
                self.withdrawn.add((id_, member.session))
                names = {"group": group.id, "broadcast": id_, "member": member.session}
                machine.send(e.Withdrawn(**names))
            case e.Notify(group=group, broadcast=id_):
                assert group.broadcasts[id_].is_over
                self.notified[id_] += 1
                machine.send(e.Notified(group=group.id, broadcast=id_))
            case e.Close(group=group):
                self.open -= {*group.members}
                machine.send(e.Closed(group=group.id))

    def is_dropped(self, broadcast: str, member: Member) -> bool:
        lines = (each for ledger in self.machine.ledgers.values() for each in ledger)
        return any(
            (each["kind"], each.get("id")) == ("cancelled", broadcast)
            and member.session in str(each["members"])
            for each in lines
        )

    def end(self, turn: Turn) -> None:
        action = turn.follow
        id_, session = action.broadcast, action.member.session
        if turn.outcome is None:
            end = self.chance.choice(ENDS)
            text = self.text(id_, session) if end == "completed" else ""
            turn.outcome = TurnOutcome(end=end, text=text, reason="" if text else "it failed")
        turn.is_reported = True
        names = {"group": action.group.id, "broadcast": id_, "member": session}
        self.machine.send(e.Ended(outcome=turn.outcome, **names))

    def crash(self) -> None:
        self.tasks = []
        for turn in self.turns.values():
            turn.is_reported = True  # nobody follows it, until it is followed again
        self.take(self.machine.begin())

    # What must always hold.

    def check(self) -> None:
        groups = self.machine.rules.state.groups.values()
        names = [
            each.lower()
            for group in groups
            for each in {group.name, *group.aliases}
            if group.phase != "dissolved"
        ]
        assert len(names) == len({*names}), "each name is that of one group"
        for group in groups:
            assert sum(not each.is_over for each in group.broadcasts.values()) <= 1
            for broadcast in group.broadcasts.values():
                for session in broadcast.replied:
                    assert broadcast.ends[session].text == self.text(broadcast.id, session)

    def finish(self) -> None:
        """Let everything end, without further faults."""
        for _ in range(5_000):
            while self.machine.unsynced:
                self.take(self.machine.sync())
            self.machine.send(e.Again())
            self.take(self.machine.done)
            if not self.machine.unsynced and not self.play():
                return
        raise AssertionError("something never ends")


@pytest.mark.parametrize("seed", range(200))
def test_each_reply_counts_once_for_its_broadcast_and_groups_are_whole(seed: int) -> None:
    world = World(seed)
    world.take(world.machine.begin())
    for _ in range(STEPS):
        world.step()
        world.check()
    world.crash()
    world.finish()
    world.check()
    groups = [*world.machine.rules.state.groups.values()]
    assert all(not each.forming for each in groups)
    assert world.open == {session for each in groups for session in each.members}
    for group in groups:
        assert group.phase == "open"
        assert all(each.is_settled for each in group.broadcasts.values())
    assert {*world.notified} >= {*world.sent}, "every sender is notified"
    for ledger in world.machine.ledgers.values():
        for kind in ("ended", "notified", "withdrawn"):
            lines = [(each["id"], each.get("member")) for each in ledger if each["kind"] == kind]
            assert len(lines) == len({*lines}), f"each is {kind} once"


def test_the_random_events_reach_what_they_are_for() -> None:
    worlds = [World(seed) for seed in range(40)]
    for world in worlds:
        world.take(world.machine.begin())
        for _ in range(STEPS):
            world.step()
    assert sum(each.answers for each in worlds) > 50
    assert sum(len(each.withdrawn) for each in worlds) > 20
    assert sum(len(each.notified) for each in worlds) > 50
