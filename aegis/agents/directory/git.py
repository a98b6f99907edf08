"""git without the configuration, the hooks, the filters and the helpers of a checkout.

``IsolatedGit`` runs with a git directory and an index of its own, which borrow the objects of the
checkout: no configuration of the checkout is read. What needs the checkout's references runs with
``run_in``, which overrides each setting that could name a program, and checks out no file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs
import trio

from aegis.agents.directory.checkout import Checkout
from aegis.errors import Unavailable
from aegis.limits import open_process

MAX_ERROR_BYTES = 4096

LIMIT_S = 60.0
"""Seconds that git has: for a FIFO, or a file system without an answer, it would wait for ever."""

LONG_S = 600.0
"""Seconds for commands that read or write all files of a checkout, or all of its history."""

PREFIX = "aegis-git-"

LEFT_OVER_S = 60.0
"""The least age, in seconds, of a directory that a killed daemon has left."""

MARK = "AEGIS_GIT"
"""A variable of the git processes of this daemon, with a value that no agent has."""

_MARK_VALUE = secrets.token_hex(16)

CONFIGURATION = """\
[core]
\trepositoryformatversion = {version}
\tbare = false
\tquotePath = false
{extensions}"""

OVERRIDES = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.pager=cat", "core.editor=false"),
    *("core.sshCommand=false", "core.askPass=false", "credential.helper=", "protocol.allow=never"),
    *("gc.auto=0", "maintenance.auto=false", "branch.autoSetupMerge=false", "gpg.program=false"),
    *("submodule.recurse=false", "worktree.guessRemote=false", "core.logAllRefUpdates=true"),
)
"""Settings that are laid over those of a checkout: none of its programs runs.

