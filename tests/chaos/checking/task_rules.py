"""Rules for tasks: none is lost, begun too often, or reported otherwise than it ended. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.checking.agent_evidence import WORK, Entry
from tests.chaos.checking.case import Case
from tests.chaos.checking.rule import Rule


def token_of(task: Entry) -> str:
    """Return the order in the payload of a task."""
    [token] = WORK.findall(task["payload"])
    return str(token)


def begins(case: Case) -> dict[str, list[int]]:
    """Return the moments at which agents got each order."""
    found: dict[str, list[int]] = defaultdict(list)
    for frame in case.evidence.agents.frames:
        for token in frame.tokens:
            found[token].append(frame.moment)
    return found


def _lost(case: Case) -> Iterator[str]:
    """Find acknowledged tasks that are gone, or have another payload."""
    evidence = case.evidence.tasks
    for each in evidence.enqueued:
        task = evidence.by_id.get(each.id or "")
        if each.id is not None and (task is None or token_of(task) != each.token):
            yield f"{each.token} was enqueued as {each.id}, which is {task}"


def _key_twice(case: Case) -> Iterator[str]:
    """Find keys of one sender that have several tasks."""
    evidence = case.evidence.tasks
    keys = Counter(
        (each["queue"], each["sender"], each["key"])
        for each in evidence.tasks
        if each["key"] is not None
    )
    for key, times in keys.items():
        if times > 1:
            yield f"{times} tasks have the key {key}"


def _begun_too_often(case: Case) -> Iterator[str]:
    """Find tasks that agents got more often than their attempts, or completed without an agent."""
    begun, most = begins(case), Counter[str]()
    for task in case.evidence.tasks.tasks:
        times = len(begun.get(token_of(task), ()))
        # The attempt of a task that is cancelled meanwhile is not counted any more; a person may
        # retry it then.
        retries = len(case.evidence.tasks.lines(task["task_id"], "retried"))
        is_cancelled = task["status"] == "cancelled"
        # A workflow that is run again from its beginning enqueues the same order once more.
        most[token_of(task)] += task["max_attempts"] if is_cancelled else task["attempt"] + retries
        if task["attempt"] > task["max_attempts"]:
            yield f"{token_of(task)} has more attempts than it may: {task}"
        if task["status"] == "completed" and not times:
            yield f"no agent got {token_of(task)}, which is completed"
    for token, times in most.items():
        if len(begun.get(token, ())) > times:
            yield f"an agent got {token} {len(begun[token])} times, and it has {times} attempts"


def _result_wrong(case: Case) -> Iterator[str]:
    """Find results of completed tasks that no agent has said."""
    for task in case.evidence.tasks.tasks:
        token = token_of(task).strip("@")
        # After a usage limit the agent continues without another order.
        may_be = {f"did {token}", *({""} if token.endswith(".limit") else ())}
        if task["status"] == "completed" and task["result"] not in may_be:
            yield f"{token} is completed with {task['result']!r}"


def _ended_twice(case: Case) -> Iterator[str]:
    """Find ends, and notes of a notification, that are stored again without a retry."""
    evidence = case.evidence.tasks
    for task in evidence.tasks:
        retries = len(evidence.lines(task["task_id"], "retried"))
        for kind in ("ended", "notified"):
            times = len(evidence.lines(task["task_id"], kind))
            if times > retries + 1:
                yield f"{kind} of {task['task_id']} is stored {times} times, with {retries} retries"


def _end_unreported(case: Case) -> Iterator[str]:
    """Find ends that no sender got, wrong ones, and ones that nobody wanted."""
    evidence = case.evidence.tasks
    kept = {**case.evidence.kept, **case.evidence.agents.inboxes}
    waited = {each.id for each in evidence.enqueued if each.ended is not None}
    silent = {each.token for each in evidence.enqueued if not each.callback}
    silent |= {*case.evidence.workflows.owners("task")}
    for task in evidence.tasks:
        sender = task["sender"].removeprefix("agent:")
        if sender not in kept or not task["ended"]:
            continue
        retries = len(evidence.lines(task["task_id"], "retried"))
        name = f"task:{task['task_id']}/end" + (f"/{retries}" if retries else "")
        found = [each for each in kept[sender] if each["id"] == name]
        if token_of(task) in silent:
            if found:
                yield f"{sender} was notified of {name} without a callback"
        elif not found and (retries or task["task_id"] not in waited):
            yield f"{sender} was not notified of {name}"
        for each in found:
            if each["status"] != ("ok" if task["status"] == "completed" else "error"):
                yield f"{sender} was notified of {name} as {each['status']}: {task}"


def _cancelled_wrongly(case: Case) -> Iterator[str]:
    """Find acknowledged cancellations without effect, and cancelled tasks that nobody cancelled."""
    evidence = case.evidence.tasks
    retried = {each.id for each in evidence.ordered if each.kind == "retry"}
    for each in evidence.ordered:
        task = evidence.by_id.get(each.id)
        if each.kind != "cancel" or task is None or each.id in retried:
            continue
        if each.done and task["status"] != "cancelled":
            yield f"{each.id} was cancelled and is {task['status']}"
    cancelled = {each.id for each in evidence.ordered if each.done is not False}
    for task in evidence.tasks:
        if task["status"] == "cancelled" and task["task_id"] not in cancelled:
            yield f"{task['task_id']} is cancelled, and nobody cancelled it"


def _out_of_order(case: Case) -> Iterator[str]:
    """Find tasks that began though a task that they name has not completed, or failed for none."""
    evidence, begun = case.evidence.tasks, begins(case)
    for each in evidence.enqueued:
        task = evidence.by_id.get(each.id or "")
        if task is None or not each.after or evidence.lines(task["task_id"], "retried"):
            continue
        ends = {name: evidence.by_id[name] for name in each.after if name in evidence.by_id}
        if begun.get(each.token) and any(end["status"] != "completed" for end in ends.values()):
            yield f"{each.token} began, and of the tasks before it some are not completed"
        if "which it waits for" in (task["error"] or "") and not any(
            end["status"] in ("failed", "cancelled") or evidence.lines(end["task_id"], "retried")
            for end in ends.values()
        ):
            yield f"{each.token} failed for another task, none of which failed"


def _stuck(case: Case) -> Iterator[str]:
    """Find tasks without an end, and workers that live on."""
    yield from case.evidence.tasks.stuck


TASK_RULES: dict[str, Rule] = {
    "task lost": Rule("G1", _lost),
    "key twice": Rule("G18", _key_twice),
    "task begun too often": Rule("G18", _begun_too_often),
    "task result": Rule("G18", _result_wrong),
    "task ended twice": Rule("G18", _ended_twice),
    "end unreported": Rule("G18", _end_unreported),
    "cancelled wrongly": Rule("G18", _cancelled_wrongly),
    "task out of order": Rule("G18", _out_of_order),
    "task stuck": Rule("G18", _stuck),
}
