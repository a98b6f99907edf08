"""The verbs of groups: ``group list|spawn|broadcast|wait|show|orders|rename|dissolve``."""

from __future__ import annotations

from aegis.cli.grammar.verb import (
    ROUND_S,
    SECONDS,
    WHOLE,
    TargetDaemon,
    VerbGroup,
    argument,
    fitting,
    flag,
    option,
    text_or_input,
    verb,
)
from aegis.cli.printing.failures import UsageError
from aegis.cli.printing.formatting import (
    escaped,
    escaped_line,
    print_lines,
    print_notice,
    table,
)

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_GROUPS = ["group", "members", "owner", "broadcast", "replied", "pending", "state"]
_MEMBERS = ["member", "profile", "state", "reply", "needs"]

REDUCERS = ("concat", "join_by_handle", "last_wins", "majority_vote")

DONE, NOT_DONE, GOES_ON = 0, 1, 124
"""The exit codes of a wait: all replied, a reply will not come, replies are still awaited."""

DEFAULT_WAIT_S = 50.0


@verb()
def list_groups(daemon: TargetDaemon) -> None:
    """List the groups with the numbers of their members and replies."""
    reply = daemon.call("group_list")
    daemon.show(reply, lambda: _show_groups(reply))


@verb(
    option(
        "--handle", "new_handle", metavar="NAME", help="A handle for it; with one PROFILE only."
    ),
    option("--preset", metavar="PRESET", help="The profiles of a preset in .aegis.yaml."),
    argument("group"),
    argument("profiles", metavar="PROFILE", required=False, many=True),
)
def spawn(
    daemon: TargetDaemon,
    group: str,
    profiles: Sequence[str],
    new_handle: str | None,
    preset: str | None,
) -> None:
    """Start a session of each PROFILE as a member of GROUP.

    One PROFILE adds a member, and creates the group if there is none. Several, or a preset, create
    the group: either all of them start, or none.
    """
    if len(profiles) == 1 and preset is None:
        reply = daemon.call("group_spawn", group=group, profile=profiles[0], handle=new_handle)
    elif new_handle is not None:
        raise UsageError("--handle goes with one PROFILE only")
    else:
        given = [*profiles] or None
        reply = daemon.call("group_spawn_mixed", group=group, profiles=given, preset=preset)
    daemon.show(reply, lambda: _show_group(reply))


@verb(
    option("--format", "output_format", metavar="TEXT", help="The form of the replies."),
    option("--tools", "tool_guidance", metavar="TEXT", help="The tools and sources to use."),
    option("--boundaries", metavar="TEXT", help="What not to do, and when to stop."),
    option("--key", metavar="TEXT", help="The same key sends nothing again."),
    option("--wait", kind=SECONDS, help="Wait so many seconds for all replies, and print them."),
    flag("--no-callback", "silent", help="No message when all have replied."),
    argument("group"),
    argument("objective"),
)
def broadcast(
    daemon: TargetDaemon,
    group: str,
    objective: str,
    output_format: str | None,
    tool_guidance: str | None,
    boundaries: str | None,
    key: str | None,
    wait: float | None,
    silent: bool,
) -> int:
    """Give all members of GROUP the same OBJECTIVE; `-` reads it from the standard input.

    The result comes to your inbox. With --wait, exits with 0 if all have replied, 1 if some will
    not, and 124 if some have not in time.
    """
    text = text_or_input(objective)
    reply = daemon.call(
        "group_broadcast",
        group=group,
        objective=text,
        output_format=output_format,
        tool_guidance=tool_guidance,
        boundaries=boundaries,
        key=key,
        callback=False if silent else None,
    )
    if wait is None:
        daemon.show(reply, lambda: print_lines(reply["broadcast_id"]))
        return DONE
    named = {"group": group, "broadcast_id": reply["broadcast_id"], "reducer": "join_by_handle"}
    replies = daemon.wait("group_wait_all", wait, _is_over, _if_cut(named), **named)
    daemon.show(replies, lambda: _show_replies(replies))
    return fitting(lambda: _exit_code(replies))


@verb(
    flag("--any", "first", help="Wait for one reply, and interrupt the other members."),
    flag("--keep-others", "keep", help="With --any: let the other members continue."),
    option("--timeout", kind=SECONDS, help="Seconds to wait; default 50."),
    option("--reducer", kind=REDUCERS, help="How the replies become one text."),
    option("--broadcast", metavar="ID", help="Default: the newest."),
    argument("group"),
)
def wait(
    daemon: TargetDaemon,
    group: str,
    first: bool,
    keep: bool,
    timeout: float | None,
    reducer: str | None,
    broadcast: str | None,
) -> int:
    """Wait for the replies of GROUP, and print them as one text.

    Exits with 0 if all have replied (with --any: one), 1 if some will not, and 124 if some have not
    in time.
    """
    if first and reducer is not None:
        raise UsageError("--reducer does not go with --any: the reply is the first one")
    if keep and not first:
        raise UsageError("--keep-others goes with --any only")
    command = "group_wait_any" if first else "group_wait_all"
    named: dict[str, Any] = {"group": group, "broadcast_id": broadcast and broadcast.upper()}
    named |= {"cancel_losers": False if keep else None} if first else {"reducer": reducer}
    if timeout is not None and timeout > ROUND_S and broadcast is None:
        # The later calls are for the same broadcast, also if there is a newer one.
        named["broadcast_id"] = daemon.call(command, timeout=0, **named)["broadcast_id"]
    limit = DEFAULT_WAIT_S if timeout is None else timeout
    is_over = (lambda reply: reply["order"] or _is_over(reply)) if first else _is_over
    reply = daemon.wait(command, limit, is_over, _if_cut(named, is_any=first), **named)
    daemon.show(reply, lambda: _show_replies(reply))
    return fitting(lambda: DONE if first and reply["order"] else _exit_code(reply))


