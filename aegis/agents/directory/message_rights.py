"""``SendingRights``: the messages that sessions may send, by their profiles and limits. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from aegis.agents.directory.roster import Member, Roster
from aegis.agents.drivers.commands import refuse_command
from aegis.agents.profiles.limits import HOUR_S, Counters
from aegis.agents.profiles.profile import Profile
from aegis.agents.profiles.rights import refuse_message, refuse_profile, refuse_reach
from aegis.errors import AegisError, Forbidden, NotFound, Unavailable
from aegis.protocol.naming import name_key


class SendingRights:
    """The sessions of a root as senders and receivers; the directory sets ``roster``.

    It sets ``has_closed`` too: whether the session with this id has reported its close, of which
    the roster learns later.

    ``profile_of`` returns the profile of a session, ``profile_named`` that of a name; they raise
    ``NotFound``. Messages of an agent
    that is no session are not counted, like those of a person: it belongs to no tree.
    """

    def __init__(
        self,
        profile_of: Callable[[Member], Profile],
        profile_named: Callable[[str], Profile],
        counters: Counters,
    ) -> None:
        self.roster: Roster | None = None
        self.has_closed: Callable[[str], bool] = lambda id_: False
        self._profile_named = profile_named
        self._profile_of = profile_of
        self._counters = counters

    def session_of(self, handle: str) -> str | None:
        """Return the id of the open session with this handle; None if there is none.

        A terminal agent takes no turns: it reads its inbox like any other client.
        """
        member = self._member(handle)
        return None if member is None or member.cmd is not None else member.id

    def refuse_closed(self, handle: str) -> AegisError | None:
        """Return why the session with this handle reads no messages; None if it does."""
        member = None if self.roster is None else self.roster.find(handle)
        is_gone = self.was_dropped(handle) or (member is not None and member.is_purged)
        if is_gone:
            return NotFound(f"the session {handle!r} is gone: send to another one")
        if member is None or not (member.is_closed or self.has_closed(member.id)):
            return None
        return Unavailable(
            f"the session {member.handle!r} is closed and reads no messages: send to another one, "
            f"or resume it first, as a person, with agent launch --resume {member.handle}"
        )

    def has(self, handle: str) -> bool:
        """Return whether a session has or had this handle."""
        return self.roster is not None and self.roster.has_had(handle)

    def was_dropped(self, handle: str) -> bool:
        """Return whether a session had this handle that is not kept any more."""
        return self.roster is not None and self.roster.was_dropped(handle)

    def refuse_handoff(
        self, sender: str, target: str, *, interrupts: bool, now: float
    ) -> AegisError | None:
        """Return why the target does not take a message of the agent ``sender``, else count it."""
        if self.roster is None:
            return Unavailable("aegis_handoff: the sessions are not read yet; try again")
        by, to = self._member(sender), self._member(target)
        refusal = self._refuse_by_profile(sender, by, to)
        if refusal is None and interrupts and by is not None and to is not None:
            parents = self.roster.parents()
            refusal = refuse_reach("interrupt", by.handle, to.handle, parents)
        if refusal is not None:
            return Forbidden(f"aegis_handoff: {refusal}")
        if by is None:
            return None
        tree = root_of(self.roster, by)
        limit = self._counters.refuse_message(tree, now)
        if limit is not None:
            return Unavailable(f"aegis_handoff: {limit}")
        self._counters.note_message(tree, now)
        return None

    def refuse_command(self, target: str, name: str) -> AegisError | None:
        """Return why a person's command of this name is not sent to the session ``target``."""
        member = self._member(target)
        if member is None:
            return None
        try:
            provider = self._profile_of(member).provider.name
        except NotFound:
            provider = ""
        refusal = refuse_command(name, member.handle, provider)
        return None if refusal is None else Forbidden(refusal)

    def refuse_work(self, sender: str | None, agent: str) -> AegisError | None:
        """Return why the agent ``sender``, None for a person, may give no work to a profile."""
        if self.roster is None:
            return Unavailable("the sessions are not read yet; try again")
        by = None if sender is None else self.roster.find(sender)
        if by is not None and by.cmd is None and by.is_closed:
            # A process or a workflow of it may have outlived it.
            return Forbidden(f"session {by.handle!r} is closed")
        try:
            wanted = self._profile_named(agent)
            if by is None or by.cmd is not None:
                return None  # a person, or a client with its own URL: neither has a profile
            own = self._profile_of(by)
        except NotFound as error:
            return error
        refusal = refuse_profile(
            own.name, own.permission, own.may_spawn, wanted.name, wanted.permission
        )
        return None if refusal is None else Forbidden(refusal)

    def refuse_messages(self, sender: str, number: int, now: float) -> AegisError | None:
        """Return why the agent ``sender`` may not send so many messages now, else count them."""
        by = self._member(sender)
        if by is None or self.roster is None:
            return None
        tree = root_of(self.roster, by)
        limit = self._counters.refuse_message(tree, now)
        if limit is not None:
            return Unavailable(limit)
        for _ in range(number):
            self._counters.note_message(tree, now)
        return None

    def commands(self, caller: str, owner: str) -> bool:
        """Return whether the agent ``caller`` is ``owner``, or a session that spawned it."""
        if self.roster is None:
            return name_key(caller) == name_key(owner)
        by, to = self.roster.find(caller), self.roster.find(owner)
        if by is None or to is None:
            return name_key(caller) == name_key(owner)
        return by.id == to.id or by.id in [each.id for each in self.roster.ancestors(to.id)]

    def _refuse_by_profile(self, sender: str, by: Member | None, to: Member | None) -> str | None:
        if to is None:
            return None
        try:
            profile = self._profile_of(to)
        except NotFound:
            return None  # without its profile the session has no process that could act
        return refuse_message(
            to.handle,
            profile.permission,
            profile.accepts_from,
            sender if by is None else by.handle,
            None if by is None else by.profile,
            () if by is None else by.aliases,
        )

    def _member(self, handle: str) -> Member | None:
        member = None if self.roster is None else self.roster.find(handle)
        return None if member is None or member.is_closed else member


def root_of(roster: Roster, member: Member) -> str:
    """Return the id of the session that a person started, above ``member`` or itself."""
    return [member, *roster.ancestors(member.id)][-1].id


def count_spawns(roster: Roster, counters: Counters, now: float) -> None:
    """Count the spawns of the last hour, after a restart of the daemon."""
    for member in roster.by_id.values():
        if member.parent in roster.by_id:
            at = datetime.fromisoformat(member.at).timestamp()
            if now - HOUR_S < at:
                counters.note_spawn(root_of(roster, member), min(at, now))
