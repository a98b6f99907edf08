"""The section ``lifecycle`` of the configuration. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.setting import setting
from aegis.configuration.values import DecimalNumber


@attrs.frozen(kw_only=True)
class LifecycleSection:
    """When a terminal agent, of which nothing else is known, counts as waiting."""

    idle_s: float = setting(
        DecimalNumber(0.5, 3600.0),
        default=5.0,
        doc="Seconds without a change of its screen after which a terminal agent needs input.",
    )
    stale_s: float = setting(
        DecimalNumber(1.0, 86_400.0),
        default=60.0,
        doc="Seconds for which a terminal agent has needed input when it is shown as stale.",
    )
