"""The verbs of agent sessions: ``agent launch|list|show|send|read|interrupt|restart|stop|…``."""

from __future__ import annotations

import contextlib
import sys
from functools import partial

from aegis.cli.grammar.keys import DEFAULT_DETACH_KEYS, parse_detach_keys
from aegis.cli.grammar.verb import (
    DECIMAL,
    SECONDS,
    WHOLE,
    TargetDaemon,
    VerbGroup,
    argument,
    fitting,
    flag,
    from_here,
    moment,
    option,
    text_or_input,
    verb,
)
from aegis.cli.grammar.words import command_text
from aegis.cli.inbox import INTERRUPT, KEY, hand_off, show_reply
from aegis.cli.printing.agents import (
    command_table,
    meta_lines,
    profile_table,
    session_details,
    session_table,
)
from aegis.cli.printing.failures import UsageError
from aegis.cli.printing.formatting import (
    duration,
    escaped,
    escaped_line,
    print_lines,
    print_notice,
    table,
)
from aegis.cli.printing.transcript import status_of, transcript_lines
from aegis.cli.trust import ask_at_launch, trust
from aegis.client.line import CommandFailed
from aegis.protocol.naming import is_name

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

_USAGE_HEAD = ["agent", "tree of", "turns", "in", "% cached", "out", "time", "USD"]

_FIGURES = ("turns", "input_tokens", "cached_tokens", "output_tokens", "cost_usd", "turns_s")

MAX_NAMED = 10
"""Names of files that are printed after a difference."""

PERMISSIONS = ("read", "plan", "ask", "write", "full")

SETTINGS = (
    option("--model", metavar="MODEL", help="The model, by a name that the agent knows."),
    option("--effort", metavar="EFFORT", help="The reasoning effort, as the agent names it."),
    option("--thinking", metavar="on|off|TOKENS", help="Whether it thinks before it answers."),
    option("--permission", kind=PERMISSIONS, help="The permission, as in a profile."),
    option("--budget", "budget_usd", kind=DECIMAL, metavar="USD", help="The limit of its cost."),
)

FILES = (
    option("--image", "images", metavar="PATH", many=True, help="An image; - is standard input."),
    option("--file", "files", metavar="PATH", many=True, help="Another file, as text or by path."),
)

FORMATS = ("markdown", "jsonl")

CODES = {"done": 0, "failed": 1, "closed": 1, "blocked": 3, "limit": 4, "timeout": 124}
"""The exit codes of a wait, by its outcome."""

WAIT = flag("--wait", help="Wait for the end of its turn, and print its last message.")
TIMEOUT = option("--timeout", kind=SECONDS, help="With --wait: seconds at most; default: no limit.")

BEGINS_CHARS = 60
"""The most characters of a conversation's first words in a table."""

MAX_IMAGE_INPUT_BYTES = 16 * 1024 * 1024
"""The largest image that is read from the standard input; agents take smaller ones."""


