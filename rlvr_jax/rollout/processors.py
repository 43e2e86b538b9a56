"""Changes of the logits between model and sampling.

A processor is pure functions, `init(rows) -> carry` and
`apply(logits [R, V], carry, context) -> (logits, carry)`. It sees logits that are already divided
by the temperature. It returns the distribution that is sampled, so the log-prob recorded as
`behaviour_logp` includes it. A token is ruled out by -inf. Numbers that change from call to call
are read from `context.constants`: those that a processor closes over are compiled into the program.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from numbers import Integral
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.kernels.nucleus import threshold_of
from rlvr_jax.policy.config import wide_dtype
from rlvr_jax.rollout.soft import SoftThinking
from rlvr_jax.rollout.stops import Stops
from rlvr_jax.types.parts import Part, part


class TokenContext(NamedTuple):
    """Inputs of a processor besides the logits.

    Fields:
      position: int [R], how many response tokens the row has.
      weight_version: int scalar, updates that the weights have seen.
      temperature: [R], by which the logits are divided already.
      constants: `constants` of the caller of `decode` or `sample`: arrays with a leading axis R,
        or scalars for all rows; None if nothing.
      token: int [R], that was just fed: the last one of the row, which the logits follow.
      hidden: [R, D], its last hidden state, of which the logits are made. It costs nothing: values
        that no processor reads are not in the compiled function.
    """

    position: Int[Array, "R"]
    weight_version: Int[Array, ""]
    temperature: Float[Array, "R"] | None = None
    constants: Any = None
    token: Int[Array, "R"] | None = None
    hidden: Float[Array, "R D"] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Processor(Part):
    """A pure logits processor.

    Fields:
      init: (rows) -> carry, of leading size R (or None).
      apply: (logits [R, V], carry, context) -> (logits, carry).
      temperature: (carry after `apply`, context) -> [R], the divisor of the logits; it is recorded,
        times the row's own, as `sampled_temperature`. None: no record.
    """

    init: Callable[[int], Any]
    apply: Callable[[Array, Any, TokenContext], tuple[Array, Any]]
    temperature: Callable[[Any, TokenContext], Array] | None = None


LEAST_TEMPERATURE = 1e-6
"""Below it quotients of logits overflow float32, and samples are arbitrary."""


@dataclass(frozen=True)
class Sampling:
    """Settings of the sampler: the distribution of the next token, and stops.

    Fields:
      temperature: at least 1e-6, which samples the most probable token, as `top_k=1` does. The
        logits of sampler and scorer are divided by it. `sample` and `decode` accept temperatures
        by prompt or row, which may change without another compilation. There, values below 1e-6
        are 1e-6.
      top_k: keep the k most probable tokens; 0 is off.
      top_p: keep the smallest set of most probable tokens whose mass reaches p; 1 is off.
      min_p: keep tokens at least min_p times as probable as the most probable one; 0 is off.
      processor: runs after the temperature and before the cuts.
      stops: texts of `find_stops`. A response pauses at the token with which its text contains one
        of them, for example before the reply of a tool. The token stays in the response, which
        counts as truncated. None: no texts.
      soft: rows feed mixtures of embeddings before they sample tokens; None: they do not.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    processor: Processor | None = None
    stops: Stops | None = None
    soft: SoftThinking | None = None

    def __post_init__(self) -> None:
        checks = {
            "temperature": (
                self.temperature >= LEAST_TEMPERATURE,
                f"at least {LEAST_TEMPERATURE}, which is greedy",
            ),
            "top_k": (
                isinstance(self.top_k, Integral) and self.top_k >= 0,
                "0 (off) or a positive integer",
            ),
            "top_p": (0 < self.top_p <= 1, "in (0, 1]"),
            "min_p": (0 <= self.min_p < 1, "in [0, 1)"),
            "stops": (
                self.stops is None or isinstance(self.stops, Stops),
                "of find_stops, which reads the vocabulary, or None",
            ),
        }
        for name, (holds, wanted) in checks.items():
            if not holds:
                raise ValueError(f"Sampling: {name} must be {wanted}, got {getattr(self, name)}")

    @property
    def cuts(self) -> list[str]:
        """The settings that let the sampler draw from a part of the distribution only."""
        names = ("top_k", "top_p", "min_p")
        return [name for name in names if getattr(self, name) != getattr(Sampling, name)]

    def chain(self) -> Processor | None:
        """All that is switched on as one processor; None if the policy is sampled as it is."""
        parts = [self.processor] if self.processor else []
        if self.top_k:
            parts.append(keep_top_k(self.top_k))
        if self.top_p < 1:
            parts.append(keep_top_p(self.top_p))
        if self.min_p > 0:
            parts.append(keep_min_p(self.min_p))
        return compose(*parts) if parts else None


@part
def compose(*processors: Processor) -> Processor:
    """Runs processors one after the other; the carry is the tuple of theirs."""

    def apply(logits, carry, context):
        carries = []
        for processor, own in zip(processors, carry, strict=True):
            logits, own = processor.apply(logits, own, context)
            carries.append(own)
        return logits, tuple(carries)

    def temperature(carry, context):
        parts = zip(processors, carry, strict=True)
        heats = (p.temperature(own, context) for p, own in parts if p.temperature)
        return reduce(operator.mul, heats)

    known = any(p.temperature for p in processors)
    return Processor(
        lambda rows: tuple(p.init(rows) for p in processors), apply, temperature if known else None
    )


@part
def keep_top_k(k: int) -> Processor:
    """Keeps the k largest logits; ties with the k-th stay."""

    def keep(logits: Float[Array, "R V"]) -> Array:
        values, _ = jax.lax.top_k(logits, min(k, logits.shape[-1]))
        # Sliced at once, XLA:CPU sorts the whole vocabulary: 606 instead of 7 ms for 16 × 151,936.
        # With the ids also behind the barrier, compiling for several devices ends the process.
        values = jax.lax.optimization_barrier(values)
        return logits >= values[:, -1:]

    return _stateless(keep)


@part
def keep_top_p(p: float) -> Processor:
    """Keeps the smallest set of most probable tokens whose probability reaches p; ties stay."""

    def keep(logits: Float[Array, "R V"]) -> Array:
        wide = logits.astype(wide_dtype(logits.dtype))
        mass = jnp.exp(wide - jnp.max(wide, axis=-1, keepdims=True))
        # By bisection: a sort of the vocabulary takes nine times as long on a CPU.
        threshold = threshold_of((mass, p * jnp.sum(mass, axis=-1)), partial(jnp.sum, axis=-1))
        return mass >= threshold[:, None]

    return _stateless(keep)


@part
def keep_min_p(p: float) -> Processor:
    """Keeps tokens whose probability is at least p times the largest."""

    def keep(logits: Float[Array, "R V"]) -> Array:
        return logits >= jnp.max(logits, axis=-1, keepdims=True) + jnp.log(
            jnp.asarray(p, logits.dtype)
        )

    return _stateless(keep)


def _stateless(keep: Callable[[Array], Array]) -> Processor:
    def apply(logits, carry, context):
        del context
        return jnp.where(keep(logits), logits, -jnp.inf), carry

    return Processor(lambda rows: None, apply)
