"""Telegram: the daemon in one chat, for people on the street.

- ``settings``  the chat, its people and the token. Pure.
- ``updates``   what a person did, read from an update of the Bot API. Pure.
- ``orders``    what is meant by it. Pure.
- ``buttons``   the data of buttons, which nobody can forge. Pure.
- ``decisions`` the buttons of a request. Pure.
- ``texts``     what is written into the chat. Pure.
- ``rows``      the durable state, as rows of a table. Pure; ``store`` has the table.
- ``waiting``   what waits to be sent. Pure.
- ``api``       the calls of the Bot API, on ``httpx2``.
- ``outbox``    the actor that sends; ``desk`` the actor that does everything else.

An update is confirmed to Telegram after the ledger has it, and is known by its id, so nothing is
lost or done twice. Only the allowed people in the one allowed chat are heard.
"""
