"""The agents' own commands, such as ``/compact``: those announced, those refused, and text. Pure.

An agent carries out a prompt that begins with ``/``, also one of another agent: ``/yolo`` of kimi
ends all asking. So a text that is not meant as a command must not begin like one. Claude Code reads
a file for each ``@path`` in a prompt without asking, and codex a skill for each ``$name``, so a
text of a program must not have one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from aegis.names import shorten
from aegis.protocol.agent_events import CommandSent, SlashCommand
from aegis.protocol.inboxes import command_name

Mentions = Literal["", "files", "skills"]
"""The mentions that an agent expands in a prompt: ``@path`` by a file, ``$name`` by a skill."""

MARK = "| "
"""The beginning of a text that an agent could take for a command."""

# Spaces, controls, format and filler characters: some agents trim a prompt before they look at it.
_UNSEEN = (
    r"\s\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U000e0000-\U000e0fff"
)

# The slash, and the characters that become one when text is normalised, or look like it.
_SLASHES = r"/\u2044\u2215\u2571\u29f8\uff0f"

_COMMAND = re.compile(rf"[{_UNSEEN}]*[{_SLASHES}]")


def as_text(text: str) -> str:
    """Return ``text``, with ``MARK`` before it if an agent could take it for a command."""
    return f"{MARK}{text}" if _COMMAND.match(text) else text


# The character before a mention of Claude Code is a blank or a punctuation mark of Chinese.
# A word such as the decorator @Override is escaped too, whether or not a file has that name now:
# one can appear, or become a link to another, before the agent reads the text.
_MENTION = re.compile(r"(?<![!-~\w])@(?=\S)")


# A link that names a skill by its file counts for codex, with any text.
_LINKED_SKILL = r"[\w:-]{1,200}\\?\]\s*\("


def as_plain(text: str, mentions: Mentions, known: Sequence[SlashCommand] | None) -> str:
    """Return ``text`` of a program, in which an agent finds no mention that it would expand.

    ``known`` are the commands that it has announced, its skills among them; None: none yet.
    """
    match mentions:
        case "files":
            return _MENTION.sub(r"\\@", text)
        case "skills" if known is None:
            # Skills have names in small letters; variables of a shell often not.
            return re.sub(rf"\$(?=[a-z]|{_LINKED_SKILL})", r"$\\", text)
        case "skills":
            names = [re.escape(each.name[1:]) for each in known or () if each.name.startswith("$")]
            named = "".join(rf"{each}(?![\w-])|" for each in names)
            return re.sub(rf"\$(?=(?:{named}{_LINKED_SKILL}))", r"$\\", text)
    return text


@attrs.frozen(kw_only=True)
class ProjectCommand:
    """A command or a skill of a project that is not trusted: its ``text`` is sent as a message."""

    command: SlashCommand
    path: str
    text: str = attrs.field(repr=False)

    def as_message(self, message: str, command: str) -> str:
        """Return the text for a person's ``command``; ``message`` is it with a header.

        What the program would run or attach in a command of its own stays text.
        """
        given = command.partition(self.command.name)[2].strip()
        # No line of it forges the header of another message.
        text = as_plain(re.sub(r"(?m)^([^\S\n]*>)", rf"{MARK}\1", self.text.strip()), "files", None)
        whole = re.sub(r"\$ARGUMENTS\b", lambda _: given, text)
        if given and "$ARGUMENTS" not in self.text:
            whole += f"\n\nARGUMENTS: {given}"
        header = f"{message.partition(chr(10))[0]}\n" if message.startswith("> from ") else ""
        return (
            f"{header}The text of /{self.command.name}, from {self.path} of the project:\n\n{whole}"
        )


def with_project(
    announced: Sequence[SlashCommand], project: Sequence[ProjectCommand]
) -> list[SlashCommand]:
    """Return the commands that a person can choose: the agent's own win."""
    others = [each.command for each in project if not has_command(announced, each.command.name)]
    return [*announced, *others]


