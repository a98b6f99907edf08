"""The checker: from the evidence of a load to the broken promises. Pure.

Each rule is a function that yields a sentence for each place where its promise was broken;
``RULES`` has the rules by name, with their guarantees. Only promised behaviour is allowed: a
missing reply allows both outcomes, and so do simultaneous requests.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from tests.chaos.checking.canvas_rules import CANVAS_RULES
from tests.chaos.checking.canvas_wake_rules import CANVAS_WAKE_RULES
from tests.chaos.checking.case import Case
from tests.chaos.checking.evidence import Evidence
from tests.chaos.checking.group_rules import GROUP_RULES
from tests.chaos.checking.inbox_rules import INBOX_RULES
from tests.chaos.checking.life_rules import LIFE_RULES
from tests.chaos.checking.outcome_rules import OUTCOME_RULES
from tests.chaos.checking.reading_rules import READING_RULES
from tests.chaos.checking.record_rules import RECORD_RULES
from tests.chaos.checking.request_rules import REQUEST_RULES
from tests.chaos.checking.rule import Rule
from tests.chaos.checking.session_rules import SESSION_RULES
from tests.chaos.checking.task_rules import TASK_RULES
from tests.chaos.checking.terminal_rules import TERMINAL_RULES
from tests.chaos.checking.turn_rules import TURN_RULES
from tests.chaos.checking.wake_rules import WAKE_RULES
from tests.chaos.checking.workflow_call_rules import WORKFLOW_CALL_RULES
from tests.chaos.checking.workflow_rules import WORKFLOW_RULES

RULES: Mapping[str, Rule] = {
    **RECORD_RULES,
    **OUTCOME_RULES,
    **TERMINAL_RULES,
    **READING_RULES,
    **WAKE_RULES,
    **INBOX_RULES,
    **LIFE_RULES,
    **TURN_RULES,
    **REQUEST_RULES,
    **SESSION_RULES,
    **TASK_RULES,
    **GROUP_RULES,
    **CANVAS_RULES,
    **CANVAS_WAKE_RULES,
    **WORKFLOW_RULES,
    **WORKFLOW_CALL_RULES,
}


@attrs.frozen
class Violation:
    """A broken promise: its rule, and a sentence about the case."""

    rule: str
    what: str


def violations(evidence: Evidence) -> list[Violation]:
    """Return every violation in ``evidence``."""
    case = Case(evidence)
    return [Violation(name, what) for name, rule in RULES.items() for what in rule.find(case)]
