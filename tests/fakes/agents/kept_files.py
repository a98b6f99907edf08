"""``KeptFiles``: the files as they were before each turn of the stand-in of Claude Code.

They are kept in ``STAND_IN_FILES`` (a file) if that is set, so that a resumed process has them.
While ``STAND_IN_REWIND_HELD`` (a file) is there, a rewind waits after its first file.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from tests.fakes.agents.wire import Json

KEPT = os.environ.get("STAND_IN_FILES", "")

HELD = os.environ.get("STAND_IN_REWIND_HELD", "")

IS_ON = os.environ.get("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING") == "1"


class KeptFiles:
    """For each turn, in order, the text of each file before its first change; None: no file."""

    def __init__(self) -> None:
        self._turns: dict[str, dict[str, str | None]] = {}
        if KEPT and Path(KEPT).exists():
            self._turns = json.loads(Path(KEPT).read_text(encoding="utf-8"))

    def begin(self, turn: str) -> None:
        """Begin a turn."""
        self._turns.setdefault(turn, {})

    def keep(self, path: str) -> None:
        """Keep a file that will now be changed."""
        turn = self._turns[next(reversed(self._turns))]
        turn.setdefault(path, text_in(path))
        if KEPT:
            Path(KEPT).write_text(json.dumps(self._turns), encoding="utf-8")

    def rewind(self, turn: str, is_dry: bool) -> Json:
        """Set the files back to what they were before a turn, or only say which."""
        if not IS_ON or turn not in self._turns:
            return {"canRewind": False, "error": "No file checkpoint found for this message."}
        names = [*self._turns]
        before: dict[str, str | None] = {}
        for each in names[names.index(turn) :]:
            for path, text in self._turns[each].items():
                before.setdefault(path, text)
        changed = {path: text for path, text in before.items() if text_in(path) != text}
        if is_dry:
            files = [*changed]
            return {"canRewind": True, "filesChanged": files, "insertions": 1, "deletions": 1}
        for path, text in changed.items():
            if text is None:
                Path(path).unlink()
            else:
                Path(path).write_text(text, encoding="utf-8")
            while HELD and Path(HELD).exists():
                time.sleep(0.01)
        return {"canRewind": True, "skippedLinks": 0}


def text_in(path: str) -> str | None:
    """Return the text of a file; None if there is none."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
