"""Agent sessions: their commands, accounts and transcripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import attrs

from actors.messages import Request
from aegis.path_text import MAX_PATH_CHARS
from aegis.protocol.agent_events import OfferedModel, SlashCommand
from aegis.protocol.agent_states import AgentCall as AgentCall
from aegis.protocol.agent_states import AgentInfo as AgentInfo
from aegis.protocol.agent_states import AgentList as AgentList
from aegis.protocol.agent_states import AgentNeed as AgentNeed
from aegis.protocol.agent_states import AgentProgram as AgentProgram
from aegis.protocol.agent_states import AgentState as AgentState
from aegis.protocol.agent_states import AgentTakeover as AgentTakeover
from aegis.protocol.agent_states import AgentTerminal as AgentTerminal
from aegis.protocol.agent_states import AgentUsage as AgentUsage
from aegis.protocol.agent_states import Blocked as Blocked
from aegis.protocol.agent_states import BlockedKind as BlockedKind
from aegis.protocol.agent_states import is_at_rest as is_at_rest
from aegis.protocol.command import Command, at_most_chars, between, described, matching
from aegis.protocol.inboxes import MAX_BODY_CHARS, MAX_KEY_CHARS, Receipt
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE
from aegis.protocol.terminals import AgentCommand

Permission = Literal["read", "plan", "ask", "write", "full"]

MAX_PROGRAM_CHARS = 16_384

MAX_TIME_CHARS = 40

MAX_SETTING_CHARS = 200
"""The longest name of a model or an effort."""

THINKING_PATTERN = "on|off|[1-9][0-9]{0,6}"
THINKING_RULE = "on, off, or a number of tokens from 1 to 9999999"

HANDLE = described(
    f"The agent's handle: {NAME_RULE}.", "The agent's handle.", pattern=f"^{NAME_PATTERN}$"
)


@attrs.frozen(kw_only=True)
class SpawnAgent(Command[AgentInfo]):
    """Start an agent session in the background. Send it work with aegis_handoff."""

    profile: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "A profile of aegis_list_agents; default: the default one.",
            "A profile of aegis_list_agents, if not the default.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )
    prompt: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_BODY_CHARS),
        metadata=described(
            "Its first message. Without one it waits for a handoff.", "Its first message."
        ),
    )
    handle: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "A new handle for it; default: a generated one.",
            "Its new handle.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )
    workspace: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "The workspace whose directory it works in; default: the root.",
            "Where it works, if not in the root.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )
    model: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_SETTING_CHARS),
        metadata=described("Its model instead of the profile's, by a name that the agent knows."),
    )
    effort: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_SETTING_CHARS),
        metadata=described("Its reasoning effort instead of the profile's, as the agent names it."),
    )
    thinking: str | None = attrs.field(
        default=None,
        validator=matching(THINKING_PATTERN, THINKING_RULE),
        metadata=described(
            "Its thinking instead of the profile's: `on`, `off`, or its tokens at most.",
            pattern=f"^{THINKING_PATTERN}$",
        ),
    )
    permission: Permission | None = attrs.field(
        default=None,
        metadata=described("Its permission instead of the profile's; no higher than your own."),
    )
    budget_usd: float | None = attrs.field(
        default=None,
        validator=between(0, 1_000_000, "US dollars"),
        metadata=described("The cost in US dollars at which no further turn begins.", minimum=0),
    )
    directory: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATH_CHARS),
        metadata=described(
            "A directory below the root that it works in, in place of a workspace.",
            "A directory below the root.",
        ),
    )
    worktree: bool | None = attrs.field(
        default=None,
        metadata=described(
            "True: it works in a git worktree of its own; default: as its profile says.",
            "True: in a git worktree of its own.",
        ),
    )
    branch: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_SETTING_CHARS),
        metadata=described(
            "A new branch for its worktree; default: `aegis/` and its handle.",
            "The worktree's new branch.",
        ),
    )


@attrs.frozen(kw_only=True)
class PersonSpawn(SpawnAgent):
    """A spawn by a person, from a face of their own. Used inside the daemon only."""


@attrs.frozen(kw_only=True)
class SpawnWorker(SpawnAgent):
    """Start a session for the task ``task_id`` of a queue. Used inside the daemon only."""

    queue: str
    task_id: str


@attrs.frozen(kw_only=True)
class SpawnForWorkflow(SpawnAgent):
    """Start a session for the workflow called ``workflow``. Used inside the daemon only."""

    workflow: str


@attrs.frozen(kw_only=True)
class SpawnMember(SpawnAgent):
    """Start the session ``session``, an id, as a member of a group. Used inside the daemon only.

    A repeated request with the same id returns the same session.
    """

    session: str


@attrs.frozen(kw_only=True)
class LaunchAgent(Command[AgentInfo]):
    """Launch an interactive program as an agent that is its terminal, and watch its state.

    It runs as a command of a new terminal with the name of its handle, where people answer it. The
    subscribers of that terminal, the caller among them, get a message when it needs input.
    """

    cmd: str = attrs.field(
        validator=at_most_chars(MAX_PROGRAM_CHARS),
        metadata=described("The program, as you would type it, such as `claude --model opus`."),
    )
    handle: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "A new handle for it; default: a generated one.", pattern=f"^{NAME_PATTERN}$"
        ),
    )
    workspace: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "The workspace that it is the agent of; default: it works in the root.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )


@attrs.frozen(kw_only=True)
class OnAgent(Command[AgentInfo]):
    """A command on one agent session."""

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)


@attrs.frozen(kw_only=True)
class CloseAgent(OnAgent):
    """End an agent session. Its transcript and messages are kept; a person can resume it."""


@attrs.frozen(kw_only=True)
class InterruptAgent(OnAgent):
    """Interrupt the agent's current turn; messages that wait become its next turn."""

    message: str | None = attrs.field(
        default=None,
        validator=at_most_chars(512),
        metadata=described(
            "Only the turn of the message with this id, of its receipt; if it has not begun, the "
            "agent does not get it.",
            "Only the turn of this message.",
        ),
    )
    unless_begun: bool = attrs.field(
        default=False,
        metadata=described(
            "Keep the message only from a turn that has not begun; else refused.",
            "Not once begun.",
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.unless_begun and self.message is None:
            raise ValueError("unless_begun is about a message: give its id as message")


MAX_WANTED_CHARS = 1_000
"""The longest text that an agent's messages are searched for."""

WaitOutcome = Literal["done", "failed", "blocked", "limit", "closed", "timeout"]
"""Why a wait for an agent ended.

``done``: what was waited for. ``failed``: the turn or the agent failed, or the turn was cancelled.
``blocked``: the agent waits for a person. ``limit``: a usage limit or its budget holds it back.
"""


@attrs.frozen(kw_only=True)
class AgentOutcome:
    """The end of a wait for an agent; ``reason`` explains an outcome that is not ``done``.

    ``turn`` is the number of the turn that has ended, None if none was waited for, and ``text`` the
    agent's last message in it: of a very long one the end. ``blocked`` is what a person is asked.
    """

    handle: str
    outcome: WaitOutcome
    reason: str = ""
    turn: int | None = None
    text: str = ""
    blocked: Blocked | None = None


@attrs.frozen(kw_only=True)
class WaitAgent(Command[AgentOutcome]):
    """Wait until an agent is at rest, has ended a turn, has said something, or needs a person."""

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)
    message: str | None = attrs.field(
        default=None,
        validator=at_most_chars(512),
        metadata=described("Until the turn with this message has ended: its id."),
    )
    turn: int | None = attrs.field(
        default=None,
        validator=between(1, 2**53, "turns"),
        metadata=described("Until the turn of this number has ended.", minimum=1),
    )
    text: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_WANTED_CHARS),
        metadata=described(
            "Until the agent's messages contain this text; the last one of its last turn counts.",
            "Until the agent's messages contain this text.",
        ),
    )
    blocked: bool = attrs.field(
        default=False, metadata=described("True: only until it needs a person, or is closed.")
    )
    timeout: float = attrs.field(
        default=50.0,
        validator=between(0, 86_400, "seconds"),
        metadata=described("Maximum seconds to wait.", "Seconds.", minimum=0, maximum=86_400),
    )


