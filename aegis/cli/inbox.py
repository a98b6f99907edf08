"""The verbs of inboxes: ``inbox read|wait|send``."""

from __future__ import annotations

from aegis.cli.grammar.verb import (
    SECONDS,
    WHOLE,
    TargetDaemon,
    VerbGroup,
    argument,
    flag,
    option,
    text_or_input,
    verb,
)
from aegis.cli.grammar.words import in_verbs
from aegis.cli.printing.formatting import escaped, escaped_line, print_lines, print_notice

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_after = option(
    "--after", metavar="NEXT", help="Acknowledge messages up to the `next` of an earlier reply."
)


@verb(
    _after,
    flag("--all", "show_all", help="Include acknowledged messages."),
    option("--limit", kind=WHOLE, help="Maximum number of messages; default 50."),
)
def read(daemon: TargetDaemon, after: str | None, show_all: bool, limit: int | None) -> None:
    """Show the messages of your inbox (--as HANDLE)."""
    unread = False if show_all else None
    reply = daemon.call("inbox_read", after=after, unread=unread, limit=limit)
    daemon.show(reply, lambda: _show_messages(reply, "no message"))


@verb(_after, option("--timeout", kind=SECONDS, help="Seconds to wait at most; default 50."))
def wait(daemon: TargetDaemon, after: str | None, timeout: float | None) -> None:
    """Wait for a message in your inbox (--as HANDLE).

    Exits with 0 even if no message arrives in time.
    """
    reply = daemon.call("inbox_wait", after=after, timeout=timeout)
    daemon.show(reply, lambda: _show_messages(reply, "no message arrived in time"))


INTERRUPT = flag("--interrupt", help="Interrupt its current turn first.")
KEY = option("--key", metavar="TEXT", help="Deliver once, however often this is sent.")


@verb(INTERRUPT, KEY, argument("target"), argument("text", many=True), options_first=True)
def send(
    daemon: TargetDaemon, target: str, text: Sequence[str], interrupt: bool, key: str | None
) -> None:
    """Send TEXT to the agent TARGET; `-` reads it from the standard input."""
    hand_off(daemon, target, text, interrupt, key)


def hand_off(
    daemon: TargetDaemon,
    target: str,
    text: Sequence[str],
    interrupt: bool,
    key: str | None,
    *,
    shows: bool = True,
) -> Mapping[str, Any]:
    """Send a message, print its receipt if ``shows``, and return it."""
    reply: Mapping[str, Any] = daemon.call(
        "handoff",
        target_handle=target,
        context=text_or_input(" ".join(text)),
        interrupt=interrupt or None,
        key=key,
    )
    show_reply(daemon, reply, shows=shows)
    return reply


def show_reply(daemon: TargetDaemon, reply: Mapping[str, Any], *, shows: bool = True) -> None:
    """Print the receipt of a message if ``shows``, and its notice in any case."""
    if shows:
        daemon.show(reply, lambda: print_lines(escaped_line(_receipt(reply))))
    if reply.get("notice"):  # a daemon of an older version gives none
        print_notice(f"↳ {escaped_line(reply['notice'])}")


def _receipt(reply: Mapping[str, Any]) -> str:
    behind = f" behind {reply['position']}" if reply["position"] else ""
    return f"{reply['status']}{behind} ({reply['id']})"


def _show_messages(reply: Mapping[str, Any], if_none: str) -> None:
    print_lines("\n\n".join(escaped(_text(message)) for message in reply["messages"]))
    if not reply["messages"]:
        print_notice(f"↳ {if_none}")
    elif reply["next"] is not None:
        print_notice(f"acknowledge with: --after {reply['next']}")
    else:
        print_notice("↳ older unread messages are not shown: read them first, without --all")


def _text(message: Mapping[str, Any]) -> str:
    # Of the messages, only the one that replaces many wakes of a terminal is a sentence of the
    # daemon. A wake begins with a command, and other senders write their own text.
    is_daemon = message["sender"].startswith("term:") and not message["body"].startswith("$ ")
    return in_verbs(message["text"]) if is_daemon else message["text"]


inbox = VerbGroup(
    """Messages from terminals, agents and people.""",
    {
        "read": read,
        "wait": wait,
        "send": send,
    },
)
