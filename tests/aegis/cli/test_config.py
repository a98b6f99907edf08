"""``config check``: what it prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from click.testing import Result

Invoke = Callable[..., "Result"]

DEFAULTS: dict[str, object] = {
    "terminals.shell": None,
    "terminals.cols": 80,
    "terminals.rows": 24,
    "terminals.raw_log_bytes": 10_000_000,
    "terminals.timeout_s": 50.0,
    "nodes.workers": 0,
    "default_agent": None,
    "canvases.directories": [],
    "plugin_dirs": [".aegis/plugins"],
    "groups.presets": {},
    "limits.sessions": 16,
    "limits.spawn_depth": 3,
    "limits.spawns_per_hour": 60,
    "limits.messages_per_hour": 200,
    "limits.transcript_bytes": 67_108_864,
    "limits.usd_per_day": None,
    "keep.newest": 1_000,
    "keep.days": 30.0,
    "keep.most": 20_000,
    "keep.archive_bytes": 1_073_741_824,
    "lifecycle.idle_s": 5.0,
    "lifecycle.stale_s": 60.0,
    "worktrees.made_again": None,
    "telegram.chat_id": None,
    "telegram.user_ids": [],
    "telegram.api": "https://api.telegram.org",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".aegis.yaml"


def test_without_a_file_it_shows_the_defaults(invoke: Invoke, path: Path) -> None:
    result = invoke("config", "check")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        f"there is no {path}: all values are defaults\n"
        "key                       value                     from\n"
        "terminals.shell           -                         default\n"
        "terminals.cols            80                        default\n"
        "terminals.rows            24                        default\n"
        "terminals.raw_log_bytes   10000000                  default\n"
        "terminals.timeout_s       50                        default\n"
        "nodes.workers             0                         default\n"
        "default_agent             -                         default\n"
        "canvases.directories      -                         default\n"
        "plugin_dirs               .aegis/plugins            default\n"
        "groups.presets            -                         default\n"
        "limits.sessions           16                        default\n"
        "limits.spawn_depth        3                         default\n"
        "limits.spawns_per_hour    60                        default\n"
        "limits.messages_per_hour  200                       default\n"
        "limits.transcript_bytes   67108864                  default\n"
        "limits.usd_per_day        -                         default\n"
        "keep.newest               1000                      default\n"
        "keep.days                 30                        default\n"
        "keep.most                 20000                     default\n"
        "keep.archive_bytes        1073741824                default\n"
        "lifecycle.idle_s          5                         default\n"
        "lifecycle.stale_s         60                        default\n"
        "worktrees.made_again      -                         default\n"
        "telegram.chat_id          -                         default\n"
        "telegram.user_ids         -                         default\n"
        "telegram.api              https://api.telegram.org  default\n"
    )


def test_it_shows_what_holds_and_what_of_it_the_file_says(invoke: Invoke, path: Path) -> None:
    path.write_text("terminals:\n  shell: sh\n  cols: 80\n")
    result = invoke("config", "check")
    assert (result.exit_code, result.stderr) == (0, "")
    head, _, *rows = result.stdout.splitlines()
    assert head == f"read {path}"
    assert [row.split() for row in rows[:2]] == [
        ["terminals.shell", "sh", "the", "file"],
        ["terminals.cols", "80", "the", "file"],
    ]
    assert all(row.endswith("default") for row in rows[2:])


def test_the_values_of_a_profile_are_on_one_line_each(invoke: Invoke, path: Path) -> None:
    prompt = "Be brief.\\nBe kind." + "!" * 60
    path.write_text(
        "agents:\n  builder:\n    command: [agent, --acp]\n    env: {A: $B, C: d}\n"
        f'    answers_requests: true\n    prompt: "{prompt}"\n'
    )
    result = invoke("config", "check")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [row for row in result.stdout.splitlines() if row.startswith("agents.")]
    keys = {row.split()[0]: " ".join(row.split()[1:]) for row in rows}
    assert keys["agents.builder.command"] == "agent --acp the file"
    assert keys["agents.builder.env"] == "A=$B C=d the file"
    assert keys["agents.builder.answers_requests"] == "true the file"
    assert keys["agents.builder.prompt"].startswith(r"Be brief.\nBe kind.!!!")
    assert keys["agents.builder.may_spawn"] == "- default"
    assert max(map(len, rows)) < 120


def test_as_json_it_has_every_value(invoke: Invoke, path: Path) -> None:
    path.write_text("terminals:\n  shell: /no/such/shell\n  timeout_s: 300\n")
    result = invoke("config", "check", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    [warning] = document.pop("warnings")
    assert "'/no/such/shell' is not an executable program" in warning
    assert document == {
        "file": str(path),
        "ok": True,
        "values": {**DEFAULTS, "terminals.shell": "/no/such/shell", "terminals.timeout_s": 300.0},
        "given": ["terminals.shell", "terminals.timeout_s"],
        "problems": [],
        "more_problems": 0,
    }


def test_a_shell_that_is_not_there_is_a_warning_only(invoke: Invoke, path: Path) -> None:
    path.write_text("terminals: {shell: /no/such/shell}")
    result = invoke("config", "check")
    assert result.exit_code == 0
    assert result.stderr.startswith(
        f"aegis-actors: warning: {path}: terminals.shell '/no/such/shell' is not an executable"
    )


def test_a_bad_file_is_a_line_for_each_problem_and_exit_code_2(invoke: Invoke, path: Path) -> None:
    path.write_text("terminals:\n  cols: wide\n  rowz: 5\n")
    result = invoke("config", "check")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"aegis-actors: {path} line 2: terminals.cols must be a whole number from 2 to 1000, not "
        "'wide'\n"
        f"aegis-actors: {path} line 3: there is no key 'terminals.rowz'; did you mean "
        "'terminals.rows'?\n"
    )


def test_as_json_a_problem_has_its_place(invoke: Invoke, path: Path) -> None:
    path.write_text("terminals:\n  cols: wide\n")
    result = invoke("config", "check", "--json")
    assert (result.exit_code, result.stderr) == (2, "")
    assert json.loads(result.stdout) == {
        "file": str(path),
        "ok": False,
        "values": {},
        "given": [],
        "warnings": [],
        "problems": [
            {
                "line": 2,
                "column": 9,
                "key": "terminals.cols",
                "sentence": "terminals.cols must be a whole number from 2 to 1000, not 'wide'",
            }
        ],
        "more_problems": 0,
    }


def test_as_json_what_is_wrong_with_all_of_the_file_has_no_place(
    invoke: Invoke, path: Path
) -> None:
    path.mkdir()
    result = invoke("config", "check", "--json")
    [problem] = json.loads(result.stdout)["problems"]
    assert problem == {
        "line": None,
        "column": None,
        "key": None,
        "sentence": "is not a regular file: replace it by one",
    }


@pytest.mark.parametrize(
    "words",
    [("config", "check"), ("--root", "a", "config", "check"), ("config", "check", "--root", "a")],
)
def test_it_reads_the_file_that_up_would_read(
    invoke: Invoke, path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    inner = path.parent / "a" / "b"
    inner.mkdir(parents=True)
    path.write_text("terminals: {cols: 99}")
    if "--root" in words:  # exactly that directory, as for `up`
        assert f"no {path.parent}/a/.aegis.yaml" in invoke(*words).stdout
    else:
        monkeypatch.chdir(inner)
        assert f"read {path}\n" in invoke(*words).stdout
