"""The settings of ``aegis-actors up`` and ``aegis-actors join``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8420

_IPV6 = r"\[(?=[^\]]*:)[0-9A-Za-z:.%]{2,64}\]"
_ADDRESS = re.compile(rf"({_IPV6}|[^\s:/@\[\]]{{1,253}}):([0-9]{{1,5}})", re.ASCII)


class NodesAddress(NamedTuple):
    """The address at which hosts join a daemon: a name or an IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def nodes_address(text: str) -> NodesAddress:
    """Parse ``HOST:PORT``, with IPv6 in brackets. Raises ``ValueError``."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[2]) > 65_535:
        raise ValueError(
            "must be HOST:PORT with a port up to 65535, such as 127.0.0.1:8421 or [::1]:8421"
        )
    return NodesAddress(found[1].strip("[]"), int(found[2]))


MAX_HOST_NAMES = 16

_HOST_NAME = re.compile(
    r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*"
)


def host_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Parse further names of this daemon, as a Host header has them. Raises ``ValueError``."""
    names = tuple(dict.fromkeys(map(_host_name, texts)))
    if len(names) > MAX_HOST_NAMES:
        raise ValueError(f"at most {MAX_HOST_NAMES} names can be given, not {len(names)}")
    return names


def _host_name(text: str) -> str:
    name = text.lower()
    try:
        # Of the zone of a link-local address a browser sends nothing.
        address = ipaddress.ip_address(name.removeprefix("[").removesuffix("]").replace("%", "?"))
    except ValueError:
        # A URL's host in digits and dots is an address, or nothing (RFC 3986, 3.2.2).
        if len(name) > 253 or not _HOST_NAME.fullmatch(name) or name.rpartition(".")[2].isdigit():
            raise ValueError(
                f"{text!r} must be a name such as desk.example.org, or an IP address: without a "
                "scheme, a port or a wildcard, and in ASCII (xn--…)"
            ) from None
        return name
    return f"[{address}]" if address.version == 6 else str(address)


class DaemonSettings(NamedTuple):
    """How to start a daemon.

    ``port`` None: the one that this root used last, else ``DEFAULT_PORT``, else a free one; 0: a
    free one. ``log_level`` is one of debug, info, warning, error. ``clean``: start none of the
    terminals that were open. ``resume_agents``: start the agents of open sessions. ``debug``: show
    where a step was that blocked everything, at the cost of a thread. ``workers`` is how many
    processes terminals are spread over; 0: they run in the daemon's own. ``nodes_address`` is where
    hosts may join; None: nowhere. ``trust``: take over a state, and a configuration, that is not
    known to be this user's own. ``programs`` are sentences about what the configuration names to
    run, ``digest`` is that of its content. ``plugins`` are the plugin files (``PluginFile``) that
    are trusted. ``opens_page``: open the web page in a browser once the daemon serves.
    ``logs_to_state``: log to a file of the state once the root is locked, not to standard error.
    ``names``: further names by which clients call the daemon, through a proxy or a mesh.
    ``notify_socket``: where systemd waits for the notification that it serves (sd_notify); empty:
    nowhere.
    """

    root: Path
    host: str = DEFAULT_HOST
    port: int | None = None
    log_level: str = "info"
    clean: bool = False
    resume_agents: bool = False
    debug: bool = False
    workers: int = 0
    nodes_address: NodesAddress | None = None
    trust: bool = False
    programs: tuple[str, ...] = ()
    digest: str = ""
    plugins: tuple[Any, ...] = ()
    opens_page: bool = False
    logs_to_state: bool = False
    notify_socket: str = ""
    names: tuple[str, ...] = ()


class JoinSettings(NamedTuple):
    """How to join a daemon as the host ``name``, with the terminals and the state of ``root``.

    ``address`` is where that daemon takes nodes, ``key_file`` holds the key that both have.
    ``trust``: take over a state that is not known to be this user's own.
    """

    address: NodesAddress
    name: str
    root: Path
    key_file: Path
    log_level: str = "info"
    trust: bool = False
