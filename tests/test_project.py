"""The project as it is handed out: its metadata, its wheel, its pins, its scripts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import aegis

ROOT = Path(__file__).resolve().parents[1]
NAME = "aegis-actors"


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def canonical(name: str) -> str:
    """A distribution's name as it is compared (the packaging guide's rule for names)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_version_is_the_same_everywhere(project: dict[str, Any]) -> None:
    assert project["project"]["version"] == aegis.__version__
    assert metadata.version(NAME) == aegis.__version__


def test_the_program_is_an_entry_point() -> None:
    [script] = metadata.entry_points(group="console_scripts", name=NAME)
    assert callable(script.load())


def test_every_installed_distribution_is_pinned_to_its_version(project: dict[str, Any]) -> None:
    pins = dict(pin.split("==") for pin in project["tool"]["uv"]["constraint-dependencies"])
    installed = {canonical(each.name): each.version for each in metadata.distributions()}
    assert installed.pop(NAME) == aegis.__version__
    wrong = {name: version for name, version in installed.items() if pins.get(name) != version}
    assert wrong == {}


def test_tractor_comes_with_the_extra_alone() -> None:
    wanted = [line for line in metadata.requires(NAME) or () if "tractor" in line]
    assert len(wanted) == 1
    assert re.search(r"; extra == ['\"]nodes['\"]$", wanted[0])


def test_every_face_comes_with_the_program_itself() -> None:
    required = metadata.requires(NAME) or ()
    plain = {re.split(r"[^\w-]", line)[0] for line in required if "extra ==" not in line}
    assert {"textual", "pyavt", "httpx2"} <= plain
    assert metadata.metadata(NAME).get_all("Provides-Extra") == ["nodes"]


def test_no_pin_stands_twice_and_each_name_is_canonical(project: dict[str, Any]) -> None:
    pins = [pin.split("==")[0] for pin in project["tool"]["uv"]["constraint-dependencies"]]
    assert len(set(pins)) == len(pins)
    assert pins == [canonical(pin) for pin in pins]


def test_no_lock_file_and_nothing_that_is_generated_is_tracked() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True
    )
    tracked = listed.stdout.splitlines()
    assert "pyproject.toml" in tracked
    assert [name for name in tracked if re.search(r"(^|/)(uv\.lock|\.venv/|.*\.pyc$)", name)] == []


def test_the_scripts_of_the_checkout_can_be_run() -> None:
    scripts = sorted(path for path in (ROOT / ".ci").iterdir() if path.suffix != ".py")
    assert {"demo", "run", "uv"} <= {script.name for script in scripts}
    assert [script for script in scripts if not os.access(script, os.X_OK)] == []


def test_the_links_of_the_project_begin_with_the_address_of_its_repository(
    project: dict[str, Any],
) -> None:
    urls: dict[str, str] = project["project"]["urls"]
    assert {"Repository", "Documentation", "Changelog", "Issues"} <= set(urls)
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    links = [each["replacement"].removeprefix("](") for each in hook["substitutions"]]
    for url in (*urls.values(), *links):
        assert url.startswith(urls["Repository"])


def build(directory: Path, *options: str) -> Path:
    """What uv builds into ``directory``."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".uv" / "bin"))
    if uv is None:
        pytest.skip("uv is not installed")
    command = [str(ROOT / ".ci" / "uv"), "build", "--quiet", "--out-dir", str(directory), *options]
    subprocess.run(command, cwd=ROOT, check=True)
    [built] = [each for each in directory.iterdir() if each.suffix in (".whl", ".gz")]
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    built = build(tmp_path_factory.mktemp("sdist"), "--sdist")
    directory = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(built) as archive:
        archive.extractall(directory, filter="data")
    [top] = directory.iterdir()
    return top


@pytest.mark.long
@pytest.mark.real
def test_the_source_distribution_holds_what_its_own_commands_and_tests_use(sdist: Path) -> None:
    for directory in (".ci", "actors", "aegis", "docs", "tests"):
        wanted = {
            path.relative_to(ROOT): os.access(path, os.X_OK)
            for path in (ROOT / directory).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        found = {
            path: os.access(sdist / path, os.X_OK) for path in wanted if (sdist / path).exists()
        }
        assert found == wanted
    assert (sdist / "justfile").exists()
    licences = (sdist / "aegis" / "servers" / "web" / "built" / "LICENSES.txt").read_text()
    assert "preact" in licences
    assert "Permission is hereby granted" in licences


@pytest.mark.real
def test_every_link_of_the_readme_on_a_package_index_is_absolute(sdist: Path) -> None:
    readme = (sdist / "PKG-INFO").read_text("utf-8").partition("\n\n")[2]
    targets = re.findall(r"\]\(([^)]+)\)", readme)
    assert len(targets) > 15
    assert [each for each in targets if not each.startswith(("https://", "#"))] == []
    shown = [target for target in targets if "docs/images/" in target]
    assert shown
    assert all("/raw/" in target for target in shown)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the files in the wheel that uv builds."""
    built = build(tmp_path_factory.mktemp("wheel"), "--wheel")
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


