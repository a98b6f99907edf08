"""Revisions that are not kept are moved to the archive, where the history of a canvas has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aegis.journal.archive import Keep
from aegis.protocol.canvases import CanvasChange, CanvasHistory, GetCanvasHistory
from tests.aegis.canvases.office import ARCHIVE, LEDGER, PLAN, Office, appending, play

FEW = Keep(newest=2, days=0, most=1_000)

RECENT = 7
"""The newest revisions of FEW that stay in the ledger: their files may be beside the file."""


def rows(office: Office) -> dict[str, Any]:
    """Return the rows in the ledger of the canvas, without their ends."""
    found: dict[str, Any] = {}
    for line in (office.image()[str(LEDGER)] or b"").splitlines():
        fields = json.loads(line)
        if "set" in fields:
            found.setdefault(fields["id"], {}).update(fields["set"])
        else:
            found.pop(fields["id"], None)
    return found


def kept(office: Office) -> list[int]:
    """Return the numbers of the changes in the ledger."""
    found = rows(office).items()
    return sorted(int(key) for key, each in found if key.isdigit() and each.get("phase") != "base")


def archived(office: Office) -> list[str]:
    """Return the files with rows in the archive."""
    names = [each for each in office.image() if each.startswith(f"{ARCHIVE}/revisions-plan-")]
    return sorted(each for each in names if each.endswith(".gz"))


async def paged(office: Office, limit: int, section: str | None = None) -> list[CanvasChange]:
    """Return all changes, the newest first, read in pages."""
    found: list[CanvasChange] = []
    page = CanvasHistory(canvas="plan", result=[], more=True)
    while page.more:
        request = GetCanvasHistory(name="plan", section=section, limit=limit, before=page.before)
        page = await office.ask(request)
        assert len(page.result) <= limit
        found += page.result
    assert not page.gone
    return found


def test_old_revisions_move_to_the_archive_where_the_history_has_them() -> None:
    async def story(office: Office) -> None:
        await office.changes()
        for number in range(30):
            await office.append("Log", f"line {number}")
            if number % 10 == 0:
                office.replaces("- ship" if number == 0 else f"- {number - 10}", f"- {number}")
                await office.passes(1)
        await office.passes(1)
        newest = (await office.info()).rev
        for restarts in (False, True, True):
            if restarts:
                await office.restart(power_fails=True)
            assert len(kept(office)) <= 2 + RECENT
            assert kept(office)[-1] == newest
            changes = await office.changes()
            assert [each.rev for each in changes] == [*range(1, newest + 1)]
            appended = [each.text for each in changes if each.op == "appended"]
            assert appended == [f"line {number}" for number in range(30)]
            assert await paged(office, 7) == changes[::-1]
            goals = [each for each in changes if each.section == "Goals"]
            assert await paged(office, 2, "Goals") == goals[::-1]
            assert [each.text for each in goals] == ["- ship", "- 0", "- 10", "- 20"]
            await office.check()

    play(story, keep=FEW)


def test_the_text_of_a_section_stays_while_it_is_the_newest() -> None:
    async def story(office: Office) -> None:
        done = await office.write("Old", "from the beginning")
        for number in range(20):
            await office.append("Log", f"{number}")
        await office.passes(1)
        assert done.rev not in kept(office)
        assert rows(office)[str(done.rev)]["phase"] == "base"
        await office.restart(power_fails=True)
        old = await office.section("Old")
        assert (old.rev, old.text, old.writer) == (done.rev, "from the beginning", "agent:ada")
        assert [each.text for each in await office.changes("Old")] == ["from the beginning"]
        await office.write("Old", "again", if_rev=done.rev)
        for number in range(RECENT + 1):
            await office.append("Log", f"more {number}")
        await office.passes(1)
        assert str(done.rev) not in rows(office), "nobody needs it any more"
        assert [each.text for each in await office.changes("Old")] == [
            "from the beginning",
            "again",
        ]

    play(story, keep=FEW)


def test_a_page_begins_before_any_revision() -> None:
    async def story(office: Office) -> None:
        for number in range(40):
            await office.append("Log", f"line {number}")
        await office.passes(1)
        changes = (await office.changes())[::-1]
        for before in (1, 2, 3, 12, 35, 42, 100):
            found = await office.ask(GetCanvasHistory(name="plan", limit=3, before=before))
            wanted = [each for each in changes if each.rev < before]
            assert found.result == wanted[:3]
            assert found.more is (len(wanted) > 3)
            assert found.before == (wanted[2].rev if found.more else None)

    play(story, keep=FEW)


def test_a_deleted_part_of_the_archive_is_said() -> None:
    async def story(office: Office) -> None:
        for number in range(40):
            await office.append("Log", f"line {number}")
            await office.passes(0.1 if number % 10 else 86_400)
        everything = await office.changes()
        assert [each.rev for each in everything] == [*range(1, len(everything) + 1)]
        await office.stop()
        assert len(archived(office)) > 2
        office.put({archived(office)[0]: None})
        await office.start()
        await office.settles()
        found = await office.ask(GetCanvasHistory(name="plan", limit=1000))
        assert found.result == everything[::-1][: len(found.result)]
        assert 0 < len(found.result) < len(everything)
        assert (found.more, found.gone) == (False, True)
        oldest = found.result[-1].rev
        found = await office.ask(GetCanvasHistory(name="plan", before=oldest))
        assert (found.result, found.more, found.gone) == ([], False, True)
        found = await office.ask(GetCanvasHistory(name="plan", before=1))
        assert (found.result, found.more, found.gone) == ([], False, False)

    play(story, keep=FEW)


def test_what_a_subscriber_has_not_got_stays() -> None:
    async def story(office: Office) -> None:
        await office.subscribe("bob")
        office.inboxes.confirms = False
        for number in range(30):
            await office.append("Log", f"line {number}")
        await office.passes(40)
        assert len(kept(office)) >= 30
        await office.restart(power_fails=True)
        office.inboxes.confirms = True
        await office.passes(60)
        assert office.woken("bob") == [f"line {number}" for number in range(30)]
        await office.append("Log", "one more")
        await office.passes(5)
        await office.append("Log", "and one")
        await office.passes(5)
        assert len(kept(office)) <= 2 + RECENT + 1

    play(story, keep=FEW)


def test_the_ledger_is_bounded() -> None:
    async def story(office: Office) -> None:
        for number in range(400):
            content = f"{number} " * 400
            await office.write("Goals", content, force=True)
        await office.passes(2)
        assert len(office.image()[str(LEDGER)] or b"") < 150_000
        changes = await office.changes("Goals")
        assert [each.text for each in changes[1:]] == [
            (f"{number} " * 400).strip("\n") for number in range(400)
        ][-len(changes[1:]) :]

    play(story, keep=FEW)


def test_another_life_of_a_canvas_has_an_archive_of_its_own() -> None:
    async def story(office: Office) -> None:
        for number in range(20):
            await office.append("Log", f"line {number}")
        await office.passes(1)
        await office.stop()
        gone = [each for each in office.image() if each.startswith(f"{LEDGER.parent}")]
        office.put({**dict.fromkeys(gone), "/project/plan.md": PLAN.encode()})
        await office.start()
        await office.open(file="plan.md")
        await office.settles()
        assert [each.writer for each in await office.changes()] == ["outside", "outside"]
        found = await office.ask(GetCanvasHistory(name="plan"))
        assert (found.more, found.gone) == (False, False)

    play(story, keep=FEW)


SEEDS = [*range(12), *(pytest.param(each, marks=pytest.mark.long) for each in range(12, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_that_refuses_and_kills_lose_no_revision(seed: int) -> None:
    async def story(office: Office) -> None:
        done: dict[int, str] = {}
        for number in range(40):
            await office.draws_trouble()
            section = office.chance.choice(["Log", "Goals", "Other"])
            answer = office.ask_soon(appending(section, f"line {number}"))
            await office.passes(office.chance.choice([0.1, 1, 20]))
            if answer.value is not None:
                done[answer.value.rev] = f"line {number}"
        office.ends_faults()
        await office.passes(200)
        await office.restart(power_fails=True)
        await office.passes(30)
        for number in range(10):
            await office.append("Log", f"last {number}")
        await office.passes(70)
        assert len(kept(office)) <= 2 + RECENT + 1
        changes = await paged(office, 9)
        revs = [each.rev for each in changes]
        assert revs == sorted({*revs}, reverse=True)
        texts = {each.rev: each.text for each in changes}
        assert done
        assert {rev: texts.get(rev) for rev in done} == done
        await office.check()

    play(story, seed=seed, keep=FEW)
