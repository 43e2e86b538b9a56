"""Records: named arrays of rollouts beside the fields that every batch has.

    declare("process_reward", Float[Array, "B T"], "reward of the token")
    rollouts = rollouts.replace(process_reward=reward)
    reward = rollouts.records["process_reward"]

A record is declared once, in the module whose code writes it; records of several modules are
declared here. Splits, paddings, meshes, micro-batches and files follow the declared axes, so that
a new record needs its declaration and nothing else.
"""

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.types.fields import axes_of_type, fits
from rlvr_jax.types.token_stats import statistic_of

PADDED_AXES = frozenset("PQEF")
"""Axes whose lengths may differ between batches: shorter arrays are padded."""


@dataclass(frozen=True)
class Record:
    """A declared array.

    Fields:
      kind: "Float", "Int" or "Bool".
      axes: names of the axes, B (rollouts) first. T: response tokens. P: tokens of the prompt. Q:
        of another text. E, F: vectors and elements of variable number. Other letters are separate
        sizes.
      meaning: a phrase.
      missing: the number of rows and tokens without this record, 0 or -1.
      module: the one that declares it.
    """

    name: str
    kind: str
    axes: tuple[str, ...]
    meaning: str
    missing: int
    module: str

    def check(self, array: Any, sizes: Mapping[str, int]) -> None:
        """Refuses an array of another kind or shape than declared.

        Args:
          sizes: of axes that are known.
        """
        wanted = ", ".join(str(sizes.get(axis, axis)) for axis in self.axes)
        shape = getattr(array, "shape", None)
        if shape is None or not fits(shape, self.axes, sizes):
            raise ValueError(
                f"record {self.name!r} must have the shape [{wanted}] as {self.module} declares,"
                f" got {'no array' if shape is None else list(shape)}"
            )
        if not jnp.issubdtype(array.dtype, _KINDS[self.kind]):
            raise ValueError(
                f"record {self.name!r} must be {self.kind} as {self.module} declares, got"
                f" {array.dtype}"
            )


_KINDS = {"Float": jnp.floating, "Int": jnp.integer, "Bool": jnp.bool_}

RECORDS: dict[str, Record] = {}
"""All declared records by name."""


def declare(name: str, array: Any, meaning: str, missing: int = 0) -> None:
    """Declares a record.

    Args:
      name: identifier; not a field of `Rollouts`.
      array: type and axes, such as `Float[Array, "B T"]`.
      meaning: a phrase.
      missing: the number of rows and tokens without the record: 0, or -1 for ids.
    Raises:
      ValueError: axes that do not begin with B, or another declaration of the name in another
        module. A notebook's cell may declare its record again.
    """
    module = sys._getframe(1).f_globals.get("__name__", "__main__")
    kind, axes = axes_of_type(array)
    if axes[:1] != ("B",):
        raise ValueError(f"declare: the axes of {name!r} must begin with B, got {' '.join(axes)!r}")
    record = Record(name, kind, axes, meaning, missing, module)
    known = RECORDS.setdefault(name, record)
    if known.module != module:
        raise ValueError(
            f"declare: {name!r} must have one declaration, got one of {known.module} too"
        )
    RECORDS[name] = record


def record_of(name: str) -> Record:
    """The declaration of a record.

    Raises:
      ValueError: no imported module declares it, and it is not `old_` and a statistic.
    """
    if name in RECORDS:
        return RECORDS[name]
    if (old := statistic_of(name)) and name != old.name:
        meaning = f"`{old.name}` of the old policy"
        axes = tuple(axis.replace("k", "K") for axis in old.axes)
        return Record(name, old.kind, axes, meaning, 0, old.module)
    close = difflib.get_close_matches(name, RECORDS, n=3, cutoff=0.5) or sorted(RECORDS)
    raise ValueError(
        f"Rollouts: a record must be declared (rlvr_jax.types.declare, or an import of the module"
        f" that does it), got {name!r}; closest: {', '.join(close)}"
    )


