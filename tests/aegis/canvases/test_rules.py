"""The rules of one canvas, as tables."""

from __future__ import annotations

import json

import attrs
import pytest

from aegis.canvases import events as e
from aegis.canvases.rules import LOOK, MAX_JOBS, MAX_SUBSCRIBERS, PATIENCE_S
from aegis.canvases.state import CanvasState, head_line
from aegis.errors import Busy, InvalidRequest, NotFound, StorageError, Unavailable
from aegis.journal.file_content import digest_of
from aegis.protocol.command import MAX_REPLY_BYTES
from tests.aegis.canvases.world import World, is_same

PLAN = b"## Goals\n\n- ship\n\n## Log\n\nbegun\n"


@pytest.fixture
def world() -> World:
    world = World(file=PLAN)
    world.run()
    return world


def test_a_file_is_known_from_its_first_look(world: World) -> None:
    assert is_same(world)
    assert [(each.section, each.op, each.writer) for each in world.history()] == [
        ("Goals", "changed", "outside"),
        ("Log", "changed", "outside"),
    ]


def test_an_intent_is_synced_before_the_exchange_and_that_before_the_answer(world: World) -> None:
    caller = world.append("Log", "more")
    world.do_work()
    [intent] = world.unsynced
    assert intent.line["kind"] == "intent"
    assert not world.work
    world.sync()
    assert isinstance(world.work[0], e.Exchange)
    assert caller not in world.answers
    assert world.file == PLAN
    world.do_work()
    assert world.answers[caller].op == "appended"
    assert world.text.endswith("begun\nmore\n")
    assert [each.line["kind"] for each in world.unsynced] == ["done"]


def test_a_section_is_replaced_with_its_rev_only(world: World) -> None:
    rev = world.canvas.state.sections["Goals"].rev
    with pytest.raises(InvalidRequest, match=f"pass if_rev={rev}"):
        world.answer(world.write("Goals", "x"))
    done = world.answer(world.write("Goals", "of ada", if_rev=rev))
    with pytest.raises(Busy, match=r'written by agent:ada since.*"of ada"'):
        world.answer(world.write("Goals", "of bob", if_rev=rev, writer="agent:bob"))
    with pytest.raises(NotFound, match="no section 'Gone' any more"):
        world.answer(world.write("Gone", "x", if_rev=3))
    assert world.answer(world.write("New", "x")).rev > done.rev
    assert world.answer(world.write("Goals", "x", force=True)).op == "written"


def test_the_same_text_changes_nothing(world: World) -> None:
    rev = world.canvas.state.sections["Goals"].rev
    before = len(world.durable)
    done = world.answer(world.write("Goals", "- ship", if_rev=rev))
    assert (done.rev, done.added, done.removed) == (rev, 0, 0)
    assert len(world.durable) == before


def test_an_edit_is_recorded_before_anything_else(world: World) -> None:
    world.file = PLAN.replace(b"- ship", b"- sail")
    rev = world.canvas.state.sections["Goals"].rev
    with pytest.raises(Busy, match="written by outside since"):
        world.answer(world.write("Goals", "x", if_rev=rev))
    world.answer(world.append("Log", "more"))
    assert "- sail" in world.text
    assert is_same(world)


@pytest.mark.parametrize("times", [1, 3])
def test_an_edit_during_the_exchange_is_written_upon(world: World, times: int) -> None:
    left = [times]

    def edit() -> None:
        if left[0]:
            left[0] -= 1
            world.file = (world.file or b"").replace(b"- ship", b"- ship\n- more")

    world.before_exchange = edit
    world.answer(world.append("Log", "mine"))
    assert world.text.count("- more") == times
    assert world.text.count("mine") == 1
    assert is_same(world)


def test_a_file_that_keeps_changing_refuses_the_write(world: World) -> None:
    def edit() -> None:
        world.now += 1.0
        world.file = (world.file or b"") + b"x\n"

    world.before_exchange = edit
    with pytest.raises(Busy, match="keep changing the file"):
        world.answer(world.append("Log", "mine"))
    world.before_exchange = None
    world.run()
    assert "mine" not in world.text
    assert is_same(world)


def test_a_write_waits_for_a_program_that_writes_and_a_read_does_not(world: World) -> None:
    world.is_open = True
    write = world.append("Log", "mine")
    world.do_work()
    read = world.ask(e.Job(kind="read"))
    assert [each.text for each in world.answers[read].sections] == ["- ship", "begun"]
    world.is_open = False
    assert world.answer(write).op == "appended"


def test_a_program_that_writes_for_long_refuses_the_write(world: World) -> None:
    world.is_open = True
    caller = world.append("Log", "mine")
    world.now += PATIENCE_S
    world.do_work()
    assert isinstance(world.answers[caller], Busy)
    assert "open for writing" in str(world.answers[caller])


