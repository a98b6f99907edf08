"""The verbs ``up``, which runs the daemon, and ``unit``, which prints a unit for systemd."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import click

from aegis.cli.config import print_errors
from aegis.cli.gc_pause import gc_paused
from aegis.cli.grammar.addresses import listen_address, page_names
from aegis.cli.grammar.click_commands import WholeRange
from aegis.cli.grammar.click_options import DIRECTORY, here, root_before
from aegis.cli.printing.formatting import escaped_line, print_lines, print_notice
from aegis.path_text import text_of_path
from aegis.settings import DEFAULT_HOST, DEFAULT_PORT, DaemonSettings
from aegis.state.root import CONFIG_NAME, LOG_TO_STATE, find_root

_PORT_HELP = f"Port; 0: any free port. Default: the port last used here, else {DEFAULT_PORT}."
_PORTS = WholeRange(0, 65_535)
_LEVEL_HELP = "Log events of this level and above."
_LEVELS = click.Choice(["debug", "info", "warning", "error"])


@click.command()
@click.option("--root", type=DIRECTORY, help="Serve exactly this directory.")
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="Address to listen on.")
@click.option("--port", type=_PORTS, help=_PORT_HELP)
@click.option(
    "--name",
    "names",
    metavar="HOST",
    multiple=True,
    callback=page_names,
    help="Accept this host name too: of a reverse proxy or a mesh. Can be given several times.",
)
@click.option("--log-level", type=_LEVELS, default="info", show_default=True, help=_LEVEL_HELP)
@click.option("--clean", is_flag=True, help="Do not restart terminals; their histories are kept.")
@click.option(
    "--resume-agents",
    is_flag=True,
    help="Start the agents of all open sessions, not only those that have messages.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Accept the state, the programs that .aegis.yaml names, and the plugins, as they are now.",
)
@click.option(
    "--workers",
    type=WholeRange(0, 64),
    help="Worker processes that run terminals; default: nodes.workers of .aegis.yaml, else 0.",
)
@click.option(
    "--nodes",
    "nodes_address",
    metavar="HOST:PORT",
    callback=listen_address,
    help="Accept joining hosts at this address; default: accept none.",
)
@click.option(
    "-d", "--detach", is_flag=True, help="Start it in the background; return when it serves."
)
@click.option("--open", "opens_page", is_flag=True, help="Open the web page, logged in.")
@click.option(
    "--tui",
    "has_tui",
    is_flag=True,
    help="Start the daemon in the background, and open the terminal interface.",
)
@click.option("--debug", is_flag=True, help="Log everything, and what blocks the daemon.")
def up(
    root: Path | None,
    log_level: str,
    workers: int | None,
    detach: bool,
    has_tui: bool,
    **options: Any,
) -> int:
    """Start the daemon, in the background with -d.

    It runs until you stop it with Ctrl-C or `aegis-actors down`. The terminals that were open when
    the previous daemon ended are restarted, each with a new shell.

    Without --root it serves the nearest directory that holds .aegis.yaml, from the current one
    upwards, else the current one. If .aegis.yaml has errors, the daemon does not start.

    The daemon does not use a state that your daemons did not write, nor an .aegis.yaml that names
    programs to run, nor plugins, until you pass --trust.
    """
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        raise click.ClickException("the daemon needs Linux 5.4 or newer")
    given = root or root_before()
    directory = given.resolve() if given else find_root(here())
    if has_tui:
        from aegis.cli.tui import run_both

        return run_both(directory)
    if detach:
        from aegis.cli.background import start_detached

        return start_detached(directory, opens_page=options["opens_page"])
    from aegis.processes.init_process import run_below_init

    return run_below_init(lambda: _run(directory, log_level, workers, options))


@contextmanager
def without_rich() -> Iterator[None]:
    """Import structlog without rich: its tracebacks are not used, and take 40 ms and 3.6 MB."""
    if "rich" in sys.modules:
        yield
        return
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    modules["rich"] = None  # its import fails
    try:
        yield
    finally:
        del modules["rich"]


def _run(directory: Path, log_level: str, workers: int | None, options: dict[str, Any]) -> int:
    """Run the daemon; return its exit code."""
    level = "debug" if options["debug"] else log_level
    # Imported late: they load the whole system, which no other verb needs.
    from aegis.configuration.file import programs_of, read_configuration
    from aegis.configuration.problems import BadConfiguration

    try:
        parsed = read_configuration(directory / CONFIG_NAME)
    except BadConfiguration as error:
        return print_errors(error.lines())
    with gc_paused(), without_rich():
        from actors.errors import NodeError
        from aegis.app import run_daemon
        from aegis.errors import StartupError
        from aegis.workflows.plugins.found import find_plugins, sentences_of

    configuration = parsed.configuration
    plugins = find_plugins(directory, configuration.plugin_dirs)
    programs = (*programs_of(configuration), *sentences_of(plugins))
    wanted = configuration.nodes.workers if workers is None else workers
    settings = DaemonSettings(
        root=directory,
        log_level=level,
        workers=wanted,
        programs=programs,
        digest=parsed.digest if programs else "",
        plugins=plugins,
        logs_to_state=bool(os.environ.pop(LOG_TO_STATE, "")),
        notify_socket=os.environ.pop("NOTIFY_SOCKET", ""),
        **options,
    )
    try:
        _check_nodes(settings)
        return run_daemon(settings, configuration)
    except (StartupError, NodeError) as error:
        raise click.ClickException(str(error)) from None


def _check_nodes(settings: DaemonSettings) -> None:
    """Raise ``NodesNotInstalled`` if nodes are requested and their packages are missing."""
    if settings.workers or settings.nodes_address is not None:
        from actors.nodes.installed import check_installed

        check_installed()


_UNIT = """\
[Unit]
Description=aegis-actors for {description}

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} up --root {root}
{environment}
# Keys, such as AEGIS_TELEGRAM_TOKEN=…: a file that only you may read.
EnvironmentFile=-%h/.config/aegis-actors/environment
Restart=on-failure
# The daemon ends its terminals itself.
KillMode=mixed
TimeoutStopSec=15

