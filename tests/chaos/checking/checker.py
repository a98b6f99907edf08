"""The checker: from the evidence of a load to the broken promises. Pure.

Each rule is a function that tells, one plain sentence each, where it was broken; ``RULES`` names
them and the guarantee that each holds. What is allowed is only what is promised: a reply that never
came allows both outcomes, and so does what was under way at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from tests.chaos.checking.case import Case
from tests.chaos.checking.evidence import Evidence
from tests.chaos.checking.inbox_rules import INBOX_RULES
from tests.chaos.checking.life_rules import LIFE_RULES
from tests.chaos.checking.outcome_rules import OUTCOME_RULES
from tests.chaos.checking.reading_rules import READING_RULES
from tests.chaos.checking.record_rules import RECORD_RULES
from tests.chaos.checking.rule import Rule
from tests.chaos.checking.terminal_rules import TERMINAL_RULES
from tests.chaos.checking.wake_rules import WAKE_RULES

RULES: Mapping[str, Rule] = {
    **RECORD_RULES,
    **OUTCOME_RULES,
    **TERMINAL_RULES,
    **READING_RULES,
    **WAKE_RULES,
    **INBOX_RULES,
    **LIFE_RULES,
}


@attrs.frozen
class Violation:
    """A promise that was broken: by its rule, and what happened."""

    rule: str
    what: str


def violations(evidence: Evidence) -> list[Violation]:
    """Everything in ``evidence`` that no rule allows."""
    case = Case(evidence)
    return [Violation(name, what) for name, rule in RULES.items() for what in rule.find(case)]
