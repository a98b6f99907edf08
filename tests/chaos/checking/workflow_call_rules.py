"""Rules for the calls of workflows: tasks, questions, messages and sessions, each once. Pure.

A workflow that a person runs again from its beginning makes all calls once more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.checking.agent_evidence import WORK, Entry
from tests.chaos.checking.case import Case
from tests.chaos.checking.rule import Rule
from tests.chaos.checking.task_rules import begins
from tests.chaos.checking.workflow_evidence import DECLINED, QuestionAnswered, WorkflowEvidence

ASKED_AGAIN = ("before the answer was applied", "before the answer could", "may have acted")
"""Words of the reasons of a withdrawal after which the workflow asks again.

The person whose answer was lost has got no reply.
"""

TASK_FAILED = "TaskFailed"


def retries_of(evidence: WorkflowEvidence, *also: str) -> Counter[str | None]:
    """Return how often each workflow may have been run from its beginning once more.

    ``also`` are further orders that count.
    """
    return Counter(
        each.id
        for each in evidence.ordered
        if each.kind in ("retry", *also) and each.done is not False
    )


def _tasks_of(case: Case) -> dict[str, list[Entry]]:
    """Return the tasks of workflows by their tokens."""
    owners, found = case.evidence.workflows.owners("task"), defaultdict[str, list[Entry]](list)
    for task in case.evidence.tasks.tasks:
        for token in WORK.findall(task["payload"]):
            if token in owners:
                found[token].append(task)
    return found


def _task_twice(case: Case) -> Iterator[str]:
    """Find delegated steps with several tasks."""
    evidence = case.evidence.workflows
    owners, retries = evidence.owners("task"), retries_of(evidence)
    for token, tasks in _tasks_of(case).items():
        if len(tasks) > 1 + retries[owners[token]]:
            yield f"{token} of {owners[token]} has the tasks {[each['task_id'] for each in tasks]}"


def _task_result_wrong(case: Case) -> Iterator[str]:
    """Find results of delegated steps that are not those of their tasks."""
    tasks, begun = _tasks_of(case), begins(case)
    for each in case.evidence.workflows.results("task"):
        [token] = WORK.findall(each.step)
        if each.kind == "refused" and not each.result.startswith(TASK_FAILED):
            continue  # the queue refused the task
        if not any(_is_result(task, each.kind == "passed", each.result) for task in tasks[token]):
            yield f"{each.step} of {each.workflow} had {each.result!r}; its tasks: {tasks[token]}"
        elif each.kind == "passed" and token not in begun:
            yield f"{each.step} of {each.workflow} had {each.result!r}, and no agent got it"


def _is_result(task: Entry, is_done: bool, result: str) -> bool:
    """Return whether a step whose task is this one has that result."""
    if is_done:
        return bool(task["status"] == "completed" and task["result"] == result)
    return task["status"] in ("failed", "cancelled") and f"task {task['task_id']} " in result


def _questions(case: Case) -> dict[tuple[str, str], list[Entry]]:
    """Return the requests of workflows by workflow and question."""
    found = defaultdict[tuple[str, str], list[Entry]](list)
    for request in case.evidence.agents.requests:
        if request.get("workflow") is not None:
            [question] = request["input"]["questions"]
            found[request["workflow"], question["question"]].append(request)
    return found


def _question_twice(case: Case) -> Iterator[str]:
    """Find questions with several requests, and open ones at the end, when no workflow runs."""
    # The end of a workflow withdraws its questions; one that is resumed asks again.
    again = retries_of(case.evidence.workflows, "resume")
    for (workflow, question), requests in _questions(case).items():
        ids = [each["id"] for each in requests if not _is_asked_again(each)]
        if len(ids) > 1 + again[workflow]:
            yield f"{question!r} of {workflow} has the requests {ids}"
        for each in requests:
            if each["state"] == "open":
                yield f"{question!r} of {workflow} is open in {each['id']}, and nobody waits for it"


def _is_asked_again(request: Entry) -> bool:
    return any(words in (request["withdrawn"] or "") for words in ASKED_AGAIN)


def _answer_wrong(case: Case) -> Iterator[str]:
    """Find answers that no person gave, that are not the applied one, and questions without one."""
    evidence = case.evidence.workflows
    given, retries = _given(evidence), retries_of(evidence)
    for (workflow, question), answers in given.items():
        applied = [each.text for each in answers if each.outcome == "applied"]
        if len(applied) > 1 + retries[workflow]:
            yield f"{question!r} of {workflow} was answered by each of {applied}"
    for each in evidence.results("ask"):
        if each.kind == "refused":
            yield f"{each.step} of {each.workflow} was refused: {each.result}"
            continue
        answers = given[each.workflow, each.step.partition(":")[2]]
        possible = [one for one in answers if one.outcome not in ("refused", "already_answered")]
        is_known = not retries[each.workflow] and any(one.outcome == "applied" for one in possible)
        texts = [one.text for one in possible if one.outcome == "applied" or not is_known]
        if each.result not in [DECLINED if text is None else text for text in texts]:
            yield f"{each.step} of {each.workflow} had {each.result!r}; given was {answers}"


def _given(evidence: WorkflowEvidence) -> dict[tuple[str, str], list[QuestionAnswered]]:
    found = defaultdict[tuple[str, str], list[QuestionAnswered]](list)
    for each in evidence.answered:
        found[each.workflow, each.question].append(each)
    return found


def _message_twice(case: Case) -> Iterator[str]:
    """Find messages that are in inboxes, or that programs got, more often than they were sent."""
    evidence, agents = case.evidence.workflows, case.evidence.agents
    owners, retries = evidence.owners("send"), retries_of(evidence)
    stored = Counter(
        token
        for messages in agents.inboxes.values()
        for message in messages
        for token in WORK.findall(message["body"])
    )
    got = Counter(token for frame in agents.frames for token in frame.tokens)
    for token, owner in owners.items():
        if max(stored[token], got[token]) > 1 + retries[owner]:
            yield (
                f"{token} of {owner} is in inboxes {stored[token]} times, and programs got it "
                f"{got[token]} times"
            )


def _reply_wrong(case: Case) -> Iterator[str]:
    """Find replies that are not the text with which an agent answers the message."""
    begun = begins(case)
    for each in case.evidence.workflows.results("send"):
        [token] = WORK.findall(each.step)
        # After a usage limit the agent continues without another order.
        may_be = {f"did {token.strip('@')}", *({""} if token.endswith(".limit@") else ())}
        if each.kind == "passed" and (each.result not in may_be or token not in begun):
            yield f"{each.step} of {each.workflow} had the reply {each.result!r}"


def _session_left(case: Case) -> Iterator[str]:
    """Find sessions of ended workflows that are open, or whose programs live."""
    for session in case.evidence.agents.sessions:
        by = str(session.get("spawned_by", ""))
        if by.startswith("workflow:") and session["state"] != "closed":
            yield f"{session['handle']} of {by} is {session['state']}"
    for handle in case.evidence.workflows.living:
        yield f"the program of {handle} lives, and its workflow has ended"


WORKFLOW_CALL_RULES: dict[str, Rule] = {
    "workflow task twice": Rule("G20", _task_twice),
    "workflow task result": Rule("G20", _task_result_wrong),
    "workflow question twice": Rule("G20", _question_twice),
    "workflow answer": Rule("G20", _answer_wrong),
    "workflow message twice": Rule("G20", _message_twice),
    "workflow reply": Rule("G20", _reply_wrong),
    "workflow session left": Rule("G20", _session_left),
}
