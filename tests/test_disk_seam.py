"""What is durable passes the ``Disk`` that it is given, held by reading the sources.

So a disk in memory can stand below whole terminals, and nothing of theirs goes past it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

BELOW_THE_SEAM = {
    "aegis/journal/disk.py",
    "aegis/journal/exchange.py",
    "aegis/journal/shared_directory.py",
}
PACKAGES = ("journal", "processes", "terminals", "inboxes", "requests", "workspaces")

PAST_IT = {
    "aegis/journal/shared_files.py": "nothing: these are the calls of a SharedDirectory",
    "aegis/processes/foreground.py": "/proc",
    "aegis/processes/guarded/guard.py": "/proc, and the descriptors of a guard",
    "aegis/processes/guarded/guarded_process.py": "the control pipe of a guard",
    "aegis/processes/guarded/stderr_file.py": "what a program last said, which a restart drops",
    "aegis/processes/os_processes.py": "/proc",
    "aegis/processes/proc_files.py": "/proc",
    "aegis/processes/pty.py": "PTYs, and the program and the directory of a shell",
    "aegis/processes/working_directory.py": "/proc, and directories of the user",
    "aegis/terminals/directory/spawning.py": "/proc, and directories of the user",
    "aegis/terminals/hooks/startup.py": "start-up files: between the daemon and one shell",
    "aegis/terminals/hooks/choice.py": "start-up files",
    "aegis/terminals/hooks/zsh.py": "the FIFO by which a shell is asked about its line",
}
"""Who calls the system about files, and what about. None of it is durable state."""

FUNCTIONS = {
    f"os.{name}"
    for name in (
        *("open", "fdopen", "stat", "lstat", "access", "listdir", "scandir", "walk", "readlink"),
        *("rename", "replace", "unlink", "remove", "mkdir", "makedirs", "rmdir", "removedirs"),
        *("link", "symlink", "truncate", "ftruncate", "fsync", "fdatasync", "utime", "chmod"),
    )
} | {f"shutil.{name}" for name in ("rmtree", "move", "copy", "copy2", "copyfile", "copytree")}

METHODS = {
    *("unlink", "mkdir", "rmdir", "rename", "touch", "chmod", "symlink_to", "hardlink_to"),
    *("read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "glob", "rglob"),
    *("is_dir", "is_file", "exists", "stat"),
}
"""Those of a path; calls on something named a disk are the seam."""

TAKE_A_DISK = ("History", "LedgerReader", "RawLog.open")
KNOW_THE_REAL_ONE = {
    "aegis/doctor/archive.py",
    "aegis/doctor/ledgers.py",
    "aegis/journal/disk.py",
    "aegis/journal/flusher.py",
    "aegis/journal/raw_log.py",
    "aegis/journal/reader.py",
    "aegis/journal/segments.py",
    "aegis/nodes/worker.py",
    "aegis/daemon_process.py",
    "aegis/trust.py",
}


def sources(*packages: str) -> Iterator[tuple[str, str]]:
    for package in packages:
        for path in sorted((ROOT / "aegis" / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def calls(text: str) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def is_of_files(name: str, call: ast.Call) -> bool:
    """Whether this calls the system about a file."""
    if name in FUNCTIONS or name == "open":
        return True
    receiver, _, method = name.rpartition(".")
    if receiver.rpartition(".")[2].lstrip("_") == "disk":
        return False
    opens = method == "open" and bool(call.args) and _is_mode(call.args[0])
    return bool(receiver) and (opens or method in METHODS)


def _is_mode(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= 3


def touches_files(text: str) -> bool:
    return any(is_of_files(name, call) for name, call in calls(text))


def without_a_disk(text: str) -> list[str]:
    return [
        ast.unparse(call)
        for name, call in calls(text)
        if name in TAKE_A_DISK and "disk" not in {keyword.arg for keyword in call.keywords}
    ]


def test_only_what_is_not_durable_goes_past_the_disk() -> None:
    found = {path for path, text in sources(*PACKAGES) if touches_files(text)}
    assert found == {*PAST_IT, *BELOW_THE_SEAM}


@pytest.mark.parametrize("package", ["terminals", "inboxes", "requests", "workspaces"])
def test_readers_and_logs_are_given_the_disk(package: str) -> None:
    assert {path: wrong for path, text in sources(package) if (wrong := without_a_disk(text))} == {}


def test_the_real_disk_is_named_where_one_is_chosen() -> None:
    found = {path for path, text in sources("") if "OsDisk" in text}
    assert found == KNOW_THE_REAL_ONE


@pytest.mark.parametrize(
    "wrong",
    [
        "os.unlink(path)",
        "shutil.rmtree(path)",
        "path.unlink(missing_ok=True)",
        "(directory / 'x').write_bytes(b'')",
        "self.files.note.exists()",
        "open(path)",
        "path.open('rb')",
    ],
)
def test_the_search_finds_a_call_past_the_disk(wrong: str) -> None:
    assert touches_files(wrong)


@pytest.mark.parametrize(
    "right",
    ["disk.unlink(path)", "self._disk.mkdir(x)", "Note.open(path, flusher)", "os.strerror(5)"],
)
def test_the_search_lets_pass_what_goes_through_it(right: str) -> None:
    assert not touches_files(right)


def test_the_search_finds_a_reader_without_a_disk() -> None:
    assert without_a_disk("History(ledger)") == ["History(ledger)"]
    assert without_a_disk("RawLog.open(here, disk=disk)") == []
