"""The strict codec: messages to plain documents (what JSON can hold) and back, on cattrs.

cattrs alone turns ``None`` into ``'None'`` and ``"no"`` into ``True`` and drops unknown keys. Here
nothing is coerced: cattrs generates the functions of a class, and every field gets a reader of
this package, so that no default of cattrs applies. The rules:

- A field may be ``str``, ``int``, ``float``, ``bool``, ``None``, ``Literal``, ``list``, ``tuple``,
  ``dict`` with text keys, an attrs class (also a recursive one), a union of these, or ``Any``
  (passed on unread). It may be ``bytes`` in messages between processes, which are no JSON. Any
  other type is a ``MisuseError`` when its class is first met.
- Missing and unknown keys are errors. ``True`` is no int. An int fits where a float is asked, and
  becomes one; a float never fits where an int is asked, ``5.0`` neither.
- An int is within ±(2**53 - 1), what every reader of JSON keeps exactly (RFC 7493, section 2.2);
  a float is finite (RFC 8259, section 6).
- Text holds no lone surrogate, which UTF-8 cannot carry. NUL and other control characters pass:
  keys sent to a terminal are made of them; who cannot use them refuses them.
- A class that declares ``tag: ClassVar[str]`` travels with ``"type": <tag>``, and needs it to be
  read. Members of a union that are classes must declare one, unless there is only one.
- attrs validators run; the sentence of their ``ValueError`` is kept.
"""

from __future__ import annotations

import types
from typing import Any, TypeVar, overload

from cattrs.errors import BaseValidationError

from actors.codec.forms import is_attrs_class, resolved_fields, tag_of
from actors.codec.misfit import Misfit, Within, sentence_of
from actors.codec.reading import MAX_INT, reader_of
from actors.codec.writing import writer_of
from actors.errors import CodecError

__all__ = ["MAX_INT", "is_attrs_class", "resolved_fields", "structure", "tag_of", "unstructure"]

T = TypeVar("T")


@overload
def structure(cls: type[T], document: object) -> T: ...
@overload
def structure(cls: types.UnionType, document: object) -> Any: ...
def structure(cls: Any, document: object) -> Any:
    """Return ``document`` (as of ``json.loads``) as an object of ``cls``, a class or a union.

    Raises ``CodecError`` with one sentence that names the position and the allowed values, and
    ``MisuseError`` if ``cls`` has a field of a type that the codec does not carry.
    """
    try:
        return reader_of(cls)(document, cls)
    except (Misfit, Within, BaseValidationError, RecursionError) as error:
        raise CodecError(sentence_of(error)) from None


def unstructure(message: object) -> Any:
    """Return an attrs object as a document of dicts, lists, text, numbers, booleans and None."""
    form: Any = type(message)
    return writer_of(form)(message)