def sent_as(
    text: str,
    command: str,
    known: Sequence[SlashCommand] | None,
    project: Sequence[ProjectCommand] = (),
) -> tuple[str, CommandSent | None]:
    """Return the text of a prompt, and the event of a person's command.

    ``text`` is what is sent without a ``command``, or if it is none of the ``known`` ones: opencode
    swallows an unknown one silently, and others pass it to the model without its sender. For one of
    the ``project`` its text is sent.
    """
    if not command:
        return as_text(text), None
    name = command_name(command)
    if has_command(known or (), name):
        return command, CommandSent(name=name)
    for each in project:
        if each.command.name == name:
            sent = CommandSent(name=name, of_project=True)
            return as_text(each.as_message(text, command)), sent
    return as_text(text), CommandSent(name=name, as_text=True)


def has_command(commands: Sequence[SlashCommand], name: str) -> bool:
    """Return whether one of these commands has this name."""
    return any(name in (each.name, *each.aliases) for each in commands)


# Announced commands.

MAX_COMMANDS = 500
MAX_NAME_CHARS = 200
MAX_SHOWN_CHARS = 300
"""The part of a description that is kept: an agent repeats all of them at each start."""


def read_commands(announced: object) -> list[SlashCommand]:
    """Return the commands that Claude Code or an ACP agent announces."""
    if not isinstance(announced, list):
        return []
    found = [_read(each) for each in announced[:MAX_COMMANDS] if isinstance(each, dict)]
    return [each for each in found if each is not None]


def _read(fields: Mapping[str, Any]) -> SlashCommand | None:
    name = _name(fields.get("name"))
    if not name or name.startswith("__"):  # internal ones of Claude Code
        return None
    given = fields.get("input")
    hint = fields.get("argumentHint") or (given.get("hint") if isinstance(given, dict) else "")
    aliases = fields.get("aliases")
    return SlashCommand(
        name=name,
        description=_shown(fields.get("description")),
        hint=_shown(hint),
        aliases=[_name(each) for each in (aliases if isinstance(aliases, list) else ())[:20]],
    )


def _name(value: object) -> str:
    """Return a name as it follows the slash; empty if it cannot be one."""
    name = value.removeprefix("/") if isinstance(value, str) else ""
    return name if len(name) <= MAX_NAME_CHARS and command_name(f"/{name}") == name else ""


def _shown(value: object) -> str:
    return shorten(value, MAX_SHOWN_CHARS) if isinstance(value, str) else ""


# Refused commands.

_ASKING = frozenset(
    {
        *("yolo", "afk", "auto", "auto-approve", "auto-mode-setup", "bypass", "full-access"),
        *("permissions", "permission-mode", "allowed-tools", "approvals", "approval-mode"),
        # Claude Code's sets any setting, the mode among them.
        *("config", "settings"),
    }
)
_LOGIN = frozenset({"login", "logout", "auth", "setup-token"})
_END = frozenset({"exit", "quit"})
_CLEAR = frozenset({"clear", "reset", "new"})


def refuse_command(name: str, handle: str, provider: str) -> str | None:
    """Return why a person's command is not sent to the agent ``handle``, in one sentence."""
    key = name.casefold()
    if key in _ASKING:
        reason = (
            "it can end that the agent asks before it acts; change that with "
            f"agent set {handle} --permission"
        )
    elif key in _LOGIN:
        reason = (
            "it changes the login that other sessions use too; log in or out with the agent's own "
            "program in a terminal"
        )
    elif key in _END:
        reason = f"it ends the agent's program; end the session with agent stop {handle}"
    elif key in _CLEAR and provider == "claude-agent-acp":
        reason = (
            "the adapter hides the id of the new conversation, so a restart would bring back the "
            "old one; launch another agent, or use the provider claude, where it works"
        )
    else:
        return None
    return f"/{shorten(name)} is not sent to {handle}: {reason}"
