"""The trust in the settings of a project: ``agent trust``, and the question at a launch."""

from __future__ import annotations

import sys

from aegis.cli.grammar.verb import TargetDaemon, argument, flag, from_here, option, verb
from aegis.cli.printing.formatting import escaped_line, print_lines, print_notice
from aegis.path_text import shell_word

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@verb(
    option("--workspace", metavar="NAME", help="The workspace whose directory is meant."),
    option("--directory", metavar="DIR", help="A directory below the root in place of that."),
    flag("--yes", help="Trust them as they are now, without a question."),
    argument("profile", required=False),
)
def trust(
    daemon: TargetDaemon,
    profile: str | None,
    workspace: str | None,
    directory: str | None,
    yes: bool,
) -> int:
    """Show the settings of the project that agents of PROFILE would use, and trust them.

    They can run programs, allow tools and send keys to others. They are trusted as they are now:
    after a change you are asked again. Only a person can do this.
    """
    place = {"workspace": workspace, "directory": from_here(directory)}
    found = daemon.call("agent_trust", profile=profile, **place)
    if found["problem"] or not found["digest"] or found["is_trusted"]:
        daemon.show(found, lambda: _show_settled(found))
        return 1 if found["problem"] else 0
    if not yes and not _can_ask():
        daemon.show(found, lambda: _show_untrusted(found, profile, place))
        return 1
    if not yes:
        _print(found)
        if not _is_confirmed():
            print_notice("↳ not trusted")
            return 1
    done = daemon.call("agent_trust", profile=profile, digest=found["digest"], **place)
    daemon.show(done, lambda: print_notice(f"trusted {_count(done)} until a change"))
    return 0


def ask_at_launch(
    daemon: TargetDaemon, profile: str | None, workspace: str | None, directory: str | None
) -> None:
    """Ask a person at a terminal once whether an agent may use the settings of its project."""
    if not _can_ask():
        return
    place = {"workspace": workspace, "directory": directory}
    found = daemon.call("agent_trust", profile=profile, **place)
    if not found["wanted"] or found["is_trusted"] or found["problem"]:
        return
    _print(found)
    if _is_confirmed():
        daemon.call("agent_trust", profile=profile, digest=found["digest"], **place)
    else:
        print_notice("↳ launched without them")


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _is_confirmed() -> bool:
    sys.stderr.write("Trust these settings as they are now? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _count(found: Mapping[str, Any]) -> str:
    number = len(found["files"])
    files = "1 file" if number == 1 else f"{number} files"
    return f"{files} of {escaped_line(found['directory'])}"


def _print(found: Mapping[str, Any]) -> None:
    print_notice(f"The profile {found['profile']} would use {_count(found)}:")
    for line in found["shown"]:
        print_notice(f"  {escaped_line(line)}")


def _show_untrusted(
    found: Mapping[str, Any], profile: str | None, place: Mapping[str, str | None]
) -> None:
    words = ["--yes", *([profile] if profile else [])]
    for name, value in place.items():
        words += [f"--{name}", value] if value else []
    command = escaped_line(f"aegis-actors agent trust {' '.join(map(shell_word, words))}")
    print_lines("\n".join(map(escaped_line, found["shown"])))
    print_notice(f"↳ not trusted; trust them with: {command}")


def _show_settled(found: Mapping[str, Any]) -> None:
    if found["problem"]:
        print_notice(f"↳ the settings cannot be trusted: {escaped_line(found['problem'])}")
    elif not found["digest"]:
        print_notice(f"↳ {escaped_line(found['directory'])} has no settings to trust")
    else:
        print_notice(f"↳ trusted until a change: {_count(found)}")
