"""The environment of what the daemon starts: which variables are facts about its place of start."""

from __future__ import annotations

import subprocess

import pytest

from aegis.processes.environment import without_place

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
        pytest.param(
            {**HOME, "UV": "/bin/uv", "PATH": f"{VENV}/bin:/usr/bin"},
            {**HOME, "PATH": "/usr/bin"},
            id="uv tool run",
        ),
        pytest.param(
            {**HOME, "UV": "/bin/uv", "VIRTUAL_ENV": "/mine", "PATH": f"{VENV}/bin:/mine/bin"},
            {**HOME, "VIRTUAL_ENV": "/mine", "PATH": "/mine/bin"},
            id="uv tool run in a venv of the user",
        ),
    ],
)
def test_the_environment_is_what_it_was_before_uv_run(
    inherited: dict[str, str], expected: dict[str, str]
) -> None:
    assert without_place(inherited, VENV) == expected


SETTINGS = {
    **dict.fromkeys(("PATH", "SSH_AUTH_SOCK", "DISPLAY", "WAYLAND_DISPLAY", "LC_ALL"), "set"),
    **dict.fromkeys(("XDG_RUNTIME_DIR", "HTTPS_PROXY", "SSL_CERT_FILE", "CARGO_HOME"), "set"),
    **dict.fromkeys(("TMUX_TMPDIR", "ZELLIJ_CONFIG_DIR", "KITTY_CONFIG_DIRECTORY"), "set"),
    **dict.fromkeys(("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK", "CODEX_HOME"), "set"),
    **dict.fromkeys(("GIT_SSH_COMMAND", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"), "set"),
    **dict.fromkeys(("GIT_EDITOR", "GIT_ASKPASS", "GIT_CONFIG_COUNT", "GIT_PAGER"), "set"),
    **dict.fromkeys(("PAGER", "BROWSER", "VIM", "WINDOW", "MAKEFLAGS", "NOBODYS"), "set"),
    **dict.fromkeys(("npm_config_prefix", "npm_config_registry", "PYTHONPATH"), "set"),
    "COLORTERM": "truecolor",
}
"""Variables that a person has set."""


def test_what_no_rule_names_stays() -> None:
    assert without_place(SETTINGS, VENV) == SETTINGS


def test_all_that_git_removes_for_another_repository_is_left_out_but_what_only_people_set() -> None:
    asked = subprocess.run(
        ["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True
    )
    local = dict.fromkeys(asked.stdout.split(), "x")
    assert set(without_place(local, VENV)) <= {"GIT_CONFIG_COUNT"}


@pytest.mark.parametrize(
    ("mark", "beside"),
    [
        ("GIT_AUTHOR_DATE=@1795750707 +0000", "GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b"),
        ("GIT_INDEX_FILE=.git/index", "GIT_EDITOR=: GIT_SEQUENCE_EDITOR=:"),
        ("GIT_PREFIX=", "GIT_PAGER=cat"),
        ("CLAUDECODE=1", "GIT_EDITOR=true"),
        ("GEMINI_CLI=1", "PAGER=cat GIT_PAGER=cat"),
        ("VSCODE_GIT_ASKPASS_MAIN=/x", "GIT_ASKPASS=/x"),
        ("NVIM=/run/s", "VIM=/x VIMRUNTIME=/x"),
        ("STY=1.pts", "WINDOW=0"),
        ("MAKELEVEL=1", "MAKEFLAGS=-j MFLAGS=-j"),
        ("npm_lifecycle_event=start", "npm_config_prefix=/p npm_package_name=x"),
    ],
)
def test_what_a_program_sets_beside_its_mark_is_left_out_with_it_and_else_stays(
    mark: str, beside: str
) -> None:
    set_by_it = dict(each.split("=", 1) for each in [mark, *beside.split()])
    assert without_place({**HOME, **set_by_it}, VENV) == HOME
    users = {name: "users" for name in SETTINGS if name not in set_by_it}
    assert without_place({**users, **set_by_it}, VENV) == users


def test_an_editor_or_a_pager_of_the_person_stays_beside_the_mark_of_an_agent() -> None:
    users = {"GIT_EDITOR": "vi", "PAGER": "less"}
    assert without_place({**users, "CLAUDECODE": "1", "GIT_PREFIX": ""}, VENV) == users