MAX_SENT = 20
"""The most images, and the most other files, of one message."""


def _at_most_paths(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if len(value) > MAX_SENT:
        raise ValueError(f"{attribute.name} must be at most {MAX_SENT} paths, not {len(value)}")


def _check_texts(_: Any, attribute: attrs.Attribute[Any], value: Mapping[str, str]) -> None:
    if len(value) > MAX_SENT:
        raise ValueError(f"{attribute.name} must be of at most {MAX_SENT} files, not {len(value)}")
    size = sum(map(len, value)) + sum(map(len, value.values()))
    if size > MAX_BODY_CHARS:
        raise ValueError(
            f"{attribute.name} must have at most {MAX_BODY_CHARS} characters, not {size}"
        )


@attrs.frozen(kw_only=True)
class SendToAgent(Command[Receipt]):
    """Send a message with images and other files to an agent, by their absolute paths.

    The daemon reads them from its own host before it answers. An image is sent as one, and kept
    beside the transcript. The text of another file is included up to 64 KiB; of a longer one, or
    one that is no text, the path. Only a person may call it, and not over MCP.
    """

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)
    text: str = attrs.field(
        validator=at_most_chars(MAX_BODY_CHARS),
        metadata=described("The message; it may be empty if there is a file."),
    )
    images: list[str] = attrs.field(
        factory=list,
        validator=_at_most_paths,
        metadata=described("Paths of PNG, JPEG, GIF or WebP images."),
    )
    files: list[str] = attrs.field(
        factory=list, validator=_at_most_paths, metadata=described("Paths of other files.")
    )
    texts: dict[str, str] = attrs.field(
        factory=dict,
        validator=_check_texts,
        metadata=described("Texts of more files by their paths, as an editor has them."),
    )
    interrupt: bool = attrs.field(
        default=False, metadata=described("True: interrupt its current turn first.")
    )
    alone: bool = attrs.field(
        default=False,
        metadata=described("True: it is a turn of its own, and its sender waits for that."),
    )
    key: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_KEY_CHARS),
        metadata=described("Calls with the same key are delivered once."),
    )


