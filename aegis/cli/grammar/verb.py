"""Declarations of verbs: options, arguments, and the function that runs the verb.

A ``Verb`` is the one definition of a verb that calls the daemon. ``parsing`` parses correct command
lines by it; ``click_commands`` converts it to a click command for help, completion and messages
about wrong usage. Imports neither click nor pathlib nor typing, which would slow every verb down.
"""

from __future__ import annotations

import math
import os
import sys

from aegis.cli.grammar.words import in_verbs
from aegis.cli.printing.failures import UsageError
from aegis.cli.printing.formatting import print_json
from aegis.client.errors import ProtocolMismatch
from aegis.client.line import CommandFailed, ConnectionLost, LineClient, NoDaemon, connect
from aegis.path_text import path_of_text, text_of_path
from aegis.state.root import nearest_root

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from aegis.client.nonblocking_line import NonBlockingLineClient

    T = TypeVar("T")

TEXT = "text"
WHOLE = "whole number"
SECONDS = "seconds"
DECIMAL = "decimal number"
DIRECTORY = "directory"
FLAG = "flag"


class Parameter:
    """An option or, without ``options``, an argument of a verb.

    ``kind`` is ``TEXT``, ``WHOLE``, ``SECONDS``, ``DECIMAL``, ``DIRECTORY``, ``FLAG``, or a tuple
    of the allowed words. ``negation`` is the option that makes a flag false. ``many``: a repeatable
    option, or an argument that takes all remaining words.
    """

    def __init__(
        self,
        name: str,
        options: tuple[str, ...],
        *,
        kind: str | tuple[str, ...] = TEXT,
        help: str | None = None,  # noqa: A002 -- click's name
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
    """Return an option. ``words`` are its spellings and, without dashes, its parameter name.

    The default name is derived from the first long spelling.
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
    "--root", kind=DIRECTORY, help="Find the daemon from this directory upwards; default: here."
)
HANDLE = option("--as", "handle", metavar="HANDLE", help="Act under this handle; default: human.")
JSON = flag("--json", "as_json", help="Print JSON.")


class Verb:
    """A verb that calls the daemon.

    ``options_first``: the words of a command or a text follow the first argument, even with a dash
    (``parsing.options_forward``).
    ``behind_dashes``: the parameter that gets the words after the first ``--``.
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
        """Run the verb and return the exit code.

        ``before`` are the options before the verb, ``given`` the values of all ``parameters``.
        Raises ``UsageError``, ``ClientError``, ``OutputLost``.
        """
        own = dict(given)
        root, handle = own.pop("root"), own.pop("handle")
        start = root or before.root or here()
        daemon = TargetDaemon(
            nearest_root(start), handle or before.handle, own.pop("as_json", False)
        )
        code = self.function(daemon, **own)
        return code if isinstance(code, int) else 0


def verb(*parameters: Parameter, **properties: Any) -> Callable[[Callable[..., Any]], Verb]:
    """Declare a function as a verb with the options ``--json``, ``--root`` and ``--as``.

    The function gets a ``TargetDaemon``, and the values of ``parameters`` by name. If it returns an
    int, that is the exit code.
    """
    return lambda function: Verb(function, (*parameters, JSON, ROOT, HANDLE), **properties)


def live_verb(*parameters: Parameter, **properties: Any) -> Callable[[Callable[..., Any]], Verb]:
    """Declare an interactive verb: as ``verb``, without ``--json``."""
    return lambda function: Verb(function, (*parameters, ROOT, HANDLE), **properties)


class VerbGroup:
    """Verbs under a common first word.

    A member is a ``Verb``, or its place (``module:name``), imported when the verb is used. A place
    may also hold a click command.
    """

    def __init__(self, doc: str, members: Mapping[str, Verb | str]) -> None:
        self.doc = doc
        self.members = members


class Globals:
    """The options that are accepted before and after the verb."""

    def __init__(self, root: str | None = None, handle: str | None = None) -> None:
        self.root = root
        self.handle = handle


ROUND_S = 3600.0
"""The longest wait of one call, in seconds; the daemon accepts a day at most."""


class TargetDaemon:
    """The daemon that a verb calls: its ``root``, and the ``handle`` to call it under."""

    def __init__(self, root: str, handle: str | None, as_json: bool) -> None:
        self.root = root
        self.handle = handle
        self.as_json = as_json

    def connect(self) -> LineClient:
        """Open a connection. Raises ``ClientError``."""
        return connect(self.root)

    def connect_nonblocking(self) -> NonBlockingLineClient:
        """Open a connection for several requests at once. Raises ``ClientError``."""
        from aegis.client.nonblocking_line import connect_nonblocking

        return connect_nonblocking(self.root)

    def call(self, command: str, /, **arguments: object) -> dict[str, Any]:
        """Call one command over its own connection; arguments that are None are left out.

        Raises ``ClientError``; its sentence names verbs where the daemon named tools.
        """
        with self.connect() as client:
            try:
                return client.call(command, self.with_handle(arguments))
            except CommandFailed as error:
                raise CommandFailed(error.code, in_verbs(str(error))) from None

    def wait(
        self,
        command: str,
        limit_s: float | None,
        is_over: Callable[[dict[str, Any]], object],
        if_cut: str,
        /,
        **arguments: object,
    ) -> dict[str, Any]:
        """Call a command that waits again and again, until ``is_over`` or the time has passed.

        A limit of None is none. If the wait is cut, by a signal or with the connection, ``if_cut``
        is printed after the failure: it names the work that continues. Raises as ``call``.
        """
        left = math.inf if limit_s is None else limit_s
        try:
            while True:
                reply = self.call(command, timeout=min(left, ROUND_S), **arguments)
                left -= ROUND_S
                if left <= 0 or fitting(lambda: is_over(reply)):  # noqa: B023 -- called here
                    return reply
        except (KeyboardInterrupt, ConnectionLost, NoDaemon) as error:
            error.add_note(if_cut)
            raise

    def with_handle(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return ``arguments`` without the ones that are None, and with the handle."""
        given = {name: value for name, value in arguments.items() if value is not None}
        return given if self.handle is None else {**given, "from_handle": self.handle}

    def show(self, reply: Mapping[str, Any], text: Callable[[], None]) -> None:
        """Print ``reply`` as JSON if ``--json`` was given, else call ``text`` to print it.

        Raises ``ProtocolMismatch``.
        """
        if self.as_json:
            print_json(reply)
        else:
            fitting(text)


def fitting(read: Callable[[], T]) -> T:
    """Return what ``read`` makes of a reply.

    Raises ``ProtocolMismatch`` if a part of the reply is missing, or is of another kind.
    """
    try:
        return read()
    except (KeyError, TypeError) as error:
        raise ProtocolMismatch(
            "the answer does not fit: the daemon is of another version; restart it with "
            "aegis-actors down, then aegis-actors up"
        ) from error


def from_here(path: str | None) -> str | None:
    """Return the absolute path of ``path``, which is relative to the current directory, as text.

    Bytes that are not UTF-8 are accepted raw and in the notation of ``aegis.path_text``.
    """
    if path is None:
        return None
    path = path_of_text(path)
    if path.startswith("/"):
        return text_of_path(path)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return text_of_path("/".join([here().rstrip("/"), *parts]) or "/")


MAX_INPUT_BYTES = 4 * 1024 * 1024
"""Limit of a text on standard input: the daemon accepts no larger message."""


def text_or_input(text: str, *, is_file: bool = False) -> str:
    """Return ``text``, or the whole standard input if it is ``-``.

    Of the input the last line feed is left out, unless the text ``is_file``, which may be empty
    too. Raises ``UsageError`` if the input is empty, too large or not UTF-8.
    """
    if text != "-":
        return text
    data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(data) > MAX_INPUT_BYTES:
        raise UsageError(
            f"standard input has more than {MAX_INPUT_BYTES} bytes, and nothing was sent: write a "
            "long text to a file and send its path"
        )
    try:
        read = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"standard input is no UTF-8 at byte {error.start}, and nothing was sent"
        ) from None
    if is_file:
        return read
    if not read.strip():
        raise UsageError("standard input is empty, and nothing was sent")
    return read.removesuffix("\n")


def moment(option_name: str, text: str | None) -> str | None:
    """Return a time of the command line with its zone: by default that of the person.

    Raises ``UsageError``.
    """
    if text is None:
        return None
    from aegis.clock import moment_of

    try:  # the person may sit at another machine than the daemon
        return moment_of(text).isoformat()
    except ValueError as error:
        raise UsageError(f"{option_name}: {error}") from None


def as_text(path: str | None) -> str | None:
    """Return a path of the command line as text, without making it absolute."""
    return None if path is None else text_of_path(path_of_text(path))


def here() -> str:
    """Return the current directory. Raises ``UsageError`` if it was deleted."""
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        raise UsageError("the current directory was deleted: give --root") from None
