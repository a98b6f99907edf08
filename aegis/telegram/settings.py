"""The chat that the daemon speaks to, and the people in it. Pure."""

from __future__ import annotations

import attrs

TOKEN_VARIABLE = "AEGIS_TELEGRAM_TOKEN"  # noqa: S105 -- the name of a variable
"""The variable with the bot's token; it is removed from the environment when it is read."""

API = "https://api.telegram.org"


@attrs.frozen(kw_only=True)
class ChatSettings:
    """The chat ``chat_id``, in which ``user_ids`` may give orders; ``api`` is the Bot API."""

    chat_id: int
    user_ids: tuple[int, ...]
    token: str = attrs.field(repr=False)
    api: str = API
