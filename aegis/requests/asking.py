"""``Askers``: the callers of ``aegis_ask_human`` that wait, and the messages to those that do not.

The desk itself owns such a question. Its answer is the reply to the callers that still wait, else a
message to the asker's inbox, under an id of its own: a delivery that is tried again adds nothing.
"""

from __future__ import annotations

import hashlib
import json

import attrs

from actors import Reply
from aegis.clock import utc_now
from aegis.names import shorten
from aegis.protocol.agent_events import QuestionAnswer, RequestAnswer
from aegis.protocol.inboxes import Deliver
from aegis.protocol.requests import ASK_HUMAN, Answerer, AskHuman, HumanAnswer, OpenRequest
from aegis.requests.records import SHOWN_AS, Record

DESK = "service:requests"
"""The owner of these questions."""


@attrs.frozen
class _Waiter:
    request: str
    reply: Reply[HumanAnswer]


class Askers:
    """The callers that wait for answers, by numbers of the desk."""

    def __init__(self) -> None:
        self._waiters: dict[int, _Waiter] = {}

    def add(self, number: int, record: Record, reply: Reply[HumanAnswer]) -> None:
        """Have a caller wait for the answer to a question."""
        self._waiters[number] = _Waiter(record.id, reply)

    def give_up(self, number: int) -> None:
        """Reply that the question is still open, unless the caller has its answer."""
        waiter = self._waiters.pop(number, None)
        if waiter is not None:
            waiter.reply.send(HumanAnswer(request_id=waiter.request, state="open", answer=None))

    def settle(self, record: Record) -> bool:
        """Reply to the callers that wait for this question; return whether there was one."""
        found = [each for each, waiter in self._waiters.items() if waiter.request == record.id]
        replies = [self._waiters.pop(each).reply for each in found]
        waiting = [each for each in replies if not each.is_settled]
        for each in waiting:
            each.send(human_answer(record))
        return bool(waiting)


def question_of(command: AskHuman, asker: str, by: Answerer) -> OpenRequest:
    """Return the request that a question opens; the same question has the same key."""
    labels = [{"label": each} for each in command.options or ()]
    question = {"question": command.question, "options": labels, "multiSelect": False}
    digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()
    return OpenRequest(
        owner=DESK,
        handle=by.handle,
        key=f"ask:{digest}",
        kind="question",
        session=by.session,
        asker=asker,
        tool=ASK_HUMAN,
        title=f"{by.handle} asks: {command.question}",
        input={"questions": [question]},
        needs_person=True,
    )


def human_answer(record: Record) -> HumanAnswer:
    """Return the reply to a caller that waits for this question."""
    text = None if record.answer is None else answer_in(record.answer)
    return HumanAnswer(request_id=record.id, state=SHOWN_AS[record.phase], answer=text)


def answer_in(answer: RequestAnswer) -> str | None:
    """Return the text of an answer to one question; None if the person declined."""
    given = answer.answers if isinstance(answer, QuestionAnswer) else None
    return None if given is None else ", ".join(next(iter(given.values())))


def answer_message(record: Record) -> Deliver:
    """Return the message with the answer, for an asker that does not wait."""
    assert record.asker is not None
    assert record.answer is not None
    assert record.by is not None
    text, question = answer_in(record.answer), shorten(_question(record), 200)
    said = "the person declined to answer" if text is None else text
    return Deliver(
        handle=record.asker,
        id=f"request:{record.id}/answer",
        sender=record.by,
        body=f"answer to your question {question!r} (request {record.id}):\n{said}",
        timestamp=utc_now(),
    )


def _question(record: Record) -> str:
    return str((record.input or {"questions": [{"question": ""}]})["questions"][0]["question"])
