"""Published objectives as losses: `rlvr:METHOD` names one of `rlvr_jax.methods`.

Such an objective compares all tokens of a batch. Its gradient is therefore computed when the
optimizer step comes, from all datums since the last step.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from rlvr_jax import methods, policy
from rlvr_jax.methods.arguments import parse_hyperparameters
from rlvr_jax.objectives import Objective, Spec
from rlvr_jax.policy import Model, ModelConfig, Params
from rlvr_jax.server.datums import check_datum, padded_size
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.wire import Datum
from rlvr_jax.training import objective_gradient
from rlvr_jax.training.gradient import Gradient, old_statistics
from rlvr_jax.types import Rollouts

PREFIX = "rlvr:"
_TOKENS = ("logprobs", "advantages", "mask")
_SCALARS = ("reward", "group")
# Reads of an objective that this server provides, besides the statistics of tokens.
_PROVIDED = {"batch_statistics", "behaviour_logp", "reference_logp"}
# Statistics whose measurement needs a second policy, a critic or further inputs.
_MEASURED = {
    *("logp", "logsumexp", "entropy", "p_squared", "p_squared_logp", "varentropy", "mean_logit"),
    *("max_logp", "max_id", "min_p_mass", "topk_logp", "topk_ids", "nucleus_entropy", "hidden"),
}


def published_objective(loss: str, config: Mapping[str, float | str]) -> Objective:
    """The objective of a loss `rlvr:METHOD`.

    Args:
      config: hyperparameters of the method.
    Raises:
      Refused: another name, hyperparameters that the method does not have, or an objective that
        needs a critic, a teacher or records that clients cannot send.
    """
    name = loss.removeprefix(PREFIX)
    if name not in methods.names():
        # Not `module:function`: a client may not import code.
        raise Refused(
            f"loss_fn must be rlvr: and a method of python -m rlvr_jax.methods, got {loss!r}"
        )
    pairs = []
    for key, value in config.items():
        if isinstance(value, str) and not value.replace("_", "").replace(".", "").isalnum():
            raise Refused(f"loss_fn_config: {key} must be a number or a word, got {value!r}")
        whole = isinstance(value, float) and value.is_integer()
        pairs.append(f"{key}={int(value) if whole else value}")
    try:
        recipe = methods.recipe(name, **parse_hyperparameters(name, tuple(pairs)))
    except (ValueError, TypeError) as error:
        raise Refused(f"loss_fn_config of {loss}: {error}") from error
    lacking = [part for part in ("critic", "teacher") if getattr(recipe, part) is not None]
    known = _MEASURED | _PROVIDED | {f"old_{one}" for one in _MEASURED}
    lacking += sorted(recipe.objective.reads - known)
    if lacking:
        raise Refused(
            f"loss_fn must be an objective of token statistics, got {loss!r}, which needs"
            f" {', '.join(lacking)}; use python -m rlvr_jax train --method {name}"
        )
    return recipe.objective


def check_published(place: int, datum: Datum, config: ModelConfig) -> None:
    """Checks one datum of a published objective.

    Raises:
      Refused: as `check_datum`; neither advantages nor reward and group; a counted token that is
        not the next one of the input.
    """
    check_datum(place, datum, config, (), _TOKENS, _SCALARS)
    if "advantages" not in datum.inputs and not {"reward", "group"} <= datum.inputs.keys():
        raise Refused(
            f"data[{place}]: loss_fn_inputs must have advantages, or reward and group, got"
            f" {', '.join(sorted(datum.inputs))}"
        )
    counted = counted_tokens(datum)[:-1]
    if (datum.inputs["target_tokens"][:-1] != datum.tokens[1:])[counted].any():
        raise Refused(
            f"data[{place}]: target_tokens must be the input shifted by one where they count, got"
            " other tokens"
        )


def counted_tokens(datum: Datum) -> np.ndarray:
    """The targets that the objective counts, bool [N]: `mask`, else those with numbers."""
    if "mask" in datum.inputs:
        return datum.inputs["mask"] != 0
    sent = [datum.inputs[name] != 0 for name in ("logprobs", "advantages") if name in datum.inputs]
    return np.any(sent, axis=0) if sent else np.zeros(len(datum.tokens), bool)


def rollouts_of(data: Sequence[Datum], rows: int) -> Rollouts:
    """The datums as rollouts, in their order, filled up with rows that are not valid.

    The prompt ends before the first counted target, and the response with the last one. Without a
    reward a row has its mean advantage. Without a group it is a group by itself.

    Args:
      rows: number of rows, at least that of the datums.
    """
    masks = [counted_tokens(datum) for datum in data]
    spans = [np.flatnonzero(mask)[[0, -1]] if mask.any() else np.array([0, 0]) for mask in masks]
    prompts = padded_size(max(int(first) + 1 for first, _ in spans), 16)
    width = padded_size(max(int(last - first) + 1 for first, last in spans), 16)
    numbers = {name: np.zeros((rows, width), np.float32) for name in ("advantage", "old_logp")}
    tokens, mask = np.zeros((rows, width), np.int32), np.zeros((rows, width), bool)
    prompt_tokens, prompt_length = np.zeros((rows, prompts), np.int32), np.ones(rows, np.int32)
    reward, valid = np.zeros(rows, np.float32), np.arange(rows) < len(data)
    group: list[tuple[str, int]] = [("row", row) for row in range(rows)]
    for row, (datum, own, (first, last)) in enumerate(zip(data, masks, spans, strict=True)):
        size = last - first + 1
        following = np.append(datum.tokens[1:], datum.inputs["target_tokens"][-1])
        prompt_tokens[row, : first + 1] = datum.tokens[: first + 1]
        prompt_length[row] = first + 1
        tokens[row, :size] = following[first : last + 1]
        mask[row, :size] = own[first : last + 1]
        for name, sent in (("advantage", "advantages"), ("old_logp", "logprobs")):
            if sent in datum.inputs:
                numbers[name][row, :size] = datum.inputs[sent][first : last + 1]
        if "reward" in datum.inputs:
            reward[row] = datum.inputs["reward"].item()
        elif own.any():
            reward[row] = datum.inputs["advantages"][own].mean()
        if "group" in datum.inputs:
            group[row] = ("group", int(datum.inputs["group"].item()))
    given = {}
    if all("logprobs" in datum.inputs for datum in data):
        given |= {"old_logp": numbers["old_logp"], "behaviour_logp": numbers["old_logp"]}
    if all("advantages" in datum.inputs for datum in data):
        given["advantage"] = numbers["advantage"]
    return Rollouts.of_responses(
        tokens,
        mask,
        reward,
        group,
        prompt_tokens=prompt_tokens,
        prompt_length=prompt_length,
        valid=valid,
        **given,
    )


def check_equal_inputs(data: Sequence[Datum]) -> None:
    """Refuses a batch of which only some datums have log-probs or advantages."""
    for name in ("logprobs", "advantages"):
        having = sum(name in datum.inputs for datum in data)
        if having not in (0, len(data)):
            raise Refused(
                f"loss_fn_inputs: {name} must be in all datums of a step or in none, got"
                f" {having} of {len(data)}"
            )


def check_measured(objective: Objective, data: Sequence[Datum]) -> None:
    """Refuses old statistics other than log-probs, of which the client sent none.

    They are those of the update's own pass, which is the old policy only if the weights sampled
    the batch.
    """
    further = old_statistics(objective).keys() - {"old_logp"}
    if further and any("logprobs" in datum.inputs for datum in data):
        raise Refused(
            f"loss_fn_inputs: logprobs must be left out with an objective that reads"
            f" {', '.join(sorted(further))}, which are then those of the current weights"
        )


def first_state(objective: Objective, rollouts: Rollouts) -> dict[str, Any]:
    """The state of an objective before its first step."""
    rows, width = rollouts.mask.shape
    return objective.init(Spec(prompts=rows, B=rows, T=width))


@partial(jax.jit, static_argnames=("model", "objective", "micro_batches", "adapted"))
def published_gradient(
    model: Model,
    objective: Objective,
    trained: Params,
    rollouts: Rollouts,
    state: dict[str, Any],
    key: jax.Array,
    *,
    base: Params,
    micro_batches: int,
    adapted: bool,
) -> Gradient:
    """Loss and gradient of an objective over all rows.

    Args:
      model: the policy.
      objective: a static argument.
      trained: adapters if `adapted`, else all weights.
      rollouts: all rows of the step.
      state: of the objective, by the name of a part.
      key: of the random choices of the parts.
      base: weights before training, the reference of a KL.
      micro_batches: number of micro-batches of the rows.
      adapted: whether `trained` are adapters.
    """
    if "reference_logp" in objective.reads:
        rollouts = rollouts.replace(reference_logp=policy.score(model, base, rollouts).logp)
    return objective_gradient(
        model,
        objective,
        trained,
        rollouts,
        state,
        key,
        fresh=False,
        micro_batches=micro_batches,
        base=base if adapted else None,
    )