@attrs.frozen(kw_only=True)
class PurgeAgent(OnAgent):
    """Close an agent session and delete its transcript. Its handle is not given again.

    Its inbox and the files that it wrote in its directory are kept.
    """


@attrs.frozen(kw_only=True)
class RestartAgent(OnAgent):
    """Start the agent's program anew with the same conversation."""


@attrs.frozen(kw_only=True)
class TakeOverAgent(OnAgent):
    """Continue the conversation of an agent by hand, in its own terminal interface.

    Waits for the end of the current turn, ends the agent's process, and opens its own program on
    the same conversation in a shared terminal, which `taken_over` names. Messages to the agent wait
    until its end, or until agent_handback. Only a person may call it, and not over MCP.
    """

    interrupt: bool = attrs.field(
        default=False, metadata=described("True: interrupt the current turn.")
    )


@attrs.frozen(kw_only=True)
class HandBackAgent(OnAgent):
    """End a take-over: the program in its terminal is ended, and the agent continues.

    What was said there is in the transcript then. It calls off a take-over that still waits for the
    end of a turn. Only a person may call it, and not over MCP.
    """


@attrs.frozen(kw_only=True)
class ResumeSession(OnAgent):
    """Continue the conversation of an agent session, also of a closed one: its program is started.

    The session keeps its handle, transcript and inbox. It is named by a handle or by its id.
    """

    prompt: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_BODY_CHARS),
        metadata=described("A message to it, which becomes its next turn."),
    )


@attrs.frozen(kw_only=True)
class PersonResume(ResumeSession):
    """A resume by a person, from a face of their own. Used inside the daemon only."""


@attrs.frozen(kw_only=True)
class ForkAgent(OnAgent):
    """Start a new agent session with a copy of the conversation of another one.

    The other one is not changed. Not every provider can copy a conversation.
    """

    prompt: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_BODY_CHARS),
        metadata=described("The first message to the new session."),
    )
    new_handle: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "A handle for the new session; default: a generated one.", pattern=f"^{NAME_PATTERN}$"
        ),
    )


