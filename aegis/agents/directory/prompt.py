"""The first message of a session, which is delivered before its spawn is answered."""

from __future__ import annotations

import uuid

from actors import Registry
from aegis.agents.directory.roster import Member
from aegis.clock import utc_now
from aegis.protocol.inboxes import Deliver


async def deliver_prompt(
    member: Member, prompt: str, registry: Registry, *, is_first: bool, task: str | None = None
) -> None:
    """Put the spawner's first message, or one of a person, into the inbox; durable on return."""
    service = registry.find("service", "inboxes")
    assert service is not None
    by = member.spawned_by if is_first else "human"  # only a person resumes a session
    await service.ask(
        Deliver(
            handle=member.address,
            id=f"spawn:{member.id}" if is_first else f"resume:{uuid.uuid4().hex}",
            sender=by if by == "human" or by.startswith("queue:") else f"agent:{by}",
            body=prompt,
            timestamp=utc_now(),
            task_id=task,
        )
    )
