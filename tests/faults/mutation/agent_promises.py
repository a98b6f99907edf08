"""The promises of agent sessions and requests, with the changes that break them. Pure."""

from __future__ import annotations

from tests.faults.mutation.promise import Promise

BROKEN_FOR_AGENTS = (
    Promise(
        "a turn is sent before it is synced as opened",
        "G15",
        "aegis/agents/sessions/rules.py",
        ("                if self._turn.is_stored:\n                    self._send(self._turn)\n"),
        "                self._send(self._turn)\n",
    ),
    Promise(
        "a turn of a process that died is sent again",
        "G15",
        "aegis/agents/sessions/rules.py",
        (
            '            self._finish("cancelled" if is_ours else "interrupted", said if '
            "is_ours else reason)\n"
        ),
        "            self._turn.is_sent = False\n",
    ),
    Promise(
        "a loss is reported before its outcome is synced",
        "G15",
        "aegis/agents/sessions/rules.py",
        ('        self._ending = turn, fields\n        self._store("turn_ended", fields)\n'),
        (
            "        self._ending = turn, fields\n"
            "        if outcome in LOSSES:\n"
            "            self._report(turn, outcome, reason)\n"
            '        self._store("turn_ended", fields)\n'
        ),
    ),
    Promise(
        "a loss counts as reported before the inbox has the report",
        "G15",
        "aegis/agents/sessions/rules.py",
        "        self._note_reported(self._reports.take_done())\n",
        '        self._append("notified", turn=turn.number)\n',
    ),
    Promise(
        "a result that names no message of the turn ends it",
        "G15",
        "aegis/agents/sessions/rules.py",
        (
            "        if not self._is_current(result.messages):\n"
            "            return\n"
            "        assert self._turn is not None\n"
        ),
        ("        if self._turn is None or not self._turn.is_sent:\n            return\n"),
    ),
    Promise(
        "a conversation is replaced without its last texts",
        "G17",
        "aegis/agents/sessions/ladder.py",
        ("        return StartDriver(conversation=None, texts=tuple(past.texts))\n\n"),
        ("        return StartDriver(conversation=None)\n\n"),
    ),
    Promise(
        "a lost conversation is not tried to be resumed",
        "G17",
        "aegis/agents/sessions/ladder.py",
        "        if self.rung <= RESUMES:\n",
        "        if self.rung < 0:\n",
    ),
    Promise(
        "an order to end a process that is being started is dropped",
        "G17",
        "aegis/agents/sessions/session.py",
        (
            "        if launch == self._unwanted:\n"
            "            await self._end_driver(driver, launch)\n"
        ),
        "",
    ),
    Promise(
        "agents of an earlier daemon are not ended",
        "G14",
        "aegis/agents/directory/directory.py",
        "            await end_leftovers(self._programs)\n",
        "            pass\n",
    ),
    Promise(
        "an answer to a request is passed on although it was withdrawn",
        "G16",
        "aegis/requests/desk.py",
        '        if row.phase == "withdrawn":\n            _send(reply, answers.settled(row))\n',
        "        if False:\n            _send(reply, answers.settled(row))\n",
    ),
    Promise(
        "an answer is passed on before it is synced",
        "G16",
        "aegis/requests/desk.py",
        "            self._table.put(answered, partial(self._answered, row.id, reply), reply)\n",
        (
            "            self._table.put(answered, None, reply)\n"
            "            self._answered(row.id, reply)\n"
        ),
    ),
    Promise(
        "an answer to another digest is taken",
        "G16",
        "aegis/requests/desk.py",
        "            answers.check_digest(row, request.digest)\n",
        "",
    ),
    Promise(
        "a session acts again on an answer that it has had",
        "G16",
        "aegis/agents/sessions/requests_out.py",
        "        return answer.id in self._outcomes or answer.id in self._applying\n",
        "        return False\n",
    ),
)
"""In the order of the guarantees."""