AFTER = PLAN.replace(b"begun", b"begun\nmine")
EDIT = PLAN.replace(b"- ship", b"- sail")


@pytest.mark.parametrize(
    ("file", "swap", "is_done", "lost"),
    [
        (PLAN, None, False, None),  # killed before the new file was written
        (PLAN, AFTER, False, None),  # before the exchange
        (AFTER, PLAN, True, None),  # after it
        (AFTER, None, True, None),  # after the displaced file was removed
        (AFTER, AFTER, True, None),  # between two steps of a new file
        (EDIT, AFTER, False, None),  # an edit while nothing ran, before the exchange
        (EDIT, PLAN, True, None),  # an edit after it
        (EDIT, None, True, None),  # perhaps it was acknowledged before the edit
        (AFTER, EDIT, True, "- sail"),  # an edit was displaced
        (None, AFTER, False, None),
        (None, PLAN, True, None),
    ],
)
def test_an_unclear_exchange_is_judged_by_both_files(
    world: World, file: bytes | None, swap: bytes | None, is_done: bool, lost: str | None
) -> None:
    world.subscribe("bob")
    world.run()
    world.append("Log", "mine")
    world.do_work()
    world.sync()
    world.kill()
    world.file, world.swap = file, swap
    world.start()
    world.run()
    assert world.swap is None
    assert is_same(world)
    recorded = [each for each in world.history() if each.op == "appended"]
    assert len(recorded) == is_done
    told = [each for each in world.woken.get("bob", {}).values() if each.op == "appended"]
    assert len(told) == is_done
    if lost is not None:
        [displaced] = [each for each in world.history() if each.displaced]
        assert displaced.text == lost
        assert displaced in [
            attrs.evolve(each, text=lost) for each in world.woken["bob"].values() if each.displaced
        ]


def test_a_file_of_an_earlier_exchange_that_comes_back_is_no_edit(world: World) -> None:
    world.answer(world.append("Log", "one"))
    world.file = EDIT
    world.handle(e.Asked(job=LOOK))
    world.run()
    world.kill(kept_lines=9)
    world.swap = PLAN  # its removal was not durable
    world.start()
    world.run()
    assert world.look().swap.data is None
    assert not any(each.displaced for each in world.history())


def test_a_displaced_file_is_in_the_history_once(world: World) -> None:
    world.swap = EDIT
    world.handle(e.Asked(job=LOOK))
    world.do_work()
    world.do_work()
    world.sync()  # it is recorded, and not removed yet
    world.kill()
    world.start()
    world.run()
    assert len([each for each in world.history() if each.displaced]) == 1


def test_a_write_that_did_not_begin_is_not_taken_for_done(world: World) -> None:
    world.answer(world.append("Log", "one"))
    world.run()
    world.append("Log", "two")
    world.do_work()
    world.sync()
    world.kill()
    world.swap = PLAN  # left by the first exchange
    world.start()
    world.run()
    assert "two" not in [each.text for each in world.history()]
    assert is_same(world)


def test_a_displaced_file_that_is_no_text_is_kept_under_another_name(world: World) -> None:
    world.append("Log", "mine")
    world.do_work()
    world.sync()
    world.kill()
    world.file, world.swap = AFTER, b"\xff\xfe"
    world.start()
    world.run()
    assert world.kept == [b"\xff\xfe"]
    assert is_same(world)


@pytest.mark.parametrize("failure", ["before", "after"])
def test_a_disk_that_fails_in_the_exchange_is_judged_by_the_next_look(
    world: World, failure: str
) -> None:
    caller = world.append("Log", "mine")
    world.do_work()
    world.sync()
    world.do_work(failure=failure)
    assert isinstance(world.answers[caller], StorageError)
    world.run()
    assert is_same(world)
    assert ("mine" in world.text) == (failure == "after")
    assert len([each for each in world.history() if each.op == "appended"]) == (failure == "after")


def test_a_write_after_a_disk_that_failed_in_the_exchange_keeps_both(world: World) -> None:
    world.append("Log", "mine")
    world.do_work()
    world.sync()
    world.do_work(failure="after")
    world.swap = PLAN
    world.run()
    world.answer(world.append("Log", "after it"))
    assert world.text.endswith("begun\nmine\nafter it\n")
    assert is_same(world)


def test_no_reader_gets_an_older_text_than_its_revision(world: World) -> None:
    world.append("Log", "mine")
    world.do_work()
    world.sync()
    world.do_work(failure="after")
    world.swap = PLAN
    world.do_work()  # the look that finds the write in the file
    world.is_open = True
    reader = world.ask(e.Job(kind="read", section="Log"))
    for _ in range(4):
        if world.work:
            world.do_work()
    world.is_open = False
    world.run()
    [section] = world.answers[reader].sections
    assert section.rev == world.canvas.state.sections["Log"].rev
    assert section.text.endswith("mine")


