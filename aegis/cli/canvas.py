"""The verbs of canvases: ``canvas list|open|read|write|append|subscribe|unsubscribe|history``."""

from __future__ import annotations

from aegis.cli.grammar.verb import (
    WHOLE,
    TargetDaemon,
    VerbGroup,
    argument,
    flag,
    option,
    text_or_input,
    verb,
)
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

_CANVASES = ["canvas", "file", "rev", "sections", "subscribers", "problem"]
_CHANGES = ["rev", "time", "section", "op", "writer", "lines"]

MAX_NAMES = 4
"""Names of sections or subscribers that a list shows."""


@verb()
def list_canvases(daemon: TargetDaemon) -> None:
    """List the canvases with their files and sections."""
    reply = daemon.call("canvas_list")
    daemon.show(reply, lambda: _show_canvases(reply["result"]))


@verb(argument("canvas"), argument("file", required=False))
def open_canvas(daemon: TargetDaemon, canvas: str, file: str | None) -> None:
    """Open CANVAS. The first time FILE is its markdown file, relative to the project's root."""
    reply = daemon.call("canvas_open", name=canvas, file=file)
    daemon.show(reply, lambda: _show_canvases([reply]))


@verb(argument("canvas"), argument("section", required=False))
def read(daemon: TargetDaemon, canvas: str, section: str | None) -> None:
    """Print the sections of CANVAS, or SECTION alone, with the rev that replacing it needs."""
    reply = daemon.call("canvas_read", name=canvas, section=section)
    daemon.show(reply, lambda: _show_sections(reply["sections"]))


@verb(
    option("--if-rev", "if_rev", kind=WHOLE, help="The rev of the section that you read."),
    flag("--force", help="Replace the section, whichever revision it has."),
    argument("canvas"),
    argument("section"),
    argument("text"),
)
def write(
    daemon: TargetDaemon, canvas: str, section: str, text: str, if_rev: int | None, force: bool
) -> None:
    """Write TEXT under the heading SECTION of CANVAS; `-` reads it from the standard input.

    A section that exists is replaced only with --if-rev or --force.
    """
    reply = daemon.call(
        "canvas_write_section",
        name=canvas,
        section=section,
        content=text_or_input(text, is_file=True),
        if_rev=if_rev,
        force=True if force else None,
    )
    daemon.show(reply, lambda: _show_written(reply))


@verb(argument("canvas"), argument("section"), argument("text"))
def append(daemon: TargetDaemon, canvas: str, section: str, text: str) -> None:
    """Append TEXT to SECTION of CANVAS; `-` reads it from the standard input."""
    reply = daemon.call(
        "canvas_append_to_section",
        name=canvas,
        section=section,
        text=text_or_input(text, is_file=True),
    )
    daemon.show(reply, lambda: _show_written(reply))


@verb(
    option("--section", metavar="NAME", many=True, help="Only this section; may be repeated."),
    argument("canvas"),
)
def subscribe(daemon: TargetDaemon, canvas: str, section: Sequence[str]) -> None:
    """Have your inbox woken by what others write into CANVAS."""
    reply = daemon.call("canvas_subscribe", name=canvas, sections=[*section] or None)
    daemon.show(reply, lambda: print_notice(f"↳ subscribed to {reply['canvas']}"))


@verb(argument("canvas"))
def unsubscribe(daemon: TargetDaemon, canvas: str) -> None:
    """End your subscription to CANVAS."""
    reply = daemon.call("canvas_unsubscribe", name=canvas)
    daemon.show(reply, lambda: print_notice(f"↳ not subscribed to {reply['canvas']}"))


@verb(
    option("--limit", kind=WHOLE, help="Maximum number of changes; default 20."),
    option("--before", metavar="REV", kind=WHOLE, help="Only changes before this rev."),
    flag("--text", help="Print the texts too."),
    argument("canvas"),
    argument("section", required=False),
)
def history(
    daemon: TargetDaemon,
    canvas: str,
    section: str | None,
    limit: int | None,
    before: int | None,
    text: bool,
) -> None:
    """List the changes of CANVAS, or of SECTION, the newest first."""
    reply = daemon.call("canvas_history", name=canvas, section=section, limit=limit, before=before)
    daemon.show(reply, lambda: _show_history(reply, with_texts=text))


def _show_canvases(canvases: Sequence[Mapping[str, Any]]) -> None:
    if canvases:
        print_lines(table(_CANVASES, [_canvas_row(each) for each in canvases]))
    else:
        print_notice("↳ no canvas: open one with aegis-actors canvas open NAME FILE")


def _canvas_row(canvas: Mapping[str, Any]) -> list[object]:
    return [
        canvas["name"],
        canvas["file"],
        canvas["rev"],
        _some(canvas["sections"]),
        _some(canvas["subscribers"]),
        canvas["problem"],
    ]


def _some(names: Sequence[str]) -> str:
    more = f", … ({len(names)})" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _show_sections(sections: Sequence[Mapping[str, Any]]) -> None:
    for each in sections:
        by = f" by {each['writer']}" if each["writer"] else ""
        print_notice(f"↳ {escaped_line(each['section'])} (rev {each['rev']}{by})")
        if each["text"]:
            print_lines(escaped(each["text"]))
        if each.get("more"):
            print_notice("↳ the text is longer: read its section alone, or its file")


def _show_written(reply: Mapping[str, Any]) -> None:
    lines = f"+{reply['added']} / -{reply['removed']} lines"
    print_notice(f"↳ {escaped_line(reply['section'])} is at rev {reply['rev']} ({lines})")


def _show_history(reply: Mapping[str, Any], *, with_texts: bool) -> None:
    changes = reply["result"]
    if not changes:
        print_notice("↳ no change" + (" yet" if reply.get("more") else ""))
    elif not with_texts:
        print_lines(table(_CHANGES, [_change_row(each) for each in changes]))
    else:
        for each in changes:
            print_notice("↳ " + " · ".join(map(escaped_line, map(str, _change_row(each)))))
            print_lines(escaped(each["text"] or ""))
    if reply.get("more"):
        print_notice(f"↳ there are older ones: --before {reply['before']}")
    if reply.get("gone"):
        print_notice("↳ older ones were deleted: see keep.archive_bytes")


def _change_row(change: Mapping[str, Any]) -> list[object]:
    return [
        change["rev"],
        change["timestamp"],
        change["section"],
        "displaced" if change.get("displaced") else change["op"],
        change["writer"],
        f"+{change['added']} -{change['removed']}",
    ]


canvas = VerbGroup(
    """Markdown files that several write, section by section.""",
    {
        "list": list_canvases,
        "open": open_canvas,
        "read": read,
        "write": write,
        "append": append,
        "subscribe": subscribe,
        "unsubscribe": unsubscribe,
        "history": history,
    },
)
