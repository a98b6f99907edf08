"""A disposable machine, on which a mutant can do no harm: namespaces of Linux.

A process there sees only processes of the machine, a network of its own, an empty ``/tmp`` of
bounded size, and all other files read-only. In the place of the tree is a copy of it, and in the
place of one file of that its mutant: so each process there, also of a daemon in an environment of
its own, runs the mutant. At its end all its processes end and all its files are gone. Needs root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import trio

ROOT = Path(__file__).resolve().parents[3]

TMP_BYTES = 2 * 1024**3
MEMORY_KIB = 8 * 1024**2
"""The limit of the address space of one process."""

_SCRIPT = r"""
set -eu
root=$1 copy=$2 file=$3 changed=$4 tmp=$5 memory=$6
shift 6
ip link set lo up
mount --bind "$root/.venv" "$copy/.venv"
mount --rbind "$copy" "$root"
mount -o remount,bind,ro "$root"
mount -o remount,bind,ro "$root/.venv"
[ -z "$file" ] || mount --bind "$changed" "$root/$file"
mount -t tmpfs -o "size=$tmp,mode=1777" none /tmp
mount -t tmpfs -o "size=$tmp,mode=1777" none /dev/shm
mount -o remount,bind,ro /
cd "$root"
ulimit -v "$memory"
set +e
"$@"
exit $?
"""
"""Bash is the first process of the namespace, and reaps processes that lose their parent there."""

_TRIAL = r"""
set -eu
ip link set lo up
mount --bind "$1/.venv" "$1/.venv"
mount --rbind "$1" "$1"
mount -o remount,bind,ro "$1"
mount -t tmpfs none /tmp
mount -t tmpfs none /dev/shm
mount -o remount,bind,ro /
"""
"""The steps that may be forbidden on this system."""


@attrs.frozen
class Ended:
    """The end of a command; ``code`` is None if it exceeded its time."""

    code: int | None
    output: str
    seconds: float


@attrs.frozen
class Machine:
    """A copy of the tree at ``copy``; any number of commands run there at a time."""

    copy: Path

    async def run(
        self, words: Sequence[str], *, within_s: float, change: tuple[str, str] | None = None
    ) -> Ended:
        """Run a command in the copy, with ``change`` (a file and its text) in it, if given."""
        begin = trio.current_time()
        with _changed(change) as (file, path):
            settings = [ROOT, self.copy, file, path, TMP_BYTES, MEMORY_KIB]
            command = [*_UNSHARE, "bash", "-c", _SCRIPT, "bash", *map(str, settings), *words]
            with trio.move_on_after(within_s):
                done = await trio.run_process(
                    command,
                    env=_variables(),
                    stdin=subprocess.DEVNULL,
                    capture_stdout=True,
                    stderr=subprocess.STDOUT,
                    check=False,
                    start_new_session=True,
                    deliver_cancel=_kill,
                )
                text = done.stdout.decode(errors="replace")
                return Ended(done.returncode, text, trio.current_time() - begin)
        return Ended(None, "", trio.current_time() - begin)


_UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--net")


async def _kill(process: trio.Process) -> None:
    """Kill the first process of the namespace: the kernel ends all others with it."""
    process.kill()


def _variables() -> dict[str, str]:
    """Return a small environment; no compiled file is written, so none is of another mutant."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": "/tmp/hypothesis",
        "MYPY_CACHE_DIR": "/tmp/mypy",
    }


@contextmanager
def _changed(change: tuple[str, str] | None) -> Iterator[tuple[str, str]]:
    if change is None:
        yield "", ""
        return
    file, text = change
    with tempfile.NamedTemporaryFile("w", suffix=".py") as mutant:
        mutant.write(text)
        mutant.flush()
        yield file, mutant.name


@contextmanager
def machine() -> Iterator[Machine]:
    """Return a machine with a copy of the current tree, as git lists it."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = Path(directory)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
        (copy / ".venv").mkdir(exist_ok=True)
        _compile(copy)
        yield Machine(copy)


def _compile(copy: Path) -> None:
    """Compile the copy. Compiled files have the digest of their source: no mutant uses them."""
    packages = [str(copy / name) for name in ("actors", "aegis")]
    options = ["-q", "--invalidation-mode", "checked-hash"]
    subprocess.run([sys.executable, "-m", "compileall", *options, *packages], check=True)


def why_not() -> str | None:
    """Return the reason why there can be no such machine here; None if there can."""
    missing = [word for word in ("unshare", "mount", "ip", "bash") if shutil.which(word) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if ROOT.is_relative_to("/tmp"):
        return "the tree is below /tmp, which the machine hides"
    command = [*_UNSHARE, "bash", "-c", _TRIAL, "bash", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip() or "unshare failed"
