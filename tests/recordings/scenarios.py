"""What is recorded: each program, what it works on, and the keys it gets."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from tests.recordings import material

HOME = Path("/tmp/h")
_PYTHON = "/usr/bin/python3"

ALONE = ("unshare", "--user", "--map-user=65534", "--map-group=65534", "--pid", "--fork")
"""In namespaces of its own: it sees no process of the machine, and its user is nobody."""

Steps = tuple[tuple[bytes, bytes], ...]


@attrs.frozen(kw_only=True)
class Scenario:
    """``steps``: what the program must have written, and the keys that it gets then."""

    name: str
    program: str
    how: str
    argv: tuple[str, ...]
    prepare: Callable[[Path], object] = lambda home: None
    steps: Steps = ()
    directory: Path = HOME
    env: Mapping[str, str] = attrs.field(factory=dict)
    rows: int = 24
    cols: int = 80
    screen_only: bool = False


def environment() -> dict[str, str]:
    """The same on every machine but for where programs and certificates are."""
    passed = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "PIP_CERT")
    cargo = shutil.which("cargo")
    return {name: os.environ[name] for name in passed if name in os.environ} | {
        "HOME": str(HOME),
        "PATH": f"{HOME}/venv/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        + (f":{Path(cargo).parent}" if cargo else ""),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PS1": "$ ",
        "TZ": "UTC",
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
        "CARGO_HOME": f"{HOME}/.cargo",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _python_3_13() -> str:
    """Of pyenv if it has one: what it puts into PATH may lead to no program."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(root.glob("versions/3.13.*/bin/python3.13"))
    return str(found[-1]) if found else "python3.13"


def _run(*argv: str, cwd: Path) -> None:
    subprocess.run(argv, cwd=cwd, env=environment(), check=True, capture_output=True)


def _files(**contents: str) -> Callable[[Path], None]:
    """Writes files; in a name ``__`` stands for a dot and ``_in_`` puts it into a directory."""

    def write(home: Path) -> None:
        for name, content in contents.items():
            file, *directories = name.split("_in_")
            path = home.joinpath(*directories[::-1], file.replace("__", "."))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")

    return write


def _venv(*packages: str, **contents: str) -> Callable[[Path], None]:
    def make(home: Path) -> None:
        _files(**contents)(home)
        _run(_PYTHON, "-m", "venv", "venv", cwd=home)
        if packages:
            _run("venv/bin/pip", "install", "--no-cache-dir", *packages, cwd=home)

    return make


def _package(home: Path) -> None:
    """The package that apt installs: a file of our own, so that no server is asked or shown."""
    _files(control_in_DEBIAN_in_story=material.DEB_CONTROL, apt__conf=material.APT_CONF)(home)
    (home / "sources.list").touch()
    (home / "sources").mkdir()
    _run("dpkg-deb", "--build", "story", "story.deb", cwd=home)


def _repository(home: Path) -> None:
    """A history with branches and merges, the same on every machine."""
    _run("git", "init", "-q", "-b", "main", cwd=home)
    for key, value in [("user.name", "Ann"), ("user.email", "ann@example.org")]:
        _run("git", "config", key, value, cwd=home)
    for number in range(12):
        _commit(home, f"Write chapter {number} of the story", number)
        if number % 3 == 1:
            _run("git", "checkout", "-q", "-b", f"side-{number}", cwd=home)
            _commit(home, f"Try another end — déjà vu, 日本 ({number})", number + 100)
            _run("git", "checkout", "-q", "main", cwd=home)
            _commit(home, f"Mend a letter in chapter {number}", number + 200)
            _run("git", "merge", "-q", "--no-edit", f"side-{number}", cwd=home)
    _run("git", "tag", "v1.0", cwd=home)


def _commit(home: Path, message: str, number: int) -> None:
    (home / f"chapter-{number}.txt").write_text(f"{message}\n" * 3, encoding="utf-8")
    _run("git", "add", ".", cwd=home)
    date = f"2026-01-{number % 28 + 1:02} 12:00:00 +0000"
    subprocess.run(
        ["git", "commit", "-q", "-m", message],
        cwd=home,
        check=True,
        env=environment() | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
    )


