"""The MCP conformance suite: what it runs, and which of its checks do not apply to this server."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs

from tests.npm.tools import NpmTools

VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
"""Of the protocol: each is run with all scenarios that the suite has for it."""

EXTENSION = "extension"
"""Scenarios of extensions have no version: the suite runs them when none is asked for."""

GUARD_S = 300

TOOL = "wants a tool of the suite's own example server"
RESOURCE = "wants a resource of the suite's own example server"
PROMPTS = "there are no prompts"
LOGGING = "log messages to the client are deprecated by 2026-07-28 and not offered"
TASKS = "the extension for tasks is not offered: commands go on in terminals instead"


@attrs.frozen
class NotApplicable:
    """A scenario of which some checks fail, and why that is as it should be."""

    scenario: str
    checks: frozenset[str]
    reason: str


def _row(scenario: str, reason: str, *checks: str) -> NotApplicable:
    return NotApplicable(scenario, frozenset(checks or (scenario,)), reason)


NOT_APPLICABLE = (
    _row("caching", PROMPTS, "sep-2549-prompts-list-caching-hints"),
    _row("elicitation-sep1034-defaults", TOOL, "elicitation-sep1034-general"),
    _row("elicitation-sep1330-enums", TOOL, "elicitation-sep1330-general"),
    _row(
        "http-custom-header-server-validation",
        TOOL,
        "sep-2243-server-decode-base64",
        "sep-2243-server-no-xmcp-tool",
        "sep-2243-server-reject-invalid-param-chars",
        "sep-2243-server-reject-param-mismatch",
        "sep-2243-server-validate-param-match",
    ),
    _row("input-required-result-basic-elicitation", TOOL, "sep-2322-elicitation-incomplete"),
    _row("input-required-result-basic-list-roots", TOOL, "sep-2322-list-roots-incomplete"),
    _row("input-required-result-basic-sampling", TOOL, "sep-2322-sampling-incomplete"),
    _row("input-required-result-capability-check", TOOL, "sep-2322-respect-client-capabilities"),
    _row("input-required-result-multi-round", TOOL, "sep-2322-multi-round-r1"),
    _row(
        "input-required-result-multiple-input-requests", TOOL, "sep-2322-multiple-inputs-incomplete"
    ),
    _row("input-required-result-non-tool-request", PROMPTS, "sep-2322-non-tool-incomplete"),
    _row("input-required-result-request-state", TOOL, "sep-2322-request-state-incomplete"),
    _row("input-required-result-result-type", TOOL, "sep-2322-result-type-included"),
    _row("input-required-result-tampered-state", TOOL, "sep-2322-reject-tampered-state"),
    _row("json-schema-2020-12", TOOL, "json-schema-2020-12-tool-found"),
    _row("logging-set-level", LOGGING),
    _row("prompts-get-embedded-resource", PROMPTS),
    _row("prompts-get-simple", PROMPTS),
    _row("prompts-get-with-args", PROMPTS),
    _row("prompts-get-with-image", PROMPTS),
    _row("prompts-list", PROMPTS),
    _row("resources-read-binary", RESOURCE),
    _row("resources-read-text", RESOURCE),
    _row("resources-subscribe", RESOURCE),
    _row("resources-templates-read", RESOURCE),
    _row("resources-unsubscribe", RESOURCE),
    _row(
        "server-stateless",
        TOOL,
        "sep-2575-missing-capability-http-400",
        "sep-2575-server-rejects-undeclared-capability",
    ),
    _row(
        "tasks-capability-negotiation",
        TASKS,
        "sep-2663-tasks-methods-non-declaring",
        "tasks-extension-advertised",
        "tasks-per-request-meta-opt-in",
    ),
    _row(
        "tasks-dispatch-and-envelope",
        TASKS,
        "sep-2663-durable-create-strong-consistency",
        "sep-2663-tasks-get-invalid-task-id-32602",
        "tasks-server-directed-creation-no-hint",
    ),
    _row(
        "tasks-lifecycle",
        TASKS,
        "sep-2663-cancel-ack-empty-result",
        "sep-2663-result-type-task-on-create",
        "sep-2663-tasks-get-status-completed",
        "sep-2663-tasks-get-status-failed",
        "sep-2663-tasks-get-status-working",
        "sep-2663-tool-error-uses-completed-status",
        "tasks-cancel-terminal-idempotent-ack",
    ),
    _row("tasks-mrtr-composition", TASKS, "sep-2663-mrtr-synchronous-before-task-creation"),
    _row(
        "tasks-mrtr-input",
        TASKS,
        "sep-2663-tasks-get-status-input-required",
        "tasks-mrtr-partial-fulfillment",
        "tasks-mrtr-tasks-update-resumes",
    ),
    _row(
        "tasks-request-headers",
        TASKS,
        "sep-2663-routing-headers-accepted-on-tasks-get",
        "sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get",
        "tasks-headers-tolerate-mcp-method-on-tools-call",
    ),
    _row("tasks-request-state-removal", TASKS, "tasks-request-state-removal-setup"),
    _row(
        "tasks-required-task-error",
        TASKS,
        "sep-2663-server-returns-missing-capability-when-required",
    ),
    _row(
        "tasks-wire-fields",
        TASKS,
        "tasks-no-early-ttl-expiry",
        "tasks-no-related-task-meta-on-inlined-result",
        "tasks-wire-field-renames",
    ),
    _row("tools-call-audio", TOOL),
    _row("tools-call-elicitation", TOOL),
    _row("tools-call-embedded-resource", TOOL),
    _row("tools-call-image", TOOL),
    _row("tools-call-mixed-content", TOOL),
    _row("tools-call-sampling", TOOL),
    _row("tools-call-with-logging", TOOL),
    _row("tools-call-with-progress", TOOL),
)


def listed(tools: NpmTools) -> dict[str, set[str]]:
    """The scenarios for servers by the version of the protocol that they are for."""
    done = subprocess.run(
        [*tools.command("conformance"), "list", "--server"],
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=True,
    )
    found: dict[str, set[str]] = {version: set() for version in (*VERSIONS, EXTENSION)}
    for scenario, versions in re.findall(r"^  - (\S+) \[(.*)\]$", done.stdout, re.MULTILINE):
        for version in versions.split(","):
            if version in found:
                found[version].add(scenario)
    return found


def run(tools: NpmTools, url: str, version: str, results: Path) -> dict[str, set[str]]:
    """Run all scenarios of ``version``; gives the checks that failed, by scenario."""
    dated = () if version == EXTENSION else ("--spec-version", version)
    options = ("--url", url, "--suite", "all", *dated, "--output-dir", str(results))
    subprocess.run(
        [*tools.command("conformance"), "server", *options],
        capture_output=True,
        timeout=GUARD_S,
        check=False,  # it says 1 as soon as one check fails
    )
    return dict(_outcomes(results))


def _outcomes(results: Path) -> Iterator[tuple[str, set[str]]]:
    for path in results.glob("server-*/checks.json"):
        found = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", path.parent.name)
        assert found is not None, path
        checks = json.loads(path.read_text())
        assert checks, f"{found[1]} checked nothing"
        yield found[1], {each["id"] for each in checks if each["status"] == "FAILURE"}