@verb(
    option("--handle", "new_handle", metavar="NAME", help="Its handle; default: a generated one."),
    option("--workspace", metavar="NAME", help="The workspace it works in; default: the root."),
    option("--directory", metavar="DIR", help="A directory below the root that it works in."),
    option("--resume", metavar="AGENT", help="Continue this session, open or closed, instead."),
    option("--conversation", metavar="ID", help="Begin with this one of agent conversations."),
    flag("--fork", help="With --conversation: with a copy of it."),
    *SETTINGS,
    flag("--worktree", help="Work in a git worktree of its own; default: as the profile says."),
    flag("--no-worktree", help="Work in the directory itself, also if the profile says worktree."),
    option("--branch", metavar="NAME", help="A new branch for its worktree; implies --worktree."),
    *FILES,
    WAIT,
    TIMEOUT,
    flag("--terminal", help="Launch the program after -- in a terminal of its own, and watch it."),
    argument("words", required=False, many=True, metavar="[PROFILE] [PROMPT] | -- PROGRAM"),
)
def launch(
    daemon: TargetDaemon,
    words: Sequence[str],
    new_handle: str | None,
    workspace: str | None,
    directory: str | None,
    resume: str | None,
    conversation: str | None,
    fork: bool,
    terminal: bool,
    wait: bool,
    timeout: float | None,
    worktree: bool,
    no_worktree: bool,
    images: Sequence[str],
    files: Sequence[str],
    **settings: object,
) -> int:
    """Start an agent session from PROFILE (default: the default one), with the text PROMPT.

    A PROMPT of `-` is read from the standard input. A single argument is the PROMPT if it is `-`,
    or cannot be the name of a profile, such as a sentence.
    It runs in the background; its handle is printed. `agent profiles` lists the profiles. With
    --resume the only argument is the PROMPT, and AGENT is a handle or the id of a session.

    With --terminal, any interactive PROGRAM with its arguments is launched as an agent that is its
    terminal, for example: agent launch --terminal -- claude --model opus

    With --image or --file, its first message has them, as in `agent send`. With --wait, the exit
    codes are those of `agent wait`.
    """
    given: dict[str, Any] = {**settings, "directory": from_here(directory)}
    chosen = {name: value for name, value in given.items() if value is not None}
    if no_worktree and (worktree or "branch" in chosen):
        raise UsageError("--no-worktree contradicts --worktree and --branch")
    if worktree or no_worktree:
        chosen["worktree"] = worktree
    _check_conversation(conversation, fork, bool(terminal or resume or chosen))
    if chosen and (terminal or resume is not None):
        raise UsageError("a new session takes settings and a worktree; see also: agent set")
    has_files = bool(images or files)
    if terminal:
        if wait or has_files:
            raise UsageError("a terminal agent has no turns, and gets no files: use agent wait")
        _launch_program(daemon, words, new_handle, workspace, resume)
        return 0
    if len(words) > 2:
        raise UsageError("agent launch takes a PROFILE and a PROMPT: put the prompt into quotes")
    _check_inputs(images, files, words)
    is_prompt = len(words) == 1 and bool(resume or (words[0] and not is_name(words[0])))
    before = [None] * is_prompt
    profile, prompt = (*before, *words[:-1], *map(text_or_input, words[-1:]), None, None)[:2]
    if resume is not None and (profile or new_handle or workspace):
        raise UsageError("--resume takes one PROMPT, and no profile, --handle or --workspace")
    if wait and not (prompt or has_files):
        raise UsageError("--wait waits for the end of a turn: give a PROMPT")
    # The number of the turn of a resumed session is not known before: one may run.
    is_sent = has_files or (wait and resume is not None)
    first = None if is_sent else prompt
    if resume is not None:
        if wait:
            _check_has_turns(daemon, resume)
        reply = daemon.call("agent_resume", handle=resume, prompt=first)
    else:
        ask_at_launch(daemon, profile, workspace, chosen.get("directory"))
        given = {"profile": profile, "prompt": first, "handle": new_handle, "workspace": workspace}
        if conversation is None:
            reply = daemon.call("spawn", **given, **chosen)
        else:
            reply = daemon.call("agent_continue", conversation=conversation, fork=fork, **given)
    handle = reply["handle"]
    turn: dict[str, Any] = {"turn": 1}
    if is_sent:
        turn = {"message": _first_message(daemon, handle, prompt or "", images, files)}
    if wait:
        print_notice(escaped_line(f"↳ launched {handle}"))
        return _wait(daemon, handle, timeout, **turn)
    daemon.show(reply, lambda: _show_launched(handle, prompt))
    return 0


def _check_has_turns(daemon: TargetDaemon, agent: str) -> None:
    """Raise ``CommandFailed`` or ``UsageError`` if the end of a turn of ``agent`` never comes."""
    if daemon.call("agent_show", handle=agent).get("provider") == "terminal":
        raise UsageError(
            f"{agent!r} is a terminal agent, whose messages begin no turn: leave out --wait"
        )


def _first_message(
    daemon: TargetDaemon, handle: str, text: str, images: Sequence[str], files: Sequence[str]
) -> str:
    """Send the first message to a session that was launched, and return its id."""
    try:
        receipt = _send_files(daemon, handle, text, images, files)
    except CommandFailed:
        print_notice(
            f"↳ {handle} was launched, and has no message: aegis-actors agent send {handle}"
        )
        raise
    return str(receipt["id"])


def _check_conversation(conversation: str | None, fork: bool, has_others: bool) -> None:
    if fork and conversation is None:
        raise UsageError("--fork copies a --conversation, which is missing; see: agent fork")
    if conversation and has_others:
        raise UsageError(
            "--conversation goes with a PROFILE, a PROMPT, --fork, --handle and --workspace only"
        )


def _launch_program(
    daemon: TargetDaemon,
    words: Sequence[str],
    new_handle: str | None,
    workspace: str | None,
    resume: str | None,
) -> None:
    if resume is not None or not words:
        raise UsageError("--terminal takes a PROGRAM after --, and no --resume")
    cmd = command_text(words)
    reply = daemon.call("agent_launch", cmd=cmd, handle=new_handle, workspace=workspace)
    daemon.show(reply, lambda: _show_terminal_agent(reply["handle"]))


