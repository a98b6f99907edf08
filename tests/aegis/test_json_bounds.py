"""Keys are counted before they are read; what only looks like one inside of a text is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis import json_bounds
from aegis.json_bounds import MAX_KEYS, RepeatedKey, has_too_many_keys, read_json


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("key", ["k", "k\\", 'k"', "k:", "k\\\\"])
def test_up_to_the_limit_keys_are_taken_and_beyond_it_not(key: str, indent: int | None) -> None:
    """Whatever their names are."""
    document = {f"{number}{key}": 0 for number in range(MAX_KEYS)}
    assert not has_too_many_keys(json.dumps(document, indent=indent).encode())
    document["one more"] = 0
    assert has_too_many_keys(json.dumps(document, indent=indent).encode())


def test_blanks_before_the_colon_hide_no_key() -> None:
    assert has_too_many_keys(b"{" + b'"k" \t\r\n :0,' * (MAX_KEYS + 1) + b"}")


@pytest.mark.parametrize("text", ['"k": 0, ', ":", '":', '\\"k\\": ', "a: b\n"])
def test_keys_inside_of_a_text_are_none(text: str) -> None:
    document = {"cmd": text * (MAX_KEYS + 1)}
    assert not has_too_many_keys(json.dumps(document).encode())


DOCUMENTS = st.recursive(
    st.text(st.sampled_from('"\\:k ')) | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.sampled_from('"\\:k ')), inner),
)


@pytest.mark.long
@given(document=DOCUMENTS)
def test_no_document_with_few_keys_is_refused(document: object) -> None:
    with pytest.MonkeyPatch.context() as patched:
        # A text that begins with a colon, or blanks and one, counts as a key: allowed for.
        text = json.dumps(document).encode()
        most = keys_in(document) + text.replace(b" ", b"").count(b'":')
        patched.setattr(json_bounds, "MAX_KEYS", most)
        assert not has_too_many_keys(text)
        if keys_in(document):
            patched.setattr(json_bounds, "MAX_KEYS", keys_in(document) - 1)
            assert has_too_many_keys(text)


def keys_in(document: object) -> int:
    if isinstance(document, dict):
        return len(document) + sum(map(keys_in, document.values()))
    return sum(map(keys_in, document)) if isinstance(document, list) else 0


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}',
        '{"a":1,"\\u0061":2}',
        '[{"b":{"c":[],"a":1,"a":null}}]',
        '{"":0,"":0}',
        '{"\\ud800":0,"\\ud800":0}',
    ],
)
def test_a_key_that_an_object_holds_twice_is_refused_and_named(text: str) -> None:
    with pytest.raises(RepeatedKey, match="appears twice in one object"):
        read_json(text)
    with pytest.raises(RepeatedKey):
        read_json(text.encode())


@given(DOCUMENTS)
def test_any_other_document_is_read_as_it_is(document: object) -> None:
    assert read_json(json.dumps(document)) == document
    assert read_json(json.dumps(document, ensure_ascii=False).encode()) == document


@pytest.mark.parametrize(
    "text",
    [b"NaN", b"[-Infinity]", b"", b"{}{}", b'"\xff"', b'"\xed\xa0\x80"', "{}".encode("utf-16")],
)
def test_what_is_no_json_in_utf8_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - every reason has a text of its own
        read_json(text)
    with pytest.raises(ValueError):  # noqa: PT011
        read_json(b"\xef\xbb\xbf{}")


def test_the_same_key_in_different_objects_is_none_that_is_there_twice() -> None:
    text = '[{"a":{"a":1}},{"a":2}]'
    assert read_json(text) == [{"a": {"a": 1}}, {"a": 2}]
