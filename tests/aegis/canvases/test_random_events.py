"""Random events against what must hold: every text is kept, every change is told once."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from aegis.canvases import events as e
from aegis.canvases.document import parse, plain
from aegis.canvases.rules import LOOK
from aegis.protocol.canvases import CanvasWritten
from tests.aegis.canvases.world import SUBSCRIBERS, World, is_same

SEEDS = int(os.environ.get("AEGIS_SIM_EXAMPLES", "60"))
STEPS = 120
SECTIONS = ("A", "B", "C")


class Play:
    """One random history."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World(file=b"## A\n\nfirst\n")
        self.number = 0
        self.written: dict[int, str] = {}
        """The text of each write, by its caller."""
        self.edited: set[str] = set()
        """The texts that another program has put into the file."""

    def new_text(self, by: str) -> str:
        self.number += 1
        return f"{by} {self.number}"

    def step(self) -> None:
        world, chance = self.world, self.chance
        choices = [self.write] * 3 + [self.edit, self.edit_at_exchange, self.kill, self.confirm]
        choices += [world.do_work] * 12 * bool(world.work) + [world.sync] * 12 * bool(
            world.unsynced
        )
        choices += [self.fail] * bool(world.work) + [self.resume] * 4 * bool(world.later)
        choices += [world.refuse] * bool(world.unsynced)
        chance.choice(choices)()

    def write(self) -> None:
        text, section = self.new_text("agent"), self.chance.choice(SECTIONS)
        writer = f"agent:{self.chance.choice(['ada', 'bob', 'carl'])}"
        if self.chance.random() < 0.5:
            caller = self.world.append(section, text, writer)
        else:
            known = self.world.canvas.state.sections.get(section)
            rev = None if known is None else known.rev
            is_forced = self.chance.random() < 0.2
            caller = self.world.write(section, text, writer=writer, if_rev=rev, force=is_forced)
        self.written[caller] = text

    def edit(self) -> None:
        """Let another program replace the file or one section of it."""
        chance, world = self.chance, self.world
        if chance.random() < 0.05:
            world.file = None
            return
        texts = {} if world.file is None else dict(parse(world.file).texts)
        text = self.new_text("editor")
        texts[chance.choice(SECTIONS)] = text
        self.edited.add(text)
        world.file = "".join(
            text if name == "_preamble" else f"## {name}\n\n{text}\n\n"
            for name, text in texts.items()
        ).encode()

    def edit_at_exchange(self) -> None:
        def once() -> None:
            self.world.before_exchange = None
            self.edit()

        self.world.before_exchange = once

    def fail(self) -> None:
        self.world.do_work(failure=self.chance.choice(["before", "after"]))

    def resume(self) -> None:
        self.world.handle(self.world.later.pop(0))

    def confirm(self) -> None:
        self.world.confirm()

    def kill(self) -> None:
        """Kill the daemon, perhaps in the middle of an exchange, and start it again."""
        world = self.world
        exchange = next((each for each in world.work if type(each).__name__ == "Exchange"), None)
        if exchange is not None and self.chance.random() < 0.7:
            self.cut(getattr(exchange, "data"))  # noqa: B009
        world.kill(self.chance.randint(0, len(world.unsynced)))
        if self.chance.random() < 0.3:
            self.edit()
        world.start()

    def cut(self, data: bytes) -> None:
        """Leave what an exchange leaves that is killed after one of its steps."""
        world = self.world
        match self.chance.randint(0, 2):
            case 0:
                world.swap = data
            case 1:  # an editor may have been faster than the check
                if self.chance.random() < 0.5:
                    self.edit()
                world.file, world.swap = data, world.file
            case 2:
                world.file = data

    def finish(self) -> None:
        self.world.before_exchange = None
        self.world.handle(e.Asked(job=LOOK))
        self.world.run()


def acknowledged(play: Play) -> dict[int, tuple[int, str]]:
    """The revision and the text of each write that was acknowledged and changed something."""
    return {
        caller: (answer.rev, play.written[caller])
        for caller, answer in play.world.answers.items()
        if isinstance(answer, CanvasWritten)
    }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_text_is_lost_and_every_change_is_told_once(seed: int) -> None:
    play = Play(seed)
    world = play.world
    world.run()
    for handle in SUBSCRIBERS:
        world.answer(world.subscribe(handle))
    for _ in range(STEPS):
        play.step()
    play.finish()
    assert is_same(world)
    assert world.swap is None
    history = world.history()
    by_rev = {each.rev: each for each in history}
    assert len(by_rev) == len(history), "each change is recorded once"
    for rev, text in acknowledged(play).values():
        assert by_rev[rev].text == plain(text)
    for handle in SUBSCRIBERS:
        wanted = Counter(each.rev for each in history[1:] if each.writer != f"agent:{handle}")
        assert Counter(each.rev for each in world.woken[handle].values()) == wanted


@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_edit_that_the_exchange_met_is_kept(seed: int) -> None:
    """Edits that only the canvas could have displaced: one at each exchange, and kills."""
    play = Play(seed)
    world = play.world
    world.run()
    for _ in range(STEPS // 4):
        play.write()
        world.do_work()
        while world.unsynced:
            world.sync()
        if play.chance.random() < 0.5:
            play.edit_at_exchange()
        if play.chance.random() < 0.3:
            exchange = next((each for each in world.work if hasattr(each, "data")), None)
            if exchange is not None:
                play.cut(exchange.data)
            world.kill()
            world.start()
        play.finish()
        kept = {line for text in world.texts_ever() for line in text.split("\n")}
        assert play.edited <= kept
