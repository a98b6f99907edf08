"""The terminal interface, a client in a process of its own: closing it ends nothing.

- ``launch``   prepares the window and runs the app.
- ``light_textual`` imports Textual without its parts that are not used.
- ``app``      the Textual app: panes, tabs, keys, dialogs.
- ``link``     the Python client on Trio, as a guest of Textual's event loop.
- ``feeds``    the streams that keep the model up to date.
- ``model``    pure state: what is shown, without widgets.
- ``widgets``  widgets that draw lines; ``panes`` and ``dialogs`` are made of them.
- ``held_keys`` keys typed ahead, until they can act.
- ``raw_keys`` keystrokes as the own terminal sent them, past Textual's parser.

It knows the protocol and the client only, and needs the extra ``tui``. Text of programs and agents
is never read as markup.
"""