def _show_terminal_agent(handle: str) -> None:
    print_lines(escaped_line(handle))
    print_notice(f"↳ launched; use it with: aegis-actors term attach {handle}")


def _show_launched(handle: str, prompt: str | None) -> None:
    print_lines(escaped_line(handle))
    if prompt is not None and prompt.startswith("/"):
        shown = escaped_line(prompt.split()[0][:40])
        print_notice(
            f"↳ {handle} gets {shown} as text: its commands are known once it has started; give "
            "it one with agent send"
        )
    print_notice(f"↳ launched; read it with: aegis-actors agent read {handle}")


@verb(
    option("--handle", "new_handle", metavar="NAME", help="Its handle; default: a generated one."),
    argument("agent"),
    argument("prompt", required=False),
)
def fork(daemon: TargetDaemon, agent: str, prompt: str | None, new_handle: str | None) -> None:
    """Start a session with a copy of the conversation of AGENT, and with the text PROMPT."""
    given = None if prompt is None else text_or_input(prompt)
    reply = daemon.call("agent_fork", handle=agent, prompt=given, new_handle=new_handle)
    daemon.show(reply, lambda: _show_launched(reply["handle"], given))


@verb(flag("--closed", help="Include sessions that were closed."))
def list_agents(daemon: TargetDaemon, closed: bool) -> None:
    """List the agent sessions, and what each is blocked on."""
    reply = daemon.call("list_sessions", closed=closed)
    daemon.show(reply, lambda: _show_list(reply["result"]))


def _show_list(infos: Sequence[Mapping[str, Any]]) -> None:
    if infos:
        print_lines(session_table(infos))
    else:
        print_notice("↳ no agent session")


@verb()
def meta(daemon: TargetDaemon) -> None:
    """Show who you are (--as HANDLE), your peers, your tools, and how your inbox works."""
    reply = daemon.call("meta")
    daemon.show(reply, lambda: print_lines(meta_lines(reply)))


@verb()
def profiles(daemon: TargetDaemon) -> None:
    """List the profiles that can be launched."""
    reply = daemon.call("list_agents")
    daemon.show(reply, lambda: print_lines(profile_table(reply["result"])))


@verb(
    flag("--commands", help="The commands of its own instead, for agent send."), argument("agent")
)
def show(daemon: TargetDaemon, agent: str, commands: bool) -> None:
    """Show the state of AGENT."""
    reply = daemon.call("agent_show", handle=agent)
    shown = command_table if commands else session_details
    daemon.show(reply, lambda: print_lines(shown(reply)))


@verb(
    *FILES,
    INTERRUPT,
    KEY,
    WAIT,
    TIMEOUT,
    argument("agent"),
    argument("text", many=True, required=False),
    options_first=True,
)
def send(
    daemon: TargetDaemon,
    agent: str,
    text: Sequence[str],
    images: Sequence[str],
    files: Sequence[str],
    interrupt: bool,
    key: str | None,
    wait: bool,
    timeout: float | None,
) -> int:
    """Send TEXT to AGENT: it becomes a turn, at once or after the current one.

    `-` reads TEXT from the standard input. With --wait, the exit codes are those of `agent wait`.
    A --file that is text of at most 64 KiB is included; of any other the agent gets the path.
    """
    if not images and not files and not " ".join(text).strip():
        raise UsageError("agent send takes a TEXT that is not empty, an --image or a --file")
    if wait:
        _check_has_turns(daemon, agent)
    if images or files:
        _check_inputs(images, files, text)
        more = {"interrupt": interrupt or None, "key": key}
        said = text_or_input(" ".join(text))
        receipt = _send_files(daemon, agent, said, images, files, **more)
        show_reply(daemon, receipt, shows=not wait)
    else:
        receipt = hand_off(daemon, agent, text, interrupt, key, shows=not wait)
    return _wait(daemon, agent, timeout, message=receipt["id"]) if wait else 0


def _send_files(
    daemon: TargetDaemon,
    agent: str,
    text: str,
    images: Sequence[str],
    files: Sequence[str],
    **more: object,
) -> Mapping[str, Any]:
    with image_input() if "-" in images else contextlib.nullcontext("") as read:
        return daemon.call(
            "agent_send",
            handle=agent,
            text=text,
            images=[read if each == "-" else from_here(each) for each in images],
            files=[from_here(each) for each in files],
            **more,
        )


