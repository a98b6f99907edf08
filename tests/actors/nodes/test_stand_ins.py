"""Events, processes and modules that stand in, and the loading of tractor with them."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import trio

from actors.errors import MisuseError, NodeError, NodesNotInstalled
from actors.nodes.compat import loading
from actors.nodes.compat.events import Event, have_truth
from actors.nodes.compat.messaging import MessageTransport
from actors.nodes.compat.network import open_tcp_stream, serve_tcp
from actors.nodes.compat.process import Process, end_process, open_process
from actors.nodes.compat.proxy import ModuleProxy

ROOT = Path(__file__).resolve().parents[3]
OLD = """
import trio
from trio import MultiError
trio.open_nursery, trio.Event, trio.Process, trio.lowlevel.open_process, trio.serve_tcp
trio.open_tcp_stream
"""
NEW = OLD.replace("from trio import MultiError", "")


async def test_an_event_is_true_set_or_not_and_is_an_event_otherwise() -> None:
    event = Event()
    assert event
    assert not event.is_set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(event.wait)
        await trio.testing.wait_all_tasks_blocked()
        assert event.statistics().tasks_waiting == 1
        event.set()
    assert event
    assert event.is_set()


def test_whether_events_have_truth_is_asked_of_trio() -> None:
    with pytest.raises(NotImplementedError):
        bool(trio.Event())
    assert not have_truth()


def test_a_proxy_is_the_module_but_for_its_names() -> None:
    proxy = ModuleProxy(trio, Event=Event)
    assert proxy.Event is Event
    assert proxy.open_nursery is trio.open_nursery
    assert proxy.__name__ == "trio"
    with pytest.raises(AttributeError):
        _ = proxy.no_such_thing


def names_that_differ(module: ModuleType) -> set[str]:
    return {name for name in loading.STAND_INS if "." not in name and differs(module, name)}


def differs(module: ModuleType, name: str) -> bool:
    return getattr(module, name) is not getattr(trio, name, None)


def test_a_tractor_of_old_gets_what_it_expects() -> None:
    stand_in = loading.trio_for([OLD])
    assert names_that_differ(stand_in) == {n for n in loading.STAND_INS if "." not in n}
    assert stand_in.lowlevel.open_process is open_process
    assert stand_in.lowlevel.current_task is trio.lowlevel.current_task


def test_one_that_knows_todays_trio_gets_the_real_one_but_for_what_carries_the_key() -> None:
    stand_in = loading.trio_for([NEW])
    # The real Trio has none.
    assert not hasattr(stand_in, "MultiError")
    different = {n for n in ("open_nursery", "Event", "Process") if differs(stand_in, n)}
    assert different == set()
    assert stand_in.serve_tcp is serve_tcp
    assert stand_in.open_tcp_stream is open_tcp_stream


@pytest.mark.parametrize("name", ["serve_tcp", "open_tcp_stream", "lowlevel.open_process"])
def test_one_that_would_not_be_authenticated_is_refused(name: str) -> None:
    with pytest.raises(NodeError, match=f"does not use trio.{name}"):
        loading.trio_for([OLD.replace(f"trio.{name}", "")])


@pytest.mark.parametrize(
    ("run", "unwraps"),
    [
        (lambda strict_exception_groups=True: None, False),
        (lambda strict_exception_groups=False: None, True),
        (lambda: None, False),
        (trio.run, False),
    ],
)
def test_whether_lone_exceptions_are_bare_is_seen_from_trio(run: object, unwraps: bool) -> None:
    assert loading._unwraps_lone_exceptions(run) is unwraps  # type: ignore[arg-type]


def test_the_surroundings_are_left_alone_where_tractor_would_touch_them() -> None:
    root = SimpleNamespace(os=os, log=SimpleNamespace(__name__="log", __doc__="", __spec__=None))
    actor, fixup = SimpleNamespace(sys=sys), SimpleNamespace(_mp_figure_out_main=print)
    loading.leave_surroundings_alone(fixup, root, SimpleNamespace(get_console_log=print), actor)
    root.os.environ["PYTHONBREAKPOINT"] = "leaks"
    actor.sys.path.append("leaks")
    assert "PYTHONBREAKPOINT" not in os.environ
    assert "leaks" not in sys.path
    assert fixup._mp_figure_out_main() == {}
    assert root.log.get_console_log("info") is None


def test_nothing_is_added_to_a_tractor_that_does_not_have_it() -> None:
    modules = [SimpleNamespace() for _ in range(4)]
    loading.leave_surroundings_alone(*modules)
    assert [vars(module) for module in modules] == [{}, {}, {}, {}]


def test_a_tractor_whose_messages_cannot_be_bounded_is_refused() -> None:
    with pytest.raises(NodeError, match="bounded"):
        loading.use_our_messages(SimpleNamespace())


def test_a_channel_of_tractor_reads_our_messages_itself() -> None:
    channel = loading.load().api.Channel(("nobody", 0))
    channel.msgstream = stream = object()
    assert channel.__aiter__() is stream


def test_tractor_is_loaded_once_and_leaves_no_trace_outside_of_itself() -> None:
    before = trio.open_nursery
    tractor = loading.load()
    assert loading.load() is tractor
    assert sys.modules["trio"] is trio
    assert trio.open_nursery is before
    assert not hasattr(trio, "MultiError")
    assert tractor.actor.trio.MultiError is tractor.api.MultiError
    assert "trio_typing" not in sys.modules
    assert tractor.api._supervise.asynccontextmanager is contextlib.asynccontextmanager
    assert "pdbpp" not in sys.modules
    assert tractor.api._ipc.MsgpackTCPStream.func is MessageTransport
    assert not logging.getLogger("tractor").isEnabledFor(logging.CRITICAL)


def test_a_debugger_that_was_loaded_stays() -> None:
    code = (
        "import sys, types\n"
        "sys.modules['pdbpp'] = mine = types.ModuleType('pdbpp')\n"
        "from actors.nodes.compat.loading import load\n"
        "load()\n"
        "assert sys.modules['pdbpp'] is mine\n"
        "import tractor._debug\n"
        "assert tractor._debug.pdbpp is not mine\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_without_the_extra_the_package_can_be_imported_and_says_how_to_install_it() -> None:
    code = (
        "import sys\n"
        "sys.modules['tractor'] = None\n"
        "import trio\n"
        "from actors.errors import NodesNotInstalled\n"
        "from actors.nodes import open_runtime\n"
        "async def main():\n"
        "    async with open_runtime():\n"
        "        pass\n"
        "try:\n"
        "    trio.run(main)\n"
        "except NodesNotInstalled as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert "`uv sync --extra nodes`" in done.stdout, done.stderr


def test_one_who_installed_by_pip_is_told_commands_that_work_there(tmp_path: Path) -> None:
    installed = tmp_path / "site-packages" / "actors" / "nodes" / "compat" / "loading.py"
    sentence = loading.how_to_install(installed)
    assert "uv sync" not in sentence
    assert "pip install --no-deps tractor==0.1.0a5" in sentence
    for name in ("async-generator", "tricycle", "msgspec", "colorlog", "wrapt"):
        assert name in sentence.partition("&&")[2]
    assert "[nodes]" not in sentence


def test_importing_the_package_does_not_import_tractor() -> None:
    code = "import sys, actors.nodes\nassert 'tractor' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_a_tractor_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tractor", None)
    with pytest.raises(NodesNotInstalled):
        loading.sources_of_tractor()


async def test_a_process_is_spawned_for_workers_only() -> None:
    with pytest.raises(MisuseError):
        await open_process([sys.executable, "-m", "tractor._child"])


@pytest.mark.real
async def test_a_process_that_is_left_has_no_input_any_more_and_is_reaped() -> None:
    process = await trio.lowlevel.open_process(["cat"], stdin=subprocess.PIPE)
    async with Process(process) as entered:
        assert entered.pid == process.pid
        assert entered.returncode is None
    assert process.returncode == 0
    assert await Process.wait(entered) == 0


@pytest.mark.real
async def test_a_process_that_does_not_end_is_killed_when_leaving_is_cancelled() -> None:
    process = await trio.lowlevel.open_process(["sleep", "3600"])
    with trio.move_on_after(0.05) as scope:
        await end_process(process)
    assert scope.cancelled_caught
    assert process.returncode == -9