@pytest.mark.real
def test_the_wheel_holds_the_packages_with_their_types_and_the_hooks(wheel: list[str]) -> None:
    hooks = {
        f"aegis/terminals/hooks/{name}" for name in ("bash.sh", "fish.fish", "mark.sh", "posix.sh")
    }
    wanted = {"actors/py.typed", "aegis/py.typed"} | hooks
    assert wanted <= set(wheel)
    built = {f"aegis/servers/web/built/{name}" for name in ("page.js", "style.css", "LICENSES.txt")}
    static = {f"aegis/servers/web/static/{name}" for name in ("index.html", "worker.js")}
    assert built | static <= set(wheel)
    assert not [each for each in wheel if each.startswith("aegis/servers/web/page/")]
    sources = {
        str(path.relative_to(ROOT))
        for package in ("actors", "aegis")
        for path in (ROOT / package).rglob("*.py")
    }
    assert sources - {"aegis/entry/aegis_actors.py"} <= set(wheel)


@pytest.mark.real
def test_the_wheel_holds_nothing_else(wheel: list[str]) -> None:
    tops = {name.split("/")[0] for name in wheel}
    assert tops == {
        "actors",
        "aegis",
        "aegis_actors.py",
        f"aegis_actors-{aegis.__version__}.dist-info",
    }
    assert any(name.endswith("licenses/LICENSE") for name in wheel)


def test_every_test_of_a_real_daemon_is_marked_so() -> None:
    """``.ci/run`` repeats them on no newer Python."""
    directories = ("e2e", "crash", "attacks", "resources")
    files = [file for name in directories for file in (ROOT / "tests" / name).glob("test_*.py")]
    assert len(files) > 100
    assert [file.name for file in files if "pytest.mark.real" not in file.read_text()] == []


FAILS_ONCE = """
from pathlib import Path

import pytest

ONCE = Path(__file__).with_name("once")


@pytest.mark.real
def test_chance():
    first = not ONCE.exists()
    ONCE.touch()
    assert not first, "the first time"


def test_rest():
    pass
"""

UV = """#!/bin/sh
# The ordinary tests are run; every other command succeeds.
case "$*" in
*pytest*"not long and not agents and not alone"*) shift 2; exec {python} -m pytest "$@" ;;
*"long and not alone"*) echo "3 passed in 1.00s" ;;
*tests.chaos*) echo "seed 7 broke G2"; exit 1 ;;
esac
"""


@pytest.mark.long
@pytest.mark.real
def test_one_failure_by_chance_fails_the_run_and_the_end_of_its_log_says_why(
    tmp_path: Path,
) -> None:
    """The run of a checkout whose only test fails the first time."""
    files = {
        ".ci/run": (ROOT / ".ci" / "run").read_text(),
        ".ci/uv": UV.format(python=sys.executable),
        "tests/conftest.py": (ROOT / "tests" / "conftest.py").read_text(),
        "tests/durations.py": (ROOT / "tests" / "durations.py").read_text(),
        "pyproject.toml": (ROOT / "pyproject.toml").read_text(),
        "tests/test_chance.py": FAILS_ONCE,
        # Nothing is installed on this machine.
        "bin/apt-get": "#!/bin/sh\nexit 1\n",
        "bin/sudo": "#!/bin/sh\nexit 1\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    run = subprocess.run(
        [str(tmp_path / ".ci" / "run")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    end = run.stdout.partition("== what failed, and why\n")[2].splitlines()
    assert [" ".join(line.split()) for line in end[:-1]] == [
        "-- tests on Python 3.11",
        "tests/test_chance.py::test_chance",
        "E AssertionError: the first time",
        "E assert not True",
        "-- random histories",
        "seed 7 broke G2",
        "failed: tests on Python 3.11 random histories",
    ]
    assert end[-1].startswith("1 failed, 4 passed in ")