def _check_inputs(images: Sequence[str], files: Sequence[str], text: Sequence[str]) -> None:
    """Refuse that the standard input is used twice, or as a file that has no name."""
    if "-" in files or (images and [*images, *text].count("-") > 1):
        raise UsageError("the standard input is a text or an --image, once, and no --file")


@contextlib.contextmanager
def image_input() -> Iterator[str]:
    """Return the path of a file with the standard input, which is deleted afterwards."""
    import tempfile

    data = sys.stdin.buffer.read(MAX_IMAGE_INPUT_BYTES + 1)
    if not data or len(data) > MAX_IMAGE_INPUT_BYTES:
        size = "no bytes" if not data else f"more than {MAX_IMAGE_INPUT_BYTES} bytes"
        raise UsageError(f"standard input has {size}, and nothing was sent")
    with tempfile.NamedTemporaryFile(prefix="aegis-image-") as file:
        file.write(data)
        file.flush()
        yield file.name


@verb(
    flag("--blocked", help="Only until it needs a person."),
    option("--text", metavar="TEXT", help="Until it has said TEXT, or if its last message did."),
    option("--message", metavar="ID", help="Until the turn with this message has ended."),
    option("--timeout", kind=SECONDS, help="Seconds to wait at most; default: no limit."),
    argument("agent"),
)
def wait_for(
    daemon: TargetDaemon,
    agent: str,
    blocked: bool,
    text: str | None,
    message: str | None,
    timeout: float | None,
) -> int:
    """Wait until AGENT is at rest, and print the last message of its last turn.

    Ends in any case when it needs a person. Exits with 0 if done, 1 if the turn failed or the agent
    is closed, 3 if a person is needed, 4 if a limit holds it back, 124 if the time is over.
    """
    return _wait(daemon, agent, timeout, blocked=blocked or None, text=text, message=message)


def _wait(daemon: TargetDaemon, agent: str, timeout: float | None, **wanted: Any) -> int:
    """Wait for an agent, print how it ended, and return the exit code."""
    wait_on = _wait_on(agent, **wanted)
    reply = daemon.wait(
        "agent_wait",
        timeout,
        lambda reply: reply["outcome"] != "timeout",
        f"↳ {escaped_line(agent)} continues; {wait_on}",
        handle=agent,
        **wanted,
    )
    daemon.show(reply, lambda: _show_outcome(reply, wait_on, _asked(daemon, reply)))
    return fitting(lambda: CODES[reply["outcome"]])


def _wait_on(
    agent: str,
    *,
    blocked: bool | None = None,
    text: str | None = None,
    message: str | None = None,
    turn: int | None = None,
) -> str:
    """Return how to continue a wait; one for a turn by number continues until the agent rests."""
    del turn
    import shlex

    options = ["--blocked"] if blocked else []
    options += ["--text", text] if text else []
    options += ["--message", message] if message else []
    return escaped_line(f"wait on with: aegis-actors agent wait {shlex.join([agent, *options])}")


def _asked(daemon: TargetDaemon, reply: Mapping[str, Any]) -> str:
    """Return the input of the tool that a person is to allow, behind a blank; empty: none."""
    blocked = reply.get("blocked") or {}
    if blocked.get("kind") != "permission" or not blocked.get("request_id"):
        return ""
    from aegis.cli.request import input_line

    with contextlib.suppress(CommandFailed):  # an agent that waits for another sees no requests
        for found in daemon.call("request_list", id=blocked["request_id"])["requests"]:
            if found["tool_kind"] != "plan":
                return f" {input_line(found)}"
    return ""


def _show_outcome(reply: Mapping[str, Any], wait_on: str, asked: str) -> None:
    if reply["text"]:
        print_lines(escaped(reply["text"].removesuffix("\n")))
    outcome, agent = reply["outcome"], reply["handle"]
    why = f": {reply['reason']}" if reply["reason"] else ""
    match outcome:
        case "done":
            return
        case "blocked":
            request = (reply["blocked"] or {}).get("request_id")
            answer = f"request answer {request}" if request else f"agent show {agent}"
            print_notice(f"↳ {agent} needs you{escaped_line(why + asked)}; aegis-actors {answer}")
        case "timeout":
            state = escaped_line(why) or " continues"
            print_notice(f"↳ {agent}{state}; {wait_on}")
        case _:
            print_notice(f"↳ {agent}: {outcome}{escaped_line(why)}")


