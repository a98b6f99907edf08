"""The verbs of workflows: ``workflow list|run|status|steps|cancel|resume|retry|trust``."""

from __future__ import annotations

from aegis.cli.grammar.verb import WHOLE, TargetDaemon, VerbGroup, argument, flag, option, verb
from aegis.cli.printing.failures import UsageError
from aegis.cli.printing.formatting import (
    escaped,
    escaped_line,
    print_lines,
    print_notice,
    table,
)

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_RUNS = ["workflow", "name", "status", "calls", "from", "now"]

_STEPS = ["step", "state", "started", "ended", "call", "result"]

NOW_CHARS = 60
RESULT_CHARS = 60


@verb(option("--limit", kind=WHOLE, help="Maximum number of runs; default 50."))
def list_workflows(daemon: TargetDaemon, limit: int | None) -> None:
    """List the workflows that can be run, and those that run or have ended."""
    reply = daemon.call("workflow_list", limit=limit)
    daemon.show(reply, lambda: _show_list(reply))


@verb(
    option("--key", metavar="TEXT", help="The same key gives the same run."),
    flag("--no-callback", "silent", help="No message when it has ended."),
    argument("name"),
    argument("arguments", metavar="ARGUMENT", many=True, required=False),
)
def run(
    daemon: TargetDaemon, name: str, arguments: Sequence[str], key: str | None, silent: bool
) -> None:
    """Run the workflow NAME with arguments, such as `version=1.2 dry_run:=true`.

    An ARGUMENT is NAME=TEXT, or NAME:=JSON. Prints its id at once. Its result comes to your inbox.
    """
    reply = daemon.call(
        "run_workflow",
        name=name,
        kwargs=dict(map(_argument, arguments or ())),
        key=key,
        callback=False if silent else None,
    )
    daemon.show(reply, lambda: print_lines(reply["workflow_id"]))


@verb(argument("workflow", metavar="WORKFLOW"))
def status(daemon: TargetDaemon, workflow: str) -> None:
    """Show the status of WORKFLOW, its result, and the end of its log."""
    reply = daemon.call("workflow_status", workflow_id=workflow.upper())
    daemon.show(reply, lambda: _show(reply))


@verb(
    option("--after", metavar="NUMBER", kind=WHOLE, help="Only steps with a greater number."),
    option("--limit", kind=WHOLE, help="Maximum number of steps; default 100."),
    argument("workflow", metavar="WORKFLOW"),
)
def steps(daemon: TargetDaemon, workflow: str, after: int | None, limit: int | None) -> None:
    """List what WORKFLOW has done, step by step, with the results."""
    reply = daemon.call("workflow_steps", workflow_id=workflow.upper(), after=after, limit=limit)
    daemon.show(reply, lambda: _show_steps(reply))


@verb(argument("workflow", metavar="WORKFLOW"))
def cancel(daemon: TargetDaemon, workflow: str) -> None:
    """Cancel WORKFLOW: its process and the sessions that it spawned are ended."""
    reply = daemon.call("workflow_cancel", workflow_id=workflow.upper())
    daemon.show(reply, lambda: _show_runs([reply]))


@verb(argument("workflow", metavar="WORKFLOW"))
def resume(daemon: TargetDaemon, workflow: str) -> None:
    """Continue WORKFLOW, which failed or was cancelled; finished calls are not done again."""
    reply = daemon.call("workflow_resume", workflow_id=workflow.upper())
    daemon.show(reply, lambda: _show_runs([reply]))


@verb(argument("workflow", metavar="WORKFLOW"))
def retry(daemon: TargetDaemon, workflow: str) -> None:
    """Run WORKFLOW, which failed or was cancelled, again from its beginning."""
    reply = daemon.call("workflow_retry", workflow_id=workflow.upper())
    daemon.show(reply, lambda: _show_runs([reply]))


@verb()
def trust(daemon: TargetDaemon) -> None:
    """Trust the plugin files as they are now, after you have changed them."""
    reply = daemon.call("workflow_trust")
    daemon.show(reply, lambda: _show_files(reply["files"]))


