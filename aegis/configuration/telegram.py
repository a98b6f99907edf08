"""The section ``telegram`` of the configuration. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.setting import setting
from aegis.configuration.values import OneLine, Several, WholeNumber

MAX_ID = 2**52
MAX_USERS = 64
API = "https://api.telegram.org"


@attrs.frozen(kw_only=True)
class TelegramSection:
    """The chat of Telegram in which people see and answer what the daemon does.

    The bot's token is in the variable `AEGIS_TELEGRAM_TOKEN` of the daemon, never in this file.
    """

    chat_id: int | None = setting(
        WholeNumber(-MAX_ID, MAX_ID),
        default=None,
        otherwise="no chat",
        doc="The one chat that the bot uses, a group or a person.",
    )
    user_ids: tuple[int, ...] = setting(
        Several(WholeNumber(1, MAX_ID), MAX_USERS),
        default=(),
        otherwise="nobody",
        doc="The people in it who may give orders: they run commands as you.",
    )
    api: str = setting(
        OneLine(
            "an https address, or an http address of this machine",
            r"https://[^\s?#]+|http://(127\.0\.0\.1|\[::1\]|localhost)(:[0-9]+)?(/[^\s?#]*)?",
            200,
        ),
        default=API,
        doc="The Bot API: another address for a server of your own.",
    )
