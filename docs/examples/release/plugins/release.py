"""A release: reviewed by a group, prepared by a queue, written on a canvas, allowed by a person."""

import shlex
import subprocess

from aegis import workflow

REVIEW = (
    "Release {version} of this project is due. Read cart.py and test_cart.py. "
    "Is there a reason to hold the release back?"
)
TESTS = (
    "Release {version}, run the tests: run `pytest -q` on the shared terminal 'tests', "
    "and append its last line to the section 'Tests' of the canvas 'release'."
)
CHANGELOG = (
    "Release {version}, write the changelog: read cart.py and the canvas 'release', and append one "
    "line for the users of this project to its section 'Changelog'."
)


@workflow
async def release(engine, *, version: str):
    """Review, test, describe and tag a version."""
    committee = await engine.group(preset="committee")
    votes = await committee.broadcast(
        REVIEW.format(version=version),
        output_format="One word: 'release' or 'hold'.",
        reducer="majority_vote",
    )
    if (votes.reduced or "").strip().lower() != "release":
        return f"{version} is held back: {votes.replies}, {votes.missing}"

    await shell(engine, "aegis-actors", "canvas", "open", "release", "release.md")
    tests, changelog = TESTS.format(version=version), CHANGELOG.format(version=version)
    first = await task(engine, "tests", tests)
    await task(engine, "changelog", changelog, "--after", first)
    await task(engine, "changelog", changelog, "--wait", "3600")

    answer = await engine.ask_human(f"Tag {version}?", options=["yes", "no"])
    if answer != "yes":
        return f"{version} is not tagged"
    return await engine.step("tag", lambda: tag(version))


async def task(engine, name, payload, *options):
    """Give a task to the queue. The key makes it the same task, however often this is called."""
    key = f"{engine.workflow_id}/{name}"
    add = ["aegis-actors", "queue", "add", "--key", key, *options, "work", payload]
    return await shell(engine, *add)


async def shell(engine, *words):
    """Run a command that may be repeated; return what it prints."""
    done = await engine.bash(shlex.join(words), retry=True)
    if done.exit != 0:
        raise RuntimeError(f"{words}: {done.stderr or done.stdout}")
    return done.stdout.strip()


def tag(version):
    """Commit what the agents wrote, and tag it. A step: it is done once."""
    subprocess.run(["git", "add", "release.md"], check=True)
    subprocess.run(["git", "commit", "-qm", f"Release {version}"], check=True)
    subprocess.run(["git", "tag", f"v{version}"], check=True)
    return f"{version} is tagged"
