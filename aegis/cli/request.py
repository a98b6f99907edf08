"""The verbs of requests: ``request list|show|answer|ask``."""

from __future__ import annotations

import json

from aegis.cli.grammar.verb import (
    SECONDS,
    WHOLE,
    TargetDaemon,
    VerbGroup,
    argument,
    flag,
    option,
    text_or_input,
    verb,
)
from aegis.cli.grammar.words import in_verbs
from aegis.cli.printing.failures import UsageError
from aegis.cli.printing.formatting import (
    escaped,
    escaped_line,
    print_lines,
    print_notice,
    table,
)
from aegis.cli.printing.transcript import tool_name

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_HEAD = ["id", "agent", "age", "kind", "tool", "input", "state"]

MIN_PREFIX = 4
"""The length of the shortest beginning of an id that is accepted for it."""

INPUT_CHARS = 72


@verb(
    flag("--closed", help="Those that are answered or withdrawn, instead of the open ones."),
    flag("--all", "show_all", help="Open and closed ones."),
    option("--agent", metavar="HANDLE", help="Only requests of this handle."),
    option("--limit", kind=WHOLE, help="Maximum number of requests; default 50."),
)
def list_requests(
    daemon: TargetDaemon, closed: bool, show_all: bool, agent: str | None, limit: int | None
) -> None:
    """List what agents and workflows ask a person.

    `request show ID` prints one of them as a whole. ID may be shortened while it is unique.
    """
    state = "all" if show_all else "closed" if closed else "open"
    reply = daemon.call("request_list", state=state, handle=agent, limit=limit)
    daemon.show(reply, lambda: _show_list(reply, is_open=state == "open"))


@verb(argument("id", metavar="ID"))
def show(daemon: TargetDaemon, id: str) -> None:  # noqa: A002 -- the word of the help
    """Show the whole request ID: its input, its options, its answer."""
    found = _find(daemon, id)
    daemon.show(found, lambda: _show_whole(found))


def _show_whole(request: Mapping[str, Any]) -> None:
    print_lines(_whole(request))
    if request["state"] == "open":
        command = f"aegis-actors request answer {request['id']}"
        print_notice("answer with one of:")
        for each in _ways(request):
            print_notice(f"  {command} {escaped_line(each)}")


def _ways(request: Mapping[str, Any]) -> list[str]:
    """Return the answers that a request takes, as words of the command line."""
    import shlex

    if request["input"] is None:  # it cannot be shown whole
        return ["deny", "cancel"]
    if request["kind"] == "permission":
        edited = ["allow --edit FILE"] if request.get("takes_edit") else []
        denials = ["deny --message TEXT"] if _plan(request) else ["deny"]
        return [*_allowances(request), *edited, *denials, "cancel"]
    names, _ = _names(request)
    marks = range(1, len(names) + 1) if request["kind"] == "question" else names
    values = [shlex.quote(f"{each}=VALUE") for each in marks]
    return [" ".join(["allow", *(f"--set {each}" for each in values)]), "deny", "cancel"]


def _allowances(request: Mapping[str, Any]) -> list[str]:
    import shlex

    kinds = {"allow_once": "allow", "allow_session": "allow --session"}
    if request.get("no_session_scope"):
        del kinds["allow_session"]
    ways = []
    for kind, words in kinds.items():
        ids = [each["id"] for each in request["options"] if each["kind"] == kind]
        if len(set(ids)) > 1:
            ways += [f"{words} --option {shlex.quote(each)}" for each in dict.fromkeys(ids)]
        elif ids or not request["options"]:
            ways.append(words)
    return ways


