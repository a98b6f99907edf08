"""The agent's accounting: ``usage_update``, and what a prompt's result reports. Pure."""

from __future__ import annotations

from typing import Any

from aegis.agents.drivers.acp.frames import amount, count, mapping
from aegis.protocol.agent_events import Usage


class Accounting:
    """The cost of one process, and its part since the last result."""

    def __init__(self) -> None:
        self._cost: float | None = None
        self._at_last_result = 0.0

    def update(self, update: dict[str, Any]) -> Usage:
        """Return the usage in a ``usage_update``: the gauge, and the cost of the process."""
        cost = mapping(update.get("cost"))
        if cost.get("currency") == "USD" and (total := amount(cost.get("amount"))) is not None:
            self._note(total)
        return Usage(
            context_tokens=count(update.get("used")),
            context_limit=count(update.get("size")),
            process_cost_usd=self._cost,
        )

    def _note(self, total: float) -> None:
        if self._cost is not None and total < self._cost:
            self._at_last_result = 0.0  # the agent counts from zero again
        self._cost = total

    def result(self, result: dict[str, Any]) -> Usage | None:
        """Return the usage of the turn that a prompt's result ends; None: nothing is reported."""
        tokens = turn_tokens(result)
        if self._cost is None:
            return tokens
        turn = max(0.0, self._cost - self._at_last_result)
        self._at_last_result = self._cost
        tokens = tokens or Usage()
        return Usage(
            input_tokens=tokens.input_tokens,
            cached_tokens=tokens.cached_tokens,
            output_tokens=tokens.output_tokens,
            process_cost_usd=self._cost,
            turn_cost_usd=turn,
        )


def turn_tokens(result: dict[str, Any]) -> Usage | None:
    """Return the tokens of a turn: ``usage``, else ``_meta.quota`` (gemini)."""
    usage = mapping(result.get("usage"))
    if usage:
        read, written = count(usage.get("cachedReadTokens")), count(usage.get("cachedWriteTokens"))
        return Usage(
            input_tokens=_input_with_cache(usage),
            cached_tokens=read if written is None else (read or 0) + written,
            output_tokens=count(usage.get("outputTokens")),
        )
    quota = mapping(mapping(mapping(result.get("_meta")).get("quota")).get("token_count"))
    if not quota:
        return None
    return Usage(
        input_tokens=count(quota.get("input_tokens")),
        output_tokens=count(quota.get("output_tokens")),
    )


def _input_with_cache(usage: dict[str, Any]) -> int | None:
    """Return the whole input: some agents count cached tokens in ``inputTokens``, others beside it.

    The total is the sum of all tokens in both, and shows which of them it is.
    """
    given = count(usage.get("inputTokens"))
    total = count(usage.get("totalTokens"))
    if given is None or total is None:
        return given
    others = (count(usage.get("outputTokens")) or 0) + (count(usage.get("thoughtTokens")) or 0)
    return max(given, total - others)
