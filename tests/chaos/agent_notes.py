"""The log of clients about agent sessions, beside ``Notebook``."""

from __future__ import annotations

import attrs

from tests.chaos.checking.agent_evidence import (
    AgentEvidence,
    Began,
    Effect,
    Entry,
    Ordered,
    Process,
    Question,
    Replied,
    Reported,
    Said,
    Spawned,
    UserFrame,
    Work,
)
from tests.chaos.checking.observations import Message


@attrs.define(kw_only=True)
class AgentNotes:
    """The fields are those of ``AgentEvidence``."""

    spawned: list[Spawned] = attrs.field(factory=list)
    work: list[Work] = attrs.field(factory=list)
    ordered: list[Ordered] = attrs.field(factory=list)
    replied: list[Replied] = attrs.field(factory=list)
    processes: list[Process] = attrs.field(factory=list)
    frames: list[UserFrame] = attrs.field(factory=list)
    reported: list[Reported] = attrs.field(factory=list)
    questions: list[Question] = attrs.field(factory=list)
    effects: list[Effect] = attrs.field(factory=list)
    begun: list[Began] = attrs.field(factory=list)
    said: list[Said] = attrs.field(factory=list)
    sessions: list[Entry] = attrs.field(factory=list)
    transcripts: dict[str, tuple[Entry, ...]] = attrs.field(factory=dict)
    files: list[str] = attrs.field(factory=list)
    inboxes: dict[str, tuple[Message, ...]] = attrs.field(factory=dict)
    requests: list[Entry] = attrs.field(factory=list)
    waits: frozenset[str] = frozenset()
    stuck: list[str] = attrs.field(factory=list)

    def evidence(self) -> AgentEvidence:
        """Return the log as evidence."""
        return AgentEvidence(
            spawned=tuple(self.spawned),
            work=tuple(self.work),
            ordered=tuple(self.ordered),
            replied=tuple(self.replied),
            processes=tuple(self.processes),
            frames=tuple(self.frames),
            reported=tuple(self.reported),
            questions=tuple(self.questions),
            effects=tuple(self.effects),
            begun=tuple(self.begun),
            said=tuple(self.said),
            sessions=tuple(self.sessions),
            transcripts=self.transcripts,
            files=tuple(self.files),
            inboxes=self.inboxes,
            requests=tuple(self.requests),
            waits=self.waits,
            stuck=tuple(self.stuck),
        )