def test_names_are_synced_before_an_unclear_exchange_is_judged(world: World) -> None:
    world.append("Log", "mine")
    world.do_work()
    world.sync()
    world.do_work()
    world.kill()
    world.start()
    [look] = world.work
    assert isinstance(look, e.Examine)
    assert look.is_unclear
    world.run()
    world.ask(e.Job(kind="read", section="Log"))
    assert not any(isinstance(each, e.Examine) and each.is_unclear for each in world.work)


def test_a_full_disk_refuses_the_write_and_changes_nothing(world: World) -> None:
    caller = world.append("Log", "mine")
    subscription = world.subscribe("bob")
    world.do_work()
    world.refuse()
    assert isinstance(world.answers[caller], StorageError)
    assert isinstance(world.answers[subscription], StorageError)
    world.run()
    assert world.file == PLAN
    assert world.canvas.state.subscribers == {}
    world.answer(world.append("Log", "again"))


def test_an_edit_that_cannot_be_recorded_is_looked_for_again(world: World) -> None:
    world.file = EDIT
    world.handle(e.Asked(job=e.Job(kind="look")))
    world.do_work()
    world.handle(world.later.pop())
    world.do_work()
    world.do_work()
    world.refuse()
    assert world.later
    world.run()
    assert is_same(world)


def test_a_lost_line_of_a_done_write_is_implied_by_the_next(world: World) -> None:
    world.answer(world.append("Log", "one"))
    world.append("Log", "two")
    world.durable = [line for line in world.durable if line["kind"] != "done"]
    world.run()
    world.durable = [line for line in world.durable if line["kind"] != "done"]
    world.kill()
    world.start()
    world.run()
    assert [each.text for each in world.history() if each.op == "appended"] == ["one", "two"]
    assert is_same(world)


def test_subscribers_are_woken_by_what_they_want(world: World) -> None:
    assert world.answer(world.subscribe("ada")).sections is None
    assert world.answer(world.subscribe("bob", ["Log"])).sections == ["Log"]
    world.answer(world.append("Log", "by ada"))
    world.answer(world.write("New", "by carl", writer="agent:carl"))
    assert [each.text for each in world.woken["ada"].values()] == ["by carl"]
    assert [each.text for each in world.woken["bob"].values()] == ["by ada"]


def test_a_change_of_before_the_subscription_wakes_nobody(world: World) -> None:
    world.answer(world.append("Log", "before"))
    world.answer(world.subscribe("bob"))
    world.kill()
    world.start()
    world.run()
    assert world.woken.get("bob", {}) == {}


def test_an_unsubscribed_handle_is_woken_no_more(world: World) -> None:
    world.answer(world.subscribe("bob"))
    world.callers += 1
    world.handle(e.Unsubscribing(handle="BOB", caller=world.callers))
    assert not world.answer(world.callers).subscribed
    world.answer(world.append("Log", "x"))
    assert world.woken.get("bob", {}) == {}


def test_what_is_confirmed_is_not_sent_again(world: World) -> None:
    world.answer(world.subscribe("bob"))
    world.answer(world.append("Log", "x"))
    world.confirm()
    world.run()
    world.woken.clear()
    world.kill()
    world.start()
    world.run()
    assert world.woken.get("bob", {}) == {}
    assert not world.canvas.state.owed


def texts(world: World, handle: str = "bob") -> list[str | None]:
    return [each.text for each in world.woken.get(handle, {}).values()]


def after_a_kill(world: World) -> list[str | None]:
    """Return the wakes that the subscriber is owed if the inbox has lost everything."""
    world.kill()
    world.woken.clear()
    world.start()
    world.run()
    return texts(world)


def test_a_wider_subscription_does_not_wake_for_changes_of_before_even_after_a_kill(
    world: World,
) -> None:
    world.answer(world.subscribe("bob", ["Log"]))
    world.answer(world.write("New", "other"))
    world.answer(world.append("Log", "one"))
    world.answer(world.subscribe("bob"))
    world.answer(world.append("New", "two"))
    assert texts(world) == ["one", "two"]
    assert after_a_kill(world) == ["one", "two"]