@verb(
    option("--last", kind=WHOLE, help="The newest entries, default 50; with --since the oldest."),
    option("--since", kind=WHOLE, metavar="SEQ", help="Entries after SEQ instead."),
    flag("--follow", help="Continue with new entries until the session is closed, or Ctrl-C."),
    argument("agent"),
)
def read(
    daemon: TargetDaemon, agent: str, last: int | None, since: int | None, follow: bool
) -> None:
    """Show the transcript of AGENT."""
    if follow:
        from aegis.cli.live.agent_following import follow_agent

        follow_agent(daemon, agent, last=last, since=since)
        return
    reply = daemon.call("session_read", handle=agent, last_n=last, since=since)
    daemon.show(reply, lambda: _show_transcript(agent, reply, is_newest=since is None))


def _show_transcript(agent: str, reply: Mapping[str, Any], *, is_newest: bool) -> None:
    entries = reply["result"]
    if reply.get("missed"):
        print_notice(f"↳ {reply['missed']} entries before these are no longer kept")
    print_lines(transcript_lines(entries))
    if is_newest and entries and entries[0]["seq"] > 1:
        print_notice(f"↳ from the beginning: aegis-actors agent read {agent} --since 0")
    elif not is_newest and reply.get("more"):
        seq = entries[-1]["seq"]
        print_notice(f"↳ there are more: aegis-actors agent read {agent} --since {seq}")


@verb(
    flag("--follow", help="Print what follows until the agent releases the command."),
    argument("agent"),
    argument("command"),
)
def output(daemon: TargetDaemon, agent: str, command: str, follow: bool) -> None:
    """Show the output of COMMAND, which AGENT has its session run, also after its release.

    `term list` has the ids of open commands, `agent read --json` those of all.
    """
    if follow:
        from aegis.cli.live.agent_following import follow_command

        follow_command(daemon, agent, command)
        return
    reply = daemon.call("agent_output", handle=agent, command=command)
    daemon.show(reply, lambda: _show_output(reply))


def _show_output(reply: Mapping[str, Any]) -> None:
    if reply["begin"]:
        print_notice(f"↳ the first {reply['begin']} bytes are no longer kept")
    text = reply["output"] + reply["line"]
    if text:
        print_lines(escaped(text.removesuffix("\n")))
    if not reply["has_ended"]:
        where = f"{reply['handle']} {reply['id']}"
        print_notice(f"↳ it is running; follow it with: agent output --follow {where}")
    else:
        print_notice(f"↳ {status_of(reply)}")


@verb(
    option("--format", "form", kind=FORMATS, help="Default markdown; jsonl: one entry a line."),
    argument("agent"),
)
def export(daemon: TargetDaemon, agent: str, form: str | None) -> None:
    """Print the whole transcript of AGENT as a document."""
    since: int | None = 0
    while since is not None:
        part = daemon.call("session_export", handle=agent, form=form or FORMATS[0], since=since)
        daemon.show(part, partial(print_lines, part["text"]))
        since = part["next"]


@verb(argument("agent"))
def diff(daemon: TargetDaemon, agent: str) -> None:
    """Show what changed in the checkout of AGENT since it began, by anyone."""
    reply = daemon.call("agent_diff", handle=agent)
    daemon.show(reply, lambda: _show_difference(reply))


def _show_difference(reply: Mapping[str, Any]) -> None:
    if reply["diff"]:
        print_lines(escaped(reply["diff"].removesuffix("\n")))
    if reply["truncated"]:
        print_notice(f"↳ cut; the rest: git -C {reply['directory']} diff {reply['base']}")
    if reply["uncommitted"]:
        named = ", ".join(map(escaped_line, reply["uncommitted"][:MAX_NAMED]))
        more = len(reply["uncommitted"]) - MAX_NAMED
        print_notice(f"↳ not committed: {named}{f' and {more} more' if more > 0 else ''}")
    elif not reply["diff"]:
        print_notice(f"nothing has changed since {reply['base'][:12]}")


