"""Verbs of the command line as data: options, arguments, and the function that carries one out.

A ``Verb`` is the one definition of a verb that talks to the daemon. ``parsing`` reads everyday
command lines by it; ``commands`` makes of it a command of click, which has the help, the completion
and the sentences about wrong usage. Standard library only, and little of it:
neither click nor pathlib nor typing is loaded here.
"""

from __future__ import annotations

import os

from aegis.cli.grammar.words import in_verbs
from aegis.cli.printing.failures import UsageError
from aegis.cli.printing.formatting import print_json
from aegis.client.line import CommandFailed, LineClient, connect
from aegis.path_text import path_of_text, text_of_path
from aegis.state.root import nearest_root

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from aegis.client.nonblocking_line import NonBlockingLineClient

TEXT = "text"
WHOLE = "whole number"
SECONDS = "seconds"
DIRECTORY = "directory"
FLAG = "flag"


class Parameter:
    """An option or, without ``options``, an argument of a verb.

    ``kind`` is ``TEXT``, ``WHOLE``, ``SECONDS``, ``DIRECTORY``, ``FLAG``, or a tuple of the words
    that are allowed. ``negation`` is the option that makes a flag false. ``many``: an option that
    may be repeated, an argument that takes all the words that are left.
    """

    def __init__(
        self,
        name: str,
        options: tuple[str, ...],
        *,
        kind: str | tuple[str, ...] = TEXT,
        help: str | None = None,  # noqa: A002 -- as click calls it
        metavar: str | None = None,
        default: object = None,
        show_default: bool = False,
        negation: str | None = None,
        many: bool = False,
        required: bool = False,
    ) -> None:
        self.name = name
        self.options = options
        self.kind = kind
        self.help = help
        self.metavar = metavar
        self.default = False if kind == FLAG and default is None else default
        self.show_default = show_default
        self.negation = negation
        self.many = many
        self.required = required


def argument(name: str, **properties: Any) -> Parameter:
    """Return an argument; it is required unless ``required=False`` is given."""
    return Parameter(name, (), **{"required": True, **properties})


def option(*words: str, **properties: Any) -> Parameter:
    """Return an option. ``words`` are its spellings and, without dashes, its name in the function.

    Without a name it has that of its first long spelling.
    """
    spelled = tuple(word for word in words if word.startswith("-"))
    names = [word for word in words if not word.startswith("-")]
    long = next((word for word in spelled if word.startswith("--")), spelled[0])
    name = names[0] if names else long.lstrip("-").replace("-", "_")
    return Parameter(name, spelled, **properties)


def flag(*words: str, **properties: Any) -> Parameter:
    """Return an option without a value."""
    return option(*words, kind=FLAG, **properties)


ROOT = option(
    "--root", kind=DIRECTORY, help="Directory to look for the daemon from; default: here."
)
HANDLE = option("--as", "handle", metavar="HANDLE", help="Act under this handle.")
JSON = flag("--json", "as_json", help="Print JSON.")


class Verb:
    """A verb that talks to the daemon.

    ``options_first``: from the first argument on everything is an argument, whatever it looks like.
    ``behind_dashes``: the name under which the function gets the words behind the first ``--``.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: tuple[Parameter, ...],
        *,
        options_first: bool = False,
        behind_dashes: str | None = None,
    ) -> None:
        self.function = function
        self.parameters = parameters
        self.options_first = options_first
        self.behind_dashes = behind_dashes

    @property
    def doc(self) -> str:
        """The text of the help."""
        return self.function.__doc__ or ""

    def run(self, before: Globals, given: Mapping[str, Any]) -> int:
        """Carry the verb out and return the exit code.

        ``before`` are the options that stood before the verb, ``given`` the values of all
        ``parameters``. Raises ``UsageError``, ``ClientError``, ``OutputLost``.
        """
        own = dict(given)
        root, handle = own.pop("root"), own.pop("handle")
        start = root or before.root or here()
        daemon = Daemon(nearest_root(start), handle or before.handle, own.pop("as_json", False))
        code = self.function(daemon, **own)
        return code if isinstance(code, int) else 0


def verb(*parameters: Parameter, **properties: Any) -> Callable[[Callable[..., Any]], Verb]:
    """Make a verb of a function, with the options ``--json``, ``--root`` and ``--as``.

    The function gets a ``Daemon`` first, and the values of ``parameters`` by name; what it
    returns, if an int, is the exit code.
    """
    return lambda function: Verb(function, (*parameters, JSON, ROOT, HANDLE), **properties)


def live_verb(*parameters: Parameter, **properties: Any) -> Callable[[Callable[..., Any]], Verb]:
    """Make a verb that prints nothing that could be JSON: as ``verb``, without ``--json``."""
    return lambda function: Verb(function, (*parameters, ROOT, HANDLE), **properties)


class Group:
    """Verbs under a common first word.

    A member is a ``Verb``, or the place of one (``module:name``), which is imported when it is
    used; such a place may also hold a command of click.
    """

    def __init__(self, doc: str, members: Mapping[str, Verb | str]) -> None:
        self.doc = doc
        self.members = members


class Globals:
    """The options that may stand before any verb, or behind it."""

    def __init__(self, root: str | None = None, handle: str | None = None) -> None:
        self.root = root
        self.handle = handle


class Daemon:
    """The daemon that a verb talks to, and under whose handle."""

    def __init__(self, root: str, handle: str | None, as_json: bool) -> None:
        self.root = root
        self.handle = handle
        self.as_json = as_json

    def connect(self) -> LineClient:
        """A new connection; raises ``ClientError``."""
        return connect(self.root)

    def flow(self) -> NonBlockingLineClient:
        """A new connection for several requests at once; raises ``ClientError``."""
        from aegis.client.nonblocking_line import connect_nonblocking

        return connect_nonblocking(self.root)

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


def from_here(path: str | None) -> str | None:
    """Return a path as the daemon needs it, relative to the current directory.

    Bytes that are not UTF-8 are accepted as they are and in the notation of ``aegis.path_text``.
    """
    if path is None:
        return None
    path = path_of_text(path)
    if path.startswith("/"):
        return text_of_path(path)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return text_of_path("/".join([here().rstrip("/"), *parts]) or "/")


def as_text(path: str | None) -> str | None:
    """Return a path of the command line as text for the daemon, which knows what it is below."""
    return None if path is None else text_of_path(path_of_text(path))


def here() -> str:
    """The current directory; a usage error if it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        raise UsageError("the current directory is gone: give --root") from None
