"""The check of the chat reads ledgers of today, and those of a version before tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aegis.doctor.finding import Level
from aegis.doctor.telegram import examine_telegram
from aegis.journal.ledger import encode_line
from aegis.state.root import CONFIG_NAME, StatePaths, make_directory

PROBLEM = {"problem": "the bot does not work: do this"}
MOVED = {"moved": {"-5": -7}}

OLDER: list[list[dict[str, Any]]] = [
    [{"kind": "problem", "text": PROBLEM["problem"]}],
    [{"kind": "moved", "old": -5, "new": -7}],
    [{"kind": "head", "after": 1, "fold": PROBLEM | {"moved": {}}}],
    [{"kind": "head", "after": 1, "fold": MOVED | {"problem": ""}}],
]
TODAY: list[list[dict[str, Any]]] = [
    [{"id": "chat", "set": {"type": "chat", **PROBLEM}}],
    [{"id": "chat", "set": {"type": "chat", **MOVED}}, {"id": "order/1", "set": {"problem": "x"}}],
]


def finding(root: Path, lines: list[dict[str, Any]]) -> tuple[Level, str, str]:
    state = StatePaths(root)
    make_directory(state)
    (root / CONFIG_NAME).write_text("telegram: {chat_id: -5, user_ids: [1]}\n")
    state.telegram.parent.mkdir(parents=True, exist_ok=True)
    state.telegram.write_bytes(b"".join(map(encode_line, lines)))
    [found] = examine_telegram(state)
    return found.level, found.sentence, found.remedy


@pytest.mark.parametrize("lines", [OLDER[0], OLDER[2], TODAY[0]])
def test_it_says_why_the_bot_does_not_work(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    assert finding(tmp_path, lines) == (Level.PROBLEM, "the bot does not work", "do this")


@pytest.mark.parametrize("lines", [OLDER[1], OLDER[3], TODAY[1]])
def test_it_says_that_the_group_has_another_id(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    level, sentence, remedy = finding(tmp_path, lines)
    assert (level, remedy) == (Level.WARNING, "write -7 in telegram.chat_id of .aegis.yaml")
    assert "the bot serves chat -7" in sentence


def test_a_problem_that_is_over_is_none(tmp_path: Path) -> None:
    over = [*OLDER[0], {"id": "chat", "set": {"problem": ""}}]
    assert finding(tmp_path, over) == (Level.OK, "the bot serves chat -5", "")
