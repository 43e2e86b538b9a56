"""Responses of one policy to some problems, as arrays: the input of a comparison."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import row_sum
from rlvr_jax.types import Rollouts, TokenStats, is_correct

_TOKENS = ("tokens", "mask", "logp", "entropy", "other_logp", "other_entropy")
_TOKENS += ("branching", "other_branching")


@dataclass(frozen=True)
class Answers:
    """n responses to each of P problems, row by row, in any order.

    Log-probs and entropies are nats at the sampling temperature, over the whole vocabulary.

    Fields:
      problem: int [B], problem of each row.
      outcome: [B], in [0, 1]. A row above ½ is correct; NaN (ungraded) is not correct.
      tokens, mask: int and bool [B, T], tokens of the response; True for sampled tokens.
      logp, entropy: [B, T], nats, under the policy that sampled. None: not compared.
      other_logp, other_entropy: [B, T], nats, under the other policy. None: not compared.
      answer: answers of the rows, as texts or numbers; a row without an answer has None. None: the
        task has no answers.
      weights: [P], weights of the problems in the order of their numbers; None: equal weights.
      branching, other_branching: [B, T], number of most probable tokens that have 95 % of the mass,
        under both policies (`entropy_patterns.branching`). None: not compared.
      words: text of each token id; None: tokens have no classes.
      vocabulary: name of the vocabulary. With different vocabularies, only grades and variety of
        responses are compared. None: equal to that of the other policy.
    Raises:
      ValueError: there are no rows or no tokens, shapes differ, or problems have different numbers
        of rows.
    """

    problem: ArrayLike
    outcome: ArrayLike
    tokens: ArrayLike
    mask: ArrayLike
    logp: ArrayLike | None = None
    entropy: ArrayLike | None = None
    other_logp: ArrayLike | None = None
    other_entropy: ArrayLike | None = None
    answer: Sequence[Hashable | None] | None = None
    weights: ArrayLike | None = None
    branching: ArrayLike | None = None
    other_branching: ArrayLike | None = None
    words: Mapping[int, str] | None = None
    vocabulary: str | None = None

    def __post_init__(self) -> None:
        for name in ("problem", "outcome", "tokens", "mask"):
            if getattr(self, name) is None:
                raise ValueError(f"Answers: {name} must be given, got None")
        kinds = {"mask": bool, "tokens": int, "problem": int}
        for name in ("problem", "outcome", *_TOKENS):
            if getattr(self, name) is not None:
                values = np.asarray(getattr(self, name), kinds.get(name, float))
                object.__setattr__(self, name, values)
        if self.problem.ndim != 1 or not len(self.problem):
            raise ValueError(
                f"Answers: problem must have one axis with a row, got {self.problem.shape}"
            )
        for name, shape in (
            ("outcome", self.problem.shape),
            *((name, (len(self.problem), *self.tokens.shape[1:])) for name in _TOKENS),
        ):
            values = getattr(self, name)
            if values is not None and values.shape != shape:
                raise ValueError(f"Answers: {name} must have shape {shape}, got {values.shape}")
        if self.answer is not None and len(self.answer) != len(self.problem):
            raise ValueError(
                f"Answers: answer must have {len(self.problem)} entries, got {len(self.answer)}"
            )
        names, counts = np.unique(self.problem, return_counts=True)
        if counts.min() != counts.max():
            raise ValueError(
                "Answers: problem must name every problem equally often, got"
                f" {counts.min()} to {counts.max()} rows"
            )
        weights = np.ones(len(names)) if self.weights is None else np.asarray(self.weights, float)
        if weights.shape != names.shape:
            raise ValueError(f"Answers: weights must have shape {names.shape}, got {weights.shape}")
        object.__setattr__(self, "weights", weights)

    @classmethod
    def of(
        cls,
        rollouts: Rollouts,
        stats: TokenStats | None = None,
        *,
        answer: Sequence[Hashable | None] | None = None,
        weights: ArrayLike | None = None,
        branching: tuple[ArrayLike, ArrayLike] | None = None,
        words: Mapping[int, str] | None = None,
        vocabulary: str | None = None,
    ) -> Answers:
        """`Answers` of the library's rollouts, for example from `rollout.load_rollouts`.

        Args:
          rollouts: `group` is the number of the problem. Log-probs are `old_logp`, or
            `behaviour_logp` if it is missing.
          stats: `logp` and `entropy` of the other policy.
          answer, weights, words, vocabulary: see the class.
          branching: under the policy that sampled, and under the other one.
        """
        logp = rollouts.behaviour_logp if rollouts.old_logp is None else rollouts.old_logp
        return cls(
            rollouts.group,
            rollouts.outcome,
            rollouts.tokens,
            rollouts.mask,
            logp,
            rollouts.entropy,
            None if stats is None else stats.logp,
            None if stats is None else stats.entropy,
            answer,
            weights,
            *(branching or (None, None)),
            words,
            vocabulary,
        )

    @property
    def samples(self) -> int:
        """n, of each problem."""
        return len(self.problem) // len(self.weights)

    @property
    def correct(self) -> np.ndarray:
        """bool [B]."""
        return is_correct(np.asarray(self.outcome))

    @property
    def rows(self) -> np.ndarray:
        """Rows of each problem, int [P, n], problems by rising number."""
        return np.argsort(self.problem, kind="stable").reshape(len(self.weights), -1)

    def counts(self) -> dict[str, Any]:
        """Correct samples of each problem, as a line of `held_out.jsonl`."""
        return {
            "n": self.samples,
            "prompts": np.unique(self.problem).tolist(),
            "correct": self.correct[self.rows].sum(axis=1).tolist(),
            "weights": self.weights.tolist(),
        }

    def token_mean(self, values: ArrayLike) -> np.ndarray:
        """Mean of [B, T] over the tokens of each problem, [P]; 0 for a problem without tokens."""
        total, number = row_sum(values, self.mask), self.mask.sum(axis=1)
        return total[self.rows].sum(axis=1) / np.maximum(number[self.rows].sum(axis=1), 1)

    def texts(self, row: int) -> tuple[int, ...]:
        """The sampled tokens of a row."""
        return tuple(self.tokens[row][self.mask[row]].tolist())
