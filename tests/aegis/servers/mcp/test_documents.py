"""Resources as documents: addresses, permissions, and what fits one reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aegis.errors import Forbidden, NotFound
from aegis.protocol.resources import Inbox, Ledger, Resource, resource_at
from aegis.servers.calls import OPERATOR, Identity
from aegis.servers.mcp.documents import MAX_BYTES, check_may_read, document_of, reading_of

ALICE = Identity(handle="alice", operator=False)


@pytest.mark.parametrize(
    "resource", [Ledger("build"), Ledger("A.b-c_9"), Inbox("pm"), Inbox("human")]
)
def test_an_address_leads_back_to_its_resource(resource: Resource) -> None:
    assert resource_at(resource.uri) == resource
    assert resource.key == resource.uri.lower()


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "aegis://terminals",
        "aegis://terminals//ledger",
        "aegis://terminals/a/ledger/",
        "aegis://terminals/../ledger",
        "aegis://terminals/a%20b/ledger",
        "aegis://inbox/",
        "aegis://inbox/pm\n",
        "AEGIS://inbox/pm",
        "file:///etc/passwd",
    ],
)
def test_what_is_no_address_is_told_what_there_is(uri: str) -> None:
    with pytest.raises(NotFound) as caught:
        resource_at(uri)
    assert str(caught.value) == (
        f"there is no resource {uri!r}; there are aegis://terminals/{{name}}/ledger, "
        "aegis://inbox/{handle}, aegis://canvases/{name} and aegis://queues/{name}"
    )


def test_an_inbox_is_for_its_handle_and_the_operator() -> None:
    check_may_read(ALICE, Ledger("build"))
    check_may_read(ALICE, Inbox("Alice"))
    check_may_read(OPERATOR, Inbox("alice"))
    with pytest.raises(Forbidden, match=r"aegis://inbox/bob is not yours: .* to 'alice'"):
        check_may_read(ALICE, Inbox("bob"))


@pytest.mark.parametrize(
    ("identity", "resource", "name", "arguments"),
    [
        (ALICE, Ledger("build"), "term_read", {"name": "build", "last_n": 1000}),
        (ALICE, Inbox("alice"), "inbox_read", {"limit": 1000}),
        (OPERATOR, Inbox("alice"), "inbox_read", {"limit": 1000, "from_handle": "alice"}),
    ],
)
def test_a_resource_is_read_by_a_command(
    identity: Identity, resource: Resource, name: str, arguments: dict[str, object]
) -> None:
    entry, given = reading_of(identity, resource)
    assert (entry.name, given) == (name, arguments)


def items(count: int, text: str) -> list[dict[str, Any]]:
    return [{"id": f"m{number}", "text": text} for number in range(count)]


@pytest.mark.parametrize("plain", [{"result": items(3, "é\n")}, {"result": []}])
def test_what_fits_is_given_whole(plain: dict[str, Any]) -> None:
    assert json.loads(document_of(plain)) == plain


def test_messages_that_fit_are_given_whole_with_their_cursor() -> None:
    plain = {"messages": items(3, "x"), "next": "m2"}
    assert json.loads(document_of(plain)) == plain
    assert json.loads(document_of({"messages": [], "next": None})) == {"messages": [], "next": None}


@pytest.mark.parametrize("text", ["x" * 1000, '"\\\n' * 300, "日本" * 200])
def test_of_records_the_newest_stay_and_of_messages_the_oldest(text: str) -> None:
    many = items(4000, text)
    ledger, inbox = document_of({"result": many}), document_of({"messages": many, "next": "m3999"})
    for document in (ledger, inbox):
        framed = len(json.dumps(document, ensure_ascii=False).encode())
        assert MAX_BYTES * 0.9 < framed < 1024 * 1024
    newest, oldest = json.loads(ledger), json.loads(inbox)
    assert newest["more"] is oldest["more"] is True
    assert newest["result"][-1]["id"] == "m3999"
    assert oldest["messages"][0]["id"] == "m0"
    assert oldest["next"] == oldest["messages"][-1]["id"] != "m3999"


def test_what_the_command_cut_is_told_too() -> None:
    assert json.loads(document_of({"result": items(1, "x"), "more": True}))["more"] is True


def test_one_that_does_not_fit_at_all_is_left_out() -> None:
    huge = items(1, "x" * 2_000_000)
    assert json.loads(document_of({"result": huge})) == {"result": [], "more": True}
    cut = json.loads(document_of({"messages": huge, "next": "m0"}))
    assert cut == {"messages": [], "next": None, "more": True}
