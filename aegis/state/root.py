"""A root: the directory that one daemon serves, its state, and its daemon's address.

Imports little of the standard library: one-shot commands start with this module. The names of the
state's files are part of the contract; see ``docs/operations.md``.
"""

from __future__ import annotations

import os
from collections import namedtuple

from aegis.path_text import shell_word
from aegis.state.registry import ForeignState, StateRegistry, find_entry, seals_of
from aegis.state.sealing import Seals
from aegis.state.state_files import check_directory, write_safely

# Type checkers take this for true. Importing typing and pathlib would cost an everyday command
# more than everything else here.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from pathlib import Path

CONFIG_NAME = ".aegis.yaml"

WORKTREES = "/.aegis/worktrees/"
"""The place of the worktrees of sessions below a root, each under the id of its session."""

ENDPOINT = ".aegis/state/endpoint.json"
_MARKS = (CONFIG_NAME, ENDPOINT)
"""The files that make a directory a root; one of them is enough."""


class UntrustedState(Exception):
    """The error for a state that is not this user's own; the sentence says why and what to do.

    ``why`` is the first half of the sentence.
    """

    def __init__(self, directory: str, why: str) -> None:
        self.why = why
        super().__init__(
            f"{directory} is not used: {why}. Nothing of it was run or changed. If you trust what "
            "it holds (programs to start, keys), take it over with: aegis-actors up --trust; "
            "if not, move the directory away"
        )


# Named tuples without typing: the fields have no types, so the annotations are at the uses.
class StatePaths(namedtuple("StatePaths", ("root",))):
    """The paths below a root of the files that outlive its daemon."""

    __slots__ = ()

    @property
    def directory(self) -> Path:
        """The directory of the state; mode 0700."""
        directory: Path = self.root / ".aegis" / "state"
        return directory

    @property
    def endpoint(self) -> Path:
        """The endpoint file (``Endpoint``), which exists only while the daemon runs."""
        return self.directory / "endpoint.json"

    @property
    def keys(self) -> Path:
        """The operator's token and the secrets of sessions."""
        return self.directory / "keys.json"

    @property
    def place(self) -> Path:
        """Where this state is, and where it was before: see ``aegis.trust``."""
        return self.directory / "place.json"

    @property
    def lock(self) -> Path:
        """The file that the running daemon of this root keeps locked."""
        return self.directory / "lock"

    @property
    def log(self) -> Path:
        """The log of a daemon in the background; an older part of it has ``.1`` behind its name."""
        return self.directory / "daemon.log"

    @property
    def workspace(self) -> Path:
        """The names of the open terminals."""
        return self.directory / "workspace.json"

    @property
    def workspaces(self) -> Path:
        """The named directories, and which terminals are their shells."""
        return self.directory / "workspaces.json"

    @property
    def agents(self) -> Path:
        """The agent sessions: their roster, and a directory each."""
        return self.directory / "agents"

    @property
    def nodes(self) -> Path:
        """The terminals of the hosts that joined."""
        return self.directory / "nodes.json"

    @property
    def node_key(self) -> Path:
        """The key that hosts need to join."""
        return self.directory / "node.key"

    @property
    def requests(self) -> Path:
        """The questions of agents and workflows to people, and the answers."""
        return self.directory / "requests.jsonl"

    @property
    def queues(self) -> Path:
        """The ledgers of queues, one for each."""
        return self.directory / "queues"

    @property
    def archive(self) -> Path:
        """Ended rows that are not in a ledger any more, a directory for each kind."""
        return self.directory / "archive"

    @property
    def canvases(self) -> Path:
        """A directory for each canvas."""
        return self.directory / "canvases"

    @property
    def workflows(self) -> Path:
        """A directory for each run of a workflow."""
        return self.directory / "workflows"

    @property
    def groups(self) -> Path:
        """The ledgers of groups, one for each."""
        return self.directory / "groups"

    @property
    def telegram(self) -> Path:
        """The state of the chat of Telegram."""
        return self.directory / "telegram.jsonl"

    @property
    def push(self) -> Path:
        """The browsers that get notifications, and of what."""
        return self.directory / "push.jsonl"

    @property
    def push_key(self) -> Path:
        """The key by which push services know this daemon."""
        return self.directory / "push.key"

    @property
    def terminals(self) -> Path:
        """A directory for each terminal."""
        return self.directory / "terminals"

    @property
    def inboxes(self) -> Path:
        """A directory for each inbox."""
        return self.directory / "inboxes"


def find_root(start: Path) -> Path:
    """Return the nearest root: ``start`` or a directory above it; ``start`` if none is a root.

    A root contains a configuration (``.aegis.yaml``) or the endpoint of a daemon. A worktree that a
    daemon has made is none, even with a configuration of its own: it belongs to that root.
    """
    return type(start)(nearest_root(os.fspath(start)))


def nearest_root(start: str) -> str:
    """Return the nearest root, as ``find_root`` does, for paths that are text."""
    start = os.path.realpath(start)
    above, mark, below = start.partition(WORKTREES)
    if mark and _is_session(below.partition("/")[0]):
        return above or "/"
    directory = start
    while True:
        # Not Path.exists: it raises for a directory that may not be searched.
        if any(os.path.exists(f"{directory}/{mark}") for mark in _MARKS):  # noqa: PTH110
            return directory
        directory, below = os.path.dirname(directory), directory  # noqa: PTH120
        if directory == below:
            return start


