"""The lines on which the promises depend, each with a change that breaks it. Pure.

The names are those of ``docs/guarantees.md``. A line that has changed fails a test here: then write
the break anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.faults.mutation.agent_promises import BROKEN_FOR_AGENTS
from tests.faults.mutation.coordination_promises import BROKEN_FOR_COORDINATION
from tests.faults.mutation.promise import Promise

_BROKEN = (
    Promise(
        "the fdatasync of a ledger is skipped",
        "G1",
        "aegis/journal/appender.py",
        "            self._forget = begin(epoch.fd, began, ended, self._run_soon)\n",
        "            began()\n"
        "            self._is_syncing = False\n"
        "            self._acknowledge(epoch, target)\n",
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
        "what was not acknowledged stays after a failure",
        "G5",
        "aegis/journal/appender.py",
        "            disk.ftruncate(fd, acknowledged)\n",
        "",
        also=(
            (
                "                disk.ftruncate(epoch.fd, epoch.synced - self.shift)\n",
                "                pass\n",
            ),
        ),
    ),
    Promise(
        "a failed sync is tried again on the same pages",
        "G5",
        "aegis/journal/appender.py",
        "            raise error\n"
        '        self._fail(epoch, storage_error("sync", self.path, error))\n',
        "            raise error\n        self.request_sync()\n",
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
        "aegis/terminals/front/current_command.py",
        "        current = cls(note, highest + 1, ",
        "        current = cls(note, last_seq + 1, ",
    ),
    Promise(
        "the command in flight is not in the note",
        "G2",
        "aegis/terminals/front/current_command.py",
        "        command = self._submission(call, moment_s)\n        self._write(command)\n",
        "        command = self._submission(call, moment_s)\n",
    ),
    Promise(
        "the command in flight is forgotten by recovery",
        "G2",
        "aegis/terminals/front/current_command.py",
        "        current._found = {each.seq: each for each in lacking}\n",
        "",
    ),
    Promise(
        "a run behind a typed line is not in the note",
        "G2",
        "aegis/terminals/front/current_command.py",
        "            commands.append(self._numbered(self._displaced))\n",
        "            pass\n",
    ),
    Promise(
        "a number that was shown is given to a line typed ahead",
        "G3",
        "aegis/terminals/front/current_command.py",
        "            if not command.timed_out:\n                self._next_seq = command.seq\n",
        "            self._next_seq = command.seq\n",
    ),
    Promise(
        "only the caller of a refused record is told",
        "G5",
        "aegis/terminals/front/recorder.py",
        "if seq >= news.seq]:\n",
        "if seq == news.seq]:\n",
    ),
    Promise(
        "what the note owes is not written before it is synced",
        "G1",
        "aegis/terminals/front/current_command.py",
        "        if self._owes_write:\n            self._write(self.command)\n",
        "",
    ),
    Promise(
        "a note that was replaced during its sync is not synced again",
        "G1",
        "aegis/journal/note.py",
        "        while renames != self._renames:",
        "        while renames == -1:",
    ),
    Promise(
        "a line that was cut off before its sync is acknowledged",
        "G1",
        "aegis/journal/appender.py",
        "        if disk.size(epoch.fd) < target - self.shift:\n",
        "        if disk.size(epoch.fd) < epoch.synced - self.shift:\n",
    ),
    Promise(
        "a mark without the secret is believed",
        "G2",
        "aegis/terminals/parse/osc133.py",
        "    return hmac.compare_digest(given, secret)",
        "    return True",
    ),
    Promise(
        "a mark with a number that was seen is believed",
        "G2",
        "aegis/terminals/parse/boundaries.py",
        "        if mark.number <= self._number:\n            return []\n        events",
        "        events",
    ),
    Promise(
        "a message is confirmed before it is synced",
        "G1",
        "aegis/journal/table.py",
        "        return position is None or self._appender.is_synced(position)\n",
        "        return True\n",
    ),
    Promise(
        "a message that is known is delivered again",
        "G7",
        "aegis/inboxes/inbox.py",
        "        if not is_new and await self._knows(delivery.id):\n",
        "        if not delivery.id:\n",
    ),
    Promise(
        "what was read is not written down",
        "G7",
        "aegis/inboxes/inbox.py",
        "        if not self._table.put(mark, then, is_deferred=True):\n",
        "        if self._table.settled(then):\n",
    ),
    Promise(
        "the writer of a command is woken too",
        "G11",
        "aegis/terminals/wakes/delivery.py",
        "        if not wake.is_for(self.handle):\n",
        "        if False:\n",
    ),
    Promise(
        "a wake is taken for told before the inbox confirmed",
        "G11",
        "aegis/terminals/wakes/delivery.py",
        "                await reply.wait()\n",
        "                pass\n",
    ),
    Promise(
        "a crash of an actor is swallowed",
        "G8",
        "actors/incarnation.py",
        "        if self.crashes:\n            ended = ",
        "        if False:\n            ended = ",
    ),
    Promise(
        "a monitor is forgotten",
        "G6",
        "actors/supervisor.py",
        "            cell.notify_watchers(ended, final=False)\n",
        "            pass\n",
    ),
    Promise(
        "the processes of an earlier daemon are not ended",
        "G14",
        "aegis/terminals/shell/processes.py",
        "    left = await end_processes(sids, cookies, scan=scan)\n    if left:",
        "    left = []\n    if left:",
    ),
    Promise(
        "a mark that was seen begins a command again",
        "G2",
        "aegis/terminals/parse/boundaries.py",
        "        if mark.number <= self._number:\n            return []\n        lost",
        "        lost",
    ),
    Promise(
        "a command is typed though the disk refused its note",
        "G5",
        "aegis/terminals/front/terminal.py",
        "            except StorageError as error:\n"
        "                call.settle(error)\n"
        "                continue\n"
        "            state",
        "            except StorageError:\n                pass\n            state",
    ),
    Promise(
        "a number is shown at a timeout before its note is synced",
        "G1",
        "aegis/terminals/front/terminal.py",
        "            await self._command.sync()\n        except StorageError as error:\n",
        "            pass\n        except StorageError as error:\n",
    ),
    Promise(
        "a subscription is answered before it is synced",
        "G1",
        "aegis/terminals/wakes/wakes.py",
        "        await self._note.write_synced(subscriptions.stored())\n",
        "        self._note.write(subscriptions.stored())\n",
    ),
    Promise(
        "what subscribers are owed is forgotten at a restart",
        "G11",
        "aegis/terminals/wakes/wakes.py",
        "            confirmed=subscription.confirmed,\n",
        "            confirmed=self._feed.last,\n",
    ),
    Promise(
        "a number that subscribers were told of is given again",
        "G3",
        "aegis/terminals/wakes/wakes.py",
        "        highest = max(last_seq, notified)\n",
        "        highest = last_seq\n",
    ),
    Promise(
        "a wake is taken though the one before it was refused",
        "G11",
        "aegis/inboxes/inbox.py",
        "        await self._check_order(delivery.after)\n",
        "",
    ),
    Promise(
        "a name that was purged goes on with its life",
        "G11",
        "aegis/terminals/directory/spawning.py",
        "        life=new_life() if before is None else before.life,\n",
        '        life="0" * 12 if before is None else before.life,\n',
    ),
    Promise(
        "a rotation of the raw log does not state its intent",
        "G4",
        "aegis/journal/raw_log.py",
        "        self._store(attrs.evolve(self._bases, next=base))\n",
        "        self._bases = attrs.evolve(self._bases, next=base)\n",
    ),
    Promise(
        "the processes of a shell that ended are not ended",
        "G14",
        "aegis/terminals/shell/processes.py",
        "        leftover = await self.end(ended)\n",
        "        leftover = ()\n",
    ),
    Promise(
        "a session that is somebody else's by now is ended",
        "G14",
        "aegis/terminals/shell/processes.py",
        "        return [] if is_reused(host, self.sid, self.start_time) else [self.sid]\n",
        "        return [self.sid]\n",
    ),
    Promise(
        "two daemons serve one root",
        "G3",
        "aegis/daemon_process.py",
        "        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "        pass\n",
    ),
    Promise(
        "an ask has a second outcome",
        "G6",
        "actors/reply.py",
        "        if self.is_settled:\n            self._late",
        "        if False:\n            self._late",
    ),
    Promise(
        "a mailbox gives its newest message first",
        "G7",
        "actors/mailbox.py",
        "        self.older.extend(reversed(items))\n",
        "        self.older.extend(items)\n",
    ),
    Promise(
        "a mailbox has no bound",
        "G10",
        "actors/mailbox.py",
        "        if len(self.items) + len(self.older) >= self._capacity:\n",
        "        if False:\n",
    ),
    Promise(
        "restarts have no budget",
        "G8",
        "actors/policy.py",
        "    if spent.is_exhausted:\n",
        "    if False:\n",
    ),
    Promise(
        "an actor that does not end is waited for",
        "G9",
        "actors/incarnation.py",
        "        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEANUP_S) as",
        "        with trio.CancelScope(shield=True) as",
    ),
    Promise(
        "every token is the operator's",
        "G13",
        "aegis/servers/access/auth.py",
        "        if hmac.compare_digest(_digest(token), self._table.operator):\n",
        "        if token:\n",
    ),
    Promise(
        "a handle acts under another's",
        "G13",
        "aegis/servers/connection.py",
        "    if identity.handle is not None:\n        own =",
        "    if identity.handle is not None and given is None:\n        own =",
    ),
)


PROMISES: Mapping[str, Promise] = {
    each.name: each for each in (*_BROKEN, *BROKEN_FOR_AGENTS, *BROKEN_FOR_COORDINATION)
}
"""Every promise that is broken on purpose, by the name of the break."""
