"""Rules for workflows: a finished step is never done again, and none is forgotten. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tests.chaos.checking.case import Case
from tests.chaos.checking.rule import Rule
from tests.chaos.checking.workflow_evidence import WorkflowEvidence

ENDS = ("completed", "failed", "cancelled")

DONE = re.compile(r"did \S+(?: in [0-9]+)?")
"""The result of a step, or of a call of an agent, in the result of a workflow."""


def _times(evidence: WorkflowEvidence, *kinds: str) -> Counter[str]:
    """Return how often each workflow may have been ordered to do one of these."""
    return Counter(
        each.id for each in evidence.ordered if each.kind in kinds and each.done is not False
    )


def _done_again(case: Case) -> Iterator[str]:
    """Find steps that were begun again after a process had got their results."""
    evidence = case.evidence.workflows
    retried = _times(evidence, "retry")
    passed: set[tuple[str, str]] = set()
    for each in evidence.steps:
        place = each.workflow, each.step
        if each.kind == "passed":
            passed.add(place)
        elif place in passed and not retried[each.workflow]:
            yield f"{each.step} of {each.workflow} was done again by process {each.process}"


def _begun_twice(case: Case) -> Iterator[str]:
    """Find steps that were begun more often than anybody allowed."""
    evidence = case.evidence.workflows
    allowed = _times(evidence, "resume", "retry")
    orders = {each.id: each.orders for each in evidence.runs if each.id is not None}
    once = {
        (id_, step)
        for id_, given in orders.items()
        for order in given
        if order.startswith(("step:", "both:"))
        for step in order.partition(":")[2].split(",")
    }
    begun = Counter((e.workflow, e.step) for e in evidence.steps if e.kind == "begun")
    for (id_, step), times in begun.items():
        if (id_, step) in once and times > 1 + allowed[id_]:
            yield f"{step} of {id_} was begun {times} times"


def _result_changed(case: Case) -> Iterator[str]:
    """Find steps that had different results for two processes."""
    evidence = case.evidence.workflows
    retried, known = _times(evidence, "retry"), dict[tuple[str, str], str]()
    for each in evidence.steps:
        if each.kind != "begun" and not retried[each.workflow]:
            before = known.setdefault((each.workflow, each.step), each.result)
            if before != each.result:
                yield f"{each.step} of {each.workflow} had {before!r} and {each.result!r}"


def _forgotten(case: Case) -> Iterator[str]:
    """Find workflows that were acknowledged, and that are not known at the end, or run."""
    evidence = case.evidence.workflows
    last = {each.id: each.status for each in evidence.shown if each.is_last}
    for each in evidence.runs:
        if each.id is not None and last.get(each.id) not in ENDS:
            yield f"workflow {each.id} is {last.get(each.id, 'forgotten')}"


def _end_changed(case: Case) -> Iterator[str]:
    """Find ends that were shown and are others later, although nobody ran it again."""
    evidence = case.evidence.workflows
    again = _times(evidence, "resume", "retry")
    known: dict[str, tuple[str, str | None]] = {}
    for each in sorted(evidence.shown, key=lambda shown: shown.span.asked):
        before = known.get(each.id)
        if before is not None and not again[each.id] and before != (each.status, each.result):
            yield f"workflow {each.id} was {before}, and is {each.status}, {each.result}"
        if each.status in ENDS:
            known[each.id] = each.status, each.result


def _key_twice(case: Case) -> Iterator[str]:
    """Find keys of one sender with several workflows."""
    ids: dict[tuple[str, str], set[str]] = {}
    for each in case.evidence.workflows.runs:
        if each.key is not None and each.id is not None:
            ids.setdefault((each.sender, each.key), set()).add(each.id)
    yield from (f"the key {key} has {sorted(some)}" for key, some in ids.items() if len(some) > 1)


def _unreported(case: Case) -> Iterator[str]:
    """Find ends of which the starter got no message, a wrong one, or one that it did not want."""
    evidence = case.evidence.workflows
    again = _times(evidence, "resume", "retry")
    last = {each.id: each.status for each in evidence.shown if each.is_last}
    for each in evidence.runs:
        if each.id is None or each.sender not in case.evidence.kept or again[each.id]:
            continue
        messages = [
            message
            for message in case.evidence.kept[each.sender]
            if message["id"].startswith(f"workflow:{each.id}/")
        ]
        if len(messages) != each.callback:
            yield f"{each.sender} got {len(messages)} messages about the end of {each.id}"
        is_ok = last.get(each.id) == "completed"
        if any((message["status"] == "ok") is not is_ok for message in messages):
            yield f"{each.sender} got {messages} about {each.id}, which is {last.get(each.id)}"


def _invented(case: Case) -> Iterator[str]:
    """Find results with a step that no process has passed."""
    evidence = case.evidence.workflows
    passed = {(each.workflow, each.result) for each in evidence.steps if each.kind == "passed"}
    for each in evidence.shown:
        for part in DONE.findall((each.result or "").strip('"')):
            if (each.id, part) not in passed:
                yield f"workflow {each.id} has the result {each.result!r}"


def _stuck(case: Case) -> Iterator[str]:
    """Find workflows that do not come to rest."""
    yield from case.evidence.workflows.stuck


WORKFLOW_RULES: dict[str, Rule] = {
    "step done again": Rule("G20", _done_again),
    "step begun twice": Rule("G20", _begun_twice),
    "step result changed": Rule("G20", _result_changed),
    "workflow forgotten": Rule("G20", _forgotten),
    "workflow end changed": Rule("G20", _end_changed),
    "workflow key twice": Rule("G20", _key_twice),
    "workflow unreported": Rule("G20", _unreported),
    "workflow result invented": Rule("G20", _invented),
    "workflow stuck": Rule("G20", _stuck),
}
