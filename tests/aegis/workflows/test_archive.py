"""Settled runs are moved to the archive; what is known of them is known all the same."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.errors import InvalidRequest, NotFound
from aegis.journal.archive import Keep
from aegis.protocol.history import ListEnded
from aegis.protocol.workflows import (
    CancelWorkflow,
    GetWorkflow,
    ListWorkflowSteps,
    ResumeWorkflow,
    RetryWorkflow,
    RunWorkflow,
    WorkflowInfo,
)
from tests.aegis.workflows.office import DIRECTORY, Office, play
from tests.chaos.machine.disk_model import cached_image

FEW = Keep(newest=2, days=0, most=1_000)


async def done(office: Office, count: int) -> list[str]:
    """Run workflows with the keys k0, k1, …, and complete each; return their ids."""
    ids = []
    for number in range(count):
        ids.append(await office.run(key=f"k{number}"))
        await office.returns(ids[-1], f"result {number}")
        await office.passes(1)
    return ids


async def kept(office: Office) -> list[str]:
    return [each.workflow_id for each in (await office.listed(1_000)).result]


def directories(office: Office) -> set[str]:
    image = cached_image(office.disk.model)
    below = (
        each.removeprefix(f"{DIRECTORY}/") for each in image if each.startswith(f"{DIRECTORY}/")
    )
    return {each.partition("/")[0] for each in below} - {"", "runs.jsonl"}


def test_a_run_is_answered_from_the_archive_as_it_was() -> None:
    async def story(office: Office) -> None:
        running = await office.run(key="running")
        before: dict[str, WorkflowInfo] = {}
        for number in range(6):
            id_ = await office.run(key=f"k{number}")
            await office.returns(id_, f"{number}" * 3_000)
            before[id_] = await office.ask(GetWorkflow(workflow_id=id_))
            await office.passes(1)
        ids = [*before]
        for restarts in (False, True, True):
            if restarts:
                await office.restart(power_fails=True)
                await office.passes(1)
            assert await kept(office) == [running, ids[5], ids[4]]
            assert directories(office) == {running, ids[5], ids[4]}
            for id_, info in before.items():
                assert await office.ask(GetWorkflow(workflow_id=id_)) == info
        unknown = await office.refused(GetWorkflow(workflow_id="0" * 26))
        assert isinstance(unknown, NotFound)

    play(story, keep=FEW)


def test_every_key_answers_with_the_same_id_once_rows_are_dropped_and_archived() -> None:
    async def story(office: Office) -> None:
        ids = await done(office, 12)
        assert len(await kept(office)) == 2
        for power_fails in (None, False, True):
            if power_fails is not None:
                await office.restart(power_fails=power_fails)
            for number, id_ in enumerate(ids):
                assert await office.run(key=f"k{number}") == id_
            why = await office.refusal(RunWorkflow(name="other", key="k0"))
            assert f"belongs to workflow {ids[0]}, which has another name" in why
            other: Any = RunWorkflow(name="work", key="k0", kwargs={"else": 1})
            assert f"belongs to workflow {ids[0]}" in await office.refusal(other)
        assert len(office.programs) == 12, "none is run again"
        assert await office.run(key="k0", by="lead") not in ids

    play(story, keep=FEW)


def test_an_archived_run_cannot_be_changed() -> None:
    async def story(office: Office) -> None:
        ids = await done(office, 4)
        for kind in (CancelWorkflow, ResumeWorkflow, RetryWorkflow):
            error = await office.refused(kind(workflow_id=ids[0]))
            assert isinstance(error, InvalidRequest)
            assert "it is completed, and in the archive; run it anew" in str(error)
        gone = await office.refused(ListWorkflowSteps(workflow_id=ids[0]))
        assert isinstance(gone, NotFound)
        assert "are not kept: it is in the archive" in str(gone)
        assert (await office.ask(ListWorkflowSteps(workflow_id=ids[-1]))).result == []

    play(story, keep=FEW)


def test_a_search_of_the_history_gets_settled_runs() -> None:
    async def story(office: Office) -> None:
        ids = await done(office, 3)
        await office.run()
        newest = (await office.ask(ListEnded())).ids
        assert newest == [*reversed(ids)]
        found = (await office.ask(ListEnded(ids=newest))).entries
        assert [(each.kind, each.id, each.outcome) for each in found] == [
            ("run", each, "completed") for each in newest
        ]

    play(story)


SEEDS = [*range(12), *(pytest.param(each, marks=pytest.mark.long) for each in range(12, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_that_refuses_and_kills_lose_no_run_and_no_key(seed: int) -> None:
    async def story(office: Office) -> None:
        ids: dict[int, str] = {}
        for number in range(25):
            await office.draws_trouble()
            answer = office.ask_soon(RunWorkflow(name="work", key=f"k{number}"))
            await office.passes(0.5)
            if answer.value is None:
                continue
            ids[number] = answer.value.workflow_id
            await office.passes(12)
            await office.returns(ids[number], f"result {number}")
            await office.passes(12)
        office.plan.faults.clear()
        await office.passes(200)
        await office.restart(power_fails=True)
        await office.passes(30)
        assert ids
        for number, id_ in ids.items():
            assert await office.run(key=f"k{number}") == id_
            info = await office.ask(GetWorkflow(workflow_id=id_))
            assert info.status in ("completed", "running", "failed")

    play(story, seed=seed, keep=FEW)
