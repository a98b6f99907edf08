"""What every verb that talks to the daemon has in common: its options, and its one connection."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from aegis.cli.show import print_json
from aegis.cli.words import in_verbs
from aegis.client.line import CommandFailed, LineClient, connect
from aegis.client.line_flow import LineFlow, connect_flow
from aegis.path_text import path_of_text, text_of_path
from aegis.root import find_root


class Globals(NamedTuple):
    """The options that may stand before any verb, or behind it."""

    root: Path | None = None
    handle: str | None = None


class Daemon(NamedTuple):
    """The daemon that a verb talks to, and under whose handle."""

    root: Path
    handle: str | None
    as_json: bool

    def connect(self) -> LineClient:
        """A new connection; raises ``ClientError``."""
        return connect(self.root)

    def flow(self) -> LineFlow:
        """A new connection for several requests at once; raises ``ClientError``."""
        return connect_flow(self.root)

    def call(self, command: str, /, **arguments: object) -> dict[str, Any]:
        """One command over a connection of its own; arguments that are None are left out.

        Raises ``ClientError``; its sentence names verbs, where the daemon named tools.
        """
        with self.connect() as client:
            try:
                return client.call(command, self.with_handle(arguments))
            except CommandFailed as error:
                raise CommandFailed(error.code, in_verbs(str(error))) from None

    def with_handle(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """``arguments`` without those that are None, and with the handle that was given."""
        given = {name: value for name, value in arguments.items() if value is not None}
        return given if self.handle is None else {**given, "from_handle": self.handle}

    def show(self, reply: Mapping[str, Any], text: Callable[[], None]) -> None:
        """Print ``reply`` as JSON if that was asked for, else have ``text`` print it."""
        if self.as_json:
            print_json(reply)
        else:
            text()


DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)

root_option = click.option(
    "--root", type=DIRECTORY, help="Directory to look for the daemon from; default: here."
)
handle_option = click.option("--as", "handle", metavar="HANDLE", help="Act under this handle.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def verb(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options ``--root``, ``--as`` and ``--json``, and a ``Daemon`` for them.

    The function gets the ``Daemon`` first; what it returns, if an int, is the exit code.
    """

    return json_option(live_verb(function))


def live_verb(function: Callable[..., Any]) -> Callable[..., Any]:
    """As ``verb``, for what prints nothing that could be JSON: without ``--json``."""

    @functools.wraps(function)
    def run(root: Path | None, handle: str | None, as_json: bool = False, **parameters: Any) -> Any:
        before = globals_now()
        start = root or before.root or here()
        daemon = Daemon(find_root(start), handle or before.handle, as_json)
        return function(daemon, **parameters)

    return root_option(handle_option(run))


def globals_now() -> Globals:
    """The options that stood before the verb."""
    return click.get_current_context().find_object(Globals) or Globals()


def from_here(path: str | None) -> str | None:
    """Return a path as the daemon needs it, relative to the current directory.

    Bytes that are not UTF-8 are accepted as they are and in the notation of ``aegis.path_text``.
    """
    if path is None:
        return None
    given = Path(path_of_text(path))
    return text_of_path(given if given.is_absolute() else here() / given)


def as_text(path: str | None) -> str | None:
    """Return a path of the command line as text for the daemon, which knows what it is below."""
    return None if path is None else text_of_path(path_of_text(path))


def here() -> Path:
    """The current directory; a usage error if it is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise click.UsageError("the current directory is gone: give --root") from None
