"""The verbs of queues: ``queue list|add|show|task|cancel|retry|move|pause|resume``."""

from __future__ import annotations

from aegis.cli.grammar.verb import (
    SECONDS,
    WHOLE,
    TargetDaemon,
    VerbGroup,
    argument,
    fitting,
    flag,
    moment,
    option,
    text_or_input,
    verb,
)
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

_QUEUES = ["queue", "agent", "running", "pending", "waiting", "ended", "state"]
_TASKS = ["task", "queue", "status", "attempt", "worker", "from", "payload"]

PAYLOAD_CHARS = 60

DONE, NOT_DONE, GOES_ON = 0, 1, 124
"""The exit codes of a task that was waited for: completed, ended otherwise, not ended."""


@verb()
def list_queues(daemon: TargetDaemon) -> None:
    """List the queues with the numbers of their tasks."""
    reply = daemon.call("queue_list")
    daemon.show(reply, lambda: _show_queues(reply["result"]))


@verb(
    option("--wait", kind=SECONDS, help="Wait so many seconds for its end, and print its result."),
    option("--after", metavar="TASK", many=True, help="A task that must complete before."),
    option("--key", metavar="TEXT", help="The same key gives the same task."),
    option("--priority", kind=WHOLE, help="-9 to 9, higher ones first; default 0."),
    option(
        "--not-before", "not_before", metavar="TIME", help="As 2026-05-22T14:00, in local time."
    ),
    option("--attempts", kind=WHOLE, help="How often it may begin; default: the queue's."),
    option("--max-runtime", "max_runtime", kind=SECONDS, help="Seconds of one attempt."),
    flag("--no-callback", "silent", help="No message when it has ended."),
    argument("queue"),
    argument("payload"),
)
def add(
    daemon: TargetDaemon,
    queue: str,
    payload: str,
    wait: float | None,
    after: Sequence[str],
    key: str | None,
    priority: int | None,
    not_before: str | None,
    attempts: int | None,
    max_runtime: float | None,
    silent: bool,
) -> int:
    """Give the task PAYLOAD to QUEUE; `-` reads it from the standard input.

    A fresh agent session does it. Its end comes to your inbox. With --wait, exits with 0 if it
    completed, 1 if it failed or was cancelled, and 124 if it has not ended in time.
    """
    text = text_or_input(payload)
    not_before = moment("--not-before", not_before)
    if wait is not None:
        given = (after, priority, not_before, attempts, max_runtime, silent)
        if any(given):
            raise UsageError("--wait goes with --key only; leave the other options out")
        reply = _delegate(daemon, wait, queue=queue, payload=text, key=key)
        daemon.show(reply, lambda: _show_end(reply))
        return fitting(lambda: _exit_code(reply))
    reply = daemon.call(
        "enqueue",
        queue=queue,
        payload=text,
        key=key,
        after=[*after] or None,
        priority=priority,
        not_before=not_before,
        max_attempts=attempts,
        max_runtime_s=max_runtime,
        callback=False if silent else None,
    )
    daemon.show(reply, lambda: _show_added(reply))
    return DONE


def _delegate(
    daemon: TargetDaemon, wait: float, *, key: str | None, **task: object
) -> Mapping[str, Any]:
    """Enqueue a task, and then wait for its end, so that its id is known if the wait is cut."""
    import uuid

    named = {**task, "key": key or f"wait-{uuid.uuid4().hex}"}
    reply = daemon.call("delegate", timeout=0, **named)
    if not wait or _has_ended(reply):
        return reply
    id_ = reply["task_id"]
    if_cut = f"↳ task {id_} continues; look at it with: aegis-actors queue task {id_}"
    return daemon.wait("delegate", wait, _has_ended, if_cut, **named)


def _has_ended(task: Mapping[str, Any]) -> bool:
    return task["status"] in ("completed", "failed", "cancelled")


def _show_added(reply: Mapping[str, Any]) -> None:
    print_lines(reply["task_id"])
    if reply["not_before"]:
        print_notice(f"↳ it does not begin before {reply['not_before']}")


@verb(
    option("--limit", kind=WHOLE, help="Maximum number of tasks; default 50."),
    argument("queue", required=False),
)
def show(daemon: TargetDaemon, queue: str | None, limit: int | None) -> None:
    """List the tasks of QUEUE (default: of all), those that run first."""
    reply = daemon.call("task_list", queue=queue, limit=limit)
    daemon.show(reply, lambda: _show_tasks(reply))


@verb(argument("task", metavar="TASK"))
def task(daemon: TargetDaemon, task: str) -> None:
    """Show the status of TASK, and its result."""
    reply = daemon.call("task_status", task_id=task.upper())
    daemon.show(reply, lambda: _show_task(reply))


@verb(argument("task", metavar="TASK"))
def cancel(daemon: TargetDaemon, task: str) -> None:
    """Cancel TASK; the session that does it is ended."""
    reply = daemon.call("cancel", task_id=task.upper())
    daemon.show(reply, lambda: _show_tasks({"result": [reply]}))


