"""The lines on which the promises of queues, canvases, workflows and groups depend. Pure."""

from __future__ import annotations

from tests.faults.mutation.promise import Promise

BROKEN_FOR_COORDINATION = (
    Promise(
        "a task is begun once more than its attempts",
        "G18",
        "aegis/queues/tasks.py",
        "    if task.attempt >= task.max_attempts:\n",
        "    if task.attempt > task.max_attempts:\n",
    ),
    Promise(
        "the names of an exchange are not synced",
        "G19",
        "aegis/journal/shared_files.py",
        "    directory.sync()\n    faults.EXCHANGE_SYNCED",
        "    faults.EXCHANGE_SYNCED",
    ),
    Promise(
        "a displaced file is not looked at",
        "G19",
        "aegis/journal/shared_files.py",
        "        if displaced.digest != expected or displaced.is_open:\n",
        "        if displaced.is_open:\n",
    ),
    Promise(
        "a section is replaced with an old revision",
        "G19",
        "aegis/canvases/views.py",
        "    if if_rev == known.number or ",
        "    if if_rev is not None or ",
    ),
    Promise(
        "a document is older than the state of its canvas",
        "G19",
        "aegis/canvases/canvas.py",
        "found.document if found.digest == intent.after else None)\n",
        "self._document)\n",
    ),
    Promise(
        "an exchange that was cut is judged before its names are synced",
        "G19",
        "aegis/journal/shared_files.py",
        "        if durable:\n            directory.sync()\n",
        "",
    ),
    Promise(
        "a writer is woken by its own write",
        "G19",
        "aegis/canvases/revisions.py",
        "        if name_key(change.writer) == name_key(writer_of(self.handle)):\n"
        "            return False\n",
        "",
    ),
    Promise(
        "a change wakes by the sections of a later subscription",
        "G19",
        "aegis/canvases/revisions.py",
        "            former.append(Former(sections=self.sections, until=rev))\n",
        "            pass\n",
    ),
    Promise(
        "a subscriber is woken while its subscription is written",
        "G19",
        "aegis/canvases/wakes.py",
        "        return newest is not None and newest != subscriber.has(newest.confirmed)\n",
        "        return False\n",
    ),
    Promise(
        "a replay makes a call anew",
        "G20",
        "aegis/workflows/runs.py",
        '        return f"workflow:{self.id}/{self.attempt}/{position}"\n',
        '        return f"workflow:{self.id}/{self.attempt}/{position}/{self.processes}"\n',
    ),
    Promise(
        "the sessions of an ended workflow stay open",
        "G20",
        "aegis/workflows/carrier.py",
        "            if is_own:\n                await self._sessions.close(handle)\n",
        "            del is_own\n",
    ),
    Promise(
        "the outcome of a call is sent to its process before it is synced",
        "G20",
        "aegis/workflows/desk.py",
        "        live.deaths = 0\n        number = live.next_change()\n",
        "        live.deaths = 0\n"
        "        if position in live.asked:\n"
        "            self._answer(live, position, outcome)\n"
        "        number = live.next_change()\n",
    ),
    Promise(
        "an interrupted step is done again",
        "G20",
        "aegis/workflows/desk.py",
        "        elif call.name in REPEATABLE or called.retry or call.round < run.resumes:\n",
        "        else:\n",
        also=(
            (
                "        else:\n"
                "            self._finish(live, position, "
                "calls.interrupted(position, call.about))\n",
                "",
            ),
        ),
    ),
    Promise(
        "a turn is credited to a broadcast that did not begin it",
        "G21",
        "aegis/turns/watch.py",
        "                if self.turn is None and self.message in _message_ids(entry.fields):\n",
        "                if self.turn is None:\n",
    ),
    Promise(
        "replies are returned before they are synced",
        "G21",
        "aegis/groups/desk.py",
        "        return self._progress(broadcast, self.table.shown)\n",
        "        return self._progress(broadcast, self.table.rows.get)\n",
        also=(
            (
                "            table.add_fact(end, partial(self._advance_broadcast, group, "
                "broadcast.id))\n",
                "            table.add_fact(end)\n"
                "            self._advance_broadcast(group, broadcast.id)\n",
            ),
        ),
    ),
)
"""In the order of the guarantees."""
