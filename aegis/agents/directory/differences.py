"""The changes in the directory of a session since its start, as ``git diff`` prints them.

git runs with a git directory and an index of its own, which borrow the objects of the checkout. The
index of the checkout could hide changes, as ``git update-index --assume-unchanged`` does. The
configuration and the hooks of the checkout are not there, so no filter, no monitor, no other diff
program and no hook of it can run, even if ``.gitattributes`` names one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import attrs
import trio

from actors import Reply
from aegis.agents.directory.checkout import Checkout, find_checkout
from aegis.agents.directory.roster import Member
from aegis.errors import AegisError, InvalidRequest, Unavailable
from aegis.limits import in_thread_or_here, open_process
from aegis.path_text import path_of_text
from aegis.protocol.agents import AgentDiff

MAX_DIFF_BYTES = 1024 * 1024
MAX_NAMES_BYTES = 256 * 1024
"""The limits of what is returned; the rest is left out, which the reply says."""

MAX_ERROR_BYTES = 4096

LIMIT_S = 60.0
"""Seconds that git has, all together."""

PREFIX = "aegis-diff-"

CONFIGURATION = """\
[core]
\trepositoryformatversion = {version}
\tbare = false
\tquotePath = false
{extensions}"""


@attrs.frozen
class _Printed:
    data: bytes
    is_whole: bool


async def answer_difference(member: Member, cwd: str, reply: Reply[AgentDiff]) -> None:
    """Answer a request for the difference of a session that works in ``cwd``."""
    try:
        found = await difference(member, cwd)
    except AegisError as error:
        reply.fail(error)
    else:
        reply.send(found)


async def difference(member: Member, cwd: str) -> AgentDiff:
    """Return what changed since the session began. Raises ``InvalidRequest``, ``Unavailable``."""
    checkout = await in_thread_or_here(find_checkout, Path(path_of_text(cwd)))
    if checkout is None or member.head is None:
        raise InvalidRequest(
            f"agent diff: {member.handle!r} works in {cwd!r}, which was no git checkout "
            "with a commit when it began; look at its transcript with agent read"
        )
    program = shutil.which("git")
    if program is None:
        raise Unavailable("agent diff: the program 'git' was not found in PATH; install it")
    with trio.move_on_after(LIMIT_S):
        return await _with_git(program, checkout, member.handle, member.head)
    raise Unavailable(f"agent diff: git did not end within {LIMIT_S:g} s; use git yourself")


async def _with_git(program: str, checkout: Checkout, handle: str, base: str) -> AgentDiff:
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        own = Path(name)
        _prepare(own, checkout, base)
        run = partial(_run, program, _environment(own, checkout), str(checkout.top))
        await run(["read-tree", base], MAX_ERROR_BYTES)
        names = await run(["ls-files", "--others", "--exclude-standard", "-z"], MAX_NAMES_BYTES)
        await run(_add_new(names, own / "names"), MAX_ERROR_BYTES)
        shown = await run([*_DIFF, base, "--"], MAX_DIFF_BYTES)
    new_files = names.data.decode("utf-8", "replace").split("\0")[:-1]
    return AgentDiff(
        handle=handle,
        base=base,
        directory=str(checkout.top).encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        diff=shown.data.decode("utf-8", "replace"),
        new_files=sorted(new_files),
        truncated=not (shown.is_whole and names.is_whole),
    )


def _add_new(names: _Printed, list_file: Path) -> list[str]:
    """Return the command that adds new files to the index, by names in ``list_file``.

    By name: git would run the monitor of a repository that it enters.
    """
    files = [each for each in names.data.split(b"\0")[:-1] if not each.endswith(b"/")]
    list_file.write_bytes(b"\0".join(files))
    listed = [f"--pathspec-from-file={list_file}", "--pathspec-file-nul"] if files else []
    return ["add", "--intent-to-add", *listed]


_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
# The configuration of a submodule is its own: git would run its monitor there.


def _prepare(own: Path, checkout: Checkout, base: str) -> None:
    is_long = len(base) == 64
    extensions = "[extensions]\n\tobjectFormat = sha256\n" if is_long else ""
    (own / "objects" / "info").mkdir(parents=True)
    (own / "refs").mkdir()
    (own / "HEAD").write_text("ref: refs/heads/none\n")
    configuration = CONFIGURATION.format(version=int(is_long), extensions=extensions)
    (own / "config").write_text(configuration)
    objects = os.fsencode(checkout.objects)
    (own / "objects" / "info" / "alternates").write_bytes(objects + b"\n")


def _environment(own: Path, checkout: Checkout) -> Mapping[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(own),
        "LC_ALL": "C",
        "GIT_DIR": str(own),
        "GIT_WORK_TREE": str(checkout.top),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_PAGER": "cat",
    }


async def _run(
    program: str, environment: Mapping[str, str], cwd: str, words: list[str], limit: int
) -> _Printed:
    """Run git; return the first ``limit`` bytes that it prints. Raises ``Unavailable``."""
    process = await open_process(
        [program, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if words[0] == "read-tree" else subprocess.DEVNULL,
        cwd=cwd,
        env=dict(environment),
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        data = bytearray()
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
    is_whole = len(data) <= limit
    if is_whole and process.returncode:
        reason = data.decode("utf-8", "replace").strip().splitlines()
        raise Unavailable(
            f"agent diff: git {words[0]} failed: {reason[-1] if reason else process.returncode}; "
            "the commit may have been removed from the checkout"
        )
    return _Printed(bytes(data[:limit]), is_whole)
