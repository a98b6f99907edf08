"""The settings of groups, ``groups`` in the configuration. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.setting import setting
from aegis.configuration.values import Mapped, OneLine, Several
from aegis.protocol.groups import MAX_MEMBERS
from aegis.protocol.naming import NAME_PATTERN

MAX_PRESETS = 100

_PROFILE = OneLine("the name of a profile", NAME_PATTERN, 64)
_NAME = OneLine("a name of letters, digits, '.', '_' or '-'", NAME_PATTERN, 64)


@attrs.frozen(kw_only=True)
class GroupsSection:
    """Groups of agent sessions."""

    presets: dict[str, tuple[str, ...]] = setting(  # noqa: RUF009 (it is a field of attrs)
        Mapped(_NAME, Several(_PROFILE, MAX_MEMBERS), MAX_PRESETS),
        default={},
        otherwise="none",
        doc="Lists of profiles by name: `group spawn NAME --preset PRESET` starts a session of "
        "each.",
    )
