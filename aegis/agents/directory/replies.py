"""Replies of the directory that need no session, and the settings of one by its profile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

import attrs

from actors import ActorError, Reply
from aegis.agents.directory.message_rights import root_of
from aegis.agents.directory.programs import Programs
from aegis.agents.directory.roster import SET, Member, Roster
from aegis.agents.drivers.harness import Permission
from aegis.agents.profiles.policy import decide
from aegis.agents.profiles.profile import Profile, every_profile, login_command, refuse_start
from aegis.agents.profiles.rights import refuse_reach
from aegis.agents.sessions.settings import Settings
from aegis.agents.sessions.steps import LogIn
from aegis.errors import AegisError, Forbidden, NotFound, Unavailable
from aegis.path_text import path_of_text
from aegis.protocol import agents as api
from aegis.protocol.agent_events import PermissionAnswer, RequestAnswer, RequestOpened
from aegis.protocol.feeds import FollowAgentCommand, FollowSession
from aegis.protocol.meta import MAX_PEERS, GetMeta, Meta, Peer
from aegis.protocol.naming import LOGIN_PREFIX, name_key
from aegis.protocol.requests import Answerer, FindAnswerer
from aegis.protocol.table import TOOLS
from aegis.protocol.tool_sets import OPEN_TO_HANDLES, Offer, chosen_with

Asked = GetMeta | api.ListAgents | FindAnswerer


def reply_to(
    message: Asked, roster: Roster, programs: Programs, handles: Callable[[], list[str]]
) -> Any:
    """Return the reply to a request that needs no session.

    ``handles`` returns the handles that have an inbox.
    """
    match message:
        case GetMeta(from_handle=handle):
            return meta_of(handle, roster, programs, handles())
        case api.ListAgents():
            return profile_list(programs)
        case FindAnswerer(handle=handle):
            return answerer(handle, roster, programs)


async def answer(
    reply: Reply[Any], work: Callable[..., Awaitable[object]], *arguments: object
) -> None:
    """Answer a request with what ``work`` returns, or with the error that it raises."""
    try:
        reply.send(await work(*arguments))
    except AegisError as error:
        reply.fail(error)
    except ActorError as error:
        reply.fail(Unavailable(str(error)))


MAX_NAME = 64
"""The longest name of a terminal."""


def profile_list(programs: Programs) -> api.ProfileList:
    """Return the profiles that can be spawned, and the reasons why others cannot."""
    configuration = programs.configuration
    return api.ProfileList(
        result=[
            api.ProfileInfo(
                profile=name,
                provider=profile.provider.name,
                permission=profile.permission,
                model=profile.model or "",
                is_default=name == configuration.default_agent,
                problem=_problem(profile, programs),
            )
            for name, profile in sorted(every_profile(configuration.agents).items())
        ]
    )


def _problem(profile: Profile, programs: Programs) -> str:
    refusal = refuse_start(profile, programs.variables)
    return refusal or programs.refuse_program(profile, path_of_text(programs.root)) or ""


def policy_of(profile: Profile, request: RequestOpened) -> tuple[RequestAnswer, str] | None:
    """Return the profile's answer to a request with its reason; None: a person is asked."""
    decision = decide(request, profile.permission)
    answer: PermissionAnswer | None = decision.answer
    return None if answer is None else (answer, decision.why)


def answerer(handle: str, roster: Roster, programs: Programs) -> Answerer:
    """Return the rights of ``handle`` to answer requests."""
    member = roster.find(handle)
    if member is None or member.is_closed or member.cmd is not None:
        return Answerer(handle=handle)
    profile = programs.profile_of(member)
    return Answerer(
        handle=member.handle,
        session=member.id,
        ancestors=[each.id for each in roster.ancestors(member.id)],
        answers_requests=profile.answers_requests,
    )


def login_terminal(handle: str) -> str:
    """Return the name of the terminal in which the agent of a session logs in."""
    return f"{LOGIN_PREFIX}{handle}"[:MAX_NAME]


def settings_of(member: Member, profile: Profile, programs: Programs, roster: Roster) -> Settings:
    """Return the settings of a session."""
    counters = programs.counters
    tree = root_of(roster, member)
    return Settings(
        session=member.id,
        name=partial(roster.names.shown, member.address),
        policy=partial(policy_of, profile),
        max_runtime_s=profile.max_runtime_s,
        answer_within_s=profile.answer_within_s,
        budget_usd=profile.budget_usd,
        limits_itself=profile.provider.family == "claude",
        rewinds=profile.provider.family == "claude",
        supervisor=member.spawned_by,
        note_cost=partial(counters.note_cost, tree),
        refuse_work=partial(counters.refuse_work, tree),
        note_allowed=partial(programs.rights.note_allowed, member.address),
        login=LogIn(command=login_command(profile), terminal=login_terminal(member.handle)),
        reopened=member.reopened,
        forked_from=member.forked_from,
        mentions=profile.provider.mentions,
        permission=profile.permission,
        model=profile.model or "",
        effort=profile.effort or "",
        edited=programs.edited,
        thinking=profile.thinking or "",
    )


def changed_member(member: Member, request: api.SetAgent, permission: Permission) -> Member:
    """Return the session with the changes of a request.

    ``permission`` is the one that holds: a session that is to plan returns to it. Raises
    ``NotFound`` if the session is closed, ``Forbidden`` if another than a person ends its plan.
    """
    if member.is_closed:
        raise NotFound(f"the session {member.handle!r} is closed: it cannot be changed")
    ends_plan = permission == "plan" and request.permission not in (None, "plan")
    if ends_plan and not isinstance(request, api.PersonSetAgent):
        raise Forbidden(
            f"the session {member.handle!r} plans, which only a person ends: aegis-actors agent "
            f"set {member.handle} --permission {request.permission}"
        )
    changed = {name: new for name in SET if (new := getattr(request, name)) is not None}
    if request.permission is not None:
        plans = request.permission == "plan"
        kept = member.after_plan if permission == "plan" else permission
        changed["after_plan"] = kept if plans else None
    return attrs.evolve(member, **changed)