@attrs.frozen(kw_only=True)
class PersonFork(ForkAgent):
    """A fork by a person, from a face of their own. Used inside the daemon only."""


@attrs.frozen(kw_only=True)
class RenameAgent(Command[AgentInfo]):
    """Give an agent session another handle. The old handle stays an alias of it.

    Messages, subscriptions and URLs stay valid. No handle is given to another session later.
    """

    old_handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)
    new_handle: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described("A handle that nobody has used.", pattern=f"^{NAME_PATTERN}$"),
    )


@attrs.frozen(kw_only=True)
class SetAgent(OnAgent):
    """Change the settings of a session, now and for its later starts.

    Fields that are left out stay as they are. If the agent refuses, nothing is changed. For another
    effort or thinking the agent is started anew before its next turn, with the same conversation.
    """

    model: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_SETTING_CHARS),
        metadata=described("The model, by a name that the agent knows."),
    )
    effort: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_SETTING_CHARS),
        metadata=described("The reasoning effort, as the agent names it."),
    )
    thinking: str | None = attrs.field(
        default=None,
        validator=matching(THINKING_PATTERN, THINKING_RULE),
        metadata=described(
            "The thinking: `on`, `off`, or its tokens at most.",
            pattern=f"^{THINKING_PATTERN}$",
        ),
    )
    permission: Permission | None = attrs.field(
        default=None, metadata=described("The permission, as in a profile.")
    )
    budget_usd: float | None = attrs.field(
        default=None,
        validator=between(0, 1_000_000, "US dollars"),
        metadata=described("The cost in US dollars at which no further turn begins.", minimum=0),
    )


@attrs.frozen(kw_only=True)
class PersonSetAgent(SetAgent):
    """A change by a person, from a face of their own: only such a one ends a plan."""


@attrs.frozen(kw_only=True)
class CloseWorkspaceAgents(Request[list[str]]):
    """Close the sessions that were spawned in a workspace, before it is deleted.

    The reply has their handles. Either all can be reached by ``from_handle``, or none is closed.
    """

    workspace: str
    from_handle: str | None


@attrs.frozen(kw_only=True)
class ListWorkspaceAgents(Request[dict[str, str]]):
    """Return the handle of the terminal agent of each workspace that has one, by its key.

    Used inside the daemon only.
    """


@attrs.frozen(kw_only=True)
class ListAgentCommands(Request[list[AgentCommand]]):
    """Return the commands that agents have their sessions run. Used inside the daemon only."""


@attrs.frozen(kw_only=True)
class AgentDetails(AgentInfo):
    """The state of one agent session, with the ``commands`` of its own that it has announced.

    ``takes_images``: a message to it can have images; None: it has not started yet. ``calls`` are
    the running tool calls and background tasks, each behind those that it belongs to, at most 64.
    ``tasks`` are
    what the agent runs in the background. ``models`` are those that it can be set to; agents that
    list none take any name.
    """

    commands: list[SlashCommand] = attrs.field(factory=list)
    takes_images: bool | None = None
    calls: list[AgentCall] = attrs.field(factory=list)
    tasks: list[str] = attrs.field(factory=list)
    models: list[OfferedModel] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class ShowAgent(OnAgent):
    """Return the state of one agent session, and the commands of its own that a person can send."""


@attrs.frozen(kw_only=True)
class ShowDetails(ShowAgent):
    """A client's request for the ``AgentDetails`` of a session. Used inside the daemon only.

    The spawn of a session and the lists ask it for its ``AgentInfo``.
    """


@attrs.frozen(kw_only=True)
class ListSessions(Command[AgentList]):
    """List agent sessions with their states, their turns and their oldest open requests."""

    closed: bool = attrs.field(
        default=False, metadata=described("True: list closed sessions too.", "Closed ones too.")
    )


