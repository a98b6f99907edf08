"""The section ``limits`` of the configuration. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.agents import MAX_USD
from aegis.configuration.setting import setting
from aegis.configuration.values import DecimalNumber, WholeNumber


@attrs.frozen(kw_only=True)
class LimitsSection:
    """Limits of agent sessions. A tree is a session that you started and all that it spawned."""

    sessions: int = setting(
        WholeNumber(1, 1000),
        default=16,
        doc="Most sessions that are open at once, without those that have exited.",
    )
    spawn_depth: int = setting(
        WholeNumber(0, 100),
        default=3,
        doc="Most levels of sessions below the one that you started.",
    )
    spawns_per_hour: int = setting(
        WholeNumber(0, 10_000),
        default=60,
        doc="Most sessions that the sessions of one tree may spawn within an hour.",
    )
    messages_per_hour: int = setting(
        WholeNumber(0, 100_000),
        default=200,
        doc="Most messages that the sessions of one tree may send within an hour.",
    )
    transcript_bytes: int = setting(
        WholeNumber(65_536, 1_073_741_824),
        default=67_108_864,
        doc="Size of the newest entries of a session's transcript that are kept, in bytes.",
    )
    usd_per_day: float | None = setting(
        DecimalNumber(0.01, MAX_USD),
        default=None,
        otherwise="no limit",
        doc="Cost in US dollars of one tree within 24 hours, as far as its agents report it.",
    )
