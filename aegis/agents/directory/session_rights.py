"""``SessionRights``: what each open session may call, as its profile says. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from aegis.agents.profiles.profile import Profile, own_keys
from aegis.agents.profiles.rights import refuse_call, refuse_program, refuse_terminals, verdict
from aegis.protocol.naming import name_key
from aegis.protocol.tool_sets import Offer


class SessionRights:
    """The profiles of open sessions by handle; the directory keeps it, the servers ask it."""

    def __init__(self) -> None:
        self._profiles: dict[str, Profile] = {}
        self._sessions: dict[str, tuple[str, Profile]] = {}
        self._programs: dict[str, frozenset[str] | None] = {}

    def open(self, session: str, handle: str, profile: Profile) -> None:
        """Note the handle and the profile of the session with the id ``session``."""
        self._sessions[session] = handle, profile
        self._profiles[name_key(handle)] = profile

    def note_program(self, terminal: str, keys: frozenset[str] | None) -> None:
        """Note the terminal of a terminal agent: other sessions may only read it.

        ``keys`` are the variables with keys that its program gets; None: all.
        """
        self._programs[name_key(terminal)] = keys

    def handle_of(self, session: str) -> str | None:
        """Return the handle of the session with this id; None if it is not known."""
        found = self._sessions.get(session)
        return None if found is None else found[0]

    def profile_of(self, session: str) -> Profile | None:
        """Return the profile of the session with this id; None if it is not known."""
        found = self._sessions.get(session)
        return None if found is None else found[1]

    def keys_of(self, handle: str) -> frozenset[str] | None:
        """Return the variables with keys that the agent ``handle`` gets; None: all.

        A closed session keeps its own; a handle that is no session has none.
        """
        profile = self._profiles.get(name_key(handle))
        if profile is not None:
            return own_keys(profile)
        return self._programs.get(name_key(handle), frozenset())

    def offer(self, handle: str) -> Offer | None:
        """Return the tools of the session ``handle``; None for a handle that is no session."""
        profile = self._profiles.get(name_key(handle))
        if profile is None:
            return None
        return Offer(profile.tools, is_driven=True, call_limit_s=profile.call_limit_s)

    def refuse(self, handle: str, command: str, terminals: Iterable[str] = ()) -> str | None:
        """Return why the session may not call a command on terminals; None if it may.

        A handle that is no session may call everything else that its key permits. A closed session
        keeps its rights: a process of it that outlived it gains nothing.
        """
        names = list(terminals)
        refusal = refuse_terminals(names)
        profile = self._profiles.get(name_key(handle))
        if refusal is not None or profile is None:
            return refusal
        refusal = refuse_program(command, names, self._programs)
        if refusal is not None:
            return refusal
        needs_person = verdict(command, profile.permission) == "ask"
        if needs_person and not profile.provider.asks_for_our_tools:
            return (
                f"command {command!r} needs the approval of a person, for which "
                f"{profile.provider.name} does not ask: ask a person to run it, or for a profile "
                "with a higher permission"
            )
        return refuse_call(command, profile.permission, profile.name)
