"""Make the recordings again.

    python -m tests.agents_real.tui.record              all of them
    python -m tests.agents_real.tui.record vim claude   some

Everything happens in /tmp/w, which must not exist: no path of a machine is recorded.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import trio

from tests.agents_real.model import scripted_model
from tests.agents_real.namespace import Namespace, loopback_only
from tests.agents_real.tui import agents, plain
from tests.agents_real.tui.agents import HOME, TUIS, WORK
from tests.agents_real.tui.recording import (
    About,
    Event,
    Hook,
    ModelEvent,
    Recording,
    in_order,
    save,
    text_of,
)
from tests.agents_real.tui.stage import SAMPLE_S, Stage, on_stage
from tests.recordings.private import private_words

MAX_BYTES = 150_000
LOOPBACK = "127.0.0.1"
HOOKS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "Notification",
    "Stop",
    "StopFailure",
    "SessionEnd",
)
HOOK_FIELDS = ("hook_event_name", "tool_name", "tool_input", "message", "notification_type")

PLAIN: dict[str, tuple[tuple[str, ...], Callable[[Stage], Awaitable[None]]]] = {
    "bash": (("/bin/bash", "-i"), plain.bash),
    "python": (("/usr/bin/python3", "-q"), plain.python),
    "vim": (("/usr/bin/vim", "-u", "NONE", "-N", "notes.txt"), plain.vim),
    "build": (("/usr/bin/python3", "build.py"), plain.build),
    "download": (("/usr/bin/python3", "download.py"), plain.download),
}
UNANSWERED = "claude-unanswered"
"""Claude Code on a terminal that does not know OSC 7501."""


@contextmanager
def clean_directories() -> Iterator[None]:
    """Make the home and the working directory; remove both afterwards."""
    HOME.parent.mkdir()
    try:
        HOME.mkdir()
        WORK.mkdir()
        yield
    finally:
        shutil.rmtree(HOME.parent)


@contextmanager
def end_inside(namespace: Namespace) -> Iterator[None]:
    """At the end, kill what is left in a namespace: codex leaves a daemon with its own session."""
    own = Path(f"/proc/{namespace.process}/ns/net").readlink()
    try:
        yield
    finally:
        for each in Path("/proc").glob("[0-9]*"):
            try:
                is_inside = (each / "ns" / "net").readlink() == own
            except OSError:
                continue
            if is_inside and int(each.name) != namespace.process:
                with suppress(ProcessLookupError):
                    os.kill(int(each.name), signal.SIGKILL)


async def record_plain(name: str) -> Recording:
    """Record a program that is no agent."""
    argv, script = PLAIN[name]
    plain.prepare(HOME)
    env = {"HOME": str(HOME), "PATH": "/usr/bin:/bin", "TERM": "xterm-256color"}
    env |= {"LANG": "C.UTF-8", "PYTHON_HISTORY": "/dev/null"}
    async with on_stage(argv, cwd=str(HOME), env=env) as stage:
        await script(stage)
    version = "" if name in ("build", "download") else await _version([argv[0]], env)
    return _recording(stage, name, Path(argv[0]).name, version, script.__doc__ or "")


async def _version(command: list[str], env: dict[str, str]) -> str:
    done = await trio.run_process([*command, "--version"], env=env, capture_stdout=True)
    return done.stdout.decode().splitlines()[0].strip()


async def record_agent(name: str) -> Recording:
    """Record an agent with the scripted model, in a namespace without a network."""
    tui = TUIS[name.removesuffix("-unanswered")]
    cli = tui.the_cli()
    command = cli.command()
    directory = HOME.parent
    with (
        loopback_only() as namespace,
        end_inside(namespace),
        scripted_model(namespace, directory) as model,
    ):
        env = {**cli.environment(HOME, model.url), "TERM": "xterm-256color"}
        tui.prepare(HOME, WORK)
        agents.teach(model, cli)
        hooks = directory / "hooks.jsonl"
        words = [*command, *tui.arguments, *_hook_settings(name, hooks)]
        reports = name != UNANSWERED
        argv = namespace.command(*words)
        async with on_stage(argv, cwd=str(WORK), env=env, reports=reports) as stage:
            await agents.play(stage, tui)
        stage.events += _model_events(model.lines(), stage.began)
        stage.events += _hook_events(hooks, stage.began)
        version = await _version(namespace.command(*command), env)
    how = agents.play.__doc__ or ""
    return _recording(stage, name, tui.cli, version, how, reports=reports)


def _hook_settings(name: str, file: Path) -> list[str]:
    if not name.startswith("claude"):
        return []
    command = f"{sys.executable} {Path(__file__).with_name('hook.py')} {file}"
    hook = [{"hooks": [{"type": "command", "command": command}]}]
    settings = file.with_name("settings.json")
    settings.write_text(json.dumps({"hooks": dict.fromkeys(HOOKS, hook)}))
    return ["--settings", str(settings)]


def _hook_events(file: Path, began: float) -> list[Event]:
    lines = file.read_text().splitlines() if file.exists() else []
    return [_hook_event(json.loads(line), began) for line in lines]


def _hook_event(line: dict[str, object], began: float) -> Event:
    event, at = line["event"], line["at"]
    assert isinstance(event, dict)
    assert isinstance(at, float)
    return Hook(t=at - began, event={key: event[key] for key in HOOK_FIELDS if key in event})


def _model_events(lines: list[dict[str, object]], began: float) -> Iterator[Event]:
    asides: dict[object, bool] = {}
    for line in lines:
        number, at = line.get("number"), line["at"]
        if not isinstance(number, int) or not isinstance(at, float):
            continue
        if line["event"] == "request":
            asides[number] = bool(line["is_aside"])
            yield ModelEvent(t=at - began, event="request", number=number, aside=asides[number])
        else:
            outcome = str(line["outcome"])
            aside = asides[number]
            yield ModelEvent(t=at - began, event="end", number=number, aside=aside, outcome=outcome)


def _recording(
    stage: Stage, name: str, program: str, version: str, how: str, *, reports: bool = True
) -> Recording:
    about = About(
        name=name,
        program=program,
        version=version,
        how=how,
        sampled_every_s=SAMPLE_S,
        reports_asked=reports,
    )
    return Recording(about=about, events=in_order(stage.events))


def check(recording: Recording) -> None:
    """Raise ``ValueError`` for a recording with private words."""
    names = [socket.gethostname(), os.environ.get("USER", "")]
    text = text_of(recording).replace(LOOPBACK, "").encode()
    data = b"".join(getattr(event, "data", b"") for event in recording.events)
    data = data.replace(LOOPBACK.encode(), b"")
    if words := private_words(text + data, [name for name in names if len(name) > 2]):
        raise ValueError(f"{recording.about.name} holds {', '.join(map(repr, words))}")


async def record(name: str) -> None:
    """Record one program, and store the recording."""
    with clean_directories():
        made = await (record_plain(name) if name in PLAIN else record_agent(name))
    check(made)
    size = save(made).stat().st_size
    sys.stdout.write(f"{name}: {len(made.events)} events, {size} bytes\n")
    if size > MAX_BYTES:
        raise ValueError(f"{name}: {size} bytes are too many")


def main() -> None:
    """Record the named programs, or all."""
    for name in sys.argv[1:] or [*PLAIN, *TUIS, UNANSWERED]:
        trio.run(record, name)


if __name__ == "__main__":
    main()
