"""The strict codec, on small made-up messages."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import CodecError, MisuseError
from actors.codec import MAX_INT, structure, unstructure


@attrs.frozen(kw_only=True)
class Leaf:
    size: int
    label: str = "none"


@attrs.frozen(kw_only=True)
class Everything:
    text: str
    whole: int
    number: float
    flag: bool
    choice: Literal["red", "green", 3]
    maybe: str | None = None
    leaf: Leaf | None = None
    leaves: list[Leaf] = attrs.field(factory=list)
    pair: tuple[int, str] = (0, "")
    many: tuple[int, ...] = ()
    names: dict[str, str] = attrs.field(factory=dict)
    counts: Mapping[str, int] = attrs.field(factory=dict)
    mixed: int | str | list[int] | None = None
    anything: Any = None


FULL: dict[str, Any] = {
    "text": "a",
    "whole": 1,
    "number": 1.5,
    "flag": True,
    "choice": "red",
    "maybe": "b",
    "leaf": {"size": 1, "label": "x"},
    "leaves": [{"size": 2, "label": "y"}, {"size": 3, "label": "z"}],
    "pair": [4, "p"],
    "many": [5, 6],
    "names": {"PATH": "/bin"},
    "counts": {"a": 1},
    "mixed": [7],
    "anything": {"deep": [None, 1.5]},
}


@attrs.frozen(kw_only=True)
class Tree:
    name: str
    children: list[Tree]


@attrs.frozen(kw_only=True)
class Circle:
    tag: ClassVar[str] = "circle"
    radius: float


@attrs.frozen(kw_only=True)
class Square:
    tag: ClassVar[str] = "square"
    side: float


@attrs.frozen(kw_only=True)
class Drawing:
    shape: Circle | Square | None
    shapes: list[Circle | Square] = attrs.field(factory=list)


def refusal(cls: Any, document: object) -> str:
    with pytest.raises(CodecError) as caught:
        structure(cls, document)
    return str(caught.value)


def test_a_full_document_becomes_an_object_and_back() -> None:
    message = structure(Everything, FULL)
    assert message.leaves == [Leaf(size=2, label="y"), Leaf(size=3, label="z")]
    assert message.pair == (4, "p")
    assert message.many == (5, 6)
    assert unstructure(message) == FULL
    assert json.loads(json.dumps(unstructure(message))) == FULL


def test_what_has_a_default_may_be_left_out() -> None:
    message = structure(Leaf, {"size": 1})
    assert message == Leaf(size=1, label="none")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"text": None}, "text must be text, not null"),
        ({"text": 7}, "text must be text, not 7"),
        ({"text": ["a"]}, "text must be text, not a list"),
        ({"whole": "1"}, 'whole must be a whole number, not "1"'),
        ({"whole": True}, "whole must be a whole number, not true"),
        ({"whole": 5.0}, "whole must be a whole number, not 5.0"),
        ({"whole": None}, "whole must be a whole number, not null"),
        ({"number": "abc"}, 'number must be a number, not "abc"'),
        ({"number": False}, "number must be a number, not false"),
        ({"number": float("nan")}, "number must be a finite number, not NaN"),
        ({"number": float("-inf")}, "number must be a finite number, not -Infinity"),
        ({"flag": "no"}, 'flag must be true or false, not "no"'),
        ({"flag": 0}, "flag must be true or false, not 0"),
        ({"choice": "blue"}, 'choice must be "red", "green" or 3, not "blue"'),
        ({"choice": 3.0}, 'choice must be "red", "green" or 3, not 3.0'),
        ({"choice": ["red"]}, 'choice must be "red", "green" or 3, not a list'),
        ({"maybe": 7}, "maybe must be text or null, not 7"),
        ({"leaf": "x"}, 'leaf must be an object or null, not "x"'),
        ({"leaf": {}}, "leaf.size is missing"),
        ({"leaf": {"size": "x"}}, 'leaf.size must be a whole number, not "x"'),
        (
            {"leaf": {"size": 1, "lable": "x"}},
            "there is no argument 'lable' in leaf (did you mean 'label'?); allowed: size, label",
        ),
        ({"leaves": {"size": 1}}, "leaves must be a list, not an object"),
        ({"leaves": [{"size": 1}, 7]}, "leaves[1] must be an object, not 7"),
        (
            {"leaves": [{"size": 1}, {"size": None}]},
            "leaves[1].size must be a whole number, not null",
        ),
        ({"pair": [1]}, "pair must be a list of 2, not a list"),
        ({"pair": [1, 2]}, "pair[1] must be text, not 2"),
        ({"many": [1, "x"]}, 'many[1] must be a whole number, not "x"'),
        ({"names": {"PATH": 7}}, "names.PATH must be text, not 7"),
        ({"names": {"a b": 7}}, 'names["a b"] must be text, not 7'),
        ({"names": {7: "x"}}, "names[7] must be text, not 7"),
        ({"names": [1]}, "names must be an object, not a list"),
        ({"counts": {"a": 1.5}}, "counts.a must be a whole number, not 1.5"),
        ({"mixed": 1.5}, "mixed must be a whole number, text, a list or null, not 1.5"),
        ({"mixed": ["x"]}, 'mixed[0] must be a whole number, not "x"'),
    ],
)
def test_nothing_is_coerced_and_the_place_is_named(change: dict[str, Any], sentence: str) -> None:
    assert refusal(Everything, FULL | change) == sentence


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({}, "size is missing"),
        ([], "the document must be an object, not a list"),
        (None, "the document must be an object, not null"),
        ("{}", 'the document must be an object, not "{}"'),
        ({"size": 1, "colour": 2}, "there is no argument 'colour'; allowed: size, label"),
        # An unknown name comes first: it is why the right one is missing.
        (
            {"sise": 1},
            "there is no argument 'sise' (did you mean 'size'?); allowed: size, label",
        ),
        ({"size": 1, 7: 2}, "there is no argument '7'; allowed: size, label"),
    ],
)
def test_keys_must_be_the_known_ones(document: object, sentence: str) -> None:
    assert refusal(Leaf, document) == sentence


def test_an_int_fits_where_a_float_is_asked_and_becomes_one() -> None:
    number = structure(Everything, FULL | {"number": 3}).number
    assert number == 3.0
    assert type(number) is float


@pytest.mark.parametrize("value", [MAX_INT, -MAX_INT])
def test_the_largest_whole_numbers_of_json_pass(value: int) -> None:
    assert structure(Leaf, {"size": value}).size == value


@pytest.mark.parametrize(
    "value",
    [MAX_INT + 1, -MAX_INT - 1, 10**400, pytest.param(-(10**5000), id="5000 digits")],
)
def test_a_number_beyond_the_exact_ones_of_json_is_refused(value: int) -> None:
    bounds = "from -9007199254740991 to 9007199254740991"
    assert refusal(Leaf, {"size": value}).startswith(f"size must be a whole number {bounds}, not ")
    told = refusal(Everything, FULL | {"number": value})
    assert told.startswith(f"number must be a number {bounds}")
    assert len(told) < 200


def test_lone_surrogates_are_refused_and_control_characters_pass() -> None:
    told = refusal(Everything, FULL | {"text": json.loads('"ab\\ud800"')})
    assert told == ("text must be text without lone surrogates, but character 2 is one (U+D800)")
    assert refusal(Everything, FULL | {"names": {"\udfff": "x"}}).startswith(
        'names["\\udfff"] must'
    )
    kept = "\0\x03\x1b[A\x7f\u2028é😀"
    assert structure(Everything, FULL | {"text": kept}).text == kept


def test_what_is_shown_of_a_bad_value_is_short_and_printable() -> None:
    told = refusal(Leaf, {"size": "\x1b]0;title\x07" + "x" * 100_000})
    assert told.isprintable()
    assert told.startswith('size must be a whole number, not "\\x1b]0;title\\x07x')
    assert len(told) < 120
    told = refusal(Leaf, {"size": 1, "\x1b[2J" * 1000: 1})
    assert told.isprintable()
    assert len(told) < 200


def test_a_class_may_contain_itself() -> None:
    document = {"name": "a", "children": [{"name": "b", "children": []}]}
    assert structure(Tree, document) == Tree(name="a", children=[Tree(name="b", children=[])])
    assert unstructure(structure(Tree, document)) == document
    document["children"][0]["children"] = [{"name": 7, "children": []}]  # type: ignore[index]
    assert refusal(Tree, document) == "children[0].children[0].name must be text, not 7"


def test_a_document_nested_without_end_is_refused() -> None:
    document: dict[str, Any] = {"name": "leaf", "children": []}
    for _ in range(2 * sys.getrecursionlimit()):
        document = {"name": "a", "children": [document]}
    assert refusal(Tree, document) == "it is nested too deeply"


def test_a_long_place_is_cut_at_its_beginning() -> None:
    document: dict[str, Any] = {"name": 7, "children": []}
    for _ in range(60):
        document = {"name": "a", "children": [document]}
    told = refusal(Tree, document)
    assert told.endswith(".children[0].name must be text, not 7")
    assert told.startswith("…")
    assert len(told) < 200


@pytest.mark.parametrize("shape", [Circle(radius=1.0), Square(side=2.5), None])
def test_members_of_a_union_travel_under_their_tag(shape: Circle | Square | None) -> None:
    drawing = Drawing(shape=shape, shapes=[Circle(radius=3.0)])
    document = unstructure(drawing)
    assert document["shapes"] == [{"type": "circle", "radius": 3.0}]
    assert structure(Drawing, json.loads(json.dumps(document))) == drawing


def test_a_union_may_be_read_alone() -> None:
    assert structure(Circle | Square, {"type": "square", "side": 2}) == Square(side=2.0)
    assert structure(Circle, {"type": "circle", "radius": 2}) == Circle(radius=2.0)


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ({"side": 1}, "shape.type is missing"),
        ({"type": "line"}, 'shape.type must be "circle" or "square", not "line"'),
        ({"type": ["circle"]}, 'shape.type must be "circle" or "square", not a list'),
        ({"type": "circle"}, "shape.radius is missing"),
        (
            {"type": "circle", "radius": 1, "side": 1},
            "there is no argument 'side' in shape; allowed: radius",
        ),
        ("circle", 'shape must be an object or null, not "circle"'),
    ],
)
def test_a_tag_must_be_there_and_known(shape: object, sentence: str) -> None:
    assert refusal(Drawing, {"shape": shape}) == sentence


def test_a_tagged_class_alone_wants_its_own_tag() -> None:
    assert refusal(Circle, {"radius": 1}) == "type is missing"
    assert refusal(Circle, {"type": "square", "radius": 1}) == (
        'type must be "circle", not "square"'
    )


@attrs.frozen(kw_only=True)
class Checked:
    low: int = attrs.field(default=0)
    high: int = attrs.field(default=1)

    def __attrs_post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low must not be above high")


@attrs.frozen(kw_only=True)
class HoldsChecked:
    ranges: list[Checked]


def test_the_sentence_of_a_validator_is_kept() -> None:
    assert refusal(Checked, {"low": 2}) == "low must not be above high"
    assert refusal(HoldsChecked, {"ranges": [{}, {"low": 2}]}) == (
        "ranges[1]: low must not be above high"
    )


@attrs.frozen(kw_only=True)
class Faulty:
    name: str = attrs.field()

    @name.validator
    def _check(self, attribute: attrs.Attribute[str], value: str) -> None:
        raise KeyError(value)


def test_a_bug_in_a_validator_is_not_taken_for_bad_input() -> None:
    with pytest.raises(KeyError):
        structure(Faulty, {"name": "x"})


@attrs.frozen
class HoldsBytes:
    data: bytes | None


@attrs.frozen
class HoldsSet:
    data: list[set[int]]


@attrs.frozen
class TwoTexts:
    data: Literal["a"] | str


@attrs.frozen
class Untagged:
    data: Leaf | Tree


@attrs.frozen
class IntKeys:
    data: dict[int, str]


@attrs.frozen
class TagAndType:
    tag: ClassVar[str] = "x"
    type: str


@pytest.mark.parametrize("cls", [HoldsSet, TwoTexts, Untagged, IntKeys, TagAndType])
def test_a_type_that_does_not_travel_is_a_misuse(cls: type) -> None:
    with pytest.raises(MisuseError):
        structure(cls, {"data": b"", "type": "x"})


def test_a_field_of_an_untravelling_type_is_a_misuse_when_written_too() -> None:
    with pytest.raises(MisuseError):
        unstructure(HoldsSet([{1}]))


def test_bytes_travel_as_they_are_and_text_is_no_bytes() -> None:
    assert structure(HoldsBytes, unstructure(HoldsBytes(b"\x00\xff"))) == HoldsBytes(b"\x00\xff")
    with pytest.raises(CodecError, match="data must be bytes or null, not"):
        structure(HoldsBytes, {"data": "text"})


def test_what_is_written_shares_nothing_with_the_message() -> None:
    message = structure(Everything, FULL)
    unstructure(message)["names"]["HOME"] = "/"
    unstructure(message)["many"].append(9)
    assert message.names == {"PATH": "/bin"}
    assert message.many == (5, 6)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(FULL)) | st.text(), JSON, max_size=6))
def test_any_document_is_read_exactly_or_refused_in_one_sentence(change: dict[str, Any]) -> None:
    document = FULL | change
    told = told_about(document)
    if told is None:
        assert unstructure(structure(Everything, document)) == document
    else:
        assert "\n" not in told
        assert len(told) < 600


def told_about(document: dict[str, Any]) -> str | None:
    try:
        structure(Everything, document)
    except CodecError as error:
        return str(error)
    return None
