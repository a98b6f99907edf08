"""The rights of sessions: the commands, profiles and handles that they may use. Pure.

Each function returns the refusal in one sentence, or None. The operator is not asked for here: all
of this holds for sessions only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from aegis.agents.drivers.harness import Permission
from aegis.names import shorten
from aegis.protocol.naming import LOGIN_PREFIX, TAKEOVER_PREFIX, is_persons_terminal, name_key

CommandClass = Literal["read", "write", "execute"]
Verdict = Literal["allow", "ask", "refuse"]

PERMISSIONS: tuple[Permission, ...] = ("read", "plan", "ask", "write", "full")
"""The permissions, from the lowest."""

CLASSES: Mapping[str, CommandClass] = {
    **dict.fromkeys(
        (
            *("term_run", "term_keys", "term_signal", "term_spawn", "term_broadcast"),
            *("workspace_exec", "shell_open", "shell_read", "shell_write", "shell_signal"),
            "shell_close",
            "run_workflow",
            # They end the commands of others, as a signal does.
            *("term_close", "workspace_delete"),
        ),
        "execute",
    ),
    **dict.fromkeys(
        (
            *("canvas_open", "canvas_write_section", "canvas_append_to_section"),
            "workspace_create",
        ),
        "write",
    ),
    **dict.fromkeys(
        (
            *("term_list", "term_read", "term_screen", "term_output", "term_wait"),
            *("term_subscribe", "term_unsubscribe", "term_resize"),
            *("inbox_read", "inbox_wait", "handoff", "workspace_list"),
            *("spawn", "close", "interrupt", "rename", "list_sessions", "list_agents"),
            *("meta", "tools"),
            *("session_read", "session_export", "request_list", "request_answer", "ask_human"),
            *("agent_show", "agent_wait", "agent_restart", "agent_set", "agent_usage"),
            *("agent_usage_over_time", "agent_purge", "agent_diff", "agent_worktree_list"),
            *("agent_worktree_remove", "agent_merge", "agent_trust", "agent_output"),
            *("agent_launch", "agent_resume", "agent_conversations", "agent_continue"),
            *("agent_send", "agent_takeover", "agent_handback", "agent_rewind", "agent_fork"),
            # Workers have the rights of their own profile, which `refuse_profile` is asked for.
            *("enqueue", "delegate", "cancel", "task_status", "task_list", "queue_list"),
            "task_move",
            "history",
            *("canvas_read", "canvas_list", "canvas_history"),
            *("canvas_subscribe", "canvas_unsubscribe"),
            # Only its starter may cancel a workflow.
            *("workflow_status", "workflow_cancel", "workflow_list"),
            # So have members of groups; the desk of groups asks whose group it is.
            *("group_spawn", "group_spawn_mixed", "group_broadcast", "group_wait_all"),
            *("group_wait_any", "group_status", "group_list", "group_rename", "group_dissolve"),
            # For the operator only: no session may call them.
            *("task_retry", "queue_pause", "queue_resume"),
            *("workflow_resume", "workflow_retry", "workflow_trust", "workflow_steps"),
            "group_orders",
            *("status", "tree", "doctor", "node_forget"),
            *("session_new", "session_list", "session_revoke"),
            *("page_code", "page_list", "page_link", "page_revoke", "token_rotate", "down"),
            *("push_key", "push_subscribe", "push_list", "push_remove"),
        ),
        "read",
    ),
}
"""The class of each command. A command that is not listed counts as ``execute``."""

VERDICTS: Mapping[Permission, Mapping[CommandClass, Verdict]] = {
    "read": {"read": "allow", "write": "refuse", "execute": "refuse"},
    "plan": {"read": "allow", "write": "ask", "execute": "ask"},
    "ask": {"read": "allow", "write": "ask", "execute": "ask"},
    "write": {"read": "allow", "write": "allow", "execute": "ask"},
    "full": {"read": "allow", "write": "allow", "execute": "allow"},
}

_BY_AGENT = "agent:"


def command_class(command: str) -> CommandClass:
    """Return the class of a command, by its name on the wire."""
    return CLASSES.get(command, "execute")


def verdict(command: str, permission: Permission) -> Verdict:
    """Return whether a session with this permission may call a command, or a person is asked."""
    return VERDICTS[permission][command_class(command)]


def refuse_call(command: str, permission: Permission, profile: str) -> str | None:
    """Return why a session of ``profile`` may not call a command; None if it may, or may ask."""
    if verdict(command, permission) != "refuse":
        return None
    return (
        f"command {command!r} is not allowed: profile {profile!r} has the permission "
        f"{permission!r}, and the command may {_VERBS[command_class(command)]}; ask a session with "
        "a higher permission, or the person who set the profile"
    )


_VERBS: Mapping[CommandClass, str] = {
    "read": "read",
    "write": "write files",
    "execute": "run programs",
}


def refuse_terminals(terminals: Iterable[str]) -> str | None:
    """Return why an agent may not use these terminals, not even to create or to read them.

    A person types secrets there, into the prompt of another agent's program; an agent that had
    created such a terminal before would have its own shell run the login. In a take-over a person
    answers the prompts of an agent's program, which another agent could answer instead.
    """
    for name in terminals:
        if is_persons_terminal(name):
            return (
                f"terminal {shorten(name)!r} is for the login or the take-over of an agent, which "
                "only a person may use; choose a name that does not begin with "
                f"{LOGIN_PREFIX!r} or {TAKEOVER_PREFIX!r}"
            )
    return None


def refuse_program(command: str, terminals: Iterable[str], programs: Collection[str]) -> str | None:
    """Return why a session may not call a command on terminals of terminal agents, ``programs``.

    A session that types there could answer the permission prompts of that agent.
    """
    if command_class(command) != "execute":
        return None
    for name in terminals:
        if name_key(name) in programs:
            return (
                f"terminal {shorten(name)!r} is that of a terminal agent, in which only people "
                "type; read it, or write to the agent with aegis_handoff"
            )
    return None


def refuse_profile(
    own: str, permission: Permission, may_spawn: Collection[str], wanted: str, needed: Permission
) -> str | None:
    """Return why a session of profile ``own`` may not give work to profile ``wanted``.

    It may if the permission of ``wanted``, ``needed``, is no higher than its own, or if its
    ``may_spawn`` lists ``wanted``. This holds for a spawn, a group and a queue alike.
    """
    if PERMISSIONS.index(needed) <= PERMISSIONS.index(permission) or wanted in may_spawn:
        return None
    return (
        f"profile {shorten(wanted)!r} has the permission {needed!r}, which is higher than "
        f"{permission!r} of your profile {own!r}: use another profile, or have a person list it "
        f"in agents.{own}.may_spawn"
    )


def refuse_budget(profile: str, wanted: float | None, configured: float | None) -> str | None:
    """Return why a session may not spawn one of ``profile`` with the budget ``wanted``."""
    if configured is None or wanted is None or wanted <= configured:
        return None
    return (
        f"profile {shorten(profile)!r} has a budget of {configured:g} US dollars: give no more, or "
        "ask a person to raise it"
    )


def refuse_reach(
    verb: str, caller: str, target: str, parents: Mapping[str, str | None]
) -> str | None:
    """Return why the session ``caller`` may not close, interrupt or rename ``target``.

    ``parents`` maps the handle of each session to the one that spawned it, None for the operator.
    """
    if descends(target, caller, parents):
        return None
    reason = "it is your own" if name_key(target) == name_key(caller) else "you did not spawn it"
    return (
        f"session {shorten(target)!r} cannot be reached with {verb!r}: {reason}; ask a person or "
        "the session that spawned it with aegis_handoff"
    )


def descends(target: str, ancestor: str, parents: Mapping[str, str | None]) -> bool:
    """Return whether ``ancestor`` spawned ``target``, itself or by its descendants."""
    by_key = {name_key(handle): parent for handle, parent in parents.items()}
    wanted, current = name_key(ancestor), name_key(target)
    seen: set[str] = set()
    while current not in seen:
        seen.add(current)
        parent = by_key.get(current)
        if parent is None:
            return False
        current = name_key(parent)
        if current == wanted:
            return current not in seen
    return False


def refuse_message(
    target: str,
    permission: Permission,
    accepts_from: Collection[str],
    sender: str,
    sender_profile: str | None,
    former: Collection[str] = (),
) -> str | None:
    """Return why the session ``target`` does not take a message of the agent ``sender``.

    ``former`` are the sender's former handles: a renamed session is the one that was listed.

    A session with the permission ``full`` takes messages only from the profiles in its
    ``accepts_from``, and from the handles there that are written ``agent:HANDLE``.
    """
    if permission != "full":
        return None
    handles = {name_key(each) for each in accepts_from if each.startswith(_BY_AGENT)}
    profiles = {each for each in accepts_from if not each.startswith(_BY_AGENT)}
    senders = {name_key(_BY_AGENT + each) for each in (sender, *former)}
    if senders & handles or sender_profile in profiles:
        return None
    return (
        f"session {shorten(target)!r} does not take messages of {shorten(sender)!r}: its profile "
        "has the permission 'full', and its accepts_from lists neither you nor your profile; ask "
        "a person to pass the message on"
    )