[Install]
WantedBy=default.target
"""

_KEPT_IN_UNITS = ("PATH", "SHELL", "XDG_STATE_HOME")
"""The variables that the daemon needs of this shell and a service manager may not have."""


@click.command()
@click.option("--root", type=DIRECTORY, help="The directory to serve; default: as with up.")
def unit(root: Path | None) -> None:
    """Print a unit for systemd that runs the daemon.

    It is a unit of your user, for the directory that up would serve. The unit goes to standard
    output, and what to do with it to standard error.
    """
    given = root or root_before()
    directory = given.resolve() if given else find_root(here())
    from aegis.processes.environment import without_launcher

    program = os.path.abspath(sys.argv[0])  # noqa: PTH100 -- a link on PATH outlives what it leads to
    environment = without_launcher(os.environ, sys.prefix)
    name = re.sub(r"[^A-Za-z0-9]+", "-", directory.name).strip("-") or "root"
    file = f"~/.config/systemd/user/aegis-{name}.service"
    kept = [
        f"Environment={_in_unit(f'{variable}={environment[variable]}')}"
        for variable in _KEPT_IN_UNITS
        if variable in environment
    ]
    text = _UNIT.format(
        description=escaped_line(text_of_path(directory)).replace("%", "%%"),
        program=_in_unit(program, in_command=True),
        root=_in_unit(str(directory), in_command=True),
        environment="\n".join(kept),
    )
    print_lines(text)
    print_notice(f"save it:   aegis-actors unit > {file}")
    print_notice(
        f"start it:  systemctl --user daemon-reload; systemctl --user enable --now aegis-{name}"
    )
    print_notice("without a login, from the start of the machine:  loginctl enable-linger")


def _in_unit(word: str, *, in_command: bool = False) -> str:
    """Return ``word`` in quotes for a unit file (systemd.syntax(7))."""
    quoted = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}"
        for byte in os.fsencode(word)
    ).replace("%", "%%")
    return f'"{quoted.replace("$", "$$") if in_command else quoted}"'
