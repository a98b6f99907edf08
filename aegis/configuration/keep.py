"""The section ``keep`` of the configuration. Pure."""

from __future__ import annotations

import attrs

from aegis.configuration.setting import setting
from aegis.configuration.values import DecimalNumber, WholeNumber

MOST = 1_000_000


@attrs.frozen(kw_only=True)
class KeepSection:
    """How long what has ended is kept, before it moves to the archive.

    Ended tasks, requests, broadcasts and workflows, transcripts of closed sessions, messages that
    were read, and changes of canvases. The numbers are of each kind, of all queues and groups
    together, and of each canvas and inbox.
    """

    newest: int = setting(
        WholeNumber(0, MOST),
        default=1_000,
        doc="The newest ended ones are kept, however old they are; a tenth more, so that many are "
        "moved at once.",
    )
    days: float = setting(
        DecimalNumber(0, 36_500),
        default=30.0,
        doc="Those that ended within so many days are kept too.",
    )
    most: int = setting(
        WholeNumber(1, MOST),
        default=20_000,
        doc="Never more than this are kept.",
    )
    archive_bytes: int = setting(
        WholeNumber(65_536, 1 << 50),
        default=1 << 30,
        doc="Size of all archived rows and of the old records of terminals together. The "
        "oldest are deleted beyond it, which the log says. Keys, and how tasks, requests and "
        "workflows ended, are known for 400 days all the same: by an index, about 100 bytes for "
        "each name, which comes on top.",
    )
