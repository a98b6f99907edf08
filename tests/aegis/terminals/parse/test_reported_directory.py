"""OSC 7: which reports of a directory count."""

from __future__ import annotations

import pytest

from aegis.terminals.parse.reported_directory import reported_directory


@pytest.mark.parametrize(
    ("content", "directory"),
    [
        (b"file:///tmp", "/tmp"),
        (b"file://here/srv/a", "/srv/a"),
        (b"file://HERE/srv/a", "/srv/a"),
        (b"file://localhost/srv", "/srv"),
        (b"file:///a%20b/%C3%BC", "/a b/ü"),
        (b"file:///a b/\xc3\xbc", "/a b/ü"),
        (b"file:///100%", "/100%"),
        (b"kitty-shell-cwd://here/a%20b", "/a%20b"),
        (b"file://there/srv/a", None),
        (b"file://here.example.org/srv", None),
        (b"file://here", None),
        (b"file://\xff/srv", None),
        (b"file:///\xff", r"$'/\xff'"),
        (b"file:///a%20b%FF", r"$'/a b\xff'"),
        (b"kitty-shell-cwd://here/\xff", r"$'/\xff'"),
        (b"file:///a%00b", None),
        (b"file:///a%0Ab", None),
        (b"/srv", None),
        (b"http://here/srv", None),
        (b"relative", None),
        (b"", None),
    ],
)
def test_a_report_counts_if_it_is_of_this_host_and_absolute(
    content: bytes, directory: str | None
) -> None:
    assert reported_directory(content, ("here",)) == directory