@attrs.frozen(kw_only=True)
class AgentDiff:
    """The changes in the checkout ``directory`` since the commit ``base``, when a session began.

    ``diff`` is the text of ``git diff``, in which commits since then and files without one count
    too; ``new_files`` are the files that the commit does not have, and ``uncommitted`` those that
    are not as in the current commit. ``truncated``: a part of any was left out.
    """

    handle: str
    base: str
    directory: str
    diff: str
    new_files: list[str]
    uncommitted: list[str]
    truncated: bool


@attrs.frozen(kw_only=True)
class DiffAgent(Command[AgentDiff]):
    """Show what changed in the checkout of an agent session since it began, by anyone."""

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)


@attrs.frozen(kw_only=True)
class AgentRewind:
    """A rewind to before the turn `turn`; `is_done` is false after a dry run.

    `files` are set back, or would be; `left` were changed by others since, and stay as they are.
    `unable` are sentences about files of others that could not be kept so.
    """

    handle: str
    turn: int
    is_done: bool
    files: list[str]
    left: list[str]
    unable: list[str]


@attrs.frozen(kw_only=True)
class RewindAgent(Command[AgentRewind]):
    """Set the files that an agent changed with its tools back to before one of its turns.

    Files that others changed since are left alone. What shell commands did, and the
    conversation, stay. Claude Code only, between turns. Only a person may call it, and not over
    MCP.
    """

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)
    turn: int | None = attrs.field(
        default=None,
        validator=between(1, 2**53, "turns"),
        metadata=described("The turn; default: the last one.", minimum=1),
    )
    dry_run: bool = attrs.field(default=False, metadata=described("True: only say which files."))


@attrs.frozen(kw_only=True)
class SessionUsage:
    """The accounting of one session; ``root`` is the handle of the first session of its tree.

    ``usage`` is None if the transcript of a closed session cannot be read.
    """

    id: str
    handle: str
    root: str
    is_closed: bool
    usage: AgentUsage | None


@attrs.frozen(kw_only=True)
class TreeUsage:
    """The sums over the listed sessions of one tree: ``root`` and those that it spawned."""

    root: str
    sessions: int
    usage: AgentUsage


@attrs.frozen(kw_only=True)
class UsageList:
    """The accounting of sessions, of their trees, and of all listed sessions together.

    The costliest sessions and trees are first. Figures that no session reports are None in a sum.
    """

    result: list[SessionUsage]
    trees: list[TreeUsage]
    total: AgentUsage


@attrs.frozen(kw_only=True)
class ReadUsage(Command[UsageList]):
    """List the tokens, the cost and the time of agent sessions, as their agents report them."""

    handle: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "Only this session and those that it spawned, closed ones too; default: all.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )
    closed: bool = attrs.field(default=False, metadata=described("True: closed sessions too."))


MAX_SPANS = 5_000


@attrs.frozen(kw_only=True)
class UsageSpan:
    """The usage of sessions in one hour or day, or in all: of ``handle``, null for all of them.

    ``begin`` is the begin of an hour in UTC, of a day with the daemon's zone, empty for all time.
    """

    begin: str
    handle: str | None
    usage: AgentUsage


@attrs.frozen(kw_only=True)
class UsageOverTime:
    """Spans in which something was used: the oldest first, by agent the costliest.

    ``total`` is the sum, also of those that were left out because of the limit (``more``): the
    oldest, by agent the cheapest.
    """

    result: list[UsageSpan]
    total: AgentUsage
    more: bool = False


@attrs.frozen(kw_only=True)
class ReadUsageOverTime(Command[UsageOverTime]):
    """Return the turns, tokens, cost and time of sessions by hour, by day or by agent.

    Sessions that are closed or purged count too. Hours are those of UTC, days those of the daemon's
    machine. Only a person may call it, and not over MCP.
    """

    by: Literal["hour", "day", "agent"] = attrs.field(
        default="day", metadata=described("By hour, by day, or by agent.")
    )
    split: bool = attrs.field(
        default=False, metadata=described("True: each agent by itself in each hour or day.")
    )
    handle: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "Only this session and those that it spawned; default: all.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )
    since: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_TIME_CHARS),
        metadata=described("Not before the hour of this time, ISO 8601; default: all."),
    )
    limit: int = attrs.field(
        default=1_000,
        validator=between(1, MAX_SPANS, "spans"),
        metadata=described("Maximum number of spans.", minimum=1, maximum=MAX_SPANS),
    )


