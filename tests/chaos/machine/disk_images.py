"""Every image that a loss of power may leave of a simulated disk. Pure.

Of the names, every set of changes that a file system may have carried out; of each reachable file,
every content of ``file_content.after_power_loss``; and each combination of these. Where there are
too many, one is varied at a time, with all others as they were last synced and then with all others
as they were in the cache. The images have a fixed order, each once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from tests.chaos.machine.disk_model import DiskModel, Entries, EntryChange, Image, image_of

MAX_SUBSET_CHANGES = 6
"""The most changes of names of which every legal set is tried; of more, see ``change_sets``."""

MAX_PRODUCT = 512
"""The most images of one tree of names with every combination of file contents."""


def legal_images(model: DiskModel, *, max_product: int = MAX_PRODUCT) -> Iterator[Image]:
    """Yield the possible images after a loss of power now. The first has only the synced data."""
    seen: set[int] = set()
    for changes in change_sets(model.changes):
        for image in _images(model, _tree(model, changes), max_product):
            key = hash(tuple(sorted(image.items())))
            if key not in seen:
                seen.add(key)
                yield image


def sampled_images(
    model: DiskModel, numbers: Iterator[int], step: int, *, max_product: int = MAX_PRODUCT
) -> Iterator[Image]:
    """Yield the images whose number is divisible by ``step``; ``numbers`` numbers them.

    The others are not made, which would take long where there are very many; so some may be alike,
    and both of them count.
    """
    for changes in change_sets(model.changes):
        tree = _tree(model, changes)
        for chosen in _contents(model, tree, max_product):
            if next(numbers) % step == 0:
                yield image_of(tree, chosen.__getitem__)


def drawn_image(model: DiskModel, choose: Callable[[int], int]) -> Image:
    """Return one legal image; ``choose(n)`` picks each of its parts, a number below ``n``.

    The changes of names are those up to some moment, or all without one of them, however many there
    are.
    """
    changes = model.changes
    picked = choose(2 * len(changes) + 1)
    made = (
        tuple(changes[:picked])
        if picked <= len(changes)
        else _without(changes, picked - len(changes) - 1)
    )
    return image_of(_tree(model, made), lambda number: model.files[number].sample(choose))


def change_sets(changes: Sequence[EntryChange]) -> list[tuple[EntryChange, ...]]:
    """Yield the sets of changes of names that may have been carried out, from none to all.

    A change on the medium implies every earlier change of its names. Of more than
    ``MAX_SUBSET_CHANGES``: those up to some moment, and all without one of them.
    """
    if len(changes) > MAX_SUBSET_CHANGES:
        first = [tuple(changes[:count]) for count in range(len(changes) + 1)]
        return [*first, *(_without(changes, index) for index in range(len(changes)))]
    sets = [
        subset
        for count in range(len(changes) + 1)
        for subset in itertools.combinations(changes, count)
    ]
    return [subset for subset in sets if _is_closed(subset, changes)]


def _is_closed(subset: Sequence[EntryChange], changes: Sequence[EntryChange]) -> bool:
    left_out: list[EntryChange] = []
    for change in changes:
        if change not in subset:
            left_out.append(change)
        elif any(change.follows(missing) for missing in left_out):
            return False
    return True


def _without(changes: Sequence[EntryChange], index: int) -> tuple[EntryChange, ...]:
    left_out = [changes[index]]
    kept = list(changes[:index])
    for change in changes[index + 1 :]:
        (left_out if any(change.follows(each) for each in left_out) else kept).append(change)
    return tuple(kept)


def _tree(model: DiskModel, changes: Sequence[EntryChange]) -> dict[int, Entries]:
    directories = {number: dict(entries) for number, entries in model.medium.items()}
    for change in changes:
        change.apply(directories)
    return directories


def _images(model: DiskModel, tree: dict[int, Entries], max_product: int) -> Iterator[Image]:
    for chosen in _contents(model, tree, max_product):
        yield image_of(tree, chosen.__getitem__)


def _contents(
    model: DiskModel, tree: dict[int, Entries], max_product: int
) -> Iterator[dict[int, bytes]]:
    reachable: dict[int, None] = {}
    image_of(tree, lambda number: reachable.setdefault(number) or b"")
    choices = {number: model.files[number].contents() for number in reachable}
    return _combinations(model, choices, max_product)


def _combinations(
    model: DiskModel, choices: dict[int, list[bytes]], max_product: int
) -> Iterator[dict[int, bytes]]:
    product = 1
    for contents in choices.values():
        product *= len(contents)
    if product <= max_product:
        for combination in itertools.product(*choices.values()):
            yield dict(zip(choices, combination, strict=True))
        return
    synced = {number: contents[0] for number, contents in choices.items()}
    cached = {number: bytes(model.files[number].cached) for number in choices}
    for rest in (synced, cached):
        for number, contents in choices.items():
            for content in contents:
                yield rest | {number: content}