@verb(
    flag("--closed", help="Include sessions that were closed."),
    option("--by", kind=("hour", "day", "agent"), help="What was used by hour, day or agent."),
    option("--since", metavar="TIME", help="With --by: not before, as 2026-05-22T14:00."),
    flag("--split", help="With --by: each agent by itself in each hour or day."),
    argument("agent", required=False),
)
def usage(
    daemon: TargetDaemon,
    agent: str | None,
    closed: bool,
    by: str | None,
    since: str | None,
    split: bool,
) -> None:
    """List tokens, cost and time: of all sessions, or of AGENT and those that it spawned.

    The sums of trees are those of the listed sessions; use --closed to count closed ones too. With
    --by these and purged ones are counted in any case.
    """
    if by is None and (since is not None or split):
        raise UsageError("agent usage: --since and --split go with --by hour, day or agent")
    if by is not None:
        since = moment("--since", since)
        given = {"by": by, "split": split, "handle": agent, "since": since}
        over_time = daemon.call("agent_usage_over_time", **given)
        daemon.show(over_time, lambda: _show_over_time(over_time, by))
        return
    reply = daemon.call("agent_usage", handle=agent, closed=closed)
    daemon.show(reply, lambda: print_lines(_accounts(reply)))


def _show_over_time(reply: Mapping[str, Any], by: str) -> None:
    found = reply["result"]
    if not found:
        print_notice("↳ nothing was used")
        return
    chars = {"hour": len("2026-05-22T14:00"), "day": len("2026-05-22"), "agent": 0}[by]
    has_handles = any(each["handle"] for each in found)
    head = [*([by] if chars else []), *(["agent"] if has_handles else []), *_USAGE_HEAD[2:]]
    rows = [
        [
            *([each["begin"][:chars] + ("Z" if by == "hour" else "")] if chars else []),
            *([each["handle"]] if has_handles else []),
            *_account(each["usage"]),
        ]
        for each in found
    ]
    names = ["total", *[None] * (len(head) - len(_USAGE_HEAD[2:]) - 1)]
    print_lines(table(head, [*rows, [*names, *_account(reply["total"])]]))
    if reply.get("more"):
        print_notice("↳ others are left out: use --since, or --by day")


def _accounts(reply: Mapping[str, Any]) -> str:
    found, unknown = reply["result"], dict.fromkeys(_FIGURES)
    rows = [[each["handle"], each["root"], *_account(each["usage"] or unknown)] for each in found]
    for tree in reply["trees"]:
        if tree["sessions"] > 1:
            label = f"sum of {tree['sessions']}"
            rows.append([label, tree["root"], *_account(tree["usage"])])
    if len(reply["trees"]) > 1:
        rows.append(["total", None, *_account(reply["total"])])
    return table(_USAGE_HEAD, rows)


def _account(usage: Mapping[str, Any]) -> list[object]:
    given, cached, cost = usage["input_tokens"], usage["cached_tokens"], usage["cost_usd"]
    return [
        usage["turns"],
        None if given is None else f"{given:,}",
        f"{100 * cached / given:.1f}" if given and cached is not None else None,
        None if usage["output_tokens"] is None else f"{usage['output_tokens']:,}",
        None if usage["turns_s"] is None else duration(usage["turns_s"]),
        None if cost is None else f"{cost:.4f}",
    ]


@verb(argument("agent"))
def interrupt(daemon: TargetDaemon, agent: str) -> None:
    """Interrupt the current turn of AGENT."""
    reply = daemon.call("interrupt", handle=agent)
    daemon.show(reply, lambda: print_lines(session_table([reply])))


@verb(argument("agent"), argument("new_handle"))
def rename(daemon: TargetDaemon, agent: str, new_handle: str) -> None:
    """Give AGENT the handle NEW_HANDLE; the old one stays an alias."""
    reply = daemon.call("rename", old_handle=agent, new_handle=new_handle)
    daemon.show(reply, lambda: print_notice(f"renamed to {reply['handle']}"))


@verb(
    *SETTINGS,
    argument("agent"),
)
def change(daemon: TargetDaemon, agent: str, **settings: object) -> None:
    """Change the settings of AGENT, now and for its later starts.

    With another effort or thinking it is started anew before its next turn, with the same
    conversation.
    """
    if all(each is None for each in settings.values()):
        names = ", ".join(f"--{each.removesuffix('_usd')}" for each in settings)
        raise UsageError(f"agent set takes what is to be changed: {names}")
    reply = daemon.call("agent_set", handle=agent, **settings)
    daemon.show(reply, lambda: print_lines(session_table([reply])))


@verb(argument("agent"))
def restart(daemon: TargetDaemon, agent: str) -> None:
    """Start the program of AGENT anew, with the same conversation."""
    reply = daemon.call("agent_restart", handle=agent)
    daemon.show(reply, lambda: print_lines(session_table([reply])))


