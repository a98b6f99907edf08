"""``Rewinding``: a rewind of the files of an agent, from its dry run to its entry.

The session holds its turns back meanwhile (``SessionMachine.is_rewinding``). ``rewinding`` is
durable before a file is touched, ``rewound`` once all are as they stay. A death in between undoes
the rewind: all files are put back as they were before it.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import attrs
import structlog
import trio

from actors import ActorError, Ref, describe
from actors.errors import CodecError
from aegis.agents import faults
from aegis.agents import messages as msg
from aegis.agents.drivers.harness import FilesRewound
from aegis.agents.sessions import set_aside as aside
from aegis.agents.sessions.past import Rewind
from aegis.agents.sessions.set_aside import PutBack, SetAside
from aegis.agents.sessions.steps import RewindEntry
from aegis.errors import AegisError, InvalidRequest, StorageError, Unavailable
from aegis.journal.disk import Disk
from aegis.limits import in_thread_or_here
from aegis.path_text import path_of_text, text_of_path
from aegis.protocol.agents import AgentRewind, RewindAgent

log = structlog.get_logger("aegis.agents")

DIRECTORY = "rewind"
"""The directory of the files that are set aside, below that of the session."""

KEPT = "rewind-kept"
"""The directory of what a rewind could not put back, or would have lost."""

DRY_S = 30.0
REWIND_S = 60.0
"""Seconds that an agent has to answer."""

END_S = 20.0
"""Seconds that an agent has to end that did not answer."""

AGAIN_S = 1.0
"""Seconds after which a disk that has refused is tried again."""

Send = Callable[[RewindEntry], Awaitable[None]]
"""Has the session write an entry; ``note_stored`` is called once it is durable."""


class Rewinding:
    """The rewinds of one session, whose files are below ``directory``, one at a time.

    ``cwd`` is its working directory. ``handle`` returns its current handle.
    """

    def __init__(
        self, handle: Callable[[], str], directory: Path, cwd: str, disk: Disk, send: Send
    ) -> None:
        self._handle = handle
        self._aside, self._kept = directory / DIRECTORY, directory / KEPT
        self._base = Path(path_of_text(cwd))
        self._disk = disk
        self._send = send
        self._stored = trio.Event()

    def note_stored(self) -> None:
        """Note that the last entry is durable."""
        self._stored.set()

    async def run(
        self, order: RewindAgent, turn: int, uuid_: str, driver: Ref[Any], edited: Mapping[str, str]
    ) -> AgentRewind:
        """Carry out a rewind to ``turn``, or only its dry run.

        ``edited`` has the digest of each file, by its real path, as the agent left it. Raises
        ``AegisError``: nothing was changed then, unless ``recover`` has to be called.
        """
        paths = await self._asked(driver, uuid_)
        if order.dry_run:
            files = await in_thread_or_here(aside.look_at, paths, edited)
            return _reply(order.handle, turn, files, PutBack(), is_done=False)
        handle = self._handle()
        await self._clear_earlier()
        rewind = Rewind(id=uuid.uuid4().hex, turn=turn, by=order.from_handle or "human")
        await self._write("rewinding", **attrs.asdict(rewind))
        try:
            await faults.REWIND_KEEP_BEFORE.reach(handle)
            keep = partial(aside.set_aside, self._disk, self._aside, paths, edited)
            files = await in_thread_or_here(keep)
        except AegisError as error:
            await self._end(rewind, [], PutBack(), str(error))
            raise
        await faults.REWIND_AGENT_BEFORE.reach(handle)
        refusal = await self._set_back(driver, uuid_)
        await faults.REWIND_BACK_BEFORE.reach(handle)
        try:
            # If the agent failed, a file that differs may be one that a person saved meanwhile.
            done = await self._put_back(files, is_done=not refusal, keeps_newer=bool(refusal))
        except OSError as error:
            raise StorageError(
                f"the disk refused ({error.strerror}): {handle} takes no turn until all files are "
                f"put back as they were; their copies are in {text_of_path(self._aside)!r}"
            ) from error
        await self._end(rewind, files, done, refusal)
        if refusal:
            left = [*_reply("", turn, [], done, is_done=False).unable, *_kept(done)]
            raise Unavailable(f"{refusal}; {'; '.join(left) or 'nothing was changed'}")
        return _reply(order.handle, turn, files, done, is_done=True)

    async def recover(self, rewind: Rewind) -> None:
        """Undo a rewind that a death or the disk has cut; wait until the disk accepts that."""
        while True:
            try:
                files = await in_thread_or_here(aside.files_aside, self._disk, self._aside)
                done = await self._put_back(files, is_done=False, keeps_newer=True)
            except OSError as error:
                log.warning("a rewind is not undone yet", agent=self._handle(), why=str(error))
                await trio.sleep(AGAIN_S)
            except (CodecError, ValueError) as error:
                log.warning("a rewind cannot be undone", agent=self._handle(), why=str(error))
                lost = f"it was cut short, and the list of its files is damaged: {self._aside}"
                await self._write_end(rewind, [], PutBack(), lost)
                return
            else:
                await self._end(rewind, files, done, "it was cut short")
                return

    async def _clear_earlier(self) -> None:
        """Delete what an earlier rewind has left, with which a death would undo this one."""
        try:
            await in_thread_or_here(aside.clear, self._disk, self._aside)
        except OSError as error:
            raise StorageError(
                f"the disk refuses to delete {text_of_path(self._aside)!r}, the copies of an "
                f"earlier rewind ({error.strerror}); nothing was changed"
            ) from error

    async def _asked(self, driver: Ref[Any], uuid_: str) -> list[str]:
        try:
            found: FilesRewound = await driver.ask(
                msg.RewindFiles(uuid=uuid_, is_dry=True), timeout=DRY_S
            )
        except ActorError as error:
            raise Unavailable(f"{describe(error)}; nothing was changed") from error
        if found.refusal is not None:
            raise InvalidRequest(found.refusal)
        return [text_of_path(self._base / path_of_text(each)) for each in found.files]

    async def _set_back(self, driver: Ref[Any], uuid_: str) -> str:
        """Have the agent set the files back; return why it did not, ``""`` if it did."""
        try:
            order = msg.RewindFiles(uuid=uuid_, is_dry=False)
            rewound: FilesRewound = await driver.ask(order, timeout=REWIND_S)
        except ActorError as error:
            # It may still write: its process is ended first.
            try:
                await driver.ask(msg.CloseDriver(), timeout=END_S)
            except ActorError as ended:
                log.info("the agent has ended", agent=self._handle(), reason=describe(ended))
            return f"the agent did not answer, and was ended ({describe(error)})"
        return rewound.refusal or ""

    async def _put_back(
        self, files: list[SetAside], *, is_done: bool, keeps_newer: bool = False
    ) -> PutBack:
        """Put the files of others back, or all if the rewind is not done. Raises ``OSError``."""
        back = [each for each in files if each.is_others or not is_done]
        put_back = partial(aside.put_back, self._disk, self._aside, back, self._kept)
        return await in_thread_or_here(partial(put_back, keeps_newer=keeps_newer))

    async def _end(self, rewind: Rewind, files: list[SetAside], done: PutBack, reason: str) -> None:
        """Write the entry of a rewind, and delete the copies; with a reason it is undone."""
        await faults.REWIND_END_BEFORE.reach(self._handle())
        await self._write_end(rewind, files, done, reason)
        try:
            await in_thread_or_here(aside.clear, self._disk, self._aside)
        except OSError as error:  # the next rewind deletes them
            log.info("copies of a rewind stay", agent=self._handle(), why=str(error))

    async def _write_end(
        self, rewind: Rewind, files: list[SetAside], done: PutBack, reason: str
    ) -> None:
        end = _reply("", rewind.turn, [] if reason else files, done, is_done=True)
        fields = {"files": end.files, "left": end.left, "unable": end.unable, "kept": _kept(done)}
        await self._write("rewound", **attrs.asdict(rewind), **fields, reason=reason)

    async def _write(self, kind: Literal["rewinding", "rewound"], **fields: Any) -> None:
        self._stored = trio.Event()
        await self._send(RewindEntry(kind, fields))
        await self._stored.wait()


def _kept(done: PutBack) -> list[str]:
    return [f"{path!r} was changed meanwhile: that is kept in {copy!r}" for path, copy in done.kept]


def _reply(
    handle: str, turn: int, files: list[SetAside], done: PutBack, *, is_done: bool
) -> AgentRewind:
    unable = {path: (copy, why) for path, copy, why in done.unable}
    return AgentRewind(
        handle=handle,
        turn=turn,
        is_done=is_done,
        files=[each.path for each in files if not each.is_others],
        left=[each.path for each in files if each.is_others and each.path not in unable],
        unable=[
            f"{path!r} cannot be put back ({why})" + (f": what it held is in {copy!r}" * bool(copy))
            for path, (copy, why) in unable.items()
        ],
    )
