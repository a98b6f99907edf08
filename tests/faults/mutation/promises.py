"""The lines on which the promises stand, each with what breaks it. Pure.

The names are those of ``docs/guarantees.md``. A line that is written otherwise fails a test here:
then the break is written anew beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class Promise:
    """What ``old``, which stands once in ``file``, holds; ``new`` in its place breaks it."""

    name: str
    guarantee: str
    file: str
    old: str
    new: str

    def broken(self, source: str) -> str:
        """The source with the promise broken; ``ValueError`` unless ``old`` is in it once."""
        if source.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has not exactly one {self.old!r}")
        return source.replace(self.old, self.new)


def _promises() -> list[Promise]:
    return [
        Promise(
            "the fdatasync of a ledger is skipped",
            "G1",
            "aegis/journal/appender.py",
            "            await self._flusher.fdatasync(epoch.fd)\n",
            "",
        ),
        Promise(
            "a line is acknowledged before its sync",
            "G1",
            "aegis/journal/appender.py",
            "        epoch.written += len(line)\n",
            "        epoch.written += len(line)\n        epoch.synced = epoch.written\n",
        ),
        Promise(
            "the directory of a new ledger is not synced",
            "G1",
            "aegis/journal/opening.py",
            "            sync_directory(disk, directory)\n",
            "            pass\n",
        ),
        Promise(
            "a small file is renamed before its content is synced",
            "G1",
            "aegis/journal/disk.py",
            "        if durable:\n            disk.fsync(fd)\n        disk.rename(fresh, path)\n",
            "        disk.rename(fresh, path)\n",
        ),
        Promise(
            "a short write is taken for a whole one",
            "G5",
            "aegis/journal/disk.py",
            "    while left:\n        left = left[write_some(disk, fd, left) :]\n",
            "    write_some(disk, fd, left)\n",
        ),
        Promise(
            "what was written and not acknowledged stays after a failure",
            "G5",
            "aegis/journal/appender.py",
            "            disk.ftruncate(fd, acknowledged)\n",
            "",
        ),
        Promise(
            "a failed sync is tried again on the same pages",
            "G5",
            "aegis/journal/appender.py",
            '            self._fail(epoch, storage_error("sync", self.path, error))\n',
            "            self._demand.set()\n",
        ),
        Promise(
            "a torn tail is left in the ledger",
            "G3",
            "aegis/journal/opening.py",
            "        disk.ftruncate(fd, length)\n",
            "        pass\n",
        ),
        Promise(
            "a torn tail is not kept aside",
            "G3",
            "aegis/journal/opening.py",
            "    replace_file(disk, aside, read_blocks(disk, fd, start, end))\n",
            "",
        ),
        Promise(
            "a number is given twice after a restart",
            "G3",
            "aegis/terminals/flight.py",
            "        flight = cls(note, highest + 1, ",
            "        flight = cls(note, last_seq + 1, ",
        ),
        Promise(
            "the command in flight is not in the note",
            "G2",
            "aegis/terminals/flight.py",
            "        command = self._submission(call, moment_s)\n        self._write(command)\n",
            "        command = self._submission(call, moment_s)\n",
        ),
        Promise(
            "the command in flight is forgotten by recovery",
            "G2",
            "aegis/terminals/flight.py",
            "        flight._found = {each.seq: each for each in noted if each.seq > last_seq}\n",
            "",
        ),
        Promise(
            "a mark without the secret is believed",
            "G2",
            "aegis/terminals/osc133.py",
            "    return hmac.compare_digest(given, secret)",
            "    return True",
        ),
        Promise(
            "a mark with a number that was seen is believed",
            "G2",
            "aegis/terminals/boundaries.py",
            "        if mark.number <= self._number:\n"
            "            return []\n"
            "        self._advance(mark.number)\n"
            "        happenings",
            "        self._advance(mark.number)\n        happenings",
        ),
        Promise(
            "a message is confirmed before it is synced",
            "G1",
            "aegis/inboxes/inbox.py",
            "while self._writes and self._appender.is_synced(self._writes[0].position):",
            "while self._writes:",
        ),
        Promise(
            "a message that is known is delivered again",
            "G7",
            "aegis/inboxes/inbox.py",
            "        if self._state.knows(delivery.id):\n",
            "        if not delivery.id:\n",
        ),
        Promise(
            "what was read is not written down",
            "G7",
            "aegis/inboxes/inbox.py",
            "        position, _ = await self._append(line)\n",
            '        position, _ = await self._append({"kind": "nothing"})\n',
        ),
        Promise(
            "the writer of a command is woken too",
            "G11",
            "aegis/terminals/courier.py",
            "        if not wake.is_for(self.handle) or ",
            "        if ",
        ),
        Promise(
            "a wake is taken for told before the inbox confirmed",
            "G11",
            "aegis/terminals/courier.py",
            "                await reply.wait()\n",
            "                pass\n",
        ),
        Promise(
            "a crash of an actor is swallowed",
            "G8",
            "actors/life.py",
            "        if self.crashes:\n            ended = ",
            "        if False:\n            ended = ",
        ),
        Promise(
            "a monitor is forgotten",
            "G6",
            "actors/supervisor.py",
            "            cell.tell_watchers(ended, final=False)\n",
            "            pass\n",
        ),
        Promise(
            "the processes of an earlier life are not ended",
            "G14",
            "aegis/terminals/cleaning.py",
            "        await end_what_is_left(root, name, self.files.shell, self.scan, self.disk)\n",
            "",
        ),
    ]


PROMISES: Mapping[str, Promise] = {each.name: each for each in _promises()}
"""Every promise that is broken on purpose, by what its break does."""
