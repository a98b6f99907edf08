"""What ``uv run`` leaves in the environment of the program that it starts."""

from __future__ import annotations

import os
import sys

import pytest

from aegis.launcher import remove_launcher_variables, without_launcher

VENV = "/work/tool/.venv"
OF_UV = {"UV": "/bin/uv", "UV_RUN_RECURSION_DEPTH": "1", "VIRTUAL_ENV": VENV}
HOME = {"HOME": "/home/ann"}


@pytest.mark.parametrize(
    ("inherited", "expected"),
    [
        pytest.param(
            {**HOME, **OF_UV, "PATH": f"{VENV}/bin:/usr/bin:/bin"},
            {**HOME, "PATH": "/usr/bin:/bin"},
            id="what uv run has put there is gone",
        ),
        pytest.param(
            {**HOME, **OF_UV, "PATH": f"{VENV}/bin:/usr/bin:{VENV}/bin"},
            {**HOME, "PATH": f"/usr/bin:{VENV}/bin"},
            id="what the user had on the path stays",
        ),
        pytest.param({**HOME, **OF_UV}, HOME, id="no path"),
        pytest.param(
            {**HOME, **OF_UV, "PATH": "/bin"}, {**HOME, "PATH": "/bin"}, id="a path without it"
        ),
        pytest.param(
            {**HOME, "VIRTUAL_ENV": VENV, "PATH": f"{VENV}/bin:/bin"},
            {**HOME, "VIRTUAL_ENV": VENV, "PATH": f"{VENV}/bin:/bin"},
            id="activated by the user",
        ),
        pytest.param(
            {**HOME, **OF_UV, "VIRTUAL_ENV": "/other", "PATH": "/other/bin:/bin"},
            {**HOME, **OF_UV, "VIRTUAL_ENV": "/other", "PATH": "/other/bin:/bin"},
            id="started from another environment than the program's",
        ),
    ],
)
def test_the_environment_is_what_it_was_before_uv_run(
    inherited: dict[str, str], expected: dict[str, str]
) -> None:
    assert without_launcher(inherited, VENV) == expected


def test_the_process_forgets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {**OF_UV, "VIRTUAL_ENV": sys.prefix, "KEPT": "yes"}.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin:/usr/bin")
    remove_launcher_variables()
    assert not os.environ.keys() & OF_UV.keys()
    assert (os.environ["PATH"], os.environ["KEPT"]) == ("/usr/bin", "yes")
