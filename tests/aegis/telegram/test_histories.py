"""Random histories of the chat: people, sessions, requests, a refusing disk, crashes, kills."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from tests.aegis.telegram.office import Office, id_of, play

STEPS = 40
SEEDS = range(40)
LONG_SEEDS = range(40, 340)
END_S = 1_500.0
"""Longer than all that is under way takes: Telegram allows twenty messages in a minute."""

LOST = "the daemon ended while this ran"


class History:
    """What people and the daemon did, at random; what is promised of it is checked."""

    def __init__(self, office: Office, seed: int, *, refuses: bool) -> None:
        self.office = office
        self.world = office.world
        self.chance = Random(seed)
        self.refuses = refuses
        self.count = 0
        self.ends = 0
        self.said: list[str] = []
        self.commands: list[str] = []
        self.sent: list[str] = []
        self.asked: list[int] = []

    async def run(self) -> None:
        steps = (
            *(self.writes, self.writes, self.runs, self.turns, self.turns, self.wakes, self.asks),
            *(self.settles, self.presses, self.passes, self.passes, self.releases),
            *(self.crashes, self.kills, self.loses_power, self.unplugs),
            *((self.fills_disk, self.one_refusal) if self.refuses else ()),
        )
        for handle in ("ann", "bob"):
            self.world.spawn(handle)
            await self.office.write(f"/to {handle} SAY hello to {handle}")
            self.sent.append(f"SAY hello to {handle}")
        for _ in range(STEPS):
            await self.chance.choice(steps)()
        self.office.api.is_down = False
        self.world.release()
        await self.office.accept()
        await self.office.passes(END_S)

    def number(self) -> int:
        self.count += 1
        return self.count

    # People.

    async def writes(self) -> None:
        text = f"SAY number {self.number()}."
        self.sent.append(text)
        self.office.api.write(f"/to {self.chance.choice(('ann', 'bob'))} {text}")

    async def runs(self) -> None:
        command = f"make number-{self.number()}."
        self.commands.append(command)
        if self.chance.random() < 0.3:
            self.world.holds.add(command)
        self.office.api.write(f"/run build {command}")

    async def presses(self) -> None:
        messages = [each for each in self.office.api.messages.values() if each.get("reply_markup")]
        if messages:
            message = self.chance.choice(messages)
            data = self.chance.choice([*self.office.api.buttons(message).values()])
            self.office.api.press(message["message_id"], data)

    # The daemon.

    async def turns(self) -> None:
        said = f"turn number {self.number()}."
        self.said.append(said)
        self.world.turn(self.chance.choice(("id-ann", "id-bob")), said)

    async def wakes(self) -> None:
        said = f"news number {self.number()}."
        self.said.append(said)
        self.world.wake(said)

    async def asks(self) -> None:
        number = self.number()
        self.asked.append(number)
        fields: dict[str, Any] = {"input": {"command": f"request number {number}."}}
        if self.chance.random() < 0.5:
            asked = {"question": f"request number {number}.", "options": [{"label": "Yes"}]}
            fields = {"kind": "question", "input": {"questions": [asked, {"question": "Why?"}]}}
        self.world.ask(number, **fields)

    async def settles(self) -> None:
        found = [each for each in self.asked if self.world.requests[id_of(each)].state == "open"]
        if found:
            self.world.settle(self.chance.choice(found))

    async def releases(self) -> None:
        self.world.release()

    async def passes(self) -> None:
        await self.office.passes(self.chance.choice((0.001, 0.03, 0.3, 5.0, 60.0)))

    # Trouble.

    async def crashes(self) -> None:
        self.ends += 1
        await self.office.crash_desk()

    async def kills(self) -> None:
        self.ends += 1
        await self.office.restart()

    async def loses_power(self) -> None:
        self.ends += 1
        await self.office.restart(power_fails=True, draws=True)

    async def unplugs(self) -> None:
        self.office.api.is_down = not self.office.api.is_down

    async def fills_disk(self) -> None:
        self.office.refuse()
        await self.passes()
        if self.chance.random() < 0.7:
            await self.office.accept()

    async def one_refusal(self) -> None:
        self.office.plan.refuse_one(self.chance.choice(("write", "fdatasync")), 1)

    # What is promised.

    def check(self) -> None:
        office, world = self.office, self.world
        assert sorted(office.texts) == sorted(self.sent)
        for each in self.said:
            assert 1 <= office.shows(each) <= 1 + self.ends, each
        for command in self.commands:
            assert world.runs.count(command) <= 1, command
            assert office.shows(f"build $ {command}") or office.shows(LOST), command
        lost = office.shows(LOST)
        shown = sum(1 for each in self.commands if office.shows(f"build $ {each}"))
        assert len(self.commands) <= shown + lost <= len(self.commands) + self.ends
        left = [each for each in self.asked if not self.is_right(each)]
        assert len(left) <= self.ends, left
        assert len({each.id for each in world.answers}) == len(world.answers)

    def is_right(self, number: int) -> bool:
        """Return whether the newest message of a request shows what came of it.

        One that was sent when the desk ended may be unknown: it is shown again, or, if the request
        was settled before the next start, its buttons are left.
        """
        info, part = self.world.requests[id_of(number)], json.dumps(f"request number {number}.")
        found = [each for each in self.office.api.messages.values() if part[1:-1] in each["text"]]
        if not found:
            return info.state != "open"
        assert len(found) <= 1 + self.ends
        ending = {"open": "", "withdrawn": "⚪ withdrawn", "answered": "by human"}[info.state]
        is_open = bool(found[-1].get("reply_markup"))
        return ending in found[-1]["text"] and is_open == (info.state == "open")

    def summary(self) -> dict[str, Any]:
        """Return what clients see in the end, apart from what came twice."""
        world = self.world
        return {
            "texts": sorted(self.office.texts),
            "said": [self.office.shows(each) > 0 for each in self.said],
            "states": {key: each.state for key, each in world.requests.items()},
        }


def played(seed: int, *, refuses: bool) -> dict[str, Any]:
    """Play one history; return what clients see in the end."""
    found: dict[str, Any] = {}

    async def story(office: Office) -> None:
        history = History(office, seed, refuses=refuses)
        await history.run()
        history.check()
        found.update(history.summary())

    play(story, seed=seed)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_promised_holds_through_crashes_kills_and_a_disk_that_refuses(seed: int) -> None:
    played(seed, refuses=seed % 2 == 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", LONG_SEEDS)
def test_what_is_promised_holds_in_more_histories(seed: int) -> None:
    played(seed, refuses=seed % 2 == 1)
