r"""Trains the base models that ship. Most have a common strategy and a rare, weaker one.

    python -m experiments.pretrain_base --out rlvr_jax/tasks/base_models/brackets
    python -m experiments.pretrain_base --task hinted_brackets \
        --out rlvr_jax/tasks/base_models/hinted_brackets
    python -m experiments.pretrain_base --task expressions \
        --out rlvr_jax/tasks/base_models/expressions
    python -m experiments.pretrain_base --task calculations --steps 3000 \
        --out rlvr_jax/tasks/base_models/calculations
    python -m experiments.pretrain_base --task noted_calculations --steps 3000 --batch 96 \
        --out rlvr_jax/tasks/base_models/noted_calculations
    python -m experiments.pretrain_base --task forms --steps 4000 --batch 64 \
        --num-traces 100000 --out rlvr_jax/tasks/base_models/forms
    python -m experiments.pretrain_base --task step_sums --steps 2000 --batch 64 \
        --num-traces 100000 --out rlvr_jax/tasks/base_models/step_sums
    python -m experiments.pretrain_base --task requests --steps 2500 --batch 64 \
        --num-traces 100000 --shown-batch 24 --out rlvr_jax/tasks/base_models/requests
    python -m experiments.pretrain_base --task option_sums --steps 4000 --batch 96 \
        --num-traces 100000 --out rlvr_jax/tasks/base_models/option_sums
    python -m experiments.pretrain_base --task sketches --steps 5000 --batch 48 \
        --num-traces 60000 --out rlvr_jax/tasks/base_models/sketches

Supervised training on random traces. Same seed and machine: same weights. The traces of a base are
described in its module of `experiments.base_traces`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

from rlvr_jax import policy, token_stats
from rlvr_jax.experiments.base_traces import option_traces, request_traces
from rlvr_jax.experiments.base_traces.bracket_traces import Habits, bracket_traces
from rlvr_jax.experiments.base_traces.calculation_traces import calculation_traces
from rlvr_jax.experiments.base_traces.expression_traces import expression_traces
from rlvr_jax.experiments.base_traces.form_traces import form_traces, step_traces
from rlvr_jax.experiments.base_traces.noted_traces import noted_traces
from rlvr_jax.experiments.base_traces.rows import Rows, Trace, padded_rows
from rlvr_jax.experiments.base_traces.sketch_traces import sketch_traces
from rlvr_jax.keys import plain_key
from rlvr_jax.runs import described
from rlvr_jax.tasks import brackets, hinted_brackets
from rlvr_jax.tasks.forms import words as forms
from rlvr_jax.tasks.sketches import words as sketches
from rlvr_jax.tasks.sums import calculations
from rlvr_jax.tasks.worlds import expressions

TaskName = Literal[
    "brackets",
    "hinted_brackets",
    "expressions",
    "calculations",
    "noted_calculations",
    "forms",
    "step_sums",
    "option_sums",
    "requests",
    "sketches",
]


@dataclass(frozen=True, kw_only=True)
class Config(Habits):
    """Training, and the distribution of the traces of brackets."""

    out: Path
    task: TaskName = "brackets"
    seed: int = 0
    num_traces: int = 200_000
    steps: int = 4000
    batch: int = 128
    # Rows of a step of the second kind of traces, for the bases that have two.
    shown_batch: int = 64
    peak_learning_rate: float = 3e-3


class Base(NamedTuple):
    """A base model.

    Fields:
      vocabulary: its words; the first ones are the numbers from 0.
      traces: (settings) -> `num_traces` traces of each kind.
      positions: largest number of tokens of a prompt and a response.
      numbers: number of words that are numbers.
      pattern: a regular expression of one word; "": spaces separate words.
      unknown: the word for unknown words.
      stop: the end of a response.
    """

    vocabulary: Sequence[str]
    traces: Callable[[Config], list[list[Trace]]]
    positions: int = 64
    numbers: int = brackets.LARGEST_VALUE + 1
    pattern: str = ""
    unknown: str = brackets.PADDING
    stop: str = "."


def _one_kind(make: Callable[[int, int], list[Trace]]) -> Callable[[Config], list[list[Trace]]]:
    return lambda config: [make(config.num_traces, config.seed)]


def _brackets(config: Config) -> list[list[Trace]]:
    kinds = (False, True) if config.task == "hinted_brackets" else (False,)
    return [bracket_traces(config.num_traces, config.seed, config, shown=kind) for kind in kinds]


_LETTERS = dict(numbers=10, pattern=".", unknown=calculations.UNKNOWN)
BASES: dict[TaskName, Base] = {
    "brackets": Base(brackets.VOCABULARY, _brackets),
    # A hint, an answer and the response are 65 tokens at most.
    "hinted_brackets": Base(hinted_brackets.HINTED_VOCABULARY, _brackets, positions=96),
    # Six references with six inputs each are 97.
    "expressions": Base(expressions.VOCABULARY, _one_kind(expression_traces), positions=128),
    "calculations": Base(calculations.VOCABULARY, _one_kind(calculation_traces), **_LETTERS),
    # A note or a response of 32 tokens may be shown with a calculation.
    "noted_calculations": Base(
        calculations.VOCABULARY, _one_kind(noted_traces), positions=96, **_LETTERS
    ),
    # A turn of tools after its state is 68.
    "forms": Base(forms.VOCABULARY, _one_kind(form_traces), positions=96, pattern=forms.PATTERN),
    "step_sums": Base(forms.VOCABULARY, _one_kind(step_traces), pattern=forms.PATTERN),
    "option_sums": Base(
        option_traces.VOCABULARY,
        _one_kind(option_traces.option_traces),
        pattern=option_traces.PATTERN,
    ),
    # Two responses of 24 tokens, a request and the reply.
    "requests": Base(
        request_traces.VOCABULARY,
        lambda config: request_traces.request_traces(config.num_traces, config.seed),
        positions=128,
        pattern=request_traces.PATTERN,
        stop=request_traces.STOP,
    ),
    # A question after passages, and searches.
    "sketches": Base(
        sketches.VOCABULARY,
        _one_kind(sketch_traces),
        positions=224,
        pattern=sketches.PATTERN,
        unknown=sketches.UNKNOWN,
    ),
}


def number_features(width: int, count: int) -> np.ndarray:
    """Sines and cosines of the first numbers at ten periods: sums are learned from them."""
    periods = np.array([2, 3, 5, 7, 10, 11, 13, 20, 50, 100])
    angle = 2 * np.pi * np.arange(count)[:, None] / periods[None]
    features = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    return np.pad(features, ((0, 0), (0, width - features.shape[1]))).astype(np.float32)


def make_tokenizer(base: Base) -> Any:
    """A tokenizer in transformers' form: of words between spaces, or of matches of a pattern."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    ids = {word: index for index, word in enumerate(base.vocabulary)}
    words = Tokenizer(models.WordLevel(ids, unk_token=base.unknown))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if base.pattern:
        words.pre_tokenizer = pre_tokenizers.Split(Regex(base.pattern), "isolated")
        words.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        eos_token=base.stop,
        pad_token=brackets.PADDING,
        unk_token=base.unknown,
    )


