"""The table of keys: bindings, help and documentation are one."""

from __future__ import annotations

from pathlib import Path

from aegis.tui.app import AegisApp
from aegis.tui.model.keys import KEYS, key_page, key_table, shown_key

PAGE = Path(__file__).parents[3] / "docs/how-to/use-the-terminal-interface.md"
BEGIN = "<!-- made from aegis/tui/model/keys.py: what follows is not edited by hand -->\n\n"
END = "\n\n<!-- made so far -->"


def test_the_page_has_exactly_the_keys_there_are() -> None:
    text = PAGE.read_text(encoding="utf-8")
    made = text.partition(BEGIN)[2].partition(END)[0]
    assert made == key_page(), "replace the table by aegis.tui.model.keys.key_page()"


def test_no_key_is_bound_twice_and_each_has_an_action() -> None:
    assert len({each.key for each in KEYS}) == len(KEYS)
    for each in KEYS:
        name = each.action.partition("(")[0]
        assert hasattr(AegisApp, f"action_{name}"), each


def test_the_help_has_every_key() -> None:
    shown = {row[0] for rows in key_table().values() for row in rows}
    for each in KEYS:
        assert each.action.startswith("tab(") or shown_key(each.key) in shown, each


def test_keys_are_written_as_people_write_them() -> None:
    shown = [shown_key(each) for each in ("ctrl+e", "alt+left", "f2", "escape", "pageup")]
    assert shown == ["Ctrl-E", "Alt-Left", "F2", "Esc", "PgUp"]
