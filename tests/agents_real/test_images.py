"""An image that a tool of Claude Code reads: kept once beside the transcript, shown by its path."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.aegis.agents.drivers.test_images import png
from tests.agents_real.clis import Cli
from tests.agents_real.results import keep
from tests.agents_real.scripts import call, script
from tests.agents_real.team import Team
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

AGENT = "tried"


def test_an_image_of_a_result_is_a_line_with_its_path(cli: Cli, team: Team) -> None:
    if cli.name not in ("claude", "claude-agent-acp"):
        pytest.skip("the tool of Claude Code that reads images")
    team.call("spawn", profile="asks", handle=AGENT, prompt="SAY ready")
    until(lambda: len(team.outcomes(AGENT)) == 1, "the first turn has ended")
    picture = Path(team.info(AGENT)["cwd"]) / "picture.png"
    picture.write_bytes(png(40, 30))
    look = script(call("Read", file_path=str(picture)), "SAY seen")
    team.call("handoff", target_handle=AGENT, context=look)
    until(lambda: len(team.outcomes(AGENT)) == 2, "the second turn has ended")
    events = [each["event"] for each in team.entries(AGENT, "event")]
    [text] = [each["text"] for each in events if each["type"] == "tool_result"]
    assert text.startswith("[image: png, 40 x 30, ")
    kept = Path(text.removesuffix("]").rpartition(": ")[2])
    assert kept.read_bytes().startswith(b"\x89PNG")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "iVBOR" not in str(team.entries(AGENT, "event"))


UNABLE = ("opencode", "kimi")
"""The CLIs whose model here has no images: the model gets a note of that, or the turn fails."""


def test_an_image_of_a_message_reaches_the_model(cli: Cli, team: Team, tmp_path: Path) -> None:
    team.call("spawn", profile="asks", handle=AGENT, prompt="SAY ready")
    until(lambda: len(team.outcomes(AGENT)) == 1, "the first turn has ended")
    assert team.info(AGENT)["takes_images"] is True
    picture = tmp_path / "picture.png"
    # Claude Code makes a large one smaller itself.
    picture.write_bytes(png(1_600, 1_300, noise=True) if cli.name == "claude" else png(40, 30))
    team.call("agent_send", handle=AGENT, text="SAY seen", images=[str(picture)])
    until(lambda: len(team.outcomes(AGENT)) == 2, "the second turn has ended")
    images = team.model.requests()[-1]["images"]
    seen = {"version": cli.package.version, "turn": team.outcomes(AGENT)[-1]}
    keep(cli.name, "images", {**seen, "images in the request": images})
    assert images == (0 if cli.name in UNABLE else 1)