@verb(
    option("--profile", metavar="NAME", help="Of the agent of this profile."),
    option("--workspace", metavar="NAME", help="In the directory of this workspace."),
)
def conversations(daemon: TargetDaemon, profile: str | None, workspace: str | None) -> None:
    """List the conversations that the agent's own files hold for the directory, the newest first.

    `agent launch --conversation ID` continues one.
    """
    reply = daemon.call("agent_conversations", profile=profile, workspace=workspace)
    daemon.show(reply, lambda: _show_conversations(reply))


def _show_conversations(reply: Mapping[str, Any]) -> None:
    if not reply["result"]:
        print_notice("↳ no conversation")
        return
    head = ["conversation", "last changed", "branch", "open in", "begins with"]
    rows = [
        [each["id"], each["at"], each["branch"], each["holder"], shortened(each["begins"])]
        for each in reply["result"]
    ]
    print_lines(table(head, rows))
    if reply.get("more"):
        print_notice("↳ older ones are left out")
    if notice := reply.get("notice"):
        print_notice(f"↳ {notice}")


def shortened(text: str) -> str:
    """Return the first words of a conversation, for a table."""
    return text if len(text) <= BEGINS_CHARS else f"{text[: BEGINS_CHARS - 1]}…"


@verb(
    flag("--interrupt", help="Interrupt the current turn instead of waiting for its end."),
    flag("--detach", help="Do not attach to the terminal."),
    argument("agent"),
)
def takeover(daemon: TargetDaemon, agent: str, interrupt: bool, detach: bool) -> int:
    """Continue the conversation of AGENT by hand, in its program's own terminal interface.

    Waits for the end of its turn. In a window, attaches to the terminal, as term attach does. Leave
    the program, or use agent handback, and the agent continues with the messages that waited.
    """
    reply = daemon.call("agent_takeover", handle=agent, interrupt=interrupt)
    terminal = reply["taken_over"]["terminal"]
    if detach or daemon.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        daemon.show(reply, lambda: _show_takeover(terminal, agent))
        return 0
    from aegis.cli.live.attaching import run_attach

    keys = parse_detach_keys(DEFAULT_DETACH_KEYS)
    code = run_attach(daemon, terminal, keys, types=True, resizes=True)
    # Detached, not left: the terminal is closed before the agent has its conversation again.
    if terminal in {each["name"] for each in daemon.call("term_list")["result"]}:
        print_notice(f"↳ you still have the conversation; end it with: agent handback {agent}")
    return code


def _show_takeover(terminal: str, agent: str) -> None:
    print_lines(escaped_line(terminal))
    print_notice(f"↳ use it with: aegis-actors term attach {terminal}")
    print_notice(f"↳ end it with: aegis-actors agent handback {agent}")


@verb(argument("agent"))
def handback(daemon: TargetDaemon, agent: str) -> None:
    """End the take-over of AGENT, which then continues; or call off one that waits."""
    reply = daemon.call("agent_handback", handle=agent)
    daemon.show(reply, lambda: print_lines(session_table([reply])))