@verb(
    flag("--session", "lasts", help="For the rest of the session, not once (permissions)."),
    option("--message", metavar="TEXT", help="A sentence for the agent, with deny or cancel."),
    option("--option", "choice", metavar="ID", help="The option, where several are alike."),
    option(
        "--set",
        "values",
        metavar="NAME=VALUE",
        many=True,
        help="Answer a question (its text or number) or a field of a form; repeatable.",
    ),
    option(
        "--edit",
        metavar="FILE",
        help="Approve the text of FILE, or of - the standard input, in place of the plan.",
    ),
    argument("id", metavar="ID"),
    argument("answer", kind=("allow", "deny", "cancel")),
)
def answer(
    daemon: TargetDaemon,
    id: str,  # noqa: A002 -- the word of the help
    answer: str,
    lasts: bool,
    choice: str | None,
    message: str | None,
    values: Sequence[str],
    edit: str | None,
) -> int:
    """Answer the request ID: allow, deny, or cancel (deny and end the turn).

    A plan: allow approves it, allow --session edits of files too, deny --message has it changed.
    A question or a form is answered with allow and --set: `--set 1=Blue`, `--set name=Ada`.
    Exits with 1 if the answer did not act: another was first, or nobody waits any more.
    """
    found = _find(daemon, id)
    reply = daemon.call(
        "request_answer",
        id=found["id"],
        digest=found["digest"],
        answer=answer,
        scope="session" if lasts else None,
        option=choice,
        message=message,
        values=_edited(edit) if edit is not None else _values(found, values) or None,
    )
    daemon.show(reply, lambda: print_lines(escaped_line(in_verbs(reply["text"]))))
    return 0 if reply["outcome"] == "applied" else 1


