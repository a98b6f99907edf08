"""The start of the interface: what must be set before Textual is imported, and the app's end."""

from __future__ import annotations

import gc
import os

from aegis.tui.light_textual import import_textual
from aegis.tui.window import QuietTerminal, colors_of


def run_tui(root: str, handle: str | None) -> int:
    """Run the interface of the daemon at ``root``; return the exit code."""
    # Textual would switch a kitty terminal to another encoding of keys, and the keys that pass by
    # Textual would not be those that a program gets.
    os.environ["TEXTUAL_DISABLE_KITTY_KEY"] = "1"
    for name in ("COLUMNS", "LINES"):
        # Textual would prefer them to the size of the window.
        os.environ.pop(name, None)
    gc.disable()  # imports make many objects and hardly any garbage
    with QuietTerminal() as terminal:
        import_textual()
        from aegis.tui import raw_keys
        from aegis.tui.app import AegisApp
        from aegis.tui.theme import theme_for

        background, typed = terminal.answer()
        raw_keys.install(typed)
        theme = theme_for(background, colors_of(dict(os.environ)))
        app = AegisApp(root, handle, theme=theme, loaded=_freeze_imports)
        app.run()
    return app.return_code or 0


def _freeze_imports() -> None:
    """Exclude the imported modules from garbage collection, and enable it."""
    gc.freeze()
    gc.enable()
