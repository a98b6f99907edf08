"""The surroundings of a real agent CLI: a namespace with a daemon and the scripted model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from tests.agents_real.model import Model, scripted_model
from tests.agents_real.namespace import Namespace, loopback_only, namespace_or_skip
from tests.e2e.harness import DaemonProcess


class DaemonInside(DaemonProcess):
    """A daemon inside a namespace; its socket is reached from outside all the same."""

    def __init__(self, directory: Path, namespace: Namespace) -> None:
        super().__init__(directory)
        self._namespace = namespace

    @property
    def program(self) -> list[str]:
        return self._namespace.command(*super().program)


@attrs.frozen(kw_only=True)
class Bench:
    """The surroundings of a session."""

    namespace: Namespace
    daemon: DaemonProcess
    model: Model
    home: Path
    work: Path
    session: Path
    """The directory of the driver's own files; it is made when it is needed."""


@contextmanager
def new_bench(directory: Path) -> Iterator[Bench]:
    """Start all that a session needs but the CLI; skip the test where that is impossible."""
    namespace_or_skip()
    home, work, daemon_directory = (directory / name for name in ("home", "work", "daemon"))
    for made in (home, work, daemon_directory):
        made.mkdir()
    with loopback_only() as namespace, scripted_model(namespace, directory) as model:
        daemon = DaemonInside(daemon_directory, namespace)
        daemon.start()
        try:
            yield Bench(
                namespace=namespace,
                daemon=daemon,
                model=model,
                home=home,
                work=work,
                session=directory / "session",
            )
        finally:
            daemon.stop()
