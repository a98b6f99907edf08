"""The types of messages, answers and specs, as mypy and basedpyright see them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
from __future__ import annotations

import attrs
from actors import Actor, ChildSpec, MailboxSpec, Ref, Request, Restart


@attrs.frozen
class Deposit:
    amount: int


@attrs.frozen
class Balance(Request[int]):
    pass


@attrs.frozen
class Owner(Request[str]):
    pass


class Account(Actor[Deposit | Balance | Owner]):
    async def receive(self, message: Deposit | Balance | Owner) -> None:
        match message:
            case Balance():
                self.reply(message, 3)
                reveal_type(self.defer(message))
                self.reply(message, "three")  # an error
                self.defer(message).send("three")  # an error
            case Owner():
                self.reply(message, "ada")
                self.reply(message, None)  # an error
            case Deposit():
                pass


async def use(account: Ref[Deposit | Balance | Owner], other: Ref[str]) -> None:
    account.tell(Deposit(1))
    account.tell("nonsense")  # an error
    print(await account.ask(Balance()))
    maybe: int | None = await account.ask(Balance())
    anything: object = await account.ask(Owner())
    wrong: str = await account.ask(Balance())  # an error
    reveal_type(await account.ask(Balance()))
    reveal_type(await account.ask(Owner()))
    await account.ask(Deposit(1))  # an error
    reveal_type(account.send_request(Owner()))
    waited: str | None = await account.send_request(Owner()).wait()
    print(await account.send_request(Owner()).wait())
    narrowed: Ref[Deposit] = account
    widened: Ref[Deposit | Balance | Owner] = other  # an error
    print(maybe, anything, wrong, waited, narrowed, widened)


class Inbox(Actor[Deposit]):
    def __init__(self, *, name: str, limit: int = 10) -> None:
        self._limits = {name: limit}


class Plain:
    pass


def specs() -> None:
    ChildSpec.of("account", Account)
    ChildSpec.of("inbox", Inbox, name="ada")
    ChildSpec.of("inbox", Inbox, name="ada", limit=3).with_options(restart=Restart.TRANSIENT)
    ChildSpec.of("inbox", Inbox, name="bob").with_options(mailbox=MailboxSpec(), shutdown_s=2)
    ChildSpec.of("missing", Inbox)  # an error
    ChildSpec.of("wrong", Inbox, name=3)  # an error
    ChildSpec.of("unknown", Inbox, name="ada", size=3)  # an error
    ChildSpec.of("extra", Account, name="ada")  # an error
    ChildSpec.of("plain", Plain)  # an error
    ChildSpec.of("option", Account).with_options(restart="never")  # an error
    ChildSpec.of("options", Account).with_options(restarts=3)  # an error
"""

PYRIGHT = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT)]}

Verdicts = dict[int, str]
"""What a checker prints about each line of the program, by the line's number."""


def by_mypy(folder: Path) -> Verdicts:
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "program.py"],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    lines = (re.fullmatch(r"program\.py:(\d+): (.*)", line) for line in run.stdout.splitlines())
    found = [(int(match[1]), match[2]) for match in lines if match is not None]
    return dict(reversed(found))  # an error, not the note that follows it


def by_pyright(folder: Path) -> Verdicts:
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
    run = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "program.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    return {
        each["range"]["start"]["line"] + 1: f"{each['severity']}: {each['message']}"
        for each in json.loads(run.stdout)["generalDiagnostics"]
    }


@pytest.fixture(scope="module", params=[by_mypy, by_pyright], ids=["mypy", "pyright"])
def verdicts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    folder = tmp_path_factory.mktemp("types")
    (folder / "program.py").write_text(PROGRAM)
    found: Verdicts = request.param(folder)
    return found


def said_of(verdicts: Verdicts, code: str) -> str:
    """The verdict on the one line that contains ``code``."""
    (number,) = [n for n, line in enumerate(PROGRAM.splitlines(), 1) if code in line]
    return verdicts.get(number, "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "revealed"),
    [
        ("reveal_type(await account.ask(Balance()))", "int"),
        ("reveal_type(await account.ask(Owner()))", "str"),
        ("reveal_type(account.send_request(Owner()))", "Reply[str]"),
        ("reveal_type(self.defer(message))", "Reply[int]"),
    ],
)
def test_the_class_of_an_answer_is_known(verdicts: Verdicts, code: str, revealed: str) -> None:
    found = said_of(verdicts, code).replace("builtins.", "").replace("actors.reply.", "")
    assert re.search(rf'(Revealed type|Type of ".*") is "{re.escape(revealed)}"', found)


@pytest.mark.long
def test_every_misuse_is_an_error_and_nothing_else_is(verdicts: Verdicts) -> None:
    wrong = {n for n, line in enumerate(PROGRAM.splitlines(), 1) if "# an error" in line}
    assert len(wrong) == 14
    assert {number for number, said in verdicts.items() if said.startswith("error")} == wrong