@verb(
    option("--to", kind=WHOLE, metavar="TURN", help="The turn (default: the last one)."),
    flag("--yes", help="Set them back without a question."),
    argument("agent"),
)
def rewind(daemon: TargetDaemon, agent: str, to: int | None, yes: bool) -> int:
    """Set the files that AGENT changed back to before a turn. Claude Code only.

    Shows the files first, and asks. Files that others changed since are left alone. What its shell
    commands did stays, and so does the conversation.
    """
    found = daemon.call("agent_rewind", handle=agent, turn=to, dry_run=True)
    if not found["files"]:
        daemon.show(found, lambda: _show_rewind(found))
        print_notice(f"↳ nothing to set back to before turn {found['turn']}; --to N: another turn")
        return 1
    if not yes:
        is_asked = not daemon.as_json and sys.stdin.isatty() and sys.stderr.isatty()
        daemon.show(found, lambda: _show_rewind(found))
        print_notice("↳ not undone: what its shell commands did, and the conversation")
        if not is_asked:
            print_notice("↳ nothing was changed: without a window, --yes is needed")
            return 1
        count = len(found["files"])
        what = "this file" if count == 1 else f"these {count} files"
        sys.stderr.write(f"Set {what} back to before turn {found['turn']}? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print_notice("↳ nothing was changed")
            return 1
    done = daemon.call("agent_rewind", handle=agent, turn=found["turn"])
    daemon.show(done, lambda: _show_rewind(done))
    print_notice(f"↳ {agent} does not know of it: say so in your next message")
    return 0


def _show_rewind(found: Mapping[str, Any]) -> None:
    verb_ = "set back" if found["is_done"] else "to set back"
    lines = [f"{verb_}  {escaped_line(each)}" for each in found["files"]]
    lines += [f"{'left':<{len(verb_)}}  {escaped_line(each)}" for each in found["left"]]
    if lines:
        print_lines("\n".join(lines))
    if found["left"]:
        print_notice("↳ left: changed since by others, or by a shell command of the agent")
    for each in found["unable"]:
        print_notice(f"↳ {escaped_line(each)}")


@verb(flag("--purge", help="Delete its transcript too."), argument("agent"))
def stop(daemon: TargetDaemon, agent: str, purge: bool) -> None:
    """Close AGENT. Its transcript is kept, and launch --resume continues it."""
    reply = daemon.call("agent_purge" if purge else "close", handle=agent)
    done = "purged" if purge else "closed"
    reason = reply["reason"]  # of a session without a worktree: by whom it was closed
    why = f"; {escaped_line(reason)}" if reason.startswith("its worktree") else ""
    daemon.show(reply, lambda: print_notice(f"{done} {reply['handle']}{why}"))


@verb(
    flag("--force", help="Remove it with all that would be lost; commits stay in its branch."),
    argument("action", kind=("list", "remove")),
    argument("agent", required=False),
)
def worktree(daemon: TargetDaemon, action: str, agent: str | None, force: bool) -> None:
    """List the git worktrees of agents, or remove that of AGENT, which must be closed."""
    if (action == "remove") == (agent is None) or (force and agent is None):
        raise UsageError("agent worktree takes: list, or remove AGENT")
    if agent is None:
        reply = daemon.call("agent_worktree_list")
        daemon.show(reply, lambda: _show_worktrees(reply["result"]))
        return
    removed = daemon.call("agent_worktree_remove", handle=agent, force=force)
    daemon.show(removed, lambda: print_notice(f"removed {escaped_line(removed['path'])}"))


def _show_worktrees(found: Sequence[Mapping[str, Any]]) -> None:
    if not found:
        print_notice("↳ no worktree")
        return
    head = ["agent", "branch", "from", "not merged", "directory", "would be lost"]
    rows = [
        [
            *(each["handle"], each["branch"], each["target"], _commits(each["unmerged"])),
            *(each["path"], each["holds"] or "nothing"),
        ]
        for each in found
    ]
    print_lines(table(head, rows))


def _commits(number: int | None) -> str:
    if not number:
        return "?" if number is None else "nothing"
    return "1 commit" if number == 1 else f"{number} commits"


@verb(argument("agent"))
def merge(daemon: TargetDaemon, agent: str) -> None:
    """Merge the git worktree of AGENT into the branch that it began from.

    Moves that branch forward, or makes a merge commit if git finds no conflict. Refused while
    either side has changes that are not committed.
    """
    merged = daemon.call("agent_merge", handle=agent)
    daemon.show(merged, lambda: _show_merged(merged))


def _show_merged(merged: Mapping[str, Any]) -> None:
    branch, target = merged["branch"], merged["target"]
    if merged["kind"] == "none":
        print_notice(f"↳ {target} has all commits of {branch} already")
        return
    how = "fast-forward" if merged["kind"] == "fast-forward" else "merge commit"
    files = f"{merged['files']} file{'' if merged['files'] == 1 else 's'}"
    where = f" in {merged['directory']}" if merged["directory"] else ""
    done = f"merged {branch} into {target}{where}: {how} {merged['commit'][:12]}, {files}"
    print_notice(escaped_line(done))
    for each in merged["left"]:
        print_notice(escaped_line(f"↳ not replaced, and shown as changed by git: {each}"))


agent = VerbGroup(
    """Coding agents that the daemon drives.

An agent works in the background and is woken by messages to its handle.""",
    {
        "launch": launch,
        "fork": fork,
        "list": list_agents,
        "meta": meta,
        "profiles": profiles,
        "show": show,
        "send": send,
        "wait": wait_for,
        "read": read,
        "output": output,
        "diff": diff,
        "worktree": worktree,
        "merge": merge,
        "trust": trust,
        "export": export,
        "usage": usage,
        "interrupt": interrupt,
        "rename": rename,
        "set": change,
        "restart": restart,
        "conversations": conversations,
        "takeover": takeover,
        "rewind": rewind,
        "handback": handback,
        "stop": stop,
    },
)
