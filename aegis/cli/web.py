"""The verbs of the web page: ``web``, ``page list|revoke|link``, ``push list|remove``."""

from __future__ import annotations

import os

from aegis.cli.grammar.verb import SECONDS, TargetDaemon, VerbGroup, argument, flag, option, verb
from aegis.cli.printing.formatting import escaped_line, print_lines, print_notice, table

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ADDRESS_FILE = "open-web-page.html"
_HEAD = ["id", "what it shows", "since", "until", "browser or note"]


@verb(flag("--print", "prints", help="Print the address instead of opening a browser."))
def web(daemon: TargetDaemon, prints: bool) -> None:
    """Open the web page, logged in.

    The address is valid for one login within a minute. The browser gets it in a file that only you
    can read, because other users of the machine can see the arguments of a program.
    """
    reply = daemon.call("page_code")
    if daemon.as_json or prints or not _open(daemon.root, reply["url"]):
        daemon.show(reply, lambda: print_lines(reply["url"]))


def _open(root: object, url: str) -> bool:
    """Open the address in a browser; return False if there is none."""
    import webbrowser
    from urllib.parse import quote

    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        print_notice("no graphical session: open this address in a browser within a minute")
        return False
    path = os.path.join(str(root), ".aegis", "state", ADDRESS_FILE)  # noqa: PTH118
    page = (
        '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0;url={url}"><title>aegis-actors</title>'
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123
        os.fchmod(descriptor, 0o600)
        file.write(page)
    if not webbrowser.open(f"file://{quote(path)}"):
        return False
    print_notice("opened the web page in your browser")
    return True


@verb()
def list_pages(daemon: TargetDaemon) -> None:
    """List the browsers that are logged in, and the read-only links."""
    reply = daemon.call("page_list")
    daemon.show(reply, lambda: print_lines(_listed(reply)))


def _listed(reply: Mapping[str, Any]) -> str:
    rows = [
        [
            each["id"],
            f"{each['view']}, read-only" if each["view"] else "everything",
            each["created_at"],
            each["expires_at"],
            f"{kind}{each['label']}",
        ]
        for kind, group in (("", reply["pages"]), ("link: ", reply["links"]))
        for each in group
    ]
    return table(_HEAD, rows)


@verb(argument("page_id", metavar="ID"))
def revoke(daemon: TargetDaemon, page_id: str) -> None:
    """Log the browser ID out, or revoke the link ID; 'all' revokes everything."""
    reply = daemon.call("page_revoke", id=page_id)
    ended = f"connections ended: {reply['connections']}"
    lines = [*(f"revoked: {escaped_line(each)}" for each in reply["ids"]), ended]
    daemon.show(reply, lambda: print_lines("\n".join(lines)))


@verb(
    argument("view", metavar="WHAT"),
    option("--for", "for_s", kind=SECONDS, metavar="SECONDS", help="Its life; default: a day."),
    option("--label", metavar="TEXT", help="A note of whom it is for."),
)
def link(daemon: TargetDaemon, view: str, for_s: float | None, label: str | None) -> None:
    """Print a read-only link to WHAT, terminal:NAME or agent:HANDLE. The link is a key."""
    reply = daemon.call("page_link", view=view, for_s=for_s, label=label)
    daemon.show(reply, lambda: print_lines(escaped_line(reply["url"])))


page = VerbGroup(
    """Browsers that are logged in, and read-only links.""",
    {
        "list": list_pages,
        "revoke": revoke,
        "link": link,
    },
)


_OF_PUSH = ["id", "service", "label", "what", "since", "page", "problem"]


@verb()
def list_subscriptions(daemon: TargetDaemon) -> None:
    """List the browsers that get notifications while the page is closed."""
    reply = daemon.call("push_list")
    daemon.show(reply, lambda: print_lines(_subscriptions(reply)))


def _subscriptions(reply: Mapping[str, Any]) -> str:
    rows = [
        [
            each["id"],
            each["service"],
            each["label"],
            ", ".join(what for what in ("requests", "ends", "hides") if each[what]),
            each["created_at"],
            each["page"] or "",
            each["problem"],
        ]
        for each in reply["subscriptions"]
    ]
    return table(_OF_PUSH, rows)


@verb(argument("subscription", metavar="ID"))
def remove(daemon: TargetDaemon, subscription: str) -> None:
    """Send no more notifications to the browser ID; 'all' removes all of them."""
    reply = daemon.call("push_remove", id=subscription)
    lines = [f"removed: {escaped_line(each)}" for each in reply["ids"]] or ["nothing to remove"]
    daemon.show(reply, lambda: print_lines("\n".join(lines)))


push = VerbGroup(
    """Browsers that get notifications while the page is closed.""",
    {
        "list": list_subscriptions,
        "remove": remove,
    },
)
