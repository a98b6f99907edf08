"""The keys of the interface: the one table of the bindings, the help and the docs. Pure.

A key is written as Textual names it.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class KeyBinding:
    """A key: the action of the app, and what it does in a few words.

    ``is_priority``: it acts before the widget that has the focus sees it.
    """

    key: str
    action: str
    text: str
    group: str
    is_priority: bool = True


TABS, TERMINAL, AGENT, VIEWS, APP = "Tabs", "Terminals", "Agents", "Lists", "Interface"

KEYS: tuple[KeyBinding, ...] = (
    KeyBinding("ctrl+e", "new_terminal", "open a terminal by its name", TERMINAL),
    KeyBinding("ctrl+k", "toggle_raw", "raw mode, and back", TERMINAL),
    KeyBinding("ctrl+c", "interrupt_command", "interrupt the command", TERMINAL),
    KeyBinding("ctrl+t", "new_agent", "start an agent", AGENT),
    KeyBinding("escape", "interrupt_agent", "interrupt the agent's turn", AGENT, is_priority=False),
    KeyBinding("f2", "requests", "answer the open requests", AGENT),
    KeyBinding("ctrl+d", "view('queues')", "queues and their tasks", VIEWS),
    KeyBinding("f3", "view('tree')", "the supervision tree", VIEWS),
    KeyBinding("f4", "view('inbox')", "your inbox", VIEWS),
    KeyBinding("f5", "view('canvases')", "canvases", VIEWS),
    KeyBinding("f6", "view('workflows')", "workflows", VIEWS),
    KeyBinding("f7", "view('groups')", "groups", VIEWS),
    KeyBinding("alt+left", "next_tab(-1)", "the tab before", TABS),
    KeyBinding("alt+right", "next_tab(1)", "the tab after", TABS),
    *(
        KeyBinding(f"alt+{number}", f"tab({number})", f"the tab {number}", TABS)
        for number in range(1, 10)
    ),
    KeyBinding("ctrl+w", "close_tab", "close the tab; nothing ends", TABS),
    KeyBinding("ctrl+b", "rail", "go to the rail, or hide it", APP),
    KeyBinding("pageup", "page(-1)", "scroll up", APP),
    KeyBinding("pagedown", "page(1)", "scroll down", APP),
    KeyBinding("ctrl+home", "page(-1000000)", "the oldest lines", TERMINAL),
    KeyBinding("ctrl+end", "page(1000000)", "the end", TERMINAL),
    KeyBinding("ctrl+p", "command_palette", "all commands", APP),
    KeyBinding("f1", "help", "this page", APP),
    KeyBinding("ctrl+q", "quit", "leave; everything runs on", APP),
)

ELSEWHERE: tuple[tuple[str, str, str], ...] = (
    (TERMINAL, "Enter", "run the line"),
    (TERMINAL, "Up, Down", "earlier lines"),
    (TERMINAL, "Esc Esc", "leave raw mode"),
    (TERMINAL, "click", "copy output or command"),
    (AGENT, "y s n c", "once, session, no, cancel"),
    (VIEWS, "p x r t a", "the status line says"),
)
"""Keys of widgets, which the table of the help shows too."""

GROUPS = (TERMINAL, AGENT, TABS, VIEWS, APP)


def shown_key(key: str) -> str:
    """Return a key as people write it: ``Ctrl-E``, ``Alt-Left``, ``F2``."""
    names = {"escape": "Esc", "pageup": "PgUp", "pagedown": "PgDn"}
    parts = [names.get(each, each.capitalize()) for each in key.split("+")]
    return "-".join(parts)


def key_table() -> dict[str, list[tuple[str, str]]]:
    """Return the keys and what they do, by group; keys of numbered tabs are one row."""
    table: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
    for key in KEYS:
        if key.key == "alt+1":
            table[key.group].append(("Alt-1 … 9", "the tab with this number"))
        elif not key.action.startswith("tab("):
            table[key.group].append((shown_key(key.key), key.text))
    for group, shown, text in ELSEWHERE:
        table[group].append((shown, text))
    return table


def key_page() -> str:
    """Return the table of keys as Markdown."""
    lines = ["| key | what it does |", "|---|---|"]
    for group, rows in key_table().items():
        lines.append(f"| **{group}** | |")
        lines += [f"| `{shown}` | {text} |" for shown, text in rows]
    return "\n".join(lines)