NO_ACTOR = "its actor does not answer; see the daemon's log"


def closed_info(member: Member, cwd: str) -> api.AgentInfo:
    """Return the state of a session that has no actor, and works in ``cwd``."""
    return api.AgentInfo(
        id=member.id,
        handle=member.handle,
        profile=member.profile,
        provider=member.provider,
        state="closed" if member.is_closed else "error",
        reason="" if member.is_closed else NO_ACTOR,
        since=member.at,
        cwd=cwd,
        spawned_by=member.spawned_by,
        model="",
        turn=0,
        waiting=0,
        quiet_s=0.0,
        tools=[],
        blocked=None,
        limited_until=None,
        conversation=None,
    )


VERBS: Mapping[type[Any], str] = {
    api.CloseAgent: "aegis_close",
    api.InterruptAgent: "aegis_interrupt",
    api.RestartAgent: "agent restart",
    api.ReadSession: "aegis_session_read",
    api.TakeOverAgent: "agent takeover",
    api.HandBackAgent: "agent handback",
    api.RewindAgent: "agent rewind",
    api.WaitAgent: "aegis_agent_wait",
    api.DiffAgent: "aegis_agent_diff",
    api.RenameAgent: "aegis_rename",
    FollowSession: "the stream 'session'",
    FollowAgentCommand: "the stream 'agent_command'",
}
"""The names of the commands that reach into another session, by their classes."""

OWN = (api.ReadSession, api.DiffAgent, FollowSession, FollowAgentCommand)
"""The commands that a session may have carried out on itself."""


def check_reach(message: object, caller: Member | None, member: Member, roster: Roster) -> None:
    """Raise ``Forbidden`` if ``caller``, a session or None, may not do this to ``member``."""
    if caller is None or isinstance(message, api.ShowAgent):
        return
    if caller.id == member.id and isinstance(message, OWN):
        return
    verb = VERBS[type(message)]
    parent = roster.by_id.get(member.parent or "")
    # One that was dropped is not in the roster.
    parents = {**roster.parents(), member.handle: None if parent is None else parent.handle}
    refusal = refuse_reach(verb, caller.handle, member.handle, parents)
    if refusal is not None:
        raise Forbidden(refusal)


INBOX_OF_SESSION = (
    "Messages to you arrive as turns of your conversation, each with a line `> from SENDER`; there "
    "is nothing to read or to wait for. Answer an agent with aegis_handoff."
)
INBOX_OF_CLIENT = (
    "Wait for messages with aegis_inbox_wait, or read them with aegis_inbox_read. Acknowledge the "
    "messages that you have read by passing `next` of the reply as `after` of the next call. The "
    "resource aegis://inbox/{handle} notifies its subscribers of new messages."
)


def meta_of(handle: str | None, roster: Roster, programs: Programs, handles: Iterable[str]) -> Meta:
    """Return the reply to the client with this handle, None for the operator.

    ``handles`` are those that have an inbox.
    """
    offer = programs.offer(handle)
    member = None if handle is None else roster.find(handle)
    if member is None or member.is_closed:
        return _with_peers(_of_client(handle, offer), roster.open, handles)
    profile = programs.profile_of(member)
    meta = attrs.evolve(
        _of_client(member.handle, offer),
        kind="session",
        session=member.id,
        profile=profile.name,
        permission=profile.permission,
        spawned_by=member.spawned_by,
    )
    return _with_peers(meta, roster.open, handles)


def _with_peers(meta: Meta, sessions: Iterable[Member], handles: Iterable[str]) -> Meta:
    """Return the reply with the other sessions and the other handles, ``MAX_PEERS`` of each."""
    own = name_key(meta.handle)
    members = sorted((each for each in sessions if name_key(each.handle) != own), key=_handle_of)
    known = {own, "human", *(name_key(each.handle) for each in members)}
    others = sorted(each for each in handles if name_key(each) not in known)
    return attrs.evolve(
        meta,
        peers=[
            Peer(handle=each.handle, profile=each.profile, spawned_by=each.spawned_by)
            for each in members[:MAX_PEERS]
        ],
        handles=others[:MAX_PEERS],
        more=max(len(members), len(others)) > MAX_PEERS,
    )


def _handle_of(member: Member) -> str:
    return member.handle


def _of_client(handle: str | None, offer: Offer) -> Meta:
    commands = TOOLS if handle is None else OPEN_TO_HANDLES
    offered = offer.commands
    inbox = INBOX_OF_SESSION if offer.is_driven else INBOX_OF_CLIENT
    return Meta(
        handle=handle or "human",
        kind="human" if handle is None else "client",
        peers=[],
        handles=[],
        tools=[each.tool for each in commands if each.name in offered],
        other_tools=[each.tool for each in commands if each.name in offer.missing],
        how_to_get=_how_to_get(offer),
        inbox=inbox.format(handle=handle or "human"),
    )


def _how_to_get(offer: Offer) -> str:
    choice = f"A person chooses the tools {chosen_with(is_driven=offer.is_driven)}."
    if not offer.reaches_all:
        return choice
    return f"Call other_tools with aegis_call; aegis_tools describes them. {choice}"
