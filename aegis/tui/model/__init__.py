"""The state behind the interface, and the text that shows it. Pure: no widget, no event loop.

- ``world``        everything that the streams report; ``ChangeKind`` is the kind of a change.
- ``states``       the dot, the reason and the age of an agent or a terminal.
- ``rail``         the rows of the left rail.
- ``blocks``       finished commands, laid out in lines.
- ``conversation`` the transcript of a session, as parts that are shown.
- ``requests``     one request as text, and the keys that answer it.
"""
