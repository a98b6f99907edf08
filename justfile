# What is done with this checkout. Nothing needs to be installed first:
#
#     .ci/uv run just             lists the verbs
#     .ci/uv run just check
#
# Each verb goes through .ci/uv, which makes or updates the environment in .venv/.

set shell := ["bash", "-euo", "pipefail", "-c"]
set positional-arguments

run := ".ci/uv run"

_verbs:
    @{{ run }} just --list --unsorted

# Style, format, types, and the import law.
check: lint
    {{ run }} pytest -q tests/test_architecture.py

# Style, format and types.
lint:
    {{ run }} ruff check
    {{ run }} ruff format --check
    {{ run }} mypy --strict

# All tests but those that are marked `long` or `agents`; arguments go to pytest. -m '' adds the long ones.
test *arguments:
    {{ run }} pytest -n auto --dist worksteal -m 'not long and not agents' "$@"

# Real agent CLIs, each in a session offline with a scripted model and a daemon: all, or --agent NAME.
# They are installed once, 2 GB in the user's cache, or in the directory that AEGIS_AGENT_CLIS names.
agents *arguments:
    {{ run }} pytest -q -m agents tests/agents_real "$@"

# The size of the packages beside their budgets; --journeys: the code that four journeys enter too.
house *arguments:
    @{{ run }} python -m tests.house "$@"

# The ten slowest tests of the last run; or of a file of .durations/, with --count COUNT.
slowest *arguments:
    @{{ run }} python -m tests.durations "$@"

# The property tests with many examples, then SEEDS random histories, each of a seed of its own.
sim seeds="300":
    #!/usr/bin/env bash
    set -euo pipefail
    seed=$((RANDOM * 32768 + RANDOM))
    if ! just properties "$seed"; then
        echo "again with: .ci/uv run just properties $seed" >&2
        exit 1
    fi
    {{ run }} python -m tests.chaos --seed "$seed" --seeds {{ seeds }}

# Try the promises while things go wrong: --seed, --seeds, --minutes, --jobs; --real, --real --agents.
chaos *arguments:
    @{{ run }} python -m tests.chaos "$@"

# Play the random history of SEED again: what broke, the shortest script that breaks it, its trace.
replay seed:
    {{ run }} python -m tests.chaos --seed {{ seed }} --seeds 1

# The property tests from one seed; fewer EXAMPLES for each test make it shorter.
properties seed examples="500":
    AEGIS_SIM_EXAMPLES={{ examples }} {{ run }} pytest -q -n auto --dist worksteal \
        -m hypothesis --hypothesis-profile=sim --hypothesis-seed={{ seed }}

# Kill daemons with -9, KILLS times at each fault point, before and after each call of the disk and while
# each fails, and RANDOM times at any moment: 75 x KILLS + RANDOM in all. A table tells what was checked.
# Further arguments go to pytest: --crash-seed repeats the choices of a failure.
crash kills="12" random="120" *arguments:
    AEGIS_KILL_SEEDS=${AEGIS_KILL_SEEDS:-8} {{ run }} pytest -n auto --dist worksteal -k "kill or crash" \
        tests/crash tests/e2e tests/aegis/journal \
        --kills {{ kills }} --random-kills {{ random }} "${@:3}"

# Cut the wire between two hosts (network namespaces: as root) under load, CUTS times, and kill workers
# as often; the hosts are killed now and then. Another SEED is another load. Ends in figures each time.
cuts cuts="10" seed="1":
    AEGIS_CUTS={{ cuts }} AEGIS_CUTS_SEED={{ seed }} {{ run }} pytest -q -s -k promises \
        tests/e2e/test_two_hosts.py tests/e2e/test_killed_workers.py

# Let everything go wrong once at each place of the durable paths, on a simulated disk; SEEDS orders of
# tasks are tried. Further arguments go to pytest: -k SCENARIO.
ring1 seeds="1" *arguments:
    {{ run }} pytest -q -n auto tests/faults --every-fault --fault-seeds {{ seeds }} "${@:2}"

# Fuzz the parser of marks, the boundaries and the text cleaner for SECONDS together, guided by what
# code they reach. Further arguments: --only TARGET, --keep, --add TARGET FILE.
fuzz seconds="600" *arguments:
    {{ run }} --group fuzz python -m tests.fuzz.run "$@"

# Speed and memory, as ratios in one run; --check compares with the stored ones.
bench *arguments:
    {{ run }} python tests/bench/run.py "$@"

# The documentation: links, examples, and that what is generated is up to date.
docs:
    {{ run }} pytest -q tests/test_docs.py tests/aegis/protocol/derived/test_document.py

# Bundle the web page, after a change of its sources. Start the daemon again afterwards.
page:
    @{{ run }} python .ci/hatch_build.py

# Make the pictures in docs/images anew, the moving one too: look at each before you commit it.
pictures:
    AEGIS_PICTURES=1 {{ run }} pytest -q tests/web/test_every_view.py tests/e2e/test_moving_picture.py -k picture

# The worked example, by command line, on a daemon of its own; it ends by itself.
demo:
    {{ run }} .ci/demo