@attrs.frozen(kw_only=True)
class ProfileInfo:
    """A profile that can be spawned; ``problem`` says why it cannot."""

    profile: str
    provider: str
    permission: Permission
    model: str = ""
    is_default: bool = False
    problem: str = ""


@attrs.frozen(kw_only=True)
class ProfileList:
    """Profiles, in the order of their names."""

    result: list[ProfileInfo]


@attrs.frozen(kw_only=True)
class ListAgents(Command[ProfileList]):
    """List the profiles of agents that aegis_spawn can start."""


@attrs.frozen(kw_only=True)
class TranscriptEntry:
    """One entry of a transcript: ``seq`` rises by one; ``at`` is UTC, ISO 8601 with ``Z``.

    ``fields`` depend on ``kind``: a turn's opening and end, an event of the agent, and others.
    """

    seq: int
    kind: str
    at: str
    fields: dict[str, Any]


@attrs.frozen(kw_only=True)
class Transcript:
    """Entries of a transcript, oldest first; ``more``: a limit left some out.

    ``missed``: so many entries after ``since`` are no longer kept.
    """

    result: list[TranscriptEntry]
    more: bool = False
    missed: int = 0


@attrs.frozen(kw_only=True)
class ReadSession(Command[Transcript]):
    """Read the transcript of your own session, or of one that you spawned."""

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)
    last_n: int | None = attrs.field(
        default=None,
        validator=between(1, 1000, "entries"),
        metadata=described(
            "The newest entries, 1 to 1000; default 50. With since: the oldest after it; "
            "default all that fit.",
            "Default 50. With since: the oldest.",
            minimum=1,
            maximum=1000,
        ),
    )
    since: int | None = attrs.field(
        default=None,
        validator=between(0, 2**53 - 1, "(a seq)"),
        metadata=described(
            "Entries after this seq, instead of the newest ones.",
            "Entries after this seq.",
            minimum=0,
        ),
    )


@attrs.frozen(kw_only=True)
class ExportPart:
    """A part of a transcript as ``text``, which ends with a line end.

    ``next`` is the seq after which the next part begins, None if this is the last one. ``missed``
    counts the entries before this part that are no longer kept.
    """

    text: str
    next: int | None
    missed: int = 0


@attrs.frozen(kw_only=True)
class ExportSession(Command[ExportPart]):
    """Return a transcript as a document, of your own session or of one that you spawned."""

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)
    form: Literal["markdown", "jsonl"] = attrs.field(
        default="markdown",
        metadata=described("markdown, or jsonl: one entry on each line, as JSON."),
    )
    since: int = attrs.field(
        default=0,
        validator=between(0, 2**53 - 1, "(a seq)"),
        metadata=described("The next of the part before; default 0.", "Default 0.", minimum=0),
    )


def transcript_of(
    records: Sequence[Mapping[str, Any]], *, more: bool, missed: int = 0
) -> Transcript:
    """Return the lines of a transcript as a reply."""
    return Transcript(result=[entry_of(each) for each in records], more=more, missed=missed)


def entry_of(record: Mapping[str, Any]) -> TranscriptEntry:
    """Return one line of a transcript as its entry."""
    fields = {key: value for key, value in record.items() if key not in ("seq", "kind", "at")}
    moment = record.get("at")
    at = datetime.fromtimestamp(moment, UTC) if isinstance(moment, int | float) else EPOCH
    return TranscriptEntry(
        seq=int(record["seq"]),
        kind=str(record.get("kind", "")),
        at=at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        fields=fields,
    )


EPOCH = datetime.fromtimestamp(0, UTC)
"""The moment of an entry that has none."""


@attrs.frozen
class ToolsListed:
    """The notification that a client has listed the tools at the MCP URL of ``handle``.

    Sent to the service ``sessions``: the agent of a session has connected to the MCP server.
    """

    handle: str