@verb(argument("group"))
def show(daemon: TargetDaemon, group: str) -> None:
    """Show the members of GROUP, their states, and their replies to the newest broadcast."""
    reply = daemon.call("group_status", group=group)
    daemon.show(reply, lambda: _show_group(reply))


@verb(
    option("--before", metavar="ID", help="Only orders before this broadcast."),
    option("--limit", kind=WHOLE, help="Maximum number of orders; default 10."),
    argument("group"),
)
def orders(daemon: TargetDaemon, group: str, before: str | None, limit: int | None) -> None:
    """List the orders that GROUP got, the newest first, with the replies."""
    reply = daemon.call("group_orders", group=group, before=before and before.upper(), limit=limit)
    daemon.show(reply, lambda: _show_orders(reply))


@verb(argument("group"), argument("new_name", metavar="NAME"))
def rename(daemon: TargetDaemon, group: str, new_name: str) -> None:
    """Give GROUP the name NAME; the old one stays an alias."""
    reply = daemon.call("group_rename", group=group, new_name=new_name)
    daemon.show(reply, lambda: _show_groups({"result": [reply]}))


@verb(argument("group"))
def dissolve(daemon: TargetDaemon, group: str) -> None:
    """Close the members of GROUP, and end it; their transcripts are kept."""
    reply = daemon.call("group_dissolve", group=group)
    daemon.show(reply, lambda: _show_groups({"result": [reply]}))


def _show_groups(reply: Mapping[str, Any]) -> None:
    if reply["result"]:
        print_lines(table(_GROUPS, [_group_row(each) for each in reply["result"]]))
    else:
        print_notice("↳ no group: aegis-actors group spawn GROUP PROFILE creates one")
    if reply.get("more"):
        print_notice("↳ there are more: name one with group show")


def _group_row(group: Mapping[str, Any]) -> list[object]:
    newest = group["broadcast"] or {"broadcast_id": None, "replies": {}}
    found = [*newest["replies"].values()]
    return [
        group["group"],
        len(group["members"]),
        group["owner"],
        newest["broadcast_id"],
        found.count("replied"),
        found.count("pending"),
        group["problem"] or ("forming" if group.get("forming") else group["state"]),
    ]


def _show_group(group: Mapping[str, Any]) -> None:
    names = ("group", "owner", "state", "created")
    lines = [f"{name}: {group[name]}" for name in names]
    lines += [f"aliases: {', '.join(group['aliases'])}"] * bool(group["aliases"])
    newest = group["broadcast"]
    if newest is not None:
        lines.append(f"broadcast: {newest['broadcast_id']} from {newest['sender']}")
        lines.append(f"objective: {newest['objective']}")
    print_lines("\n".join(map(escaped_line, lines)))
    replies = {} if newest is None else newest["replies"]
    rows = [
        [each["handle"], each["profile"], each["state"], replies.get(each["handle"]), each["needs"]]
        for each in group["members"]
    ]
    if rows:
        print_lines(table(_MEMBERS, rows))


def _is_over(reply: Mapping[str, Any]) -> bool:
    return bool(reply["metadata"]["is_over"])


def _if_cut(named: Mapping[str, Any], *, is_any: bool = False) -> str:
    """Return the notice for a wait that was cut: the broadcast continues."""
    words = ["--any"] * is_any + ["--keep-others"] * (named.get("cancel_losers") is False)
    words += ["--broadcast", named["broadcast_id"]] if named["broadcast_id"] else []
    command = " ".join(["aegis-actors group wait", *words, named["group"]])
    return escaped_line(f"↳ the broadcast continues; wait on with: {command}")


def _show_replies(reply: Mapping[str, Any]) -> None:
    if reply["reduced"] is not None:
        print_lines(escaped(reply["reduced"]))
    for handle, member in reply["metadata"]["members"].items():
        _show_missing(handle, member)


def _show_missing(handle: str, member: Mapping[str, Any]) -> None:
    """Print why a member has not replied, or that its reply is cut."""
    why = ": ".join(filter(None, (member["state"], member["reason"])))
    if member["status"] != "replied":
        print_notice(escaped_line(f"↳ {handle} {member['status']}{f' ({why})' if why else ''}"))
    elif member["is_cut"]:
        print_notice(escaped_line(f"↳ the reply of {handle} is cut: agent read {handle}"))


def _show_orders(reply: Mapping[str, Any]) -> None:
    for number, each in enumerate(reply["result"]):
        if number:
            print_lines("\n")
        head = f"{each['at']}  {each['broadcast_id']}  {each['sender']}"
        print_lines(f"{escaped_line(head)}\n> {escaped_line(each['objective'])}")
        for handle in each["order"]:
            print_lines(f"{escaped_line(handle)}:\n{escaped(each['by_member'][handle])}")
        for handle, member in each["members"].items():
            _show_missing(handle, member)
    if not reply["result"]:
        print_notice("↳ no order: aegis-actors group broadcast GROUP gives one")
    if reply.get("more"):
        print_notice(f"↳ older ones: --before {reply['result'][-1]['broadcast_id']}")


def _exit_code(reply: Mapping[str, Any]) -> int:
    if not _is_over(reply):
        return GOES_ON
    return DONE if len(reply["order"]) == len(reply["metadata"]["members"]) else NOT_DONE


group = VerbGroup(
    """Agent sessions that get one order, and their replies.""",
    {
        "list": list_groups,
        "spawn": spawn,
        "broadcast": broadcast,
        "wait": wait,
        "show": show,
        "orders": orders,
        "rename": rename,
        "dissolve": dissolve,
    },
)