def test_a_narrower_subscription_still_wakes_for_changes_of_before_after_a_kill(
    world: World,
) -> None:
    world.answer(world.subscribe("bob"))
    world.answer(world.write("New", "one"))
    world.answer(world.subscribe("bob", ["Log"]))
    world.answer(world.subscribe("bob", ["Todo"]))
    world.answer(world.append("New", "other"))
    assert after_a_kill(world) == ["one"]
    assert [each.sections for each in world.canvas.state.subscribers["bob"].former] == [None]
    world.confirm()
    world.answer(world.subscribe("bob", ["Log"]))
    assert not world.canvas.state.subscribers["bob"].former
    assert texts(world) == ["one"]


def exchanging(world: World, section: str, text: str) -> None:
    """Bring a write up to the exchange of the file."""
    world.append(section, text)
    world.do_work()
    world.sync()


def test_a_change_during_the_sync_of_a_subscription_wakes_in_order(world: World) -> None:
    exchanging(world, "Log", "one")
    world.subscribe("bob")
    world.do_work()
    assert texts(world) == []
    world.run()
    world.answer(world.append("Log", "two"))
    assert texts(world) == ["one", "two"]
    assert after_a_kill(world) == ["one", "two"]


def test_a_change_during_the_sync_of_other_sections_belongs_to_these(world: World) -> None:
    world.answer(world.subscribe("bob", ["Log"]))
    exchanging(world, "New", "one")
    world.subscribe("bob", ["New"])
    world.do_work()
    assert texts(world) == []
    world.run()
    assert texts(world) == ["one"]
    assert after_a_kill(world) == ["one"]


def test_a_subscription_that_the_disk_refuses_delays_no_wake(world: World) -> None:
    world.answer(world.subscribe("bob", ["Log"]))
    exchanging(world, "Log", "one")
    refused = world.subscribe("bob", ["New"])
    world.do_work()
    assert texts(world) == []
    world.refuse()
    assert isinstance(world.answers[refused], StorageError)
    assert texts(world) == ["one"]


def test_a_file_that_is_no_canvas_refuses_everything_and_is_left_alone(world: World) -> None:
    world.file = b"caf\xe9"
    for job in (e.Job(kind="read"), e.Job(kind="open")):
        with pytest.raises(Unavailable, match="not valid UTF-8"):
            world.answer(world.ask(job))
    with pytest.raises(Unavailable, match="cannot be used"):
        world.answer(world.append("Log", "x"))
    assert world.file == b"caf\xe9"
    assert "UTF-8" in world.canvas.info().problem
    world.file = EDIT
    world.answer(world.append("Log", "x"))
    assert world.canvas.info().problem == ""


def test_the_numbers_of_jobs_and_subscribers_are_limited(world: World) -> None:
    callers = [world.append("Log", str(number)) for number in range(MAX_JOBS + 2)]
    assert isinstance(world.answers[callers[-1]], Busy)
    world.run()
    assert all(caller in world.answers for caller in callers)
    for number in range(MAX_SUBSCRIBERS):
        world.answer(world.subscribe(f"h{number}"))
    with pytest.raises(Unavailable, match="256 handles subscribe"):
        world.answer(world.subscribe("one-more"))
    world.answer(world.subscribe("h7", ["Log"]))


def test_a_head_has_the_whole_state(world: World) -> None:
    world.answer(world.subscribe("bob", ["Log"]))
    world.answer(world.append("Log", "x"))
    assert world.canvas.is_quiet
    restored = CanvasState()
    restored.apply({"seq": 7, "kind": "subscribed", "handle": "gone", "rev": 1, "sections": None})
    restored.apply(head_line(world.canvas.state))
    assert restored.stored() == world.canvas.state.stored()
    assert restored.digest == digest_of(world.file)


def test_a_removed_file_is_an_edit_and_a_write_makes_it_again(world: World) -> None:
    world.file = None
    world.answer(world.append("Log", "again"))
    ops = [(each.section, each.op) for each in world.history()]
    assert ("Goals", "removed") in ops
    assert ops[-1] == ("Log", "appended")
    assert world.text == "## Log\n\nagain\n"


def test_a_reply_is_never_larger_than_a_client_takes(world: World) -> None:
    quotes = '"' * 100_000  # each takes two bytes of JSON
    world.file = f"## A\n\n{quotes}\n\n## B\n\n{quotes}\n\n## C\n\nend\n".encode()
    read = world.answer(world.ask(e.Job(kind="read")))
    assert len(json.dumps(attrs.asdict(read))) <= MAX_REPLY_BYTES
    assert [each.more for each in read.sections] == [False, True, True]
    alone = world.answer(world.ask(e.Job(kind="read", section="B")))
    assert alone.sections[0].text == quotes
    assert not alone.sections[0].more


def test_a_section_that_does_not_exist_is_refused_with_the_nearest(world: World) -> None:
    with pytest.raises(NotFound, match="did you mean 'Goals'"):
        world.answer(world.ask(e.Job(kind="read", section="goal")))