``protocol.allow``: a partial clone would fetch a missing object by a command of its configuration.
"""

BASE: Mapping[str, str] = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
}


@attrs.frozen
class GitOutput:
    """The output of git; ``is_whole`` unless the limit was reached."""

    data: bytes
    is_whole: bool = True
    status: int = 0

    @property
    def names(self) -> list[str]:
        """The names that are separated by NUL, as Python decodes paths."""
        return [os.fsdecode(each) for each in self.data.split(b"\0") if each]

    @property
    def text(self) -> str:
        """The text without the end of its last line."""
        return self.data.decode("utf-8", "replace").rstrip("\n")


def git_program(verb: str) -> str:
    """Return the path of git. Raises ``Unavailable``."""
    program = shutil.which("git")
    if program is None:
        raise Unavailable(f"{verb}: the program 'git' was not found in PATH; install it")
    return program


@attrs.frozen
class IsolatedGit:
    """git for the files in ``work_tree``, with its own directory ``own``. ``verb`` is for errors.

    ``index`` is its index file; new objects are written into those of the checkout, unless a run is
    given another ``GIT_OBJECT_DIRECTORY``.
    """

    program: str
    own: Path
    checkout: Checkout
    work_tree: Path
    verb: str

    @property
    def index(self) -> Path:
        """Its own index."""
        return self.own / "index"

    def copy_index(self, real: Path, copy: Path) -> None:
        """Copy an index, and the files that it shares with others if it is split. Blocking."""
        for each in real.parent.glob("sharedindex.*"):
            shutil.copyfile(each, self.own / each.name)
        shutil.copyfile(real, copy)

    async def run(
        self,
        words: Sequence[str],
        limit: int = MAX_ERROR_BYTES,
        *,
        index: Path | None = None,
        check: bool = True,
        variables: Mapping[str, str] | None = None,
        is_long: bool = False,
    ) -> GitOutput:
        """Run git; return the first ``limit`` bytes that it prints. Raises ``Unavailable``."""
        environment = {
            **BASE,
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.own),
            "GIT_DIR": str(self.own),
            "GIT_WORK_TREE": str(self.work_tree),
            "GIT_INDEX_FILE": str(index or self.index),
            "GIT_OBJECT_DIRECTORY": str(self.checkout.objects),
            **(variables or {}),
        }
        return await run_git(
            self.verb,
            words[0],
            [self.program, *words],
            str(self.work_tree),
            environment,
            limit=limit,
            check=check,
            limit_s=LONG_S if is_long else LIMIT_S,
        )


@contextlib.contextmanager
def isolated_git(
    verb: str, checkout: Checkout, commit: str, work_tree: Path | None = None
) -> Iterator[IsolatedGit]:
    """Provide git for the files of a checkout, or for those in ``work_tree``.

    ``commit`` is any of its commits. Raises ``Unavailable`` without git.
    """
    program = git_program(verb)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, _opened(name) as fd:
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        own = Path(name)
        is_long = len(commit) == 64
        extensions = "[extensions]\n\tobjectFormat = sha256\n" if is_long else ""
        (own / "refs").mkdir()
        (own / "info").mkdir()
        (own / "HEAD").write_text("ref: refs/heads/none\n")
        text = CONFIGURATION.format(version=int(is_long), extensions=extensions)
        (own / "config").write_text(text)
        yield IsolatedGit(program, own, checkout, work_tree or checkout.top, verb)


@contextlib.contextmanager
def _opened(directory: str) -> Iterator[int]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield fd
    finally:
        os.close(fd)


def delete_left_over() -> None:
    """Delete the directories of ``isolated_git`` of daemons that were killed. Blocking."""
    for each in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), _opened(str(each)) as fd:
            status = os.fstat(fd)
            # An old one that nobody has locked; a new one is about to be.
            if status.st_uid == os.geteuid() and time.time() - status.st_mtime > LEFT_OVER_S:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(each)


async def run_in(
    verb: str,
    checkout: Checkout,
    words: Sequence[str],
    limit: int = MAX_ERROR_BYTES,
    *,
    check: bool = True,
    inherited: Sequence[int] = (),
    is_long: bool = False,
) -> GitOutput:
    """Run git on the references of a checkout; it inherits these files. Raises ``Unavailable``."""
    environment = {
        **BASE,
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "GIT_DIR": str(checkout.common),
    }
    settings = [word for each in OVERRIDES for word in ("-c", each)]
    command = [git_program(verb), *settings, *words]
    place = str(checkout.common)
    return await run_git(
        verb,
        words[0],
        command,
        place,
        environment,
        limit=limit,
        check=check,
        inherited=inherited,
        limit_s=LONG_S if is_long else LIMIT_S,
    )


async def run_git(
    verb: str,
    what: str,
    command: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
    *,
    limit: int,
    check: bool = True,
    inherited: Sequence[int] = (),
    limit_s: float,
) -> GitOutput:
    """Run the git command ``what``; return the first ``limit`` bytes that it prints.

    Raises ``Unavailable``, also if it does not end within ``limit_s`` seconds.
    """
    with tempfile.TemporaryFile() as errors:
        start = partial(
            open_process,
            [*command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=cwd,
            env={**environment, MARK: _MARK_VALUE},
            start_new_session=True,
            pass_fds=tuple(inherited),
        )
        try:
            process = await start()
        except (OSError, ValueError) as error:
            raise Unavailable(f"{verb}: git cannot be started in {cwd!r}: {error}") from error
        assert process.stdout is not None
        data = bytearray()
        try:
            with trio.move_on_after(limit_s) as scope:
                while len(data) <= limit and (piece := await process.stdout.receive_some(65_536)):
                    data += piece
                if len(data) <= limit:
                    await process.wait()
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
            with trio.CancelScope(shield=True):
                await process.wait()
                await trio.aclose_forcefully(process.stdout)
        if scope.cancelled_caught:
            raise Unavailable(f"{verb}: git {what} did not end within {limit_s:g} s in {cwd!r}")
        errors.seek(0)
        reason = errors.read(MAX_ERROR_BYTES).decode("utf-8", "replace").strip().splitlines()
    is_whole = len(data) <= limit
    status = process.returncode or 0
    if check and is_whole and status:
        raise Unavailable(f"{verb}: git {what} failed: {reason[-1] if reason else status}")
    return GitOutput(bytes(data[:limit]), is_whole, status)


def is_own_git(process: Path) -> bool:
    """Return whether a directory of /proc is that of a git of this daemon. Raises ``OSError``."""
    return f"{MARK}={_MARK_VALUE}".encode() in (process / "environ").read_bytes().split(b"\0")
