"""How property tests run: without time limits, since a machine under load is not a bug.

The profile ``sim`` is for long runs with a seed of their own (``just sim``, ``just replay``).
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("sim", deadline=None, derandomize=False, database=None, max_examples=500)
settings.load_profile("here")
