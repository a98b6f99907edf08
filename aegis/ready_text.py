"""The text that the daemon prints when it serves: where it is, and how to use it. Pure."""

from __future__ import annotations

from pathlib import Path

from aegis.path_text import shell_word, text_of_path

READY = """\
aegis-actors is ready for {root}
  at            {url}
  from a shell  {program} term spawn build
                {program} term run build 'echo hello'
                {program} term attach build    (Ctrl-\\ and d leave it)
  Claude Code   claude mcp add aegis -- \\
                  {program} mcp --handle NAME --root {quoted}
                or: claude mcp add --transport http aegis \\
                  "$({program} session new --handle NAME)"
  in a browser  {program} web
  in a window   {program} tui
  stop it with  {stop}{program} down"""

BEYOND_LOOPBACK = """\
  WARNING       other machines can reach this address: a client with the token
                or a session URL runs commands as you, and
                nothing is encrypted; 127.0.0.1 behind ssh is safer"""


NODES_BEYOND_LOOPBACK = """\
  WARNING       other machines can reach the address of nodes: a host with
                node.key runs commands as you, and nothing is encrypted;
                127.0.0.1 behind ssh, or WireGuard, is safer"""


def ready_text(
    root: Path,
    url: str,
    *,
    program: str,
    is_background: bool,
    hosts: tuple[str, int] | None,
    is_open: bool,
    is_open_to_hosts: bool,
) -> str:
    """Return the text for a daemon of ``root`` at ``url``.

    ``program`` is the word that starts this program. ``is_background``: no Ctrl-C can reach it.
    ``hosts`` is the address at which hosts may join. ``is_open``, ``is_open_to_hosts``: other
    machines can reach the address of clients, or of hosts.
    """
    text = READY.format(
        url=url,
        root=text_of_path(root),
        quoted=shell_word(root),
        program=program,
        stop="" if is_background else "Ctrl-C, or ",
    )
    if hosts is not None:
        text = f"{text}\n  hosts join    {hosts[0]} port {hosts[1]} (docs/nodes.md)"
    if is_open:
        text = f"{text}\n{BEYOND_LOOPBACK}"
    if is_open_to_hosts:
        text = f"{text}\n{NODES_BEYOND_LOOPBACK}"
    return text
