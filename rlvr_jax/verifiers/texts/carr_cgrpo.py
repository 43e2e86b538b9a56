"""Rubrics with entities: statements that the evidence of a response supports, from its answer on.

Source: CaRR, https://github.com/THUDM/CaRR.
"""

from collections.abc import Iterable, Mapping, Sequence


def reached_fraction(
    rubrics: Sequence[Iterable[str]],
    supported: Sequence[bool],
    entities: Mapping[str, str | None] | None = None,
    start: str = "E0",
) -> float:
    """Fraction of the rubrics that are reached from the answer through supported rubrics.

    A supported rubric links the entities that it mentions. A rubric that mentions an unnamed entity
    does not count.

    Args:
      rubrics: the entities of each rubric.
      supported: whether the evidence shows each rubric.
      entities: names that were found, None for the others; None: all entities have a name.
      start: the entity of the answer.
    """
    if not rubrics or len(rubrics) != len(supported):
        raise ValueError(
            f"reached_fraction: supported must be one verdict for each of the {len(rubrics)}"
            f" rubrics, at least one, got {len(supported)}"
        )
    sets = [set(mentioned) for mentioned in rubrics]
    lacking = set() if entities is None else {e for e, name in entities.items() if name is None}
    open_ = [
        number
        for number, mentioned in enumerate(sets)
        if supported[number] and not mentioned & lacking
    ]
    reached, counted = {start}, 0
    while new := [number for number in open_ if sets[number] & reached]:
        open_ = [number for number in open_ if number not in new]
        counted += len(new)
        reached = reached.union(*(sets[number] for number in new))
    return counted / len(rubrics)
