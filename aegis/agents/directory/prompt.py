"""The first message of a session, which is delivered before its spawn is answered."""

from __future__ import annotations

import uuid

from actors import Registry
from aegis.agents.directory.roster import Member
from aegis.clock import utc_now
from aegis.protocol.inboxes import Deliver


async def deliver_prompt(member: Member, prompt: str, registry: Registry) -> None:
    """Put the first message into the session's inbox; durable when it returns."""
    service = registry.find("service", "inboxes")
    assert service is not None
    by = member.spawned_by
    await service.ask(
        Deliver(
            handle=member.address,
            id=f"spawn:{member.id}" if not member.reopened else f"resume:{uuid.uuid4().hex}",
            sender="human" if by == "human" else f"agent:{by}",
            body=prompt,
            timestamp=utc_now(),
        )
    )
