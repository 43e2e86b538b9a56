"""Statistics of tokens, and the registry of their names.

    statistic("collision_entropy", TOKEN, "-log Σ p², nats", of=("p_squared",),
              compute=lambda p_squared: -jnp.log(p_squared))

A statistic requires only this entry. Objectives may name it in `reads`, and training measures it
with micro-batches and on meshes. The record `old_collision_entropy` is that of the old policy.
Statistics are over the whole vocabulary at the token's temperature, in nats, float32 (float64 for
float64 inputs). The policy's distribution at the token is p, with logits z. The second policy's is
q.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.types.fields import axes_of_type, fits, pytree
from rlvr_jax.types.recorded import Recorded

Source = Literal[
    "vocabulary", "second policy", "hidden state", "second prompt", "question", "critic"
]

TOKEN = Float[Array, "B T"]
"""The type of one number per token."""


@dataclass(frozen=True)
class Statistic:
    """An entry of the registry.

    Fields:
      kind, axes: "Float" or "Int", and B, T and any further axes.
      meaning: a phrase.
      source: origin of the array: the vocabulary at the token (sums over it), those sums of a
        second policy (the teacher), the model's last hidden state, the response after a second
        prompt, a question after the response, or the critic.
      gradient: whether it carries a gradient.
      of: statistics that it is a function of.
      compute: that function, of arrays by the names in `of`; None: measured by itself.
      apart: stages may request it; a separate compiled function measures it.
      module: the one that declares it.
    """

    name: str
    kind: str
    axes: tuple[str, ...]
    meaning: str
    source: Source
    gradient: bool
    of: tuple[str, ...]
    compute: Callable[..., Array] | None
    apart: bool
    module: str

    @property
    def in_library(self) -> bool:
        """Whether the library declares it."""
        return self.module == __name__


STATISTICS: dict[str, Statistic] = {}
"""All declared statistics by name."""


def statistic(
    name: str,
    array: Any,
    meaning: str,
    source: Source = "vocabulary",
    *,
    gradient: bool = True,
    of: tuple[str, ...] = (),
    compute: Callable[..., Array] | None = None,
    apart: bool = False,
) -> None:
    """Declares a statistic of tokens.

    Args:
      name: identifier.
      array: type and axes, such as `TOKEN` or `Float[Array, "B T k"]`.
      meaning, source, gradient, of, compute, apart: see `Statistic`. A statistic outside of the
        library has `of` and `compute`, which acts on each row by itself.
    Raises:
      ValueError: another declaration of the name in another module. A function of statistics that
        are not declared. No function for a statistic outside of the library.
    """
    module = sys._getframe(1).f_globals.get("__name__", "__main__")
    if module != __name__ and (compute is None or not of):
        raise ValueError(f"statistic: {name!r} must have of and compute, got {of} and {compute}")
    if unknown := [one for one in of if one not in STATISTICS]:
        raise ValueError(f"statistic: {name!r} must be of declared statistics, got {unknown}")
    kind, axes = axes_of_type(array)
    entry = Statistic(
        name, kind, axes, meaning, source, gradient, tuple(of), compute, apart, module
    )
    known = STATISTICS.setdefault(name, entry)
    if known.module != module:
        raise ValueError(
            f"statistic: {name!r} must have one declaration, got one of {known.module} already"
        )
    STATISTICS[name] = entry


def statistic_of(name: str) -> Statistic | None:
    """The statistic that a name means, of the current policy or (`old_…`) of the old one."""
    return STATISTICS.get(name.removeprefix("old_"))


def measured_for(needs: Collection[str]) -> set[str]:
    """The statistics that must be measured for some, which may be functions of others."""
    found: set[str] = set()
    for name in needs:
        entry = STATISTICS.get(name)
        found |= {name} if entry is None or not entry.of else measured_for(entry.of)
    return found


def derive(stats: "TokenStats", needs: Collection[str], mask: Bool[Array, "B T"]) -> "TokenStats":
    """The statistics `needs`, of measured ones and functions of them, which are 0 off the mask.

    Raises:
      ValueError: a function that returns another shape than declared.
    """
    known, sizes = stats.arrays, dict(zip("BT", mask.shape, strict=True))

    def computed(entry: Statistic) -> Array:
        if entry.compute is None:
            raise ValueError(
                f"statistics: {entry.name} must be measured, got none; name it in `reads` of a part"
            )
        array = entry.compute(*map(value, entry.of))
        if not fits(jnp.shape(array), entry.axes, sizes):
            raise ValueError(
                f"statistic {entry.name!r} must have the shape [{', '.join(entry.axes)}] with"
                f" [B, T] = {list(mask.shape)}, got {list(jnp.shape(array))} from compute"
            )
        array = array if entry.gradient else jax.lax.stop_gradient(array)
        return jnp.where(mask.reshape(*mask.shape, *[1] * (array.ndim - 2)), array, 0)

    def value(name: str) -> Array:
        if name not in known:
            known[name] = computed(STATISTICS[name])
        return known[name]

    return TokenStats.of_arrays({name: value(name) for name in sorted(needs)})


@pytree
@dataclass(frozen=True)
class TokenStats(Recorded):
    """Statistics of each token under the current policy.

    Examples:
      >>> import jax.numpy as jnp
      >>> from rlvr_jax import TokenStats
      >>> TokenStats(logp=jnp.zeros((2, 3)), entropy=jnp.ones((2, 3))).entropy.shape
      (2, 3)

    They have the shape of the targets ([N] from the kernel, [B, T] in objectives).

    Fields:
      logp: log p(target), ≤ 0; None if not measured.
      entropy: H = -Σ p log p; None if not measured.
      records: all others by name, see `STATISTICS`; those that are not measured are absent.
    """

    logp: Float[Array, "..."] | None = None
    entropy: Float[Array, "..."] | None = None
    records: Mapping[str, Any] = field(default_factory=dict)

    def check(self, records: Mapping[str, Any]) -> None:
        """Refuses names that are not in the registry."""
        if unknown := sorted(records.keys() - STATISTICS.keys()):
            raise ValueError(
                f"TokenStats: a statistic must be declared (rlvr_jax.types.statistic), got"
                f" {unknown[0]!r}"
            )


_K, _k = Float[Array, "B T K"], Float[Array, "B T k"]

statistic("logp", TOKEN, "log p(target), ≤ 0")
statistic("logsumexp", TOKEN, "log Σ exp z")
statistic("entropy", TOKEN, "H = -Σ p log p")
statistic("p_squared", TOKEN, "Σ p²")
statistic("p_squared_logp", TOKEN, "Σ p² log p")
statistic("varentropy", TOKEN, "Σ p (log p)² - H²")
statistic("mean_logit", TOKEN, "(1/V) Σ z", gradient=False)
statistic("max_logp", TOKEN, "the largest log p", gradient=False)
statistic("max_id", Int[Array, "B T"], "id of the largest log p, the first of equals", apart=True)
statistic("second_logp", TOKEN, "log p(target) at a second temperature")
statistic("min_p_mass", TOKEN, "Σ p over the tokens with p ≥ min_p · max p", gradient=False)
statistic("topk_logp", _k, "the k largest log p, descending")
statistic("topk_ids", Int[Array, "B T k"], "ids of `topk_logp`")
statistic(
    "nucleus_entropy",
    TOKEN,
    "entropy of p restricted to its smallest set of tokens of mass ≥ top_p and renormalized; with"
    " `include_crossing=False` without the last token of that set",
)
statistic("kl", TOKEN, "KL(p‖q)", "second policy")
statistic("reverse_kl", TOKEN, "KL(q‖p)", "second policy")
statistic("js", TOKEN, "Jensen-Shannon ½KL(p‖m) + ½KL(q‖m), m = (p + q)/2", "second policy")
statistic("teacher_entropy", TOKEN, "entropy of q", "second policy", gradient=False)
statistic("teacher_topk_logp", _k, "log q of `topk_ids`", "second policy", gradient=False)
statistic(
    "tempered_logp",
    _K,
    "log p(target) at K multiples of the token's temperature",
    "hidden state",
    gradient=False,
)
statistic("candidate_logp", _K, "log p of the ids of the record `candidate_ids`", "hidden state")
statistic("hidden", Float[Array, "B T D"], "last hidden state of the model", "hidden state")
statistic("second_prompt_logp", TOKEN, "log p(target) after a second prompt", "second prompt")
statistic(
    "verdict_logp",
    Float[Array, "B K"],
    "log p of K fixed tokens at the one position after the response (or after an appended"
    " question), at temperature 1: the policy's grade of its own answer",
    "question",
    apart=True,
)
statistic("all_logp", Float[Array, "B T V"], "log p of the whole vocabulary", apart=True)
statistic(
    "mean_hidden",
    Float[Array, "B D"],
    "mean of `hidden` over the tokens on the mask",
    "hidden state",
    apart=True,
)
statistic("value", TOKEN, "the critic's estimate", "critic")