_LOGP, _IDS, _FLAGS = Float[Array, "B T"], Int[Array, "B T"], Bool[Array, "B T"]
_NUMBER, _FLAG, _TEXT = Int[Array, "B"], Bool[Array, "B"], Int[Array, "B Q"]
_PER_K, _IDS_OF_K = Float[Array, "B T K"], Int[Array, "B T K"]

# Where the tokens are from, and how rows belong together.
declare("origin", _IDS, "0 policy, 1 teacher, 2 tool or environment, 3 hint or prefix (given)")
declare("version", _IDS, "updates of the weights that sampled the token, if several sampled a row")
declare("trace", _NUMBER, "one id for the rows of a response that are several", missing=-1)
declare("step", _IDS, "reasoning step of the token; ids that occur count", missing=-1)
declare("turn", _IDS, "turn of the token; ids that occur count", missing=-1)
declare("cell", _NUMBER, "label by which statistics are separated: a role, a domain", missing=-1)
declare(
    "answer", _NUMBER, "class of the final answer; a row without one has a negative id of its own"
)
declare("off_policy", _FLAG, "rows of another policy")
declare("supervised", _FLAG, "rows to imitate up to `length`; their mask is False, no policy loss")
declare("stored", _FLAG, "rows of an earlier step, whose old statistics do not change")
# Rewards, estimates and decisions.
declare("component_rewards", Float[Array, "B K"], "rewards of the row; NaN: does not apply")
declare("process_reward", _LOGP, "reward of the token, by a process reward model or its turn")
declare("values", _LOGP, "the critic's estimates at sampling time")
declare("critic_values", Float[Array, "B K"], "the reward of the row that K critics expect")
declare("advantage", _LOGP, "given, or of `Objective.decide_once`: none is estimated")
declare("weight", _LOGP, "of `Objective.decide_once`: factors on the losses of tokens")
declare("decided_mask", _FLAGS, "of `Objective.decide_once`: tokens that stay in the mask")
declare("embedding", Float[Array, "B D"], "embedding of the whole response")
# Other log-probs and other samplings.
declare("teacher_logp", _LOGP, "log-probs of a stronger or an earlier policy, for distillation")
declare(
    "prompt_logp",
    Float[Array, "B P"],
    "old log-probs of the prompt at temperature 1; the first is 0",
)
declare("sampled_temperature", _LOGP, "temperature of sampling, if it is not that of scoring")
declare(
    "sampled_topk_logp", _PER_K, "the K largest log-probs when the token was sampled, descending"
)
declare("sampled_topk_ids", _IDS_OF_K, "ids of `sampled_topk_logp`")
declare("soft", _FLAGS, "where the sampler's input was a mixture of tokens")
declare("candidate_ids", _IDS_OF_K, "the tokens of the mixture")
declare("candidate_weight", _PER_K, "weights in the mixture; they sum to 1 where `soft`")
declare("candidate_noisy_logp", _PER_K, "log-probs in the mixture, with the noise")
# Mixtures of experts: n layers with k experts for each token; 0 is missing, so that any operation
# that clears tokens clears their routes.
declare(
    "routes",
    Int[Array, "B T n k"],
    "1 + number of each expert that read the token when it was the sampler's input; 0: unknown",
)
declare("prompt_routes", Int[Array, "B P n k"], "`routes` of the tokens of the prompt")
# Other prompts.
declare("soft_prompt", Float[Array, "B E D"], "vectors in place of the prompt's first E embeddings")
declare("soft_length", _NUMBER, "number of vectors of `soft_prompt`, E or 0")
declare(
    "shown_tokens", _TEXT, "the prompt of sampling and of old log-probs, if trained under another"
)
declare("shown_length", _NUMBER, "length of `shown_tokens`")
declare("second_tokens", _TEXT, "second prompt, of `second_prompt_logp` and of the second policy")
declare("second_length", _NUMBER, "length of `second_tokens`, or 0")
declare("asked_tokens", _TEXT, "question after the response, where `verdict_logp` is measured")
declare("asked_length", _NUMBER, "length of `asked_tokens`, or 0")
declare("verdict_ids", Int[Array, "B K"], "the tokens of `verdict_logp`")