def _is_session(name: str) -> bool:
    return len(name) == 32 and set(name) <= set("0123456789abcdef")


def how_to_start(root: Path | str) -> str:
    """Return what to do if ``root`` has no daemon: the command that starts one, as typed here."""
    try:
        is_here = nearest_root(os.getcwd()) == str(root)  # noqa: PTH109
    except OSError:
        is_here = False
    if is_here:
        return "start one with: aegis-actors up"
    return f"start one with: aegis-actors up --root {shell_word(root)}"


LOG_TO_STATE = "AEGIS_LOG_TO_STATE"
"""The variable by which ``up -d`` has the daemon that it starts log to a file of the state."""

STARTING_S = 20.0
"""Seconds in which a process that runs ``up`` is to lock its root."""


def daemon_of(root: Path | str) -> str | None:
    """Return the pid of the daemon of ``root``, also while it starts or stops; None without one.

    "" if a daemon holds the root and its pid is unknown.
    """
    holder = holder_of(root)
    return starter_of(root) if holder is None else holder


def starter_of(root: Path | str) -> str | None:
    """Return the pid of a process that was just started to become the daemon of ``root``.

    It holds nothing before it has imported the daemon, longer than another verb takes until it
    connects: ``aegis-actors up & aegis-actors status`` would find no daemon.
    """
    for pid in os.listdir("/proc"):  # noqa: PTH208
        try:
            if pid.isdecimal() and _starts(f"/proc/{pid}", os.fsencode(root)):
                return pid
        except (OSError, ValueError, IndexError):
            continue  # it ended meanwhile, or is another user's
    return None


def _starts(process: str, root: bytes) -> bool:
    """Return whether ``process``, a directory of /proc, runs ``up`` for ``root``, since a moment.

    A process of a killed daemon that has outlived it has the same words, and is older.
    """
    if os.stat(process).st_uid != os.geteuid():  # noqa: PTH116
        return False
    with open(f"{process}/cmdline", "rb") as file:  # noqa: PTH123
        words = iter(file.read(65_536).split(b"\0"))
    if not any(word.rpartition(b"/")[2] == b"aegis-actors" for word in words):
        return False
    verb = given = None
    for word in words:  # those behind the program
        if word in (b"--root", b"--as"):
            value = next(words, b"")
            given = value if word == b"--root" else given
        elif word.startswith(b"--root="):
            given = word[len(b"--root=") :]
        elif word == b"--tui":
            return False  # it stays for as long as its window; what it starts is a process too
        elif verb is None and not word.startswith(b"-"):
            verb = word
    if verb != b"up":
        return False
    here = os.readlink(os.fsencode(f"{process}/cwd"))  # noqa: PTH115
    served = os.fsencode(nearest_root(os.fsdecode(here)))
    if given is not None:
        served = os.path.realpath(here + b"/" + given if not given.startswith(b"/") else given)
    if served != root:
        return False
    with open(f"{process}/stat", "rb") as file:  # noqa: PTH123
        began = int(file.read().rpartition(b")")[2].split()[19])
    import time

    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return since_boot - began / os.sysconf("SC_CLK_TCK") < STARTING_S


def holder_of(root: Path | str) -> str | None:
    """Return the pid of the daemon of ``root``, "" if it is unknown; None without a daemon."""
    import fcntl

    path = f"{str(root).rstrip('/')}/.aegis/state/lock"
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        # Shared, and released at once: a daemon that starts at this moment tries again.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.read(lock, 32).decode("ascii", "replace").strip()
        return pid if pid.isdecimal() else ""
    except OSError:
        return None
    finally:
        os.close(lock)
    return None


def make_directory(state: StatePaths) -> None:
    """Make the state's directory with mode 0700 if it is missing; raises ``OSError``.

    Its parent is made without write permission for others, independent of the umask: another user
    could otherwise replace the state by one of their own.
    """
    for directory, mode in ((state.directory.parent, 0o755), (state.directory, 0o700)):
        try:
            directory.mkdir(mode=mode)
        except FileExistsError:
            continue
    check_directories(str(state.root))


def check_directories(root: str) -> None:
    """Raise ``UnsafeFile`` unless the state's directory, if it exists, is safe to use.

    It and its parent must be directories of this user, not links, with write permission for no one
    else. The root itself may be any path to the parent: it was resolved before.
    """
    above = f"{root.rstrip('/')}/.aegis"
    for directory in (above, f"{above}/state"):
        try:
            check_directory(directory, os.lstat(directory))
        except FileNotFoundError:
            return


def open_seals(root: str) -> Seals:
    """Return the seals of the state of ``root``, which this user's daemons made there.

    Raises ``UntrustedState``, ``RegistryError``, ``OSError``.
    """
    check_directories(root)
    directory, registry = f"{root.rstrip('/')}/.aegis/state", StateRegistry.of_user()
    try:
        state_id, _ = find_entry(registry, root, directory)
    except ForeignState as foreign:
        raise UntrustedState(directory, str(foreign)) from None
    return seals_of(registry, state_id, directory)


def write_whole(path: Path, text: str) -> None:
    """Replace the file's content by ``text`` atomically, mode 0600; raises ``OSError``.

    A process that is killed meanwhile leaves the old content, and beside it a file with the suffix
    ``.new``, which the next call replaces. Nothing is synced.
    """
    write_safely(str(path), text.encode("utf-8", "surrogateescape"), durable=False)
