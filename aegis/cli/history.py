"""The verb ``history``."""

from __future__ import annotations

from aegis.cli.grammar.verb import WHOLE, TargetDaemon, argument, moment, option, verb
from aegis.cli.printing.formatting import escaped_line, print_json_line, print_lines, print_notice

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PAGE = 50
TEXT_CHARS = 200
KINDS = ("command", "task", "request", "run", "message", "transcript")


@verb(
    option("--kind", kind=KINDS, help="Only this kind."),
    option("--name", help="Only this terminal, queue, handle or workflow."),
    option("--exit", "exit_code", kind=WHOLE, help="Only commands with this exit code."),
    option("--since", metavar="TIME", help="Not before; as 2026-05-22T14:00, in local time."),
    option("--until", metavar="TIME", help="Not after."),
    option("--limit", kind=WHOLE, help="Maximum number of entries; default: all."),
    argument("word", required=False),
)
def history(
    daemon: TargetDaemon,
    word: str | None,
    kind: str | None,
    name: str | None,
    exit_code: int | None,
    since: str | None,
    until: str | None,
    limit: int | None,
) -> int:
    """Find what has ended, and messages and texts of transcripts.

    WORD is in the command, payload, question, arguments, message or text. What the archive has is
    found too. They are printed as they are found; with --json one object per line. Messages and
    transcripts are searched with --kind message and --kind transcript only.
    """
    wanted = {"kind": kind, "name": name, "word": word, "exit_code": exit_code}
    wanted |= {"since": moment("--since", since), "until": moment("--until", until)}
    count, more, has_problem = 0, None, False
    while limit is None or count < limit:
        page = PAGE if limit is None else min(PAGE, limit - count)
        reply = daemon.call("history", **wanted, limit=page, more=more)
        for entry in reply["result"]:
            if daemon.as_json:
                print_json_line(entry)
            else:
                print_lines(_line(entry))
        for problem in reply["problems"]:
            print_notice(f"↳ left out: {problem}")
            has_problem = True
        count, more = count + len(reply["result"]), reply["more"]
        if more is None:
            break
    if not count and not daemon.as_json:
        print_notice("↳ nothing was found")
    return int(has_problem)


def _line(entry: Mapping[str, Any]) -> str:
    text = " ".join(entry["text"].split())
    text = text if len(text) <= TEXT_CHARS else f"{text[: TEXT_CHARS - 1]}…"
    outcome = entry["outcome"] if entry["exit"] is None else f"exit {entry['exit']}"
    where = f"{entry['kind']} {entry['name']} {entry['id']}"
    return escaped_line(f"{entry['at']}  {where}  {outcome}  {text}")
