"""The first message of a session, which is delivered before its spawn is answered."""

from __future__ import annotations

import uuid

from actors import Registry
from aegis.agents.directory.roster import Member
from aegis.clock import utc_now
from aegis.protocol.inboxes import PROGRAM_ID, Deliver


async def deliver_prompt(
    member: Member,
    prompt: str,
    registry: Registry,
    *,
    is_first: bool,
    is_person: bool,
    task: str | None = None,
) -> None:
    """Put the spawner's first message, or one of a resume, into the inbox; durable on return.

    ``is_person``: a person has written it, not a program that has no handle.
    """
    service = registry.find("service", "inboxes")
    assert service is not None
    by = member.spawned_by if is_first else "human"
    id_ = f"spawn:{member.id}" if is_first else f"resume:{uuid.uuid4().hex}"
    await service.ask(
        Deliver(
            handle=member.address,
            id=f"{PROGRAM_ID}{id_}" if by == "human" and not is_person else id_,
            sender=by if by == "human" or by.startswith("queue:") else f"agent:{by}",
            body=prompt,
            timestamp=utc_now(),
            task_id=task,
        )
    )
