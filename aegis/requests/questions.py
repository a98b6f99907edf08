"""Questions by ``aegis_ask_human``, whose owner is the desk itself. Pure.

The answer is the reply to the callers that still wait, else a message to the asker's inbox, under
an id of its own: a delivery that is tried again adds nothing.
"""

from __future__ import annotations

import hashlib
import json

from aegis.clock import utc_now
from aegis.names import shorten
from aegis.protocol.agent_events import QuestionAnswer, RequestAnswer
from aegis.protocol.inboxes import Deliver
from aegis.protocol.requests import ASK_HUMAN, Answerer, AskHuman, HumanAnswer, OpenRequest
from aegis.requests.records import Record

DESK = "service:requests"
"""The owner of these questions."""


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
    return HumanAnswer(request_id=record.id, state=record.state, answer=text)


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
