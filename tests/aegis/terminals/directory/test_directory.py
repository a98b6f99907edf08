"""The directory of terminals as an actor, with real shells: what only a fake scan can show."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors import Actor, ChildSpec, Ref, Request, SupervisorSpec, open_system
from aegis.journal.flusher import Flusher
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_host import ProcessHost
from aegis.processes.process_table import OwnedProcess, ProcessInfo
from aegis.protocol.inboxes import Deliver
from aegis.protocol.terminals import CloseTerminal, ListTerminals, SpawnTerminal
from aegis.terminals.directory.directory import EndAllTerminals, TerminalDirectory

pytestmark = [pytest.mark.real, pytest.mark.every_python]


class Inbox(Actor[Deliver]):
    """Nobody is woken here."""


@asynccontextmanager
async def open_directory(
    root: Path, *, restore: bool = True, host: ProcessHost | None = None
) -> AsyncIterator[Ref[Any]]:
    spec = SupervisorSpec(
        name="root",
        children=(
            ChildSpec.of("inbox", Inbox),
            SupervisorSpec(name="terminals", dynamic=True),
            ChildSpec.of(
                "directory",
                TerminalDirectory,
                root=root,
                directory=root / "terminals",
                workspace=root / "workspace.json",
                restore=restore,
                supervisor="root/terminals",
                flusher=Flusher(),
                inboxes="root/inbox",
                shell_file_limit=1024,
                host=OsProcessHost() if host is None else host,
            ),
        ),
    )
    with trio.fail_after(60):
        async with open_system(spec) as system:
            yield system.ref("root/directory")


class PhantomHost(OsProcessHost):
    """For each real process of a terminal one more of its name that nothing can end."""

    async def all_processes(self) -> Sequence[OwnedProcess]:
        real = await super().all_processes()
        marked = {each.cookie for each in real if each.cookie is not None}
        cookies = SEEN.union(marked)
        SEEN.update(marked)
        return [*real, *(OwnedProcess(PHANTOM, cookie) for cookie in sorted(cookies))]


SEEN: set[str] = set()
PHANTOM = ProcessInfo(
    pid=2**22 + 7, name="stuck", state="D", session=2**22 + 7, threads=1, start_time=1
)


async def test_closing_names_what_could_not_be_ended(tmp_path: Path) -> None:
    async with open_directory(tmp_path, host=PhantomHost()) as directory:
        await directory.ask(SpawnTerminal(name="build"), timeout=30)
        closed = await directory.ask(CloseTerminal(name="build"), timeout=30)
        assert closed.leftover == [f"stuck (pid {PHANTOM.pid})"]
        assert (await directory.ask(ListTerminals())).result == []


async def test_closing_names_nothing_when_all_is_gone(tmp_path: Path) -> None:
    async with open_directory(tmp_path) as directory:
        await directory.ask(SpawnTerminal(name="build"), timeout=30)
        assert (await directory.ask(CloseTerminal(name="build"), timeout=30)).leftover == []


async def test_what_was_open_is_open_in_the_next_system_unless_it_shall_not_be(
    tmp_path: Path,
) -> None:
    async with open_directory(tmp_path) as directory:
        await directory.ask(SpawnTerminal(name="build"), timeout=30)
    for restore, names in ((True, ["build"]), (False, []), (True, [])):
        async with open_directory(tmp_path, restore=restore) as directory:
            infos = (await directory.ask(ListTerminals())).result
            assert [info.name for info in infos] == names


async def test_a_terminal_that_is_closed_while_the_daemon_stops_is_ended_once_for_both(
    tmp_path: Path,
) -> None:
    answers: list[object] = []

    async def ask(directory: Ref[Any], request: Request[Any]) -> None:
        answers.append(await directory.ask(request, timeout=30))

    async with open_directory(tmp_path) as directory:
        await directory.ask(SpawnTerminal(name="build"), timeout=30)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, directory, CloseTerminal(name="build"))
            nursery.start_soon(ask, directory, EndAllTerminals())
        assert sorted(type(each).__name__ for each in answers) == ["Closed", "Done"]
        assert (await directory.ask(ListTerminals())).result == []
    async with open_directory(tmp_path) as directory:
        assert (await directory.ask(ListTerminals())).result == []
