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
from rlvr_jax.types.token_stats import STATISTICS

PADDED_AXES = frozenset("PQEF")
"""Axes whose lengths may differ between batches: shorter arrays are padded."""


@dataclass(frozen=True)
class Record:
    """A declared array.

    Fields:
      kind: "Float", "Int" or "Bool".
      axes: names of the axes: B rollouts first; T response tokens; P tokens of the prompt, Q of
        another text, E vectors and F elements of variable number; other letters are sizes of
        their own.
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

    @property
    def per_token(self) -> bool:
        """Whether the record has an entry for each response token."""
        return self.axes[:2] == ("B", "T")

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
    module = sys._getframe(1).f_globals["__name__"]
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
    if (old := STATISTICS.get(name.removeprefix("old_"))) and name != old.name:
        meaning = f"`{old.name}` of the old policy"
        axes = tuple(axis.replace("k", "K") for axis in old.axes)
        return Record(name, old.kind, axes, meaning, 0, old.module)
    close = difflib.get_close_matches(name, RECORDS, n=3, cutoff=0.5) or sorted(RECORDS)
    raise ValueError(
        f"Rollouts: a record must be declared (rlvr_jax.types.declare, or an import of the module"
        f" that does it), got {name!r}; closest: {', '.join(close)}"
    )


_TOKENS, _ROWS = Float[Array, "B T"], Float[Array, "B"]
_TEXT, _TEXT_LENGTH = Int[Array, "B Q"], Int[Array, "B"]

declare(
    "origin",
    Int[Array, "B T"],
    "0 the policy, 1 a teacher, 2 a tool or an environment, 3 a hint or prefix "
    "that was given; only `mask` decides about training",
)
declare(
    "version",
    Int[Array, "B T"],
    "number of updates of the weights that sampled the token, for rows sampled "
    "over several updates; `weight_version` without it",
)
declare(
    "trace",
    Int[Array, "B"],
    "one id for the rows of one response that was written in several contexts; -1 "
    "for a row that is a whole response",
    missing=-1,
)
declare(
    "step",
    Int[Array, "B T"],
    "reasoning step of the token in its row; ids that occur count, gaps are skipped",
    missing=-1,
)
declare(
    "turn",
    Int[Array, "B T"],
    "turn of the token in its row; ids that occur count, gaps are skipped",
    missing=-1,
)
declare(
    "cell",
    Int[Array, "B"],
    "label by which statistics are separated: a role, an expert, a domain",
    missing=-1,
)
declare(
    "answer",
    Int[Array, "B"],
    "class of the final answer: rows of a group with equal ids agree; a row without "
    "an answer has a negative id of its own",
)
declare("off_policy", Bool[Array, "B"], "rows of another policy")
declare(
    "supervised",
    Bool[Array, "B"],
    "rows to imitate: their tokens up to `length`, with mask False, so that no "
    "policy loss and no denominator includes them",
)
declare(
    "stored",
    Bool[Array, "B"],
    "rows of an earlier step: their old statistics were recorded at sampling time "
    "and do not change",
)
declare(
    "component_rewards",
    Float[Array, "B K"],
    "K rewards of the row, for methods that weigh them themselves; NaN where one does not apply",
)
declare(
    "process_reward",
    _TOKENS,
    "reward of the token: of a process reward model, or a turn's outcome",
)
declare("values", _TOKENS, "the critic's estimates at sampling time")
declare("critic_values", Float[Array, "B K"], "the reward of the row that K critics expect")
declare("teacher_logp", _TOKENS, "log-probs of a stronger or an earlier policy, for distillation")
declare(
    "advantage",
    _TOKENS,
    "an objective that finds it does not estimate its own; `Objective.decide_once` writes it",
)
declare("weight", _TOKENS, "factors on the losses of tokens; `Objective.decide_once` writes it")
declare(
    "kept",
    Bool[Array, "B T"],
    "tokens that are left in the mask; `Objective.decide_once` writes it",
)
declare(
    "drawn_temperature",
    _TOKENS,
    "temperature at which the token was sampled, where a processor or a method's loss has "
    "another one than `temperature`; nothing is scored at it",
)
declare(
    "drawn_topk_logp",
    Float[Array, "B T K"],
    "log-probs of the K most probable tokens, descending, under the policy at "
    "the sampling temperature",
)
declare("drawn_topk_ids", Int[Array, "B T K"], "the K most probable tokens of `drawn_topk_logp`")
declare("soft", Bool[Array, "B T"], "positions where the sampler's input was a mixture of tokens")
declare("candidate_ids", Int[Array, "B T K"], "the tokens of that mixture")
declare(
    "candidate_weight",
    Float[Array, "B T K"],
    "their weights in the mixture; they sum to 1 where `soft`",
)
declare(
    "candidate_noisy_logp",
    Float[Array, "B T K"],
    "their log-probs in the mixture, with the noise",
)
declare(
    "soft_prompt",
    Float[Array, "B E D"],
    "vectors in place of the embeddings of the prompt's first E tokens",
)
declare(
    "soft_length",
    Int[Array, "B"],
    "number of the vectors of `soft_prompt`; 0 for a prompt of tokens only",
)
declare(
    "shown_tokens",
    _TEXT,
    "prompt of sampling, where the row is trained under another one; old log-probs are of "
    "that context",
)
declare("shown_length", _TEXT_LENGTH, "length of `shown_tokens`")
declare(
    "second_tokens",
    _TEXT,
    "second prompt, after which the response is scored as well "
    "(`second_prompt_logp`), and the context of the teacher or of the second "
    "policy of divergences",
)
declare("second_length", _TEXT_LENGTH, "length of `second_tokens`; 0 for a row without")
declare(
    "asked_tokens",
    _TEXT,
    "tokens after the response, such as a question about it, where `verdict_logp` is measured",
)
declare("asked_length", _TEXT_LENGTH, "length of `asked_tokens`; 0 for a row without")
declare("verdict_ids", Int[Array, "B K"], "the tokens of `verdict_logp`")
declare("embedding", Float[Array, "B D"], "embedding of the whole response")
declare(
    "prompt_logp",
    Float[Array, "B P"],
    "the old policy's log-probs of the prompt's tokens, at temperature 1; 0 for the first one",
)