def main(config: Config) -> None:
    """Samples the traces, trains the model, writes the folder."""
    base = BASES[config.task]
    tokenizer = make_tokenizer(base)
    started = time.perf_counter()
    made = [padded_rows(t, tokenizer.get_vocab(), base.stop) for t in base.traces(config)]
    parts = list(zip(made, (config.batch, config.shown_batch), strict=False))
    print(f"{len(parts)} x {config.num_traces} traces in {time.perf_counter() - started:.0f} s")

    shape = policy.named_config("brackets", len(base.vocabulary), max_positions=base.positions)
    model = policy.Model(shape)
    params = model.init(plain_key(config.seed))
    numbers = number_features(shape.width, base.numbers)
    params["embedding"] = params["embedding"].at[: len(numbers)].add(0.1 * numbers)
    schedule = optax.cosine_decay_schedule(config.peak_learning_rate, config.steps)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule, b2=0.98))

    def loss_function(params, batches):
        total, count = 0.0, 0
        for batch in batches:
            hidden = model.hidden(params, batch.tokens[:, :-1])
            positions = jnp.arange(1, batch.tokens.shape[1])[None]
            mask = positions >= batch.prompt_length[:, None]
            mask &= (positions < batch.length[:, None]) & ~batch.context[:, 1:]
            stats = token_stats(
                hidden.reshape(-1, shape.width),
                model.unembedding(params),
                batch.tokens[:, 1:].reshape(-1),
                needs=("logp",),
                mask=mask.reshape(-1),
            )
            total += jnp.sum(stats.logp)
            count += jnp.sum(mask)
        return -total / count

    @jax.jit
    def update(params, state, batches):
        loss, gradient = jax.value_and_grad(loss_function)(params, batches)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, loss

    state = optimizer.init(params)
    random = np.random.default_rng([config.seed, 1])
    for step in range(config.steps):
        batches = []
        for rows, size in parts:
            chosen = random.integers(config.num_traces, size=size)
            batches.append(Rows(*(array[chosen] for array in rows)))
        params, state, loss = update(params, state, batches)
        if step % 250 == 0 or step == config.steps - 1:
            print(
                f"step {step}: loss {loss:.4f}, {time.perf_counter() - started:.0f} s", flush=True
            )
    policy.save(config.out, model, params, tokenizer)


if __name__ == "__main__":
    main(tyro.cli(Config, description=described(__doc__)))