def _argument(word: str) -> tuple[str, object]:
    name, equals, text = word.partition("=")
    if not equals or not name.rstrip(":"):
        raise UsageError(f"{word!r} is no argument: write NAME=TEXT, or NAME:=JSON")
    if not name.endswith(":"):
        return name, text
    import json

    try:
        return name[:-1], json.loads(text)
    except ValueError as error:
        raise UsageError(f"{word!r}: the value is not JSON: {error}") from None


def _show_list(reply: Mapping[str, Any]) -> None:
    if reply["workflows"]:
        print_lines("\n".join(_definition(each) for each in reply["workflows"]))
    for each in reply["problems"]:
        print_notice(f"↳ {escaped_line(each['file'])}: {escaped_line(each['problem'])}")
    if not reply["workflows"] and not reply["problems"]:
        print_notice("↳ no plugin has a workflow: write one into .aegis/plugins")
    if reply["result"]:
        print_lines("")
        _show_runs(reply["result"])
    if reply.get("more"):
        print_notice("↳ there are more: raise --limit")


def _definition(workflow: Mapping[str, Any]) -> str:
    parameters = map(_parameter, workflow["parameters"])
    first = (workflow["doc"] or "").partition("\n")[0]
    shown = f"{workflow['name']}({', '.join(parameters)})"
    return escaped_line(f"{shown}  {first}" if first else shown)


def _parameter(parameter: Mapping[str, Any]) -> str:
    kind = f": {parameter['type']}" if parameter["type"] else ""
    return f"{parameter['name']}{kind}{'' if parameter['required'] else ' = …'}"


def _show_runs(runs: Sequence[Mapping[str, Any]]) -> None:
    print_lines(table(_RUNS, [_row(each) for each in runs]))


def _row(run: Mapping[str, Any]) -> list[object]:
    now = run["problem"] or run["error"] or "; ".join(run["current"])
    return [
        *(run[name] for name in ("workflow_id", "name", "status", "calls", "sender")),
        now if len(now) <= NOW_CHARS else f"{now[: NOW_CHARS - 1]}…",
    ]


def _show_steps(reply: Mapping[str, Any]) -> None:
    found = reply["result"]
    if found:
        print_lines(table(_STEPS, [_step_row(each) for each in found]))
    else:
        print_notice("↳ no step")
    if reply.get("more"):
        print_notice(f"↳ {reply['total']} in all: --after {found[-1]['number']}")


def _step_row(step: Mapping[str, Any]) -> list[object]:
    text = step["error"] if step["result"] is None else step["result"]
    text = " ".join((text or "").split())
    return [
        *(step[name] for name in ("number", "state", "started", "ended", "label")),
        text if len(text) <= RESULT_CHARS else f"{text[: RESULT_CHARS - 1]}…",
    ]


def _show(run: Mapping[str, Any]) -> None:
    names = ("workflow_id", "name", "status", "sender", "key", "kwargs", "calls", "checkpoint")
    after = ("runs", "started", "ended", "error", "problem")
    lines = [f"{name}: {run[name]}" for name in (*names, *after) if run[name] not in (None, "")]
    lines += [f"current: {each}" for each in run["current"]]
    print_lines("\n".join(map(escaped_line, lines)))
    if run["result"] is not None:
        print_lines(f"result:\n{escaped(run['result'])}")
    if run.get("log"):
        print_lines(f"log:\n{escaped(run['log'])}")


def _show_files(files: Sequence[str]) -> None:
    if files:
        print_lines("\n".join(map(escaped_line, files)))
    else:
        print_notice("↳ there is no plugin")


workflow = VerbGroup(
    """Programs of the project that coordinate agents and people.""",
    {
        "list": list_workflows,
        "run": run,
        "status": status,
        "steps": steps,
        "cancel": cancel,
        "resume": resume,
        "retry": retry,
        "trust": trust,
    },
)
