from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from aegis.errors import AegisError
from aegis.protocol.derived.document import tools_page
from aegis.protocol.entry import Entry
from aegis.protocol.table import COMMANDS

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "tools.md"


def test_the_page_of_tools_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == tools_page(), (
        "run: python -m aegis.protocol.derived.document > docs/reference/tools.md"
    )


def test_the_module_prints_the_page() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "aegis.protocol.derived.document"], check=True, capture_output=True
    )
    assert printed.stdout.decode() == tools_page()


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_argument_of_every_tool_is_on_the_page(entry: Entry) -> None:
    section = tools_page().split(f"## {entry.tool}\n")[1].split("\n## ")[0]
    form: type = entry.command
    assert [f"| `{name}` |" in section for name in form.__annotations__] == [True] * len(
        form.__annotations__
    )
    assert f"[{entry.reply.__name__}](#{entry.reply.__name__.lower()})" in section


def test_every_link_to_a_class_finds_its_heading_once() -> None:
    page = tools_page()
    for entry in COMMANDS:
        assert page.count(f"\n### {entry.reply.__name__}\n") == 1


def test_commands_name_only_codes_that_exist() -> None:
    codes = {code for entry in COMMANDS for code in entry.errors}
    assert codes <= {error.code for error in AegisError.__subclasses__()}


def test_a_table_has_no_cell_too_many() -> None:
    for line in tools_page().splitlines():
        if line.startswith("| "):
            assert line.count(" |") in (2, 4), line