_PROMPT = rb"\$ \Z|\$ (?:\x1b\[[?\d;]*[A-Za-z])*\Z"
_LESS = rb":(?:\x1b\[[\d;]*[A-Za-z])*\Z"
_LESS_ANY = rb"(?::|\(END\)|\x1b\[m|\x1b\[27m|\x1b\[K)(?:\x1b\[[\d;]*[A-Za-z])*\Z"

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        name="pytest",
        program="pytest",
        how="a coloured run with a pass, failures, a skip, an xfail and a warning",
        argv=("venv/bin/pytest", "--color=yes", "-v", "-p", "no:cacheprovider", "project"),
        prepare=_venv("pytest", test_story__py_in_project=material.TESTS),
    ),
    Scenario(
        name="pip",
        program="pip",
        how="pip install of two packages, with the progress bar of a long download",
        argv=("venv/bin/pip", "install", "--no-cache-dir", "--target", "target", "numpy", "attrs"),
        prepare=_venv(),
    ),
    Scenario(
        name="apt",
        program="apt-get",
        how="a package installed from a file and removed, with the progress bar at the bottom",
        argv=(
            "sh",
            "-c",
            "apt-get install -y ./story.deb && apt-get purge -y story",
        ),
        env={"APT_CONFIG": f"{HOME}/apt.conf"},
        prepare=_package,
    ),
    Scenario(
        name="npm",
        program="npm",
        how="npm install of a tiny package, with its spinner",
        argv=("npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "is-odd"),
        prepare=_files(package__json='{"name": "story", "version": "1.0.0"}\n'),
    ),
    Scenario(
        name="cargo",
        program="cargo",
        how="a build with a warning and its progress bar, a run, and a build that fails",
        argv=(
            "sh",
            "-c",
            "cargo build --color always && cargo run --color always;"
            " echo 'fn broken() -> i32 { \"no\" }' >> src/main.rs; cargo build --color always",
        ),
        env={"CARGO_TERM_PROGRESS_WHEN": "always", "CARGO_TERM_PROGRESS_WIDTH": "80"},
        prepare=_files(Cargo__toml=material.CARGO_TOML, main__rs_in_src=material.MAIN_RS),
    ),
    Scenario(
        name="git-log",
        program="git",
        how="git log --graph in colours, without a pager",
        argv=("git", "--no-pager", "log", "--color", "--graph", "--oneline", "--stat", "--all"),
        prepare=_repository,
    ),
    Scenario(
        name="git-log-less",
        program="git, less",
        how="git log --graph through less: pages, a search, back, to the end, quit",
        argv=("git", "log", "--color", "--graph", "--all"),
        env={"LESS": "-R"},
        prepare=_repository,
        steps=(
            (_LESS, b" "),
            (_LESS, b" "),
            (_LESS, b"/chapter 4\r"),
            (_LESS_ANY, b"n"),
            (_LESS_ANY, b"b"),
            (_LESS_ANY, b"G"),
            (_LESS_ANY, b"g"),
            (_LESS_ANY, b"q"),
        ),
        screen_only=True,
    ),
    Scenario(
        name="vim",
        program="vim",
        how="insert, visual mode, a split, :help, a search, undo, write and quit",
        argv=("vim", "-c", "syntax on", "-c", "set number hlsearch", "story.py"),
        prepare=_files(story__py=material.STORY),
        steps=(
            (rb"All", b"O# a new first line with \xe6\x97\xa5\xe6\x9c\xac and e\xcc\x81"),
            (rb"first line", b"\x1b"),
            (rb"1,\d+", b"jV3j"),
            (rb"VISUAL", b">"),
            (rb"lines >ed", b":split\r"),
            (rb"story.py", b"G"),
            (rb"\Z", b":help\r"),
            (rb"help.txt", b"\x04"),
            (rb"\Z", b":q\r"),
            (rb"\Z", b"/return\r"),
            (rb"return", b"uu"),
            (rb"\Z", b":wq\r"),
            (rb"\Z", b":q!\r"),
        ),
        screen_only=True,
    ),
    Scenario(
        name="htop",
        program="htop",
        how="the tree, the setup, a search, the help, quit; it sees a few processes only",
        argv=(*ALONE, "--mount-proc", "sh", "-c", "sleep 99 & sleep 98 & htop; kill %1 %2"),
        steps=(
            (rb"F10|Quit", b"t"),
            (rb"Quit|\Z", b"\x1bOR"),
            (rb"Search|\Z", b"sleep\r"),
            (rb"\Z", b"h"),
            (rb"[Hh]elp", b"q"),
            (rb"\Z", b"S"),
            (rb"Setup|Meters|Categories", b"\x1b[B"),
            (rb"\Z", b"q"),
            (rb"\Z", b"q"),
        ),
        rows=30,
        cols=100,
        screen_only=True,
    ),
    Scenario(
        name="top",
        program="top",
        how="command lines, each processor, by memory, colours, help, quit",
        argv=(*ALONE, "--mount-proc", "sh", "-c", "sleep 99 & top -d 1; kill %1"),
        steps=(
            (rb"PID USER", b"c"),
            (rb"PID", b"1"),
            (rb"PID", b"M"),
            (rb"PID", b"z"),
            (rb"PID", b"h"),
            (rb"[Hh]elp", b"q"),
            (rb"PID", b"q"),
        ),
        screen_only=True,
    ),
    Scenario(
        name="python",
        program="python3",
        how="the REPL with readline: values, a function, history, completion, a traceback",
        argv=(_PYTHON, "-q"),
        steps=(
            (rb">>> \Z", b"sum(range(10))\r"),
            (rb">>> \Z", b"def f(x):\r"),
            (rb"\.\.\. \Z", b"    return x / 0\r"),
            (rb"\.\.\. \Z", b"\r"),
            (rb">>> \Z", b"\x1b[A\x1b[A\x1b[A\x1b[A\x01print(\x05, '\xe6\x97\xa5')\r"),
            (rb">>> \Z", b"f(1)\r"),
            (rb">>> \Z", b"import os; os.path.expan\t\t"),
            (rb"\Z", b"\x15f'{1:>20}' * 6\r"),
            (rb">>> \Z", b"\x12sum"),
            (rb"\Z", b"\r"),
            (rb">>> \Z", b"exit()\r"),
        ),
    ),
    Scenario(
        name="python-3.13",
        program="python3.13",
        how="the newer REPL with colours: editing over several lines, history, an error",
        argv=(_python_3_13(), "-q"),
        steps=(
            (rb">>> ", b"for i in range(3):\r"),
            (rb"\.\.\. ", b"print(i)\r"),
            (rb"\.\.\. ", b"\r"),
            (rb"2\r\n", b"1 / 0\r"),
            (rb"ZeroDivisionError", b"\x1b[A\x1b[A"),
            (rb"\Z", b"\x03"),
            (rb"\Z", b"'\xe6\x97\xa5' * 60\r"),
            (rb"\Z", b"exit()\r"),
        ),
        screen_only=True,
    ),
    Scenario(
        name="bash",
        program="bash",
        how="readline: history search, completion, a line that wraps, kill and yank, clear",
        argv=("bash", "--norc", "--noprofile", "-i"),
        env={"HISTFILE": f"{HOME}/history", "INPUTRC": "/dev/null"},
        prepare=_files(history="echo one\necho two words\n", alpha__txt="1\n", alphabet__txt="2\n"),
        steps=(
            (_PROMPT, b"echo hel\x7f\x7fello\r"),
            (_PROMPT, b"\x12two"),
            (rb"two", b"\x1b[D\x1b[D\x1b[C\r"),
            (_PROMPT, b"cat alph\t\t\t"),
            (rb"alphabet", b"b\t\r"),
            (_PROMPT, b"echo " + b"long line that wraps " * 8),
            (rb"wraps", b"\x01\x1b[C\x1b[C# in front \x1bb\x1bb\x05 at the end\r"),
            (_PROMPT, b"echo a b c d\x17\x17\x15\x19\x19\r"),
            (_PROMPT, b"printf '\\e[1mbold\\e[0m\\n\\ttab\\n'; clear\r"),
            (_PROMPT, b"for i in 1 2\rdo echo $i\rdone\r"),
            (_PROMPT, b"\x1b[A\x1b[A\x1b[B\x0c"),
            (rb"\$", b"\x03"),
            (_PROMPT, b"exit\r"),
        ),
        screen_only=True,
    ),
    Scenario(
        name="zsh",
        program="zsh",
        how="a right prompt, the mark of a missing line end, completion, history search",
        argv=("zsh", "-f", "-i"),
        env={"PS1": "$ ", "RPROMPT": "[right]"},
        prepare=_files(alpha__txt="1\n", alphabet__txt="2\n"),
        steps=(
            (rb"right\]", b"printf 'no line end'\r"),
            (rb"right\]", b"cat alph\t\t"),
            (rb"alphabet", b"\r"),
            (rb"right\]", b"echo \xe6\x97\xa5\xe6\x9c\xac e\xcc\x81\x1b[D\x1b[D\x1b[Dx\r"),
            (rb"right\]", b"\x12printf"),
            (rb"bck-i-search", b"\r"),
            (rb"right\]", b"exit\r"),
        ),
        screen_only=True,
    ),
    Scenario(
        name="fish",
        program="fish",
        how="colours as one types, suggestions from the history, completion with a pager",
        argv=("fish", "--no-config", "--private", "-C", "function fish_prompt; echo -n '$ '; end"),
        prepare=_files(alpha__txt="1\n", alphabet__txt="2\n"),
        steps=(
            (rb"\Z", b"echo one two\r"),
            (rb"one two\r\n", b"echo o"),
            (rb"\Z", b"\x1b[C"),
            (rb"\Z", b"\r"),
            (rb"\Z", b"cat alph\t\t"),
            (rb"alphabet", b"\x1b"),
            (rb"\Z", b"\x03"),
            (rb"\Z", b"exit\r"),
        ),
        screen_only=True,
    ),
    Scenario(
        name="textual",
        program="a program made with Textual",
        how="a table, an input, a button and a footer, moved between by keys",
        argv=("venv/bin/python", "board.py"),
        prepare=_venv("textual", board__py=material.TEXTUAL_BOARD),
        steps=(
            (rb"Quit|quit", b"\t"),
            (rb"\Z", b"\x1b[B\x1b[B"),
            (rb"\Z", b"\t"),
            (rb"\Z", b"typed \xe6\x97\xa5"),
            (rb"\Z", b"\t\r"),
            (rb"\Z", b"\x11"),
        ),
        screen_only=True,
    ),
    Scenario(
        name="bars",
        program="tqdm, and bars by hand",
        how="one bar, a bar with messages between, spinners with CR, BS and erase",
        argv=("venv/bin/python", "bars.py"),
        prepare=_venv("tqdm", bars__py=material.BARS),
    ),
    Scenario(
        name="rich",
        program="rich",
        how="bars that redraw several lines, a table, a tree, markup",
        argv=("venv/bin/python", "live.py"),
        prepare=_venv("rich", live__py=material.RICH_LIVE),
    ),
    Scenario(
        name="wide",
        program="python3",
        how="wide, combining, joined characters, written over by halves; bytes that are no UTF-8",
        argv=(_PYTHON, "wide.py"),
        prepare=_files(wide__py=material.WIDE),
    ),
    Scenario(
        name="man",
        program="man, less",
        how="man ls: a page, a search, back to the beginning, quit",
        argv=("man", "ls"),
        steps=(
            (rb"line 1", b" "),
            (rb"line \d+", b"/sort\r"),
            (rb"line \d+", b"g"),
            (rb"line \d+", b"q"),
        ),
        screen_only=True,
    ),
    Scenario(
        name="tmux",
        program="tmux",
        how="two panes, output in one, scrolling back, the list of windows, the end",
        argv=("tmux", "-L", "recording", "-f", "tmux.conf", "new", "sh"),
        env={"SHELL": "/bin/sh"},
        prepare=_files(tmux__conf="set -g status-right ''\nset -g default-command sh\n"),
        steps=(
            (rb"\$ ", b"seq 40; printf '\\033[7mshown\\033[m\\n'\r"),
            (rb"shown", b"\x02%"),
            (rb"\Z", b"echo in the other\r"),
            (rb"in the other", b"\x02["),
            (rb"\Z", b"\x1b[A\x1b[Aq"),
            (rb"\Z", b"\x02w"),
            (rb"\Z", b"q"),
            (rb"\Z", b"\x02:"),
            (rb":", b"kill-server\r"),
        ),
        screen_only=True,
    ),
)
