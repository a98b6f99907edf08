"""Rules for groups: a reply is credited to its broadcast only, and none is sent twice. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.checking.case import Case
from tests.chaos.checking.rule import Rule


def _miscredited(case: Case) -> Iterator[str]:
    """Find replies to another broadcast, or to none."""
    groups = case.evidence.groups
    tokens = {each.id: each.token for each in groups.sent if each.id is not None}
    for reply in groups.replies:
        token = tokens.get(reply.id, "").strip("@")
        # After a usage limit the member continues without another order.
        may_be = {f"did {token}", *({""} if token.endswith(".limit") else ())}
        if reply.id in tokens and reply.text not in may_be:
            yield f"{reply.member} is said to have replied {reply.text!r} to {token}"


def _changed(case: Case) -> Iterator[str]:
    """Find replies that differ from wait to wait."""
    texts: dict[tuple[str, str], str] = {}
    for reply in case.evidence.groups.replies:
        known = texts.setdefault((reply.id, reply.member), reply.text)
        if known != reply.text:
            yield f"{reply.member} replied {known!r} and {reply.text!r} to {reply.id}"


def _sent_twice(case: Case) -> Iterator[str]:
    """Find broadcasts that a member got twice, and replies of members that never got them."""
    groups, agents = case.evidence.groups, case.evidence.agents
    tokens = {each.id: each.token for each in groups.sent if each.id is not None}
    handles = {each["id"]: each["handle"] for each in agents.sessions}
    got = Counter(
        (token, handles.get(frame.session, "")) for frame in agents.frames for token in frame.tokens
    )
    for (token, member), times in got.items():
        if token in tokens.values() and times > 1:
            yield f"{member} got {token} {times} times"
    for reply in groups.replies:
        if reply.id in tokens and not got[tokens[reply.id], reply.member]:
            yield f"{reply.member} replied to {tokens[reply.id]}, which it never got"


def _key_twice(case: Case) -> Iterator[str]:
    """Find keys of one sender that have several broadcasts."""
    ids: dict[tuple[str, str, str], set[str]] = {}
    groups = case.evidence.groups
    for each in groups.sent:
        if each.key is not None and each.id is not None and each.group not in groups.dissolved:
            ids.setdefault((each.group, each.sender, each.key), set()).add(each.id)
    for key, found in ids.items():
        if len(found) > 1:
            yield f"the key {key} has the broadcasts {sorted(found)}"


def _unreported(case: Case) -> Iterator[str]:
    """Find broadcasts to open groups of whose end the sender got no message, or wanted none."""
    groups = case.evidence.groups
    kept = {**case.evidence.kept, **case.evidence.agents.inboxes}
    for each in groups.sent:
        if each.id is None or each.sender not in kept:
            continue
        is_told = any(message["id"] == f"broadcast:{each.id}/end" for message in kept[each.sender])
        if each.callback and each.group in groups.open - groups.dissolved and not is_told:
            yield f"{each.sender} was not notified of the end of {each.token}"
        if is_told and not each.callback:
            yield f"{each.sender} was notified of {each.token} without a callback"


def _stuck(case: Case) -> Iterator[str]:
    """Find groups that do not come to rest."""
    yield from case.evidence.groups.stuck


GROUP_RULES: dict[str, Rule] = {
    "reply miscredited": Rule("G21", _miscredited),
    "reply changed": Rule("G21", _changed),
    "broadcast sent twice": Rule("G21", _sent_twice),
    "broadcast key twice": Rule("G21", _key_twice),
    "broadcast unreported": Rule("G21", _unreported),
    "group stuck": Rule("G21", _stuck),
}