def _edited(file: str) -> dict[str, Any]:
    """Return the value with an edited plan, from a file or the standard input."""
    from pathlib import Path

    if file == "-":
        return {"plan": text_or_input(file, is_file=True)}
    try:
        return {"plan": Path(file).read_text(encoding="utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--edit {escaped_line(file)} cannot be read: {error}") from None


@verb(
    option(
        "--option",
        "options",
        metavar="TEXT",
        many=True,
        help="An answer to choose from; repeatable. Any other text is possible too.",
    ),
    option("--wait", "wait_s", kind=SECONDS, help="Seconds to wait for the answer; default 50."),
    argument("question", metavar="QUESTION"),
)
def ask(daemon: TargetDaemon, question: str, options: Sequence[str], wait_s: float | None) -> int:
    """Ask the person a question as an agent: with `--as HANDLE`, or within an agent's command.

    Prints the answer. Exits with 1 if there is none: the question is still open, and its answer
    comes to the inbox of the handle, or the person declined.
    """
    reply = daemon.call("ask_human", question=question, options=[*options] or None, wait_s=wait_s)
    daemon.show(reply, lambda: _show_answer(reply))
    return 0 if reply["answer"] is not None else 1


def _show_answer(reply: Mapping[str, Any]) -> None:
    if reply["answer"] is not None:
        print_lines(escaped(reply["answer"]))
    elif reply["state"] == "open":
        print_notice(f"↳ request {reply['request_id']} is open: its answer comes to the inbox")
    else:
        print_notice(f"↳ request {reply['request_id']} has no answer: it was declined or withdrawn")


def _find(daemon: TargetDaemon, given: str) -> Mapping[str, Any]:
    """Return the request whose id begins with ``given``. Raises ``UsageError``."""
    given = given.lower()
    if len(given) < MIN_PREFIX:
        raise UsageError(f"give at least the first {MIN_PREFIX} characters of the id")
    # Closed ones too: a short id that was of a closed request must not reach another one.
    reply = daemon.call("request_list", id=given)
    fitting = reply["requests"]
    if len(fitting) != 1:
        number = f"{len(fitting)} requests begin" if fitting else "no request begins"
        raise UsageError(
            f"{number} with {escaped_line(given)!r}; look with: aegis-actors request list --all"
        )
    found: Mapping[str, Any] = fitting[0]
    return found


def _show_list(reply: Mapping[str, Any], *, is_open: bool) -> None:
    requests = reply["requests"]
    if requests:
        shown = slice(None, -1 if is_open else None)
        print_lines(table(_HEAD[shown], [_row(each)[shown] for each in requests]))
    else:
        print_notice("↳ no request")
    if reply.get("more"):
        print_notice("↳ there are more: narrow with --agent, or raise --limit")


def input_line(request: Mapping[str, Any]) -> str:
    """Return the beginning of a request's input, on one line."""
    text = " ".join(_input(request, None).split("\n"))
    return text if len(text) <= INPUT_CHARS else f"{text[: INPUT_CHARS - 1]}…"


def _row(request: Mapping[str, Any]) -> list[object]:
    return [
        request["id"],
        request["handle"],
        _age(request["created"]),
        request["kind"],
        tool_name(request["tool"]) or request["tool_kind"].replace("other", ""),
        input_line(request),
        request["state"],
    ]


def _age(created: str) -> str:
    from datetime import UTC, datetime

    from aegis.cli.printing.formatting import duration

    seconds = (datetime.now(UTC) - datetime.fromisoformat(created)).total_seconds()
    return duration(max(0, round(seconds))).replace(".00s", "s")


def _input(request: Mapping[str, Any], indent: int | None) -> str:
    if request["input"] is None:
        return f"({request['input_bytes']} bytes, only to be denied) {request['excerpt']}"
    plan = _plan(request)
    if not plan:
        return json.dumps(request["input"], ensure_ascii=False, indent=indent)
    return plan if indent is None else plan.removesuffix("\n")


def _plan(request: Mapping[str, Any]) -> str:
    """Return the text of the plan that a request shows; empty: it is for something else."""
    text = (request["input"] or {}).get("plan") if request["tool_kind"] == "plan" else None
    return text if isinstance(text, str) else ""


def _whole(request: Mapping[str, Any]) -> str:
    names = ("handle", "turn", "workflow", "kind", "tool", "title", "reason", "created", "state")
    after = ("by", "answered", "scope", "applied", "withdrawn")
    lines = [f"id: {request['id']}"]
    lines += [f"{name}: {request[name]}" for name in names if request[name]]
    options = ", ".join(
        f"{each['kind']} {each['id']!r} ({each['name']})" for each in request["options"]
    )
    lines += [f"options: {options}"] if options else []
    flags = [
        name for name in ("needs_person", "default_to_no", "no_session_scope") if request.get(name)
    ]
    lines += [f"flags: {', '.join(flags)}"] if flags else []
    lines += [f"{name}: {request[name]}" for name in after if request[name]]
    lines += [f"answer: {json.dumps(request['answer'], ensure_ascii=False)}"] * (
        request["answer"] is not None
    )
    shown = [escaped_line(each) for each in lines]
    head = "plan:" if _plan(request) else "input:"
    return "\n".join([*shown, head, escaped(_input(request, 2))])


# The values of questions and forms.


def _values(request: Mapping[str, Any], given: Sequence[str]) -> dict[str, Any]:
    """Return the values that ``--set`` gives, by the names in the request."""
    names, types = _names(request)
    values: dict[str, Any] = {}
    for text in given:
        name, value = _split(text, names)
        typed = _typed(value, types.get(name))
        if name in values:
            before = values[name] if isinstance(values[name], list) else [values[name]]
            values[name] = [*before, typed]
        else:
            values[name] = [typed] if types.get(name) == "array" else typed
    return values


def _names(request: Mapping[str, Any]) -> tuple[list[str], dict[str, object]]:
    """Return the names of the questions or fields, and the types of the fields."""
    document = request["input"] or {}
    if request["kind"] == "question":
        asked = document.get("questions")
        questions = asked if isinstance(asked, list) else []
        found = [each.get("question") for each in questions if isinstance(each, dict)]
        return [each for each in found if isinstance(each, str)], {}
    schema = next(
        (
            document[name]
            for name in ("requestedSchema", "requested_schema", "schema")
            if isinstance(document.get(name), dict)
        ),
        document,
    )
    fields = schema.get("properties")
    fields = fields if isinstance(fields, dict) else {}
    return list(fields), {
        name: each.get("type") for name, each in fields.items() if isinstance(each, dict)
    }


def _split(text: str, names: Sequence[str]) -> tuple[str, str]:
    # A question may contain "=": the longest name that fits is meant.
    for name in sorted(names, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name, text[len(name) + 1 :]
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {escaped_line(text)!r} has no '=': give NAME=VALUE")
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return names[int(name) - 1], value
    return name, value


def _typed(value: str, kind: object) -> object:
    try:
        if kind == "integer":
            return int(value)
        if kind == "number":
            return float(value)
    except ValueError:
        return value  # the daemon names the field and its type
    if kind == "boolean" and value in ("true", "false"):
        return value == "true"
    return value


request = VerbGroup(
    """Questions of agents and workflows to a person.""",
    {
        "list": list_requests,
        "show": show,
        "answer": answer,
        "ask": ask,
    },
)
