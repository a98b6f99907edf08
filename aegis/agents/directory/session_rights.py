"""``SessionRights``: what each open session may call, as its profile says. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

import attrs

from aegis.agents.drivers.acp.frames import mapping
from aegis.agents.drivers.acp.updates import content_text
from aegis.agents.profiles.profile import Profile, own_keys
from aegis.agents.profiles.rights import refuse_call, refuse_program, refuse_terminals, verdict
from aegis.protocol.agent_events import RequestOpened
from aegis.protocol.naming import name_key
from aegis.protocol.table import BY_NAME
from aegis.protocol.tool_sets import Offer


class SessionRights:
    """The profiles of open sessions by handle; the directory keeps it, the servers ask it."""

    def __init__(self) -> None:
        self._profiles: dict[str, Profile] = {}
        self._sessions: dict[str, tuple[str, Profile]] = {}
        self._allowed: dict[str, Allowed] = {}
        self._programs: dict[str, frozenset[str] | None] = {}

    def open(self, session: str, handle: str, profile: Profile) -> None:
        """Note the handle and the profile of the session with the id ``session``."""
        self._sessions[session] = handle, profile
        self._allowed.setdefault(name_key(handle), Allowed())
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

    def note_allowed(self, handle: str, request: RequestOpened, lasts: bool) -> None:
        """Note a permission that the session ``handle`` was given; ``lasts``: for the session."""
        self._allowed.setdefault(name_key(handle), Allowed()).add(request, lasts=lasts)

    def refuse(
        self,
        handle: str,
        command: str,
        terminals: Iterable[str] = (),
        arguments: Mapping[str, object] | None = None,
    ) -> str | None:
        """Return why the session may not call a command on terminals; None if it may.

        ``arguments`` are those of a call over MCP: only such calls are the model's own, those of
        other wires come from commands that were approved as such.

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
        asks = profile.provider.asks_for_our_tools
        if needs_person and asks is None and arguments is not None:
            if not self._allowed[name_key(handle)].take(command, arguments):
                return (
                    f"command {command!r} needs the approval of a person, for which the agent has "
                    "not asked with these arguments: have it ask by session/request_permission "
                    "first, or ask a person for a profile with a higher permission"
                )
        elif needs_person and asks is False:
            return (
                f"command {command!r} needs the approval of a person, for which "
                f"{profile.provider.name} does not ask: ask a person to run it, or for a profile "
                "with a higher permission"
            )
        return refuse_call(command, profile.permission, profile.name)


MAX_ALLOWED = 64
"""Permissions of a session whose calls have not come; the oldest is dropped."""

_TOOL = re.compile(r"(?:(?:mcp[_.:/-]+)?aegis[_.:/-]+)?aegis_(\w+)")
"""The name of a tool of ours, with the name of our server as agents put it before."""

_TITLE = re.compile(_TOOL.pattern + r"(?: ?[:(].*)?", re.DOTALL)
"""The title of a call of a tool of ours: its name, and then its arguments or its server."""


class Allowed:
    """The calls of our tools that were allowed to one session, and have not come yet. Pure."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, Mapping[str, object]]] = []
        self._lasting: set[str] = set()

    def add(self, request: RequestOpened, *, lasts: bool) -> None:
        """Note a permission; one that is not for a tool of ours changes nothing."""
        named = _TOOL.fullmatch(request.tool)
        found = named
        if not request.tool and request.tool_kind == "other":
            # The title of a command or of a file may be any text.
            found = _TITLE.fullmatch(request.title)
        if found is None:
            return
        command = found[1]
        if lasts and (named is not None or _calls_in(command, request.input)):
            self._lasting.add(command)
        else:
            self._calls = [*self._calls, (command, request.input)][-MAX_ALLOWED:]

    def take(self, command: str, arguments: Mapping[str, object]) -> bool:
        """Return whether a call was allowed; the permission of one call is used up."""
        if command in self._lasting:
            return True
        for place, (name, shown) in enumerate(self._calls):
            if name == command and _fits(command, shown, arguments):
                del self._calls[place]
                return True
        return False


def _fits(command: str, shown: Mapping[str, object], arguments: Mapping[str, object]) -> bool:
    """Return whether the input that a person saw is that of a call.

    An input without any argument is that of a call without arguments.
    """
    # What is left out has its default: MCP fills that in.
    defaults = {name: each.default for name, each in _fields(command).items()}
    wanted = _comparable({**defaults, **arguments})
    calls = _calls_in(command, shown) or [{}]
    return any(_comparable({**defaults, **each}) == wanted for each in calls)


def _calls_in(command: str, shown: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the parts of an input that can be the arguments of a call.

    codex puts them below the names of the server and the tool; gemini shows them as a text.
    """
    below = mapping(shown.get("arguments"))
    known = _fields(command).keys()
    return [each for each in (shown, below, _in_text(shown)) if known & each.keys()]


def _in_text(shown: Mapping[str, object]) -> Mapping[str, object]:
    try:
        return mapping(json.loads(content_text(shown.get("content"))))
    except (ValueError, RecursionError):
        return {}


def _fields(command: str) -> Mapping[str, attrs.Attribute[object]]:
    entry = BY_NAME.get(command)
    return {} if entry is None else attrs.fields_dict(entry.command)


def _comparable(arguments: Mapping[str, object]) -> str:
    given = {name: value for name, value in arguments.items() if value is not None}
    return json.dumps(given, sort_keys=True, default=str)
