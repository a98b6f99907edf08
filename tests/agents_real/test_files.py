"""Files that agents write through their client: with one approval, and not without."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from aegis.protocol.agent_events import ToolUse
from tests.agents_real.bench import Bench
from tests.agents_real.clis import CLIS, Cli
from tests.agents_real.installed import NotInstalled
from tests.agents_real.sessions import Turn, real_session

pytestmark = [pytest.mark.real, pytest.mark.agents]

CREATE: Mapping[str, str] = {
    "gemini": 'CALL write_file {{"file_path": "{file}", "content": "made\\n"}}',
    "kimi": 'CALL WriteFile {{"path": "{file}", "content": "made\\n"}}',
}
CHANGE: Mapping[str, str] = {
    "gemini": 'CALL replace {{"file_path": "{file}", "instruction": "change it", '
    '"old_string": "made", "new_string": "changed"}}',
    "kimi": 'CALL StrReplaceFile {{"path": "{file}", "edit": {{"old": "made", "new": "changed"}}}}',
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize the tests with the CLIs that write files through their client."""
    wanted = metafunc.config.getoption("--agent", None) or list(CREATE)
    chosen = [each for each in CLIS if each.name in CREATE and each.name in wanted]
    metafunc.parametrize("writer", chosen, ids=[each.name for each in chosen])


def script(lines: Mapping[str, str], writer: Cli, file: Path) -> str:
    return f"{lines[writer.name].format(file=file)}\nSAY done"


def change_in(turn: Turn) -> tuple[str, ...]:
    """The file that a turn changed, and its line before and after, as the faces show them."""
    shown = [each.input for each in turn.events if isinstance(each, ToolUse)][-1]
    return tuple(shown[name].strip() for name in ("file_path", "old_string", "new_string"))


async def test_a_file_is_created_and_changed_with_one_approval_each(
    writer: Cli, bench: Bench
) -> None:
    try:
        writer.command()
    except NotInstalled as error:
        pytest.skip(str(error))
    file, refused = bench.work / "a.txt", bench.work / "b.txt"
    url = bench.daemon.call("session_new", handle="tried")["url"]
    async with real_session(writer, bench, url) as session:
        turn = await session.turn(script(CREATE, writer, file))
        assert (len(turn.asked), file.read_text()) == (1, "made\n")
        turn = await session.turn(script(CHANGE, writer, file))
        assert (len(turn.asked), file.read_text()) == (1, "changed\n")
        assert change_in(turn) == (str(file), "made", "changed")
        turn = await session.turn(script(CREATE, writer, refused), allow=False)
        assert len(turn.asked) == 1
        assert not refused.exists()
