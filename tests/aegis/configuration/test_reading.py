"""What a file means, and what is told of a bad one: every sentence, with its line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.configuration.document import MAX_DEPTH
from aegis.configuration.problems import MAX_PROBLEMS, BadConfiguration
from aegis.configuration.reading import parse
from aegis.configuration.sections import MAX_BYTES, Configuration, Parsed
from aegis.configuration.terminals import TerminalsSection

ALL_KEYS = (
    "terminals.shell, terminals.cols, terminals.rows, terminals.raw_log_bytes, terminals.timeout_s"
)
TOP = (
    "terminals, nodes, agents, default_agent, queues, canvases, plugin_dirs, groups, limits, "
    "keep, lifecycle, worktrees, telegram"
)
PROGRAM = "the name of a program or an absolute path"


def told(content: bytes) -> list[str]:
    """The lines that a bad file is answered with, without the name of the file."""
    with pytest.raises(BadConfiguration) as caught:
        parse(content)
    return [line.removeprefix(".aegis.yaml ") for line in caught.value.lines()]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"# nothing yet\n",
        b"---\n",
        b"---\n...\n",
        b"~\n",
        b"null",
        b"{}",
        b"terminals:\n",
        b"terminals: # all left out\n#  cols: 100\n",
        b"terminals: {}\n",
        b"\xef\xbb\xbf",
    ],
)
def test_a_file_that_says_nothing_means_the_defaults(content: bytes) -> None:
    parsed = parse(content)
    assert parsed.configuration == Configuration()
    assert parsed.given == ()


@pytest.mark.parametrize(
    ("content", "section"),
    [
        (b"terminals:\n  cols: 132\n", TerminalsSection(cols=132)),
        (b"\xef\xbb\xbfterminals: {cols: 132}", TerminalsSection(cols=132)),
        (b"terminals:\r\n  cols: 132\r\n  rows: 1\r\n", TerminalsSection(cols=132, rows=1)),
        (b"terminals: {cols: 2, rows: 1000}", TerminalsSection(cols=2, rows=1000)),
        (b"terminals:\n  shell: fish # the friendly one\n", TerminalsSection(shell="fish")),
        (b"terminals:\n  shell: 'no'\n", TerminalsSection(shell="no")),
        (b'terminals:\n  shell: "/opt/\\u00e9/sh"\n', TerminalsSection(shell="/opt/é/sh")),
        (b"terminals:\n  shell: /bin/my shell\n", TerminalsSection(shell="/bin/my shell")),
        (b"terminals:\n  timeout_s: 300\n", TerminalsSection(timeout_s=300.0)),
        (b"terminals:\n  timeout_s: 0.5\n", TerminalsSection(timeout_s=0.5)),
        (b"terminals:\n  timeout_s: 1e3\n", TerminalsSection(timeout_s=1000.0)),
        (b"terminals:\n  raw_log_bytes: 65536\n", TerminalsSection(raw_log_bytes=65_536)),
        (b'{"terminals": {"rows": 5}}', TerminalsSection(rows=5)),
    ],
)
def test_what_a_good_file_says_holds(content: bytes, section: TerminalsSection) -> None:
    assert parse(content).configuration == Configuration(terminals=section)


def test_it_is_known_which_keys_the_file_gives_in_the_order_of_the_sections() -> None:
    parsed = parse(b"terminals:\n  timeout_s: 50\n  cols: 80\n")
    assert parsed.configuration == Configuration()
    assert parsed.given == ("terminals.cols", "terminals.timeout_s")


WHOLE = "must be a whole number from"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("cols: wide", f"cols {WHOLE} 2 to 1000, not 'wide'"),
        ("cols: 1", f"cols {WHOLE} 2 to 1000, not 1"),
        ("cols: 1001", f"cols {WHOLE} 2 to 1000, not 1001"),
        ("cols: -80", f"cols {WHOLE} 2 to 1000, not -80"),
        ("cols: 80.0", f"cols {WHOLE} 2 to 1000, not 80.0"),
        ("cols: yes", f"cols {WHOLE} 2 to 1000, not 'yes'"),
        ("cols: '80'", f"cols {WHOLE} 2 to 1000, not the quoted '80': leave the quotes out"),
        ("cols: 'a'", f"cols {WHOLE} 2 to 1000, not the quoted 'a'"),
        (
            "cols: 0o120",
            f"cols {WHOLE} 2 to 1000, not '0o120'; write it in plain decimal digits",
        ),
        ("cols: 0120", f"cols {WHOLE} 2 to 1000, not 0120; write it in plain decimal digits"),
        ("cols: 0x50", f"cols {WHOLE} 2 to 1000, not '0x50'; write it in plain decimal digits"),
        ("cols: 1_00", f"cols {WHOLE} 2 to 1000, not '1_00'; write it in plain decimal digits"),
        ("cols: 1:30", f"cols {WHOLE} 2 to 1000, not '1:30'; write it in plain decimal digits"),
        ("cols: +80", f"cols {WHOLE} 2 to 1000, not '+80'; write it in plain decimal digits"),
        ("cols: " + "9" * 5000, f"cols {WHOLE} 2 to 1000, not '{'9' * 59}…'"),
        ("cols:", "cols has no value: give a whole number from 2 to 1000, or leave the key out"),
        ("cols: [80]", f"cols {WHOLE} 2 to 1000, not a list"),
        ("cols: {a: 1}", f"cols {WHOLE} 2 to 1000, not a mapping"),
        ("rows: 0", f"rows {WHOLE} 1 to 1000, not 0"),
        ("raw_log_bytes: 65535", f"raw_log_bytes {WHOLE} 65536 to 1073741824, not 65535"),
        ("raw_log_bytes: 10 MB", f"raw_log_bytes {WHOLE} 65536 to 1073741824, not '10 MB'"),
        ("timeout_s: 0", "timeout_s must be a number from 0.01 to 86400, not 0"),
        ("timeout_s: 86401", "timeout_s must be a number from 0.01 to 86400, not 86401"),
        ("timeout_s: .inf", "timeout_s must be a number from 0.01 to 86400, not '.inf'"),
        ("timeout_s: .nan", "timeout_s must be a number from 0.01 to 86400, not '.nan'"),
        ("timeout_s: 1e999", "timeout_s must be a number from 0.01 to 86400, not 1e999"),
        ("timeout_s: soon", "timeout_s must be a number from 0.01 to 86400, not 'soon'"),
        (
            "shell: no",
            f"shell must be {PROGRAM}; YAML takes 'no' for true or false: if it is a program, "
            "put it in quotes",
        ),
        (
            "shell: on",
            f"shell must be {PROGRAM}; YAML takes 'on' for true or false: if it is a program, "
            "put it in quotes",
        ),
        (
            "shell: 5",
            f"shell must be {PROGRAM}; YAML takes 5 for a number: if it is a program, put it in "
            "quotes",
        ),
        (
            "shell: 2026-01-01",
            f"shell must be {PROGRAM}; YAML takes '2026-01-01' for a date: if it is a program, "
            "put it in quotes",
        ),
        ("shell: ~", f"shell has no value: give {PROGRAM}, or leave the key out"),
        ("shell: ''", f"shell must be {PROGRAM}, not the quoted ''"),
        ("shell: ~/bin/zsh", f"shell must be {PROGRAM}, not '~/bin/zsh'"),
        ("shell: bin/zsh", f"shell must be {PROGRAM}, not 'bin/zsh'"),
        ('shell: "a\\0b"', f"shell must be {PROGRAM}, not the quoted 'a\\x00b'"),
        ('shell: "\\e[31m"', f"shell must be {PROGRAM}, not the quoted '\\x1b[31m'"),
        ('shell: "\\uD800"', f"shell must be {PROGRAM}, not the quoted '\\ud800'"),
        ("shell: " + "x" * 16388, "shell must be at most 16387 characters long, not 16388"),
        ("colums: 80", "there is no key 'terminals.colums'; did you mean 'terminals.cols'?"),
        ("Cols: 80", "there is no key 'terminals.Cols'; did you mean 'terminals.cols'?"),
        ("scrollback: 5", f"there is no key 'terminals.scrollback'; the known keys are {ALL_KEYS}"),
        ("? [a]\n  : 1", "a key must be a name, not a list"),
        ("cols: 80: 3", "cannot be read as YAML: mapping values are not allowed here"),
        ("cols: &a 80", "anchors (&) and aliases (*) are not allowed: write the value itself"),
        ("cols: *a", "anchors (&) and aliases (*) are not allowed: write the value itself"),
        ("cols: !!int '80'", "tags (!) are not allowed: leave the tag out"),
        (
            "shell: !!python/object/apply:os.system [id]",
            "tags (!) are not allowed: leave the tag out",
        ),
        ('shell: "\\UFFFFFFFF"', "cannot be read as YAML: a number in it is out of range"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_bad_value_is_told_with_its_line_and_what_is_expected(
    value: str, sentence: str, end: str
) -> None:
    lines = ["# our terminals", "", "terminals:", "  # how they begin", f"  {value}", ""]
    [line] = told("\n".join(lines).replace("\n", end).encode())
    about, _, _ = sentence.partition(" ")
    is_key = f"{about}:" in value
    assert line == f"line 5: {'terminals.' if is_key else ''}{sentence}"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"hello", "line 1: must be a mapping such as 'terminals:', not 'hello'"),
        (b"\n[1, 2]", "line 2: must be a mapping such as 'terminals:', not a list"),
        (
            b"terminals: 5",
            "line 1: terminals must be a mapping of shell, cols, rows, raw_log_bytes, timeout_s, "
            "not '5'",
        ),
        (
            b"terminals:\n- cols: 5",
            "line 2: terminals must be a mapping of shell, cols, rows, raw_log_bytes, timeout_s, "
            "not a list",
        ),
        (b"terminal:\n  cols: 5", "line 1: there is no key 'terminal'; did you mean 'terminals'?"),
        (b"cols: 5", "line 1: there is no key 'cols'; did you mean 'terminals.cols'?"),
        (b"web: {port: 1}", f"line 1: there is no key 'web'; the known keys are {TOP}"),
        (b"<<: {cols: 5}", f"line 1: there is no key '<<'; the known keys are {TOP}"),
        (
            b"terminals:\n  cols: 5\n  rows: 5\n  cols: 6",
            "line 4: terminals.cols is repeated; it is already on line 2: keep one of them",
        ),
        (
            b"terminals: {}\nterminals: {}",
            "line 2: terminals is repeated; it is already on line 1: keep one of them",
        ),
        (
            b"terminals:\n\tcols: 5",
            "line 2: a tab is used for indentation: indent with spaces",
        ),
        (
            b"terminals: {}\n---\nterminals: {}",
            "line 2: a second document begins ('---'): keep only one document",
        ),
        (
            b"terminals:\n  cols: 5\n rows: 5",
            "line 3: cannot be read as YAML: expected <block end>, but found "
            "'<block mapping start>'",
        ),
        (b"terminals: {", "line 1: cannot be read as YAML: expected the node content, but found "),
        (b"[" * 100_000, f"line 1: is nested more than {MAX_DEPTH} levels deep"),
        (b"- " * 100_000, f"line 1: is nested more than {MAX_DEPTH} levels deep"),
        (b"a:\n  b: \xff", "line 2: is not UTF-8 text: save it as UTF-8"),
        ("terminals: {}".encode("utf-16"), "line 1: is not UTF-8 text: save it as UTF-8"),
        (
            b"terminals:\r\n  cols: 5\r\n  rows: \x00",
            "line 3: contains the character U+0000, which YAML does not allow: remove it",
        ),
        (
            b"# \x1b[31m",
            "line 1: contains the character U+001B, which YAML does not allow: remove it",
        ),
        (
            b"\x7fELF\x02\x01\x01",
            "line 1: contains the character U+007F, which YAML does not allow: remove it",
        ),
    ],
)
def test_a_bad_file_is_told_with_its_line(content: bytes, line: str) -> None:
    [said] = told(content)
    assert said.startswith(line)
    assert said == line or said.endswith("'<stream end>'")


def test_billions_of_laughs_are_refused_at_the_first_anchor() -> None:
    lines = ["a: &a [lol]"]
    lines += [f"{chr(n + 1)}: &{chr(n + 1)} [{f'*{chr(n)}, ' * 9}]" for n in range(97, 110)]
    assert told("\n".join(lines).encode()) == [
        "line 1: anchors (&) and aliases (*) are not allowed: write the value itself"
    ]


def test_a_file_may_be_as_long_as_the_bound_and_no_longer() -> None:
    assert parse(b"#" * MAX_BYTES).given == ()
    with pytest.raises(BadConfiguration) as caught:
        parse(b"#" * (MAX_BYTES + 1))
    assert caught.value.lines() == [f".aegis.yaml: is longer than {MAX_BYTES} bytes, the maximum"]


def test_several_problems_are_told_at_once_in_the_order_of_the_file() -> None:
    content = b"terminal: 1\nterminals:\n  cols: x\n  rowz: 5\nterminals: {}\n"
    assert told(content) == [
        "line 1: there is no key 'terminal'; did you mean 'terminals'?",
        "line 3: terminals.cols must be a whole number from 2 to 1000, not 'x'",
        "line 4: there is no key 'terminals.rowz'; did you mean 'terminals.rows'?",
        "line 5: terminals is repeated; it is already on line 2: keep one of them",
    ]


def test_no_more_than_a_handful_is_told_one_by_one() -> None:
    lines = told(b"".join(b"key%d: 1\n" % number for number in range(3000)))
    assert len(lines) == MAX_PROBLEMS + 1
    assert lines[0] == f"line 1: there is no key 'key0'; the known keys are {TOP}"
    assert lines[-1] == f".aegis.yaml: and {3000 - MAX_PROBLEMS} more like these"


def test_a_problem_knows_its_column_and_key() -> None:
    with pytest.raises(BadConfiguration) as caught:
        parse(b"terminals:\n  cols:   x\n")
    [problem] = caught.value.problems
    assert problem.place is not None
    assert (problem.place.line, problem.place.column, problem.key) == (2, 11, "terminals.cols")


def test_a_sentence_stays_short_whatever_is_in_the_file() -> None:
    long = "k" * 1000
    for content in (f"{long}: 1", f"terminals: {{{long}: 1}}", long, f"terminals: {long}"):
        [line] = told(content.encode())
        assert len(line) < 300


WORDS = "terminals: |shell: no|rows: 5|cols|: |80|%YAML 1.1|---|...|é|\u2028|\x85|\ufeff|\\U|\\x|<<"
SNIPPETS = st.sampled_from([*WORDS.split("|"), *"\n -[]{},&*!'\"\\|>#?\t\r~=@`\x00"])


def outcome(content: bytes) -> Parsed | BadConfiguration:
    """What was read, or the refusal; any other exception is a failure."""
    try:
        return parse(content)
    except BadConfiguration as error:
        return error


def check(content: bytes) -> None:
    """It is read, or refused in a few sentences that can be shown, with places that can be."""
    found = outcome(content)
    if isinstance(found, Parsed):
        assert isinstance(found.configuration, Configuration)
        return
    assert 1 <= len(found.problems) <= MAX_PROBLEMS
    for problem in found.problems:
        assert problem.sentence
        assert problem.sentence.isprintable()
        assert problem.place is not None
        assert 1 <= problem.place.line <= len(content) + 1
        assert 1 <= problem.place.column <= len(content) + 1


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_read_or_refused(content: bytes) -> None:
    check(content)


@given(st.text(max_size=200))
def test_arbitrary_text_is_read_or_refused(text: str) -> None:
    check(text.encode("utf-8", "replace"))


@given(st.lists(SNIPPETS, max_size=40).map("".join))
def test_what_looks_like_yaml_is_read_or_refused(text: str) -> None:
    check(text.encode())


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_quoted_text_is_a_shell_or_refused_as_one(text: str) -> None:
    quoted = json.dumps(text)
    found = outcome(f"terminals:\n  shell: {quoted}\n".encode())
    if isinstance(found, Parsed):
        assert found.configuration.terminals.shell == text
    else:
        [problem] = found.problems
        assert problem.key == "terminals.shell"
        assert problem.place is not None
        assert problem.place.line == 2
