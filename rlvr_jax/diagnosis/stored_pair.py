"""Stores and loads the responses of two policies to the same prompts."""

import json
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.experience import Batch
from rlvr_jax.rollout import load_rollouts, save_rollouts
from rlvr_jax.types import TokenStats

_TOKENS, _WORDS = "branching.npz", "words.json"


class Pair(NamedTuple):
    """Graded responses of two policies to the same prompts.

    Fields:
      before, after: responses with `old_logp` by the scorer, of the policy that sampled.
      again: a second sampling of the first policy, with other random numbers.
      of_before, of_after: `logp` and `entropy` of the other policy on the tokens of either. None:
        it has another vocabulary.
      weights: weights of the prompts, [P].
      branching: int [B, T] for each policy, on the tokens of `before`. It is the number of most
        probable tokens that have 95 % of the mass, 16 at most; or None.
      vocabularies: names of the vocabularies of both, see `Answers`.
    """

    before: Batch
    after: Batch
    again: Batch
    of_before: TokenStats | None
    of_after: TokenStats | None
    weights: np.ndarray
    branching: tuple[np.ndarray, np.ndarray] | None = None
    vocabularies: tuple[str | None, str | None] = (None, None)

    def answers(self) -> tuple[Answers, Answers, Answers]:
        """`before`, `after` and `again` as arrays."""
        words = self.words()
        first, last = self.vocabularies
        return tuple(
            Answers.of(
                batch.rollouts,
                other,
                answer=_final(batch),
                weights=self.weights,
                branching=sizes,
                words=words,
                vocabulary=own,
            )
            for batch, other, sizes, own in (
                (self.before, self.of_before, self.branching, first),
                (self.after, self.of_after, None, last),
                (self.again, None, None, first),
            )
        )

    def words(self) -> dict[int, str] | None:
        """Text of every sampled token, by its id; None with two vocabularies."""
        if self.of_before is None:
            return None
        sampled = [batch.rollouts.tokens[batch.rollouts.mask] for batch in self[:3]]
        ids = np.unique(np.concatenate(sampled)).tolist()
        decode = self.before.tokenizer.decode
        return {i: decode([i], clean_up_tokenization_spaces=False) for i in ids}


def save_pair(folder: str | Path, pair: Pair) -> None:
    """Writes before.npz, after.npz and again.npz, as `rollout.load_rollouts` reads them.

    The statistics in a file are those of the other policy; in again.npz, those of the policy that
    sampled. The texts are kind and weight of the prompt, the answer (empty: none), and the
    vocabulary, if there are two. branching.npz has `Pair.branching`. words.json has the text of
    each token id, if there is one vocabulary.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    again = pair.again.rollouts
    first, last = pair.vocabularies
    for name, batch, stats, own in (
        ("before", pair.before, pair.of_before, first),
        ("after", pair.after, pair.of_after, last),
        ("again", pair.again, TokenStats(logp=again.behaviour_logp, entropy=again.entropy), first),
    ):
        texts = {
            "kind": [prompt.kind for prompt in batch.prompts],
            "weight": [repr(float(pair.weights[group])) for group in batch.rollouts.group],
            "answer": [grade.answer or "" for grade in batch.grades],
        }
        if own is not None:
            texts["vocabulary"] = [own] * len(batch.grades)
        save_rollouts(folder / f"{name}.npz", batch.rollouts, stats or TokenStats(), texts)
    for file in (_TOKENS, _WORDS):  # of another pair
        (folder / file).unlink(missing_ok=True)
    if pair.branching is not None:
        np.savez_compressed(folder / _TOKENS, before=pair.branching[0], of_before=pair.branching[1])
        (folder / _WORDS).write_text(json.dumps(pair.words(), ensure_ascii=False), "utf-8")


def load_answers(folder: str | Path) -> tuple[Answers, Answers, Answers | None]:
    """The arrays that `save_pair` has written: before, after, and again if it is there; also
    branching and words.
    """
    found = []
    sizes, words = _stored_tokens(Path(folder))
    for name in ("before", "after", "again"):
        path = Path(folder) / f"{name}.npz"
        if not path.is_file():
            if name == "again":
                found.append(None)
                continue
            raise ValueError(f"load_answers: {folder} must hold {name}.npz, found no such file")
        rollouts, stats, texts = load_rollouts(path)
        final, weight = texts.get("answer", []), texts.get("weight")
        named = [text or None for text in final] if any(final) else None
        if weight is not None:
            _, rows = np.unique(rollouts.group, return_index=True)
            weight = [float(weight[row]) for row in rows]
        other = None if name == "again" else stats
        own_sizes = sizes if name == "before" else None
        (vocabulary,) = {*texts.get("vocabulary", [None])}
        own = Answers.of(
            rollouts,
            other,
            answer=named,
            weights=weight,
            branching=own_sizes,
            words=words,
            vocabulary=vocabulary,
        )
        found.append(own)
    return tuple(found)


def _stored_tokens(
    folder: Path,
) -> tuple[tuple[np.ndarray, np.ndarray] | None, dict[int, str] | None]:
    """`Pair.branching` and words by token id of a folder of `save_pair`; older ones have none."""
    sizes, words = None, None
    try:
        if (folder / _TOKENS).is_file():
            with np.load(folder / _TOKENS) as file:
                sizes = file["before"], file["of_before"]
        if (folder / _WORDS).is_file():
            read = json.loads((folder / _WORDS).read_text("utf-8"))
            words = {int(i): str(word) for i, word in read.items()}
    except (OSError, KeyError, AttributeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"load_answers: {_TOKENS} and {_WORDS} of {folder} must be as they were written, got"
            f" {error!r}"
        ) from None
    return sizes, words


def _final(batch: Batch) -> list[str | None] | None:
    """Final answers; None where the verifier named none."""
    found = [grade.answer for grade in batch.grades]
    return found if any(answer is not None for answer in found) else None