@verb(argument("task", metavar="TASK"))
def retry(daemon: TargetDaemon, task: str) -> None:
    """Enqueue TASK, which failed or was cancelled, again."""
    reply = daemon.call("task_retry", task_id=task.upper())
    daemon.show(reply, lambda: _show_retried(reply))


def _show_retried(task: Mapping[str, Any]) -> None:
    _show_tasks({"result": [task]})
    if task["failed_with"]:
        print_notice(f"↳ failed with it, and not retried: {', '.join(task['failed_with'])}")


@verb(
    option("--before", metavar="TASK", help="The task that is to begin next after it."),
    flag("--first", "first", help="To the first place."),
    flag("--last", "last", help="To the last place."),
    argument("queue"),
    argument("task", metavar="TASK"),
)
def move(
    daemon: TargetDaemon, queue: str, task: str, before: str | None, first: bool, last: bool
) -> None:
    """Move TASK, which has not begun, to another place in the order of QUEUE.

    It takes the priority of a neighbour if its own would keep it from that place.
    """
    if sum((before is not None, first, last)) != 1:
        raise UsageError("queue move: give one of --before TASK, --first and --last")
    to = None if before is not None else "first" if first else "last"
    reply = daemon.call(
        "task_move", queue=queue, task_id=task.upper(), before=before and before.upper(), to=to
    )
    daemon.show(reply, lambda: _show_tasks({"result": [reply]}))


@verb(argument("queue"))
def pause(daemon: TargetDaemon, queue: str) -> None:
    """Start no further task of QUEUE; those that run go on."""
    reply = daemon.call("queue_pause", queue=queue)
    daemon.show(reply, lambda: _show_queues([reply]))


@verb(argument("queue"))
def resume(daemon: TargetDaemon, queue: str) -> None:
    """Start the tasks of QUEUE again."""
    reply = daemon.call("queue_resume", queue=queue)
    daemon.show(reply, lambda: _show_queues([reply]))


def _show_queues(queues: Sequence[Mapping[str, Any]]) -> None:
    if queues:
        print_lines(table(_QUEUES, [_queue_row(each) for each in queues]))
    else:
        print_notice("↳ no queue is configured: add the section queues to .aegis.yaml")


def _queue_row(queue: Mapping[str, Any]) -> list[object]:
    state = "paused" if queue["paused"] else "open"
    if queue["limited_until"]:
        state = f"limited until {queue['limited_until']}"
    names = ("queue", "agent")
    return [
        *(queue[name] for name in names),
        f"{queue['running']}/{queue['max_parallel']}",
        *(queue[name] for name in ("pending", "waiting", "ended")),
        queue["problem"] or state,
    ]


def _show_tasks(reply: Mapping[str, Any]) -> None:
    if reply["result"]:
        print_lines(table(_TASKS, [_task_row(each) for each in reply["result"]]))
    else:
        print_notice("↳ no task")
    if reply.get("more"):
        print_notice("↳ there are more: name a QUEUE, or raise --limit")


def _task_row(task: Mapping[str, Any]) -> list[object]:
    status, position = task["status"], task["queued_position"]
    payload = " ".join(task["payload"].split())
    if task["waits"]:
        status = f"{status} {task['waits']}"
    return [
        task["task_id"],
        task["queue"],
        status if position is None else f"{status} ({position})",
        f"{task['attempt']}/{task['max_attempts']}",
        task["worker"],
        task["sender"],
        payload if len(payload) <= PAYLOAD_CHARS else f"{payload[: PAYLOAD_CHARS - 1]}…",
    ]


def _show_task(task: Mapping[str, Any]) -> None:
    names = ("task_id", "queue", "status", "queued_position", "worker", "attempt", "max_attempts")
    after = ("not_before", "sender", "key", "priority", "enqueued", "started", "ended", "error")
    lines = [f"{name}: {task[name]}" for name in (*names, *after) if task[name] not in (None, "")]
    for name in ("waiting_for", "failed_with"):
        lines += [f"{name}: {', '.join(task[name])}"] * bool(task[name])
    print_lines("\n".join(map(escaped_line, lines)))
    print_lines(f"payload:\n{escaped(task['payload'])}")
    if task["result"] is not None:
        print_lines(f"result:\n{escaped(task['result'])}")


def _show_end(task: Mapping[str, Any]) -> None:
    if task["result"] is not None:
        print_lines(escaped(task["result"]))
    if task["status"] != "completed":
        id_, error = task["task_id"], escaped_line(task["error"] or "")
        print_notice(f"↳ task {id_} is {task['status']}{f': {error}' if error else ''}")


def _exit_code(task: Mapping[str, Any]) -> int:
    if task["status"] == "completed":
        return DONE
    return NOT_DONE if _has_ended(task) else GOES_ON


queue = VerbGroup(
    """Tasks that fresh agent sessions do, one after another.""",
    {
        "list": list_queues,
        "add": add,
        "show": show,
        "task": task,
        "cancel": cancel,
        "retry": retry,
        "move": move,
        "pause": pause,
        "resume": resume,
    },
)
