"""The promises of canvases to their clients, over a simulated disk: a short history for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from aegis.errors import (
    AlreadyExists,
    Busy,
    InvalidRequest,
    NotFound,
    StorageError,
    Unavailable,
)
from aegis.journal.file_content import digest_of
from aegis.journal.ledger import encode_line, seal_new_line
from aegis.protocol.canvases import (
    OUTSIDE,
    AppendToSection,
    GetCanvasHistory,
    OpenCanvas,
    ReadCanvas,
    SubscribeCanvas,
    UnsubscribeCanvas,
)
from aegis.protocol.command import MAX_REPLY_BYTES
from tests.aegis.canvases.office import (
    BESIDE,
    DIRECTORY,
    DISPLACED,
    FILE,
    LEDGER,
    PLAN,
    ROOT,
    Office,
    appending,
    play,
    subscribing,
    writing,
)
from tests.aegis.simulated_daemon import WRITES, Answer
from tests.chaos.machine.simulated_disk import Stall

MINE = PLAN.replace("begun", "begun\nmine")
EDIT = PLAN.replace("- ship", "- sail")


# Reading and writing.


def test_a_file_is_known_from_its_first_look() -> None:
    async def story(office: Office) -> None:
        read = await office.read()
        assert [(each.section, each.text, each.rev, each.writer) for each in read.sections] == [
            ("Goals", "- ship", 1, "outside"),
            ("Log", "begun", 2, "outside"),
        ]
        assert (read.canvas, read.file, read.rev) == ("plan", "plan.md", 2)
        changes = await office.changes()
        assert [(each.section, each.op, each.writer) for each in changes] == [
            ("Goals", "changed", "outside"),
            ("Log", "changed", "outside"),
        ]
        assert (await office.section("Log")).rev == 2
        assert [each.section for each in (await office.read("Log")).sections] == ["Log"]
        assert not any(each.more for each in read.sections)

    play(story)


def test_a_write_is_in_the_file_and_in_the_history_once_it_is_acknowledged() -> None:
    async def story(office: Office) -> None:
        done = await office.append("Log", "more")
        assert office.text() == PLAN.replace("begun", "begun\nmore")
        assert attrs.asdict(done) | {"timestamp": ""} == {
            "ok": True,
            "canvas": "plan",
            "section": "Log",
            "op": "appended",
            "writer": "agent:ada",
            "rev": 3,
            "added": 1,
            "removed": 0,
            "timestamp": "",
        }
        [*_, change] = await office.changes()
        assert (change.rev, change.section, change.op, change.writer) == (
            *(3, "Log", "appended"),
            "agent:ada",
        )
        assert (change.text, change.added, change.removed) == ("more", 1, 0)
        assert (change.timestamp, change.displaced) == (done.timestamp, False)
        done = await office.write("Log", "one\ntwo\nthree", by=None, if_rev=3)
        assert (done.op, done.writer, done.rev) == ("written", "human", 4)
        assert (done.added, done.removed) == (3, 2)
        section = await office.section("Log")
        assert (section.text, section.rev, section.writer) == ("one\ntwo\nthree", 4, "human")
        done = await office.write("New", "x", by="Human")
        assert (done.rev, done.writer) == (5, "human")
        assert (await office.read()).rev == 5
        assert office.beside() == []

    play(story)


@pytest.mark.parametrize("in_steps", [False, True])
def test_an_acknowledged_write_survives_a_loss_of_power(in_steps: bool) -> None:
    async def story(office: Office) -> None:
        done = await office.append("Log", "mine")
        await office.restart(power_fails=True)
        assert office.text() == MINE
        section = await office.section("Log")
        assert (section.text, section.rev, section.writer) == ("begun\nmine", 3, "agent:ada")
        [*_, change] = await office.changes()
        assert (change.rev, change.text, change.timestamp) == (3, "mine", done.timestamp)
        assert (await office.append("Log", "next")).rev == 4
        await office.check()

    play(story, in_steps=in_steps)


def test_an_intent_is_durable_before_the_file_is_exchanged() -> None:
    async def story(office: Office) -> None:
        plan = office.plan
        plan.faults["fdatasync", plan.hits["fdatasync"] + 1] = Stall(60)
        answer = office.ask_soon(appending("Log", "mine"))
        await office.passes(30)
        assert not answer.has_come
        assert office.text() == PLAN
        await office.passes(31)
        assert answer.value.rev == 3
        assert office.text() == MINE

    play(story)


def test_a_section_is_replaced_with_its_rev_only() -> None:
    async def story(office: Office) -> None:
        error = await office.refused(writing("Goals", "x"))
        assert isinstance(error, InvalidRequest)
        assert str(error) == (
            "section 'Goals' of canvas 'plan' exists, at rev 1 by outside: pass if_rev=1 to "
            'replace its text, which is now "- ship"'
        )
        done = await office.write("Goals", "of ada", if_rev=1)
        error = await office.refused(writing("Goals", "of bob", if_rev=1, by="bob"))
        assert isinstance(error, Busy)
        assert str(error) == (
            "section 'Goals' of canvas 'plan' was written by agent:ada since: it is at rev 3, not "
            '1; pass if_rev=3 to replace its text, which is now "of ada"'
        )
        error = await office.refused(writing("Gone", "x", if_rev=3))
        assert isinstance(error, NotFound)
        assert "no section 'Gone' any more; write it without if_rev" in str(error)
        assert (await office.write("New", "x")).rev == done.rev + 1
        assert (await office.write("Newer", "x", if_rev=0)).rev == done.rev + 2
        assert (await office.write("Goals", "y", force=True)).rev == done.rev + 3
        assert (await office.append("Goals", "z", by="carl")).rev == done.rev + 4
        assert (await office.section("Goals")).text == "y\nz"

    play(story)


def test_the_text_before_the_first_heading_needs_no_rev_while_it_is_empty() -> None:
    async def story(office: Office) -> None:
        assert (await office.write("_preamble", "# Plan")).section == "_preamble"
        assert office.text() == f"# Plan\n\n{PLAN}"
        error = await office.refused(writing("_preamble", "x"))
        assert "exists, at rev 3" in str(error)
        await office.write("_preamble", "", if_rev=3)
        assert (await office.info()).sections == ["Goals", "Log"]
        assert (await office.write("_preamble", "# Again")).rev == 5
        assert (await office.section("_preamble")).text == "# Again"

    play(story)


def test_a_file_without_headings_is_one_section() -> None:
    async def story(office: Office) -> None:
        await office.open(file="plan.md")
        read = await office.read()
        assert [(each.section, each.rev, each.writer) for each in read.sections] == [
            ("body", 0, "")
        ]
        assert (await office.write("body", "all")).section == "body"
        assert office.text() == "all\n"
        assert [each.section for each in await office.changes()] == ["body"]
        assert [each.text for each in await office.changes("body")] == ["all"]
        assert (await office.read("_preamble")).sections == (await office.read("body")).sections
        await office.subscribe("bob", ["body"])
        await office.append("body", "more")
        assert office.wakes()[-1].body.startswith('section "body"\n')
        await office.append("Log", "begun")
        assert (await office.info()).sections == ["_preamble", "Log"]
        assert [each.text for each in await office.changes("_preamble")] == ["all", "more"]
        assert [each.text for each in await office.changes("body")] == ["all", "more"]

    play(story, text=None)


def test_the_same_text_changes_nothing() -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        done = await office.write("Goals", "- ship", if_rev=1)
        assert (done.op, done.writer, done.rev) == ("written", "agent:ada", 1)
        assert (done.added, done.removed) == (0, 0)
        assert len(await office.changes()) == 2
        assert office.wakes() == []
        error = await office.refused(appending("Goals", "\n"))
        assert "there is nothing to append" in str(error)

    play(story)


def test_a_section_that_does_not_exist_is_refused_with_the_nearest() -> None:
    async def story(office: Office) -> None:
        error = await office.refused(ReadCanvas(name="plan", section="goal"))
        assert isinstance(error, NotFound)
        assert str(error) == "canvas 'plan' has no section 'goal'; did you mean 'Goals'?"
        error = await office.refused(ReadCanvas(name="plan", section="zzz"))
        assert str(error) == "canvas 'plan' has no section 'zzz'; it has Goals, Log"
        for number in range(11):
            await office.write(f"S{number}", "x")
        error = await office.refused(ReadCanvas(name="plan", section="zzz"))
        assert str(error).endswith("; it has Goals, Log, S0, S1, S2, S3, S4, S5, S6, S7, …")

    play(story)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a\n\n## Own\n", "has a '##' heading of its own, 'Own'"),
        ("```\nopen", "would change the sections after it"),
        ("nul \0", "is not valid Unicode, or has a NUL"),
        ("half \ud800", "is not valid Unicode, or has a NUL"),
        ("x" * 262_130, "the file would have"),
    ],
)
def test_a_text_that_would_break_the_file_is_refused(content: str, words: str) -> None:
    async def story(office: Office) -> None:
        for request in (writing("Goals", content, force=True), appending("Goals", content)):
            error = await office.refused(request)
            assert isinstance(error, InvalidRequest)
            assert words in str(error)
        assert office.text() == PLAN
        assert len(await office.changes()) == 2

    play(story)


def test_a_name_that_is_no_text_is_refused() -> None:
    async def story(office: Office) -> None:
        error = await office.refused(writing("x\ud800", "y"))
        assert "is not valid Unicode" in str(error)
        for sections, words in (
            ([], "name 1 to 100 sections"),
            ([str(each) for each in range(101)], "name 1 to 100 sections"),
            (["two\nlines"], "a section must be the text of"),
            (["x\ud800"], "a section must be the text of"),
        ):
            assert words in str(await office.refused(subscribing("bob", sections)))
        done = await office.subscribe("bob", ["b", *(str(each) for each in range(99)), "b"][:100])
        assert done.sections == ["b", *(str(each) for each in range(99))]

    play(story)


# Edits of other programs.


def test_an_edit_that_nobody_noticed_is_recorded_before_anything_else() -> None:
    async def story(office: Office) -> None:
        office.edits(EDIT, is_noticed=False)
        error = await office.refused(writing("Goals", "x", if_rev=1))
        assert isinstance(error, Busy)
        assert "written by outside since: it is at rev 3, not 1" in str(error)
        office.replaces("- sail", "- fly", is_noticed=False)
        await office.append("Log", "mine")
        assert office.text() == MINE.replace("- ship", "- fly")
        changes = (await office.changes())[2:]
        assert [(each.section, each.op, each.text) for each in changes] == [
            ("Goals", "changed", "- sail"),
            ("Goals", "changed", "- fly"),
            ("Log", "appended", "mine"),
        ]
        assert [(each.added, each.removed) for each in changes] == [(1, 1), (1, 1), (1, 0)]
        office.edits(PLAN, is_noticed=False)
        assert (await office.section("Log")).text == "begun"

    play(story)


def test_an_edit_while_no_daemon_runs_is_found_at_the_start() -> None:
    async def story(office: Office) -> None:
        await office.stop()
        office.put({FILE: EDIT.encode()})
        await office.start()
        await office.settles()
        assert [each.text for each in await office.changes("Goals")] == ["- ship", "- sail"]

    play(story)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("in_steps", [False, True])
def test_an_edit_during_the_exchange_is_written_upon(times: int, in_steps: bool) -> None:
    async def story(office: Office) -> None:
        def edit() -> None:
            office.replaces("- ship", "- ship\n- more", is_noticed=False)

        # Each try that meets an edit exchanges the names twice.
        office.before("exchange", edit, *range(1, 2 * times, 2))
        await office.append("Log", "mine")
        assert (office.text() or "").count("- more") == times
        assert (office.text() or "").count("mine") == 1
        texts = [each.text for each in await office.changes("Goals")]
        assert texts == ["- ship" + "\n- more" * each for each in range(times + 1)]
        assert len(await office.appended()) == 1
        await office.check()

    play(story, in_steps=in_steps)


def test_a_file_that_keeps_changing_refuses_the_write() -> None:
    async def story(office: Office) -> None:
        plan, syncs = office.plan, office.plan.hits["fdatasync"]
        plan.faults |= {("fdatasync", syncs + each): Stall(0.4) for each in range(1, 100)}

        def edit() -> None:
            office.edits(f"{office.text()}x\n", is_noticed=False)

        office.before("exchange", edit, *range(1, 100, 2))
        began = trio.current_time()
        error = await office.refused(appending("Log", "mine"))
        assert 5 < trio.current_time() - began < 8
        assert isinstance(error, Busy)
        assert str(error) == "other programs keep changing the file of canvas 'plan'; try again"
        plan.faults.clear()
        await office.passes(2)
        assert "mine" not in (office.text() or "")
        await office.check()
        await office.append("Log", "mine")

    play(story)


def test_a_write_waits_for_a_program_that_writes_and_a_read_does_not() -> None:
    async def story(office: Office) -> None:
        with office.held_open():
            answer = office.ask_soon(appending("Log", "mine"))
            await office.settles()
            began = trio.current_time()
            assert [each.text for each in (await office.read()).sections] == ["- ship", "begun"]
            assert (await office.open()).sections == ["Goals", "Log"]
            error = await office.refused(ReadCanvas(name="plan", section="zzz"))
            assert "has no section" in str(error)
            assert trio.current_time() - began < 0.05
            assert not answer.has_come
            await office.passes(1)
            assert not answer.has_come
        await office.settles()
        assert answer.value.op == "appended"
        assert office.text() == MINE
        with office.held_open():
            assert (await office.section("Log")).text == "begun\nmine"

    play(story)


def test_a_program_that_writes_for_long_refuses_the_write() -> None:
    async def story(office: Office) -> None:
        with office.held_open():
            began = trio.current_time()
            error = await office.refused(appending("Log", "mine"))
            assert 4.9 < trio.current_time() - began < 5.5
            assert isinstance(error, Busy)
            assert str(error) == (
                "another program has the file of canvas 'plan' open for writing; try again when it "
                "has closed it"
            )
            answers = [office.ask_soon(appending("Log", each)) for each in ("one", "two")]
            await office.passes(4.7)
        await office.passes(1)
        assert [each.value.rev for each in answers] == [3, 4]
        assert office.text() == PLAN.replace("begun", "begun\none\ntwo")

    play(story)


def test_a_program_that_opens_the_file_in_the_exchange_is_waited_for() -> None:
    async def story(office: Office) -> None:
        held: list[Any] = []

        def hold() -> None:
            held.append(office.held_open())
            held[0].__enter__()

        office.before("exchange", hold)
        answer = office.ask_soon(appending("Log", "mine"))
        await office.settles()
        assert not answer.has_come
        assert office.text() == PLAN
        held[0].__exit__(None, None, None)
        await office.settles()
        assert answer.value.rev is not None
        assert office.text() == MINE
        assert await office.appended() == ["mine"]
        await office.check()

    play(story)


def test_an_edit_is_recorded_once_the_file_stays_as_it_is() -> None:
    async def story(office: Office) -> None:
        office.edits(EDIT)
        await trio.sleep(0.05)
        office.replaces("- sail", "- fly")
        await office.passes(0.1)
        assert [each.text for each in await office.changes("Goals")] == ["- ship", "- fly"]

    play(story)


@pytest.mark.parametrize("between", [None, ""])
def test_a_file_that_is_made_anew_is_one_edit(between: str | None) -> None:
    async def story(office: Office) -> None:
        office.edits(between)
        await office.passes(0.5)
        office.edits(EDIT)
        await office.passes(1.5)
        assert await office.rev("Log") == 2
        assert [each.text for each in await office.changes("Goals")] == ["- ship", "- sail"]

    play(story)


@pytest.mark.parametrize("between", [None, ""])
def test_a_file_that_is_gone_is_judged_after_a_second_and_callers_wait(
    between: str | None,
) -> None:
    async def story(office: Office) -> None:
        office.edits(between)
        await office.passes(0.1)
        read = office.ask_soon(ReadCanvas(name="plan"))
        await office.passes(0.4)
        assert not read.has_come
        await office.passes(1)
        assert [each.section for each in read.value.sections] == ["body"]
        changes = (await office.changes())[2:]
        assert [(each.section, each.op) for each in changes if each.op == "removed"] == [
            ("Goals", "removed"),
            ("Log", "removed"),
        ]
        assert changes[-1].text is None
        await office.append("Log", "again")
        assert office.text() == "## Log\n\nagain\n"
        await office.check()

    play(story)


def test_a_file_that_changes_all_the_time_is_judged_as_it_is() -> None:
    async def story(office: Office) -> None:
        for number in range(120):
            office.edits(f"{PLAN}line {number}\n")
            await trio.sleep(0.06)
        seen = [each.text for each in await office.changes("Log")]
        assert 2 <= len(seen) <= 4

    play(story)


def test_a_caller_takes_a_changed_file_as_it_is() -> None:
    async def story(office: Office) -> None:
        office.edits(EDIT)
        await trio.sleep(0.02)
        began = trio.current_time()
        assert (await office.section("Goals")).text == "- sail"
        assert trio.current_time() - began < 0.05
        await office.settles()
        assert len(await office.changes("Goals")) == 2

    play(story)


def test_an_edit_of_a_program_that_still_writes_is_looked_for_again() -> None:
    async def story(office: Office) -> None:
        office.edits(EDIT)
        with office.held_open():
            await office.passes(3)
            assert len(await office.changes("Goals")) == 1
        await office.passes(1.5)
        assert len(await office.changes("Goals")) == 2

    play(story)


@pytest.mark.parametrize("data", [b"caf\xe9", b"x" * 300_000, b"## A\n" * 501])
def test_a_file_that_is_no_canvas_refuses_everything_and_is_left_alone(data: bytes) -> None:
    async def story(office: Office) -> None:
        news = await office.news()
        office.disk.model = office.disk.model.of({**office.image(), FILE: data})
        await office.stop()
        office.put({FILE: data})
        await office.start()
        await office.settles()
        for request in (
            ReadCanvas(name="plan"),
            OpenCanvas(name="plan"),
            appending("Log", "x"),
            writing("New", "x"),
        ):
            error = await office.refused(request)
            assert isinstance(error, Unavailable)
            assert str(error).startswith("canvas 'plan' cannot be used: it")
        assert office.image()[FILE] == data
        problem = (await office.info()).problem
        assert problem
        assert str(error).endswith(problem)
        assert news.canvases[0].problem == ""
        office.edits(EDIT)
        await office.append("Log", "x")
        assert (await office.info()).problem == ""
        assert [each.text for each in await office.changes("Goals")] == ["- ship", "- sail"]

    play(story)


def test_a_directory_that_is_gone_is_a_problem_until_it_is_made_again() -> None:
    async def story(office: Office) -> None:
        model = office.disk.model
        model.mkdir(f"{ROOT}/notes")
        await office.open("other", "notes/other.md")
        await office.ask(attrs.evolve(writing("A", "x"), name="other"))
        model.unlink(f"{ROOT}/notes/other.md")
        model.rmdir(f"{ROOT}/notes")
        error = await office.refused(ReadCanvas(name="other"))
        assert isinstance(error, Unavailable)
        assert "its directory does not exist: create it" in str(error)
        model.mkdir(f"{ROOT}/notes")
        await office.ask(attrs.evolve(appending("A", "y"), name="other"))
        ops = [(each.section, each.op) for each in await office.changes(name="other")]
        assert ops == [
            ("A", "written"),
            ("_preamble", "changed"),
            ("A", "removed"),
            ("A", "appended"),
        ]

    play(story)


# Deaths in an exchange.


@pytest.mark.parametrize(
    ("file", "swap", "is_done", "lost"),
    [
        (PLAN, None, False, None),  # killed before the new file was written
        (PLAN, MINE, False, None),  # before the exchange
        (MINE, PLAN, True, None),  # after it
        (MINE, None, True, None),  # after the displaced file was removed
        (MINE, MINE, True, None),  # between two steps of a new file
        (EDIT, MINE, False, None),  # an edit while nothing ran, before the exchange
        (EDIT, PLAN, True, None),  # an edit after it
        (EDIT, None, True, None),  # perhaps it was acknowledged before the edit
        (MINE, EDIT, True, "- sail"),  # an edit was displaced
        (None, MINE, False, None),
        (None, PLAN, True, None),
    ],
)
def test_an_exchange_that_was_cut_is_judged_by_both_files(
    file: str | None, swap: str | None, is_done: bool, lost: str | None
) -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        office.dies_at("exchange")
        office.ask_soon(appending("Log", "mine"))
        await office.settles()
        await office.stop(power_fails=True)
        office.put({FILE: _data(file), _swap(office): _data(swap)})
        await office.start()
        await office.passes(2)
        await office.check()
        assert office.text() == file
        assert await office.appended() == ["mine"] * is_done
        assert [each.text for each in await office.changes() if each.displaced] == [lost] * bool(
            lost
        )
        assert office.woken().count("mine") == is_done
        wakes = [each.body for each in office.wakes() if "at the same moment" in each.body]
        assert len(wakes) == bool(lost)
        if file == MINE:
            section = await office.section("Log")
            assert (section.text, section.rev) == ("begun\nmine", 3)
        if lost is not None:
            assert "written outside at the same moment, and not in the file" in wakes[0]
            assert wakes[0].endswith(lost)

    play(story)


def _data(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("power_fails", [False, True])
@pytest.mark.parametrize("call", ["rename", "exchange", "fsync", "unlink", "fdatasync", "write"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_death_at_any_step_of_a_write_leaves_one_write_or_none(
    in_steps: bool, power_fails: bool, call: str, number: int
) -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        office.dies_at(call, number)
        answer = office.ask_soon(appending("Log", "mine"))
        await office.settles()
        await office.restart(power_fails=power_fails)
        await office.check()
        written = (office.text() or "").count("mine")
        assert await office.appended() == ["mine"] * written
        assert written or answer.value is None
        await office.append("Log", "next")
        await office.passes(3)
        assert office.woken() == ["mine"] * written + ["next"]

    play(story, in_steps=in_steps)


def test_a_displaced_file_that_is_no_text_is_kept_under_another_name() -> None:
    async def story(office: Office) -> None:
        office.dies_at("exchange")
        office.ask_soon(appending("Log", "mine"))
        await office.settles()
        await office.stop()
        [beside] = office.beside()
        office.put({FILE: MINE.encode(), beside: b"\xff\xfe"})
        await office.start()
        await office.settles()
        [kept] = office.beside()
        assert kept.startswith(DISPLACED)
        assert kept.endswith("-of-canvas-plan")
        assert office.image()[kept] == b"\xff\xfe"
        assert await office.appended() == ["mine"]

    play(story)


def test_a_displaced_file_is_in_the_history_once() -> None:
    async def story(office: Office) -> None:
        office.dies_at("exchange")
        office.ask_soon(appending("Log", "mine"))
        await office.settles()
        await office.stop()
        [beside] = office.beside()
        office.put({FILE: MINE.encode(), beside: EDIT.encode()})
        office.dies_at("unlink")  # after it was recorded
        await office.start()
        await office.settles()
        assert office.beside() == [beside]
        await office.restart()
        await office.check()
        displaced = [each for each in await office.changes() if each.displaced]
        assert [(each.section, each.op, each.text) for each in displaced] == [
            ("Goals", "changed", "- sail")
        ]

    play(story)


def test_a_displaced_file_whose_record_was_cut_is_in_the_history_once() -> None:
    async def story(office: Office) -> None:
        swap = _swap(office)
        office.dies_at("exchange")
        office.ask_soon(appending("Log", "mine"))
        await office.settles()
        await office.stop()
        office.put({FILE: MINE.encode(), swap: b"## Goals\n\n- sail\n\n## Log\n\nnever\n"})
        # Of what the record appends, the first line is on the disk.
        office.dies_at("write", 4)
        await office.start()
        await office.settles()
        await office.restart()
        await office.check()
        displaced = [each for each in await office.changes() if each.displaced]
        assert sorted(each.text or "" for each in displaced) == ["- sail", "never"]

    play(story)


def test_a_file_of_an_earlier_exchange_that_is_back_is_no_edit() -> None:
    async def story(office: Office) -> None:
        swap = _swap(office)
        await office.append("Log", "one")
        office.edits(EDIT)
        await office.passes(1)
        await office.stop()
        office.put({swap: PLAN.encode()})  # its removal was not durable
        await office.start()
        await office.settles()
        await office.check()
        assert not any(each.displaced for each in await office.changes())

    play(story)


def test_a_write_that_did_not_begin_is_not_taken_for_done() -> None:
    async def story(office: Office) -> None:
        swap = _swap(office)
        await office.append("Log", "one")
        office.dies_at("exchange")
        office.ask_soon(appending("Log", "two"))
        await office.settles()
        await office.stop()
        office.put({swap: PLAN.encode()})  # left by the first exchange
        await office.start()
        await office.settles()
        await office.check()
        assert await office.appended() == ["one"]

    play(story)


def _swap(office: Office) -> str:
    """Return the path of the file beside the file of the canvas."""
    life = json.loads(office.image()[f"{DIRECTORY}/plan/meta.json"] or b"")["life"]
    return f"{BESIDE}{life}.swap"


def test_an_exchange_that_was_found_is_durable_before_it_is_recorded() -> None:
    async def story(office: Office) -> None:
        office.dies_at("fsync", 2)  # that of the directory, after the exchange
        office.ask_soon(appending("Log", "mine"))
        await office.settles()
        assert office.text() == MINE
        await office.restart()
        assert (await office.section("Log")).text == "begun\nmine"
        await office.restart(power_fails=True)
        assert office.text() == MINE
        assert await office.appended() == ["mine"]
        await office.check()

    play(story)


def test_a_crash_of_the_canvas_in_an_exchange_loses_nothing() -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        for number, point in enumerate(
            (
                "exchange.write.before",
                "exchange.write.after",
                "exchange.rename.after",
                "exchange.sync.after",
            )
        ):
            office.crashes_at(point)
            answer = office.ask_soon(appending("Log", f"mine {number}"))
            await office.passes(5)
            assert answer.has_come
            assert answer.value is None
            await office.check()
        assert await office.appended() == ["mine 2", "mine 3"]
        assert office.text() == PLAN.replace("begun", "begun\nmine 2\nmine 3")
        assert office.woken() == ["mine 2", "mine 3"]

    play(story)


def test_a_write_that_is_refused_is_not_taken_for_done_after_a_loss_of_power() -> None:
    async def story(office: Office) -> None:
        held: list[Any] = []

        def hold() -> None:
            office.plan.refuses = {"fdatasync"}
            held.append(office.held_open())
            held[0].__enter__()

        office.before("exchange", hold)  # the exchange is undone
        failed = office.ask_soon(appending("Log", "mine"))
        await office.passes(12)
        held[0].__exit__(None, None, None)
        assert failed.error is not None
        office.edits(EDIT)
        office.plan.refuses = ()
        await office.restart(power_fails=True)
        await office.check()
        assert isinstance(failed.error, StorageError) or await office.appended() == []
        assert office.text() == EDIT

    play(story)


# A disk that refuses.


def test_a_full_disk_refuses_the_write_and_changes_nothing() -> None:
    async def story(office: Office) -> None:
        await office.subscribe("eve")
        office.plan.refuses = WRITES
        answers: list[Answer[Any]] = [
            office.ask_soon(appending("Log", "mine")),
            office.ask_soon(subscribing()),
            office.ask_soon(UnsubscribeCanvas(name="plan", from_handle="eve")),
        ]
        await office.settles()
        for each in answers:
            assert isinstance(each.error, StorageError)
            assert "No space left" in str(each.error)
        office.plan.refuses = ()
        await office.passes(10)
        assert office.text() == PLAN
        assert len(await office.changes()) == 2
        assert (await office.info()).subscribers == ["eve"]
        await office.append("Log", "mine")
        assert office.woken("eve") == ["mine"]
        assert await office.appended() == ["mine"]
        await office.check()

    play(story)


def test_a_disk_that_refuses_does_not_hold_readers() -> None:
    async def story(office: Office) -> None:
        office.plan.refuses = WRITES
        assert isinstance(await office.refused(appending("Log", "mine")), StorageError)
        assert (await office.section("Log")).text == "begun"
        assert len(await office.changes()) == 2
        assert isinstance(await office.refused(appending("Log", "mine")), StorageError)

    play(story)


def test_an_edit_that_cannot_be_recorded_is_looked_for_again() -> None:
    async def story(office: Office) -> None:
        office.plan.refuses = WRITES
        office.edits(EDIT)
        await office.passes(4)
        error = await office.refused(ReadCanvas(name="plan"))
        assert isinstance(error, StorageError)
        office.plan.refuses = ()
        await office.passes(10)
        changes = await office.changes("Goals")
        assert [each.text for each in changes] == ["- ship", "- sail"]

    play(story)


@pytest.mark.parametrize(
    ("call", "number", "is_done"),
    [
        ("open", 1, False),
        ("open", 3, False),
        ("fsync", 1, False),
        ("rename", 1, False),
        ("exchange", 1, False),
        ("fsync", 2, True),
        ("unlink", 2, True),
    ],
)
def test_a_disk_that_fails_in_the_exchange_is_judged_by_the_next_look(
    call: str, number: int, is_done: bool
) -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        # From the intent on: the file was read before.
        office.before("write", lambda: office.plan.refuse_one(call, number))
        failed = office.ask_soon(appending("Log", "mine"))
        await office.settles()
        assert failed.has_come
        assert failed.value is None or is_done
        await office.passes(2)
        await office.check()
        assert (office.text() == MINE) == is_done
        assert await office.appended() == ["mine"] * is_done
        await office.append("Log", "after it")
        assert (office.text() or "").endswith("begun\n" + "mine\n" * is_done + "after it\n")
        await office.restart(power_fails=True)
        await office.passes(2)
        assert office.woken() == ["mine"] * is_done + ["after it"]
        await office.check()

    play(story)


def test_a_write_that_is_in_the_file_is_told_though_the_disk_refuses_its_line() -> None:
    async def story(office: Office) -> None:
        await office.subscribe()

        def refuse() -> None:
            office.plan.refuses = {"write", "fdatasync"}

        office.before("exchange", refuse)
        done = await office.append("Log", "mine")
        assert (done.op, done.rev) == ("appended", 3)
        assert office.text() == MINE
        assert office.woken() == ["mine"]
        section = await office.section("Log")
        assert (section.text, section.rev, section.writer) == ("begun\nmine", 3, "agent:ada")
        assert await office.appended() == ["mine"]
        assert isinstance(await office.refused(appending("Log", "two")), StorageError)
        office.plan.refuses = ()
        await office.passes(10)
        assert (await office.append("Log", "three")).rev > 3
        assert await office.appended() == ["mine", "three"]
        await office.restart(power_fails=True)
        await office.passes(3)
        assert await office.appended() == ["mine", "three"]
        assert office.woken() == ["mine", "three"]
        await office.check()

    play(story)


def test_a_write_whose_line_is_lost_is_known_by_the_file_after_a_loss_of_power() -> None:
    async def story(office: Office) -> None:
        await office.subscribe()

        def refuse() -> None:
            office.plan.refuses = {"write", "fdatasync"}

        office.before("exchange", refuse)
        await office.append("Log", "mine")
        office.plan.refuses = ()
        await office.restart(power_fails=True)
        await office.passes(2)
        assert office.text() == MINE
        [*_, change] = await office.changes()
        assert (change.rev, change.text, change.writer) == (3, "mine", "agent:ada")
        assert office.woken() == ["mine"]
        await office.check()

    play(story)


def test_no_reader_gets_an_older_text_than_its_revision() -> None:
    async def story(office: Office) -> None:
        office.before("write", lambda: office.plan.refuse_one("fsync", 2))
        failed = office.ask_soon(appending("Log", "mine"))
        await office.until(lambda: failed.has_come)
        assert isinstance(failed.error, StorageError)
        held: list[Any] = []

        def hold() -> None:
            held.append(office.held_open())
            held[0].__enter__()

        office.before("unlink", hold, 2)  # the next look has found the write in the file
        reads = [office.ask_soon(ReadCanvas(name="plan", section="Log")) for _ in range(3)]
        await office.passes(1)
        if held:
            held[0].__exit__(None, None, None)
        await office.passes(1)
        for each in reads:
            [section] = each.value.sections
            assert section.text == ("begun\nmine" if section.rev == 3 else "begun")
        assert (await office.section("Log")).rev == 3

    play(story)


def test_a_ledger_that_cannot_be_opened_is_tried_again() -> None:
    async def story(office: Office) -> None:
        await office.append("Log", "mine")
        await office.stop()
        office.refuse_to_open("ledger.jsonl")
        await office.start()
        await office.settles()
        error = await office.refused(ReadCanvas(name="plan"))
        assert isinstance(error, StorageError)
        office.refuse_to_open("")
        await office.passes(10)
        assert (await office.section("Log")).text == "begun\nmine"
        assert await office.appended() == ["mine"]

    play(story)


# Subscribers.


def test_subscribers_are_woken_by_what_they_want() -> None:
    async def story(office: Office) -> None:
        assert (await office.subscribe("ada")).sections is None
        done = await office.subscribe("Bob", ["Log"])
        assert (done.ok, done.canvas, done.subscribed, done.sections) == (
            *(True, "plan", True),
            ["Log"],
        )
        await office.append("Log", "by ada")
        await office.write("New", "by carl", by="carl")
        await office.append("Log", "by bob", by="BOB")
        assert office.woken("ada") == ["by carl", "by bob"]
        assert office.woken("Bob") == ["by ada"]
        assert (await office.info()).subscribers == ["Bob", "ada"]
        office.edits(EDIT)
        await office.passes(1)
        assert (len(office.wakes("ada")), len(office.wakes("Bob"))) == (3, 2)

    play(story)


def test_the_operator_is_woken_too() -> None:
    async def story(office: Office) -> None:
        await office.subscribe(None)
        await office.append("Log", "mine", by=None)
        await office.append("Log", "of ada")
        assert office.woken("human") == ["of ada"]
        assert not (await office.unsubscribe(None)).subscribed

    play(story)


def test_a_change_before_the_subscription_wakes_nobody() -> None:
    async def story(office: Office) -> None:
        await office.append("Log", "before")
        await office.subscribe()
        await office.restart(power_fails=True)
        await office.passes(3)
        assert office.wakes() == []

    play(story)


def test_an_unsubscribed_handle_is_woken_no_more() -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        done = await office.unsubscribe("BOB")
        assert (done.ok, done.subscribed, done.sections) == (True, False, None)
        await office.append("Log", "x")
        await office.restart(power_fails=True)
        assert office.wakes() == []
        assert (await office.info()).subscribers == []
        assert not (await office.unsubscribe("nobody")).subscribed

    play(story)


def test_a_wake_that_is_confirmed_is_not_sent_again() -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        await office.append("Log", "x")
        await office.passes(3)
        [wake] = office.wakes()
        assert office.inboxes.tries[wake.id] == 1
        await office.restart(power_fails=True)
        await office.append("Log", "y")
        await office.passes(3)
        assert office.woken() == ["x", "y"]
        assert office.inboxes.tries[wake.id] == 1
        await office.crashes()
        assert set(office.inboxes.tries.values()) == {1}

    play(story)


@pytest.mark.parametrize("dies", ["crash", "kill", "power"])
def test_a_wake_that_is_not_confirmed_is_sent_again_and_comes_once(dies: str) -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        office.inboxes.confirms = False
        for each in ("one", "two", "three"):
            await office.append("Log", each)
        if dies == "crash":
            await office.crashes()
        else:
            await office.restart(power_fails=dies == "power")
        office.inboxes.confirms = True
        await office.passes(60)
        assert office.woken() == ["one", "two", "three"]

    play(story)


def test_a_wake_that_an_inbox_refused_is_sent_again_in_order() -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        await office.subscribe("eve")
        office.inboxes.refuses.add("bob")
        for each in ("one", "two"):
            await office.append("Log", each)
        await office.passes(20)
        assert office.wakes() == []
        assert office.woken("eve") == ["one", "two"]
        assert max(office.inboxes.tries.values()) < 10
        office.inboxes.refuses.clear()
        await office.append("Log", "three")
        await office.passes(60)
        assert office.woken() == ["one", "two", "three"]
        assert office.woken("eve") == ["one", "two", "three"]
        tries = office.inboxes.tries.total()
        await office.passes(200)
        assert office.inboxes.tries.total() == tries

    play(story)


def test_an_inbox_that_does_not_confirm_gets_its_wakes_again() -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        office.inboxes.confirms = False
        await office.append("Log", "x")
        await office.passes(40)
        [wake] = office.wakes()
        assert office.inboxes.tries[wake.id] > 1
        office.inboxes.confirms = True
        await office.passes(60)
        tries = office.inboxes.tries[wake.id]
        await office.passes(100)
        assert office.inboxes.tries[wake.id] == tries

    play(story)


def test_a_wider_subscription_does_not_wake_for_earlier_changes_even_after_a_kill() -> None:
    async def story(office: Office) -> None:
        await office.subscribe("bob", ["Log"])
        office.inboxes.confirms = False
        await office.write("New", "other")
        await office.append("Log", "one")
        await office.subscribe()
        await office.append("New", "two")
        assert office.woken() == ["one", "two"]
        await office.restart(power_fails=True)
        await office.passes(3)
        assert office.woken() == ["one", "two"]

    play(story)


def test_a_narrower_subscription_still_wakes_for_earlier_changes_after_a_kill() -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        office.inboxes.confirms = False
        await office.write("New", "one")
        await office.subscribe("bob", ["Log"])
        await office.subscribe("bob", ["Todo"])
        await office.append("New", "other")
        for _ in range(2):
            await office.restart(power_fails=True)
            await office.passes(3)
            assert office.woken() == ["one"]
        office.inboxes.confirms = True
        await office.passes(60)
        await office.subscribe("bob", ["Log"])
        await office.restart(power_fails=True)
        await office.append("Log", "two")
        await office.passes(3)
        assert office.woken() == ["one", "two"]
        assert max(office.inboxes.tries.values()) < 20

    play(story)


def test_a_change_while_a_subscription_is_written_wakes_in_order() -> None:
    async def story(office: Office) -> None:
        await _exchanged(office, appending("Log", "one"), subscribing())
        assert office.wakes() == []
        await office.passes(1)
        assert office.woken() == ["one"]
        await office.append("Log", "two")
        assert office.woken() == ["one", "two"]
        await office.restart(power_fails=True)
        await office.passes(3)
        assert office.woken() == ["one", "two"]

    play(story)


def test_a_change_while_other_sections_are_subscribed_belongs_to_these() -> None:
    async def story(office: Office) -> None:
        await office.subscribe("bob", ["Log"])
        await _exchanged(office, appending("New", "one"), subscribing("bob", ["New"]))
        assert office.wakes() == []
        await office.passes(1)
        assert office.woken() == ["one"]
        await office.restart(power_fails=True)
        await office.passes(3)
        assert office.woken() == ["one"]

    play(story)


async def _exchanged(office: Office, write: AppendToSection, request: SubscribeCanvas) -> None:
    """Write to the file, while the subscription is being synced for a second more."""
    plan = office.plan
    for sync in (1, 2):
        plan.faults["fdatasync", plan.hits["fdatasync"] + sync] = Stall(1)
    written = office.ask_soon(write)
    await office.passes(0.1)
    subscribed = office.ask_soon(request)
    await office.until(lambda: written.has_come)
    await office.settles()
    assert not subscribed.has_come


def test_a_subscription_that_the_disk_refuses_delays_no_wake() -> None:
    async def story(office: Office) -> None:
        await office.subscribe("bob", ["Log"])

        def refuse() -> None:
            office.plan.refuses = {"fdatasync"}
            answers.append(office.ask_soon(subscribing("bob", ["New"])))

        answers: list[Any] = []
        office.before("exchange", refuse)
        await office.append("Log", "one")
        await office.settles()
        assert isinstance(answers[0].error, StorageError)
        assert office.woken() == ["one"]
        office.plan.refuses = ()
        await office.passes(10)
        await office.append("New", "two")
        assert office.woken() == ["one"]

    play(story)


def test_one_save_wakes_once_with_all_its_sections() -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        await office.subscribe("eve", ["Log", "S7"])
        more = "".join(f"\n## S{each}\n\nof {each}\n" for each in range(30))
        office.edits(f"{EDIT}{more}".replace("begun", "begun\nnow"))
        await office.passes(1)
        [wake] = office.wakes()
        blocks = wake.body.split("\n\n")
        assert blocks[0] == (
            'section "Goals"\nchanged by another program, outside (+1 / -1 lines)\n──\n- sail'
        )
        assert blocks[1].startswith('section "Log"\nchanged by another program, outside (+1 / -0')
        assert len(blocks) == 6
        assert blocks[5].startswith('and 27 more sections: "S3", "S4"')
        assert blocks[5].endswith('"S22" …')
        changes = await office.changes()
        assert wake.id.endswith(f"/{changes[-1].rev}/bob")
        assert (wake.sender, wake.timestamp) == ("canvas:plan", changes[-1].timestamp)
        [wake] = office.wakes("eve")
        assert [each.split("\n")[0] for each in wake.body.split("\n\n")] == [
            'section "Log"',
            'section "S7"',
        ]

    play(story)


def test_a_wake_shows_the_first_lines_without_unsafe_characters() -> None:
    async def story(office: Office) -> None:
        await office.subscribe()
        lines = [f"{number}\t{'x' * 300}" for number in range(9)]
        await office.append("Log", "a\x1b[31m\u202eb\u2028c\n" + "\n".join(lines))
        [wake] = office.wakes()
        shown = wake.body.split("\n")
        assert shown[:3] == [
            'section "Log"',
            "appended by agent:ada (+10 / -0 lines)",
            "──",
        ]
        assert shown[3] == "a [31m b c"
        assert shown[4] == "0" + " " * 7 + "x" * 191 + "…"
        assert len(shown) == 9
        assert wake.defer_sync
        await office.write("Log", "", force=True)
        assert office.wakes()[-1].body == ('section "Log"\nwritten by agent:ada (+0 / -11 lines)')
        office.edits(None)
        await office.passes(2)
        assert "removed by another program, outside (+0 / -1 lines)" in office.wakes()[-1].body

    play(story)


# Limits.


def test_the_numbers_of_requests_and_subscribers_are_limited() -> None:
    async def story(office: Office) -> None:
        with office.held_open():
            answers = [office.ask_soon(appending("Log", str(each))) for each in range(260)]
            await office.settles()
            refused = [each.error for each in answers if each.has_come]
            assert {type(each) for each in refused} == {Busy}
            assert {str(each) for each in refused} == {
                "256 requests wait for canvas 'plan'; try again later"
            }
            assert len(refused) == 3
        await office.passes(20)
        assert sum(each.value is not None for each in answers) == 257
        subscriptions = [office.ask_soon(subscribing(f"h{each}")) for each in range(256)]
        await office.passes(5)
        assert all(each.value.subscribed for each in subscriptions)
        error = await office.refused(subscribing("one-more"))
        assert isinstance(error, Unavailable)
        assert "256 handles subscribe to canvas 'plan' already" in str(error)
        assert (await office.subscribe("H7", ["Log"])).sections == ["Log"]
        assert len((await office.info()).subscribers) == 256

    play(story)


def test_a_reply_is_never_larger_than_a_client_takes() -> None:
    async def story(office: Office) -> None:
        quotes = '"' * 100_000  # each takes two bytes of JSON
        office.edits(f"## A\n\n{quotes}\n\n## B\n\n{quotes}\n\n## C\n\nend\n")
        await office.passes(1)
        read = await office.read()
        assert len(json.dumps(attrs.asdict(read))) <= MAX_REPLY_BYTES
        assert [each.more for each in read.sections] == [False, True, True]
        alone = await office.section("B")
        assert (alone.text, alone.more) == (quotes, False)
        found = await office.ask(GetCanvasHistory(name="plan", limit=1000))
        assert len(json.dumps(attrs.asdict(found))) <= MAX_REPLY_BYTES
        assert found.more
        assert found.result[0].section == "Log"

    play(story)


def test_a_history_has_the_newest_changes_of_a_section() -> None:
    async def story(office: Office) -> None:
        for number in range(5):
            await office.append("Log", f"log {number}")
            await office.append("Goals", f"goal {number}")
        found = await office.ask(GetCanvasHistory(name="plan", limit=3))
        assert (found.canvas, found.more) == ("plan", True)
        assert [each.text for each in found.result] == ["goal 4", "log 4", "goal 3"]
        found = await office.ask(GetCanvasHistory(name="plan", section="Log", limit=6))
        assert [each.text for each in found.result][::-1] == [
            "begun",
            *(f"log {number}" for number in range(5)),
        ]
        assert not found.more
        found = await office.ask(GetCanvasHistory(name="plan", section="zzz"))
        assert (found.result, found.more) == ([], False)
        assert (await office.ask(GetCanvasHistory(name="plan"))).more is False

    play(story)


def test_a_long_history_is_kept_in_part_and_the_canvas_as_a_whole() -> None:
    async def story(office: Office) -> None:
        await office.subscribe("bob", ["Todo"])
        await office.subscribe("eve")
        big = "x" * 100_000
        for number in range(60):
            await office.write("Log", f"{number} {big}", force=True)
        await office.append("Todo", "one", by="carl")
        await office.passes(3)
        sizes = [len(data or b"") for path, data in office.image().items() if str(LEDGER) in path]
        assert sum(sizes) < 13_000_000
        read = await office.read()
        await office.restart(power_fails=True)
        assert await office.read() == read
        info = await office.info()
        assert (info.subscribers, info.rev) == (["bob", "eve"], 63)
        texts = [each.text or "" for each in await office.changes("Log")]
        assert texts[-1].startswith("59 ")
        await office.passes(3)
        assert office.woken() == ["one"]
        assert (await office.append("Todo", "two")).rev == 64
        assert office.woken() == ["one", "two"]
        assert set(office.inboxes.tries.values()) == {1}
        await office.check()

    play(story)


# Opening.


def test_a_canvas_is_bound_to_its_file_for_good() -> None:
    async def story(office: Office) -> None:
        info = await office.open("Plan", "./plan.md")
        assert (info.name, info.file, info.rev, info.sections) == (
            *("plan", "plan.md", 2),
            ["Goals", "Log"],
        )
        assert (info.subscribers, info.problem) == ([], "")
        error = await office.refused(OpenCanvas(name="plan", file="other.md"))
        assert isinstance(error, AlreadyExists)
        assert str(error).startswith("canvas 'plan' is bound to 'plan.md' for good")
        error = await office.refused(OpenCanvas(name="other", file="plan.md"))
        assert isinstance(error, AlreadyExists)
        assert str(error) == "the file 'plan.md' is canvas 'plan' already; open that one"
        error = await office.refused(OpenCanvas(name="plans"))
        assert isinstance(error, NotFound)
        assert str(error) == (
            "there is no canvas 'plans'; did you mean 'plan'?; to open a new canvas, give its file"
        )
        error = await office.refused(ReadCanvas(name="zzzzzz"))
        assert str(error) == "there is no canvas 'zzzzzz'; see aegis_canvas_list"
        await office.restart(power_fails=True)
        again = await office.open()
        assert (again.created_at, again.file) == (info.created_at, "plan.md")

    play(story)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("", "is no path"),
        ("a\0.md", "is no path"),
        ("\ud800.md", "is no path"),
        ("../plan.md", "is not below the project's root"),
        ("/etc/plan.md", "is not below the project's root"),
        (".git/plan.md", "is in a directory of a program"),
        ("x/.aegis/plan.md", "is in a directory of a program"),
        ("plan.txt", "its name must end with .md"),
        ("none/plan.md", "its directory does not exist"),
        ("bad.md", "not valid UTF-8"),
    ],
)
def test_a_file_that_cannot_be_a_canvas_is_refused(file: str, words: str) -> None:
    async def story(office: Office) -> None:
        await office.stop()
        office.put({f"{ROOT}/bad.md": b"\xff"})
        await office.start()
        error = await office.refused(OpenCanvas(name="bad", file=file))
        assert isinstance(error, InvalidRequest)
        assert words in str(error)
        assert await office.listed() == []

    play(story, text=None)


def test_directories_of_the_configuration_may_have_canvases() -> None:
    async def story(office: Office) -> None:
        info = await office.open("notes", "/notes/x.MD")
        assert info.file == "/notes/x.MD"
        assert (await office.open("more", "x.markdown")).file == "x.markdown"
        await office.ask(attrs.evolve(writing("A", "x"), name="notes"))
        assert office.image()["/notes/x.MD"] == b"## A\n\nx\n"
        await office.stop()
        office.directories = ()
        await office.start()
        await office.settles()
        error = await office.refused(ReadCanvas(name="notes"))
        assert isinstance(error, Unavailable)
        assert "its directory is not in canvases.directories any more" in str(error)
        assert {each.name for each in await office.listed()} == {"more", "notes"}

    play(story, text=None, directories=["/notes"])


def test_a_canvas_that_is_opened_twice_at_once_is_one() -> None:
    async def story(office: Office) -> None:
        answers = [office.ask_soon(OpenCanvas(name=each, file="x.md")) for each in ("a", "A", "b")]
        await office.settles()
        assert [each.value.name for each in answers[:2]] == ["a", "a"]
        assert isinstance(answers[2].error, AlreadyExists)
        assert [each.name for each in await office.listed()] == ["a"]

    play(story, text=None)


def test_a_full_disk_opens_no_canvas() -> None:
    async def story(office: Office) -> None:
        office.plan.refuses = WRITES
        error = await office.refused(OpenCanvas(name="plan", file="plan.md"))
        assert isinstance(error, StorageError)
        office.plan.refuses = ()
        await office.restart()
        assert await office.listed() == []
        await office.open(file="plan.md")
        assert [each.name for each in await office.listed()] == ["plan"]

    play(story, text=None)


def test_a_canvas_whose_settings_are_damaged_is_listed_with_its_problem() -> None:
    async def story(office: Office) -> None:
        await office.stop()
        office.put({f"{DIRECTORY}/plan/meta.json": b"{}\n"})
        await office.start()
        await office.settles()
        info = await office.info()
        assert "is damaged" in info.problem
        for request in (
            ReadCanvas(name="plan"),
            OpenCanvas(name="plan", file="plan.md"),
            subscribing(),
        ):
            error = await office.refused(request)
            assert isinstance(error, StorageError)
            assert str(error) == info.problem
        assert (await office.open("other", "other.md")).name == "other"
        assert [each.name for each in await office.listed()] == ["other", "plan"]

    play(story)


def test_at_most_256_canvases_exist() -> None:
    async def story(office: Office) -> None:
        for number in range(256):
            await office.open(f"c{number}", f"c{number}.md")
        error = await office.refused(OpenCanvas(name="more", file="more.md"))
        assert isinstance(error, Unavailable)
        assert str(error) == "256 canvases exist, which is the limit"
        assert (await office.open("c7")).name == "c7"
        await office.restart()
        assert len(await office.listed()) == 256
        await office.passes(2)
        assert {each.problem for each in await office.listed()} == {""}

    play(story, text=None)


# Lists, streams, crashes.


def test_streams_follow_the_canvases() -> None:
    async def story(office: Office) -> None:
        news = await office.news()
        assert (news.is_all, [each.name for each in news.canvases]) == (True, ["plan"])
        await office.append("Log", "mine")
        news = await office.news(news)
        assert not news.is_all
        [info] = news.canvases
        assert (info.rev, info.problem, info.sections) == (3, "", ["Goals", "Log"])
        assert info.last is not None
        assert (info.last.rev, info.last.text, info.last.writer) == (3, "mine", "agent:ada")
        await office.subscribe()
        news = await office.news(news)
        assert news.canvases[0].subscribers == ["bob"]
        office.edits("plain text\n")
        await office.passes(1)
        news = await office.news(news)
        assert news.canvases[0].sections == ["body"]
        await office.open("other", "other.md")
        news = await office.news(news)
        assert [each.name for each in news.canvases] == ["other"]
        info = news.canvases[0]
        assert (info.rev, info.last, info.file) == (0, None, "other.md")

    play(story)


def test_the_list_has_the_sections_of_the_file_after_a_restart() -> None:
    async def story(office: Office) -> None:
        office.edits("## Log\n\nbegun\n\n## Goals\n\n- ship\n")
        await office.append("New", "x")
        await office.restart()
        assert (await office.info()).sections == ["Log", "Goals", "New"]
        office.edits("text\n")
        await office.passes(1)
        await office.restart()
        assert (await office.info()).sections == ["body"]

    play(story)


def test_the_last_change_is_shown_in_part() -> None:
    async def story(office: Office) -> None:
        await office.append("Log", "\n".join(f"line {each}" for each in range(100)))
        last = (await office.info()).last
        assert last is not None
        assert last.text == "\n".join(f"line {each}" for each in range(6))
        assert (last.section, last.op, last.added) == ("Log", "appended", 100)

    play(story)


@pytest.mark.parametrize("actor", ["CanvasActor", "CanvasDesk"])
def test_a_crash_loses_nothing(actor: str) -> None:
    async def story(office: Office) -> None:
        await office.subscribe("bob", ["Log"])
        await office.append("Log", "one")
        before = await office.listed()
        await office.crashes(actor)
        assert await office.listed() == before
        await office.append("Log", "two")
        assert await office.appended() == ["one", "two"]
        assert office.woken() == ["one", "two"]
        news = await office.news()
        await office.append("Log", "three")
        assert (await office.news(news)).canvases[0].rev == 5

    play(story)


def test_a_canvas_that_crashed_too_often_is_started_by_the_next_request() -> None:
    async def story(office: Office) -> None:
        for number in range(1, 5):
            office.crashes_at("actor.receive.before[CanvasActor]", number)
        for _ in range(5):
            office.notify()
            await office.passes(0.3)
        await office.passes(3)
        assert (await office.section("Log")).text == "begun"
        await office.append("Log", "one")
        assert await office.appended() == ["one"]

    play(story)


def test_a_canvas_that_cannot_start_refuses_requests_until_it_can() -> None:
    async def story(office: Office) -> None:
        await office.stop()
        office.crashes_at("actor.setup.before[CanvasActor]")
        await office.start()
        read = office.ask_soon(ReadCanvas(name="plan"))
        await office.settles()
        assert isinstance(read.error, Unavailable)
        assert str(read.error) == (
            "canvas 'plan' had an internal error while it was opened; nothing is lost: call again"
        )
        assert (await office.section("Log")).text == "begun"

    play(story)


def test_a_file_that_cannot_be_watched_is_looked_at_every_five_seconds() -> None:
    async def story(office: Office) -> None:
        await office.stop()
        office.watch_problems[:] = ["no watch is left"]
        await office.start()
        await office.passes(20)
        asked = len(office.watched)
        office.edits(EDIT, is_noticed=False)
        await office.passes(6)
        assert [each.text for each in await office.changes("Goals")] == ["- ship", "- sail"]
        assert asked < len(office.watched) <= asked + 2
        office.watch_problems[:] = [""]
        await office.passes(6)
        asked = len(office.watched)
        await office.passes(20)
        assert len(office.watched) == asked

    play(story)


def test_a_directory_that_is_not_watched_any_more_is_watched_again() -> None:
    async def story(office: Office) -> None:
        asked = len(office.watched)
        office.edits(EDIT, is_noticed=False)
        office.notify(is_lost=True)
        await office.passes(1)
        assert len(office.watched) == asked + 1
        assert office.watched[-1] == "plan"
        assert len(await office.changes("Goals")) == 2

    play(story)


def test_requests_for_a_canvas_that_starts_are_answered_in_order() -> None:
    async def story(office: Office) -> None:
        await office.stop()
        await office.start()
        desk = office.system.ref("root/desk")
        replies = [desk.send_request(appending("Log", str(each))) for each in range(300)]
        done = []
        for number, each in enumerate(replies):
            try:
                await each.wait()
            except (Busy, Unavailable):
                continue
            done.append(str(number))
        assert 255 <= len(done) < 300
        assert await office.appended() == done

    play(story)


def test_revisions_are_never_given_twice() -> None:
    async def story(office: Office) -> None:
        office.dies_at("exchange")
        office.ask_soon(appending("Log", "lost"))
        await office.settles()
        await office.restart(power_fails=True)
        done = await office.append("Log", "mine")
        assert done.rev == 4  # 3 was that of the write that was cut
        assert (await office.read()).rev == 4
        assert [each.rev for each in await office.changes()] == [1, 2, 4]

    play(story)


@pytest.mark.parametrize("request_", [SubscribeCanvas, UnsubscribeCanvas, GetCanvasHistory])
def test_an_unknown_canvas_is_refused(request_: Any) -> None:
    async def story(office: Office) -> None:
        error = await office.refused(request_(name="nope"))
        assert isinstance(error, NotFound)
        assert "there is no canvas 'nope'" in str(error)

    play(story, text=None)


RECORDINGS = Path(__file__).parents[2] / "recordings"


def recorded(name: str, is_whole: bool) -> bytes:
    """Return a recorded ledger; unless it ``is_whole``, without lines that the next one implies."""
    lines = (RECORDINGS / name).read_bytes().splitlines(keepends=True)
    kept = [each for each in lines if is_whole or b'"done"' not in each or b'"rev":8,' in each]
    return b"".join(kept)


@pytest.mark.parametrize("power_fails", [False, True])
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_ledger_of_a_version_before_tables_is_read_and_continued(
    power_fails: bool, is_whole: bool
) -> None:
    """It was killed in the exchange of revision 14; bob and eve have confirmed revision 9."""

    async def story(office: Office) -> None:
        await office.stop()
        before = "## Goals\n\n- ship soon\n- sail\n\n## Log\n\nbegun early\none\ntwo\nthree\nfour"
        after = "\n\n## New\n\nnew\n\n## Empty\n"
        office.put(
            {
                str(LEDGER): recorded("canvas_before_tables.jsonl", is_whole),
                f"{LEDGER}.1": recorded("canvas_before_tables_1.jsonl", is_whole),
                FILE: f"{before}\nfive{after}".encode(),
                _swap(office): f"{before}{after}".encode(),
            }
        )
        await office.start()
        await office.settles()
        for number in range(2):
            await office.check()
            changes = await office.changes()
            assert [each.rev for each in changes] == [1, 2, 3, 4, *range(6, 15 + number)]
            assert [each.rev for each in changes if each.displaced] == [9]
            assert [each.text for each in changes][:4] == [
                *("- ship", "begun"),
                *("one", "- ship\n- sail"),
            ]
            assert [each.text for each in changes][12:13] == ["five"]
            assert [each.timestamp for each in changes][:1] == ["2026-01-01T00:00:00.004Z"]
            goals, log, new, empty = (await office.read()).sections
            assert (goals.rev, goals.writer, goals.text) == (11, "outside", "- ship soon\n- sail")
            assert (log.rev, log.writer) == (14 + number, "agent:ada")
            assert (new.rev, new.text, empty.rev, empty.writer) == (12, "new", 13, "human")
            info = await office.open()
            assert (info.rev, info.subscribers) == (14 + number, ["bob", "eve"])
            revs = [int(each.id.split("/")[2]) for each in office.wakes()]
            assert revs == [10, 12, 13, 14, 15][: 4 + number]
            assert office.woken("eve") == ["four", "- sail"]
            if not number:
                assert (await office.append("Log", "six")).rev == 15
                await office.passes(3)
                await office.restart(power_fails=power_fails)
        assert set(office.inboxes.tries.values()) == {1}

    play(story)


def test_sections_that_another_version_has_found_in_the_same_file_are_recorded_anew() -> None:
    async def story(office: Office) -> None:
        before = {"op": "changed", "writer": OUTSIDE, "added": 1, "removed": 0, "timestamp": ""}
        rows = [
            {"id": "1", "set": {"type": "revision", "section": "Old", "text": "x", **before}},
            {"id": "file", "set": {"type": "file", "rev": 1, "digest": digest_of(PLAN.encode())}},
        ]
        seal = office.disk.seal(LEDGER)
        await office.stop()
        office.put({str(LEDGER): b"".join(seal_new_line(encode_line(row), seal) for row in rows)})
        await office.start()
        await office.passes(1)
        changes = [(each.section, each.op) for each in await office.changes()]
        assert changes[:1] == [("Old", "changed")]
        assert sorted(changes[1:]) == [("Goals", "changed"), ("Log", "changed"), ("Old", "removed")]
        await office.restart()
        assert len(await office.changes()) == 4
        await office.check()

    play(story)
