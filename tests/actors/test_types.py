"""What the type checker knows of tells and asks."""

from __future__ import annotations

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
from actors import Actor, Ref, Reply, Request


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
            case Owner():
                self.reply(message, "ada")


async def use(account: Ref[Deposit | Balance | Owner], other: Ref[str]) -> None:
    account.tell(Deposit(1))
    account.tell("nonsense")  # an error
    reveal_type(await account.ask(Balance()))
    reveal_type(await account.ask(Owner()))
    await account.ask(Deposit(1))  # an error
    reveal_type(account.send_request(Owner()))
    narrowed: Ref[Deposit] = account
    widened: Ref[Deposit | Balance | Owner] = other  # an error
"""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """What mypy says of each line of the program, by the line's number."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "program.py").write_text(PROGRAM)
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
    return {int(match[1]): match[2] for match in lines if match is not None}


def said_of(verdicts: dict[int, str], code: str) -> str:
    """The verdict on the one line that contains ``code``."""
    (number,) = [n for n, line in enumerate(PROGRAM.splitlines(), 1) if code in line]
    return verdicts.get(number, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "revealed"),
    [
        ("account.ask(Balance())", "int"),
        ("account.ask(Owner())", "str"),
        ("account.send_request(Owner())", "actors.reply.Reply[str]"),
        ("self.defer(message)", "actors.reply.Reply[int]"),
    ],
)
def test_the_class_of_an_answer_is_known(
    verdicts: dict[int, str], code: str, revealed: str
) -> None:
    said = said_of(verdicts, code).replace("builtins.", "")
    assert f'Revealed type is "{revealed}"' in said


@pytest.mark.slow
def test_every_misuse_is_an_error_and_nothing_else_is(verdicts: dict[int, str]) -> None:
    wrong = {n for n, line in enumerate(PROGRAM.splitlines(), 1) if "# an error" in line}
    assert len(wrong) == 3
    assert {number for number, said in verdicts.items() if said.startswith("error")} == wrong
