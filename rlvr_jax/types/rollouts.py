"""Sampled responses and their records."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.types.fields import axes_of, fits, pytree
from rlvr_jax.types.given import as_array, as_mask, numbered


@pytree
@dataclass(frozen=True)
class Rollouts:
    """Sampled responses with all records of sampling and grading.

    The sampler writes the record, the verifiers write `outcome` and `reward`, the scorer writes
    `old_logp` (and `reference_logp` where an objective needs it); nothing else changes. Log-probs
    are nats, 0 off the mask; sequences are right-padded. Optional fields are None until they are
    written.

    Fields:
      prompt_tokens, prompt_length: the prompt.
      tokens: the response.
      length: response tokens including the stop token; 0 for an empty row.
      mask: the sampled tokens (from lengths, never from token values; False on tokens of a tool or
        a prefix).
      group: rows of one prompt have one id.
      rollout_id: identity of the rollout in its batch. Random choices are keyed by it, so they do
        not depend on the order of the rows.
      parent: the row this one was forked from, -1 if none: a row of the pool, or a `rollout_id`
        once the caller has renumbered it.
      branch_position: response position of that fork, -1 if none.
      truncated: ended by the budget or the sampler's driver and not by the stop token.
      behaviour_logp: under the distribution really sampled from (temperature, top-k, …).
      entropy: of the policy over the whole vocabulary at the sampling temperature.
      temperature: of the sampler, token by token; log-probs are scored at it.
      outcome: the verifier's grade, in [0, 1]; pass rates and filters read it.
      reward: the objective trains on it (outcome plus shaping).
      weight_version: number of updates of the sampling weights, at the last sampled token.
      drawn_temperature: the temperature at which a token was sampled, where a processor or a
        method's loss has another one than `temperature`; nothing is scored at it. None: equal.
      drawn_topk_logp, drawn_topk_ids: the K most probable tokens at the sampled token, descending,
        under the policy at the sampling temperature; 0 off the mask.
      old_logp: the scorer's log-prob at the weights that sampled: denominator of the ratio.
      reference_logp: of the frozen policy of a KL term.
      advantage: an objective that finds it does not estimate its own.
      weight, kept: factors on the losses of tokens, and the tokens that are left. An objective
        computes them from the whole batch before it is split into several updates
        (`Objective.decide_once` writes them and `advantage`).
      teacher_logp: of a stronger or an earlier policy, for distillation.
      values: the critic's estimates at sampling time.
      process_reward: reward of the token (a process reward model, a turn's outcome).
      component_rewards: K rewards of the row, for methods that weigh them themselves; NaN where one
        does not apply.
      step, turn: reasoning step or turn of the token in its row; -1 off the mask. Ids that occur
        count, gaps are skipped.
      off_policy: rows of another policy.
      answer: class of the final answer: rows of a group with equal ids agree. A row without an
        answer has a negative id of its own.
      critic_values: the reward of the row that K critics expect.
      old_max_logp, old_min_p_mass, old_p_squared, old_p_squared_logp, old_logsumexp,
        old_mean_logit, old_tempered_logp, old_candidate_logp, old_second_prompt_logp: those
        statistics (`TokenStats`) of the old policy.
      old_topk_logp: the old policy's log-probs of the ids of `TokenStats.topk_ids`.
      prompt_logp: the old policy's log-probs of the prompt's tokens, at temperature 1; 0 for the
        first one.
      probe_confidence, probe_accuracy: in [0, 1] and equal on the tokens of a step: confidence and
        correctness of the policy's answer after that step.
      embedding: of the response as a whole.
      trigger: where the policy's most probable token was one of a list of words that begin a second
        thought.
      self_reward: the outcome that the policy that wrote the row expected.
      env_step: step of its episode at which a row was sampled (one row per step).
      soft: positions where the sampler's input was a mixture of tokens.
      candidate_ids: the tokens of that mixture.
      candidate_weight: their weights in it; they sum to 1 where `soft`.
      candidate_noisy_logp: their log-probs in the mixture, with the noise.
      formulas: ids of the formulas (or other elements) that occur in the row, padded with -1; an id
        may occur twice.
      trace: rows of one response that was written in several contexts have one id; -1 for a row
        that is a response by itself. None: all are.
      version: number of updates of the weights that sampled the token, for rows that were sampled
        over several; 0 off the mask. None: `weight_version` holds for the whole row.
      origin: 0 the policy, 1 a teacher, 2 a tool or an environment, 3 a hint or a prefix that was
        given. Only `mask` decides about training. None: all from the policy.
      supervised: rows to imitate: their tokens up to `length`, with mask False, so that no policy
        loss and no denominator includes them. None: none.
      stored: rows of an earlier step: their old log-probs (and other old statistics) were recorded
        at sampling time and do not change. None: none.
      soft_prompt: vectors in place of the embeddings of the prompt's first E tokens.
      soft_length: number of these vectors: E, or 0 for a prompt of only tokens.
      shown_tokens, shown_length: the prompt of sampling, where a row is trained under another one;
        old log-probs are of that context. None: the same.
      second_tokens, second_length: a second prompt, after which the response is scored as well
        (`TokenStats.second_prompt_logp`), and the context of the teacher or of the second policy of
        divergences; length 0: the row has none.
      asked_tokens, asked_length: tokens after the response, such as a question about it, where
        `TokenStats.verdict_logp` is measured; length 0: none.
      verdict_ids: the tokens of `verdict_logp`.
      cell: label of the row by which statistics are separated (a role, an expert, a domain), -1 for
        none.
    """

    prompt_tokens: Int[Array, "B P"]
    prompt_length: Int[Array, "B"]
    tokens: Int[Array, "B T"]
    length: Int[Array, "B"]
    mask: Bool[Array, "B T"]
    group: Int[Array, "B"]
    rollout_id: Int[Array, "B"]
    parent: Int[Array, "B"]
    branch_position: Int[Array, "B"]
    truncated: Bool[Array, "B"]
    behaviour_logp: Float[Array, "B T"] | None
    entropy: Float[Array, "B T"] | None
    temperature: Float[Array, "B T"]
    outcome: Float[Array, "B"]
    reward: Float[Array, "B"]
    weight_version: Int[Array, "B"]
    drawn_temperature: Float[Array, "B T"] | None = None
    drawn_topk_logp: Float[Array, "B T K"] | None = None
    drawn_topk_ids: Int[Array, "B T K"] | None = None
    old_logp: Float[Array, "B T"] | None = None
    reference_logp: Float[Array, "B T"] | None = None
    advantage: Float[Array, "B T"] | None = None
    weight: Float[Array, "B T"] | None = None
    kept: Bool[Array, "B T"] | None = None
    teacher_logp: Float[Array, "B T"] | None = None
    values: Float[Array, "B T"] | None = None
    process_reward: Float[Array, "B T"] | None = None
    component_rewards: Float[Array, "B K"] | None = None
    step: Int[Array, "B T"] | None = None
    turn: Int[Array, "B T"] | None = None
    off_policy: Bool[Array, "B"] | None = None
    answer: Int[Array, "B"] | None = None
    critic_values: Float[Array, "B K"] | None = None
    old_max_logp: Float[Array, "B T"] | None = None
    old_min_p_mass: Float[Array, "B T"] | None = None
    old_p_squared: Float[Array, "B T"] | None = None
    old_p_squared_logp: Float[Array, "B T"] | None = None
    old_logsumexp: Float[Array, "B T"] | None = None
    old_mean_logit: Float[Array, "B T"] | None = None
    old_topk_logp: Float[Array, "B T K"] | None = None
    old_tempered_logp: Float[Array, "B T K"] | None = None
    old_candidate_logp: Float[Array, "B T K"] | None = None
    old_second_prompt_logp: Float[Array, "B T"] | None = None
    prompt_logp: Float[Array, "B P"] | None = None
    probe_confidence: Float[Array, "B T"] | None = None
    probe_accuracy: Float[Array, "B T"] | None = None
    embedding: Float[Array, "B D"] | None = None
    trigger: Bool[Array, "B T"] | None = None
    self_reward: Float[Array, "B"] | None = None
    env_step: Int[Array, "B"] | None = None
    soft: Bool[Array, "B T"] | None = None
    candidate_ids: Int[Array, "B T K"] | None = None
    candidate_weight: Float[Array, "B T K"] | None = None
    candidate_noisy_logp: Float[Array, "B T K"] | None = None
    formulas: Int[Array, "B F"] | None = None
    trace: Int[Array, "B"] | None = None
    version: Int[Array, "B T"] | None = None
    origin: Int[Array, "B T"] | None = None
    supervised: Bool[Array, "B"] | None = None
    cell: Int[Array, "B"] | None = None
    stored: Bool[Array, "B"] | None = None
    shown_tokens: Int[Array, "B Q"] | None = None
    shown_length: Int[Array, "B"] | None = None
    second_tokens: Int[Array, "B Q"] | None = None
    second_length: Int[Array, "B"] | None = None
    asked_tokens: Int[Array, "B Q"] | None = None
    asked_length: Int[Array, "B"] | None = None
    verdict_ids: Int[Array, "B K"] | None = None
    soft_prompt: Float[Array, "B E D"] | None = None
    soft_length: Int[Array, "B"] | None = None

    @property
    def supervised_tokens(self) -> Bool[Array, "B T"]:
        """The tokens of supervised rows, up to their length."""
        if self.supervised is None:
            return self.mask & False
        places = jnp.arange(self.mask.shape[1], dtype=self.length.dtype)
        return self.supervised[:, None] & (places[None] < self.length[:, None])

    @property
    def scored(self) -> Bool[Array, "B T"]:
        """The tokens that a policy scores: those on the mask and those to imitate."""
        return self.mask if self.supervised is None else self.mask | self.supervised_tokens

    @classmethod
    def of_responses(
        cls,
        tokens: Int[Array | np.ndarray, "B T"],
        mask: Bool[Array | np.ndarray, "B T"],
        reward: Float[Array | np.ndarray, "B"],
        group: Int[Array | np.ndarray, "B"] | Sequence[Hashable],
        **records: Any,
    ) -> Rollouts:
        """The record of a batch of another sampler; every array may be numpy or jax.

        Args:
          tokens, mask: responses, and which of their tokens were sampled.
          reward: also the outcome unless that is given.
          group: id of each row's prompt: integers, or outside of jit labels of any kind, which are
            numbered in the order of their first rows where they are not int32.
          records: any other fields. Those that are not given, or None, are unknown: no prompt, no
            log-probs or entropies of the sampler (an objective that reads them reports it),
            temperature 1, rows numbered in order, not truncated.
            Integers and bools become float32 in fields of floats, `reward` among them.
        Raises:
          ValueError: shapes that do not fit, integers beyond int32, floats in place of integers, a
            mask of other numbers than 0 and 1, labels that cannot be compared, a value that is not
            an array, or prompt_logp without prompt_length.
          TypeError: a record that is not a field.
        """
        mask = as_mask(mask)
        if mask.ndim != 2:
            raise ValueError(
                f"Rollouts.of_responses: mask must have the shape [B, T], got {mask.shape}"
            )
        group = numbered(group)
        fields = axes_of(cls)
        records = {n: value for n, value in records.items() if n not in fields or value is not None}
        given = {"tokens": tokens, "mask": mask, "reward": reward, "group": group, **records}
        given = {name: as_array(name, value) for name, value in given.items()}
        sizes = dict(zip("BT", mask.shape, strict=True))
        for name, (kind, axes) in fields.items():
            if name not in given:
                continue
            array, wanted = given[name], tuple(sizes.get(axis, axis) for axis in axes)
            if not fits(array.shape, axes, sizes):
                raise ValueError(
                    f"Rollouts.of_responses: {name} must have the shape {wanted} as mask"
                    f" {mask.shape}, got {array.shape}"
                )
            if kind == "Float" and not jnp.issubdtype(array.dtype, jnp.floating):
                given[name] = array.astype(jnp.float32)
            if kind == "Int" and jnp.issubdtype(array.dtype, jnp.floating) and array.size:
                raise ValueError(
                    f"Rollouts.of_responses: {name} must be integers, got {array.dtype}"
                    f"{list(array.shape)}"
                )
        if "prompt_logp" in given and "prompt_length" not in given:
            raise ValueError(
                "Rollouts.of_responses: prompt_length must be given with prompt_logp, got None"
            )
        rows, width = mask.shape
        reward = given["reward"]
        none = jnp.full((rows,), -1, jnp.int32)
        position = jnp.arange(1, width + 1, dtype=jnp.int32)
        known = {
            "prompt_tokens": jnp.zeros((rows, 0), jnp.int32),
            "prompt_length": jnp.zeros((rows,), jnp.int32),
            "length": jnp.max(jnp.where(mask, position[None], 0), axis=1, initial=0),
            "rollout_id": jnp.arange(rows, dtype=jnp.int32),
            "parent": none,
            "branch_position": none,
            "truncated": jnp.zeros((rows,), bool),
            "behaviour_logp": None,
            "entropy": None,
            "temperature": jnp.ones((rows, width), reward.dtype),
            "outcome": reward,
            "weight_version": jnp.zeros((rows,), jnp.int32),
        }
        ids = {name: given[name].astype(jnp.int32) for name in ("tokens", "group")}
        return cls(**known | given | ids)


def is_correct(outcome: Any) -> Any:
    """Whether outcomes in [0, 1] count as correct: more than one half; False if ungraded (NaN)."""
    return outcome > 0.5
