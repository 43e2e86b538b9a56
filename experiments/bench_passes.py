"""Time of further passes of a step: teachers and probes; and of a store of rows.

    python -m experiments.bench_passes
    python -m experiments.bench_passes --size M --store 0

A teacher scores the tokens of a batch once more. Its cost is the time of a program with the teacher
minus that of the program without it. Two lower bounds are printed next to it: a forward pass over
these tokens (`forward`), and the vocabulary product of the requested statistics on stored hidden
states (`product`). The last column is (cost - product) / forward. Rows with a gradient are updates:
the policy's part is differentiated, the teacher's is not.

A probe appends a question to every response and reads one token. Without a cache this is a pass
over prompt, response and question (`verdicts`), next to a forward pass over as many tokens. With
the cache of the rows (`rollout.probe`) it is next to feeding the question only (`prefill`).

A store is written and read as in a step of a method with replay. Its fraction is relative to a step
of GRPO on the same workload.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from rlvr_jax import policy
from rlvr_jax.experience.store import empty_store, push, taken, uniform_places
from rlvr_jax.experiments.bench_work import prepared
from rlvr_jax.policy import Model, Params
from rlvr_jax.policy.scoring import logits_of_ids, score_hidden
from rlvr_jax.rollout import empty, prefill, probe
from rlvr_jax.runs import described, guarded
from rlvr_jax.runs.step import take_step
from rlvr_jax.training.statistics import statistics, verdicts
from rlvr_jax.types import Rollouts, TokenStats, replace

TOP_K = 20
ASKED = 4
"""Tokens of a probe's question."""


@dataclass(frozen=True)
class Config:
    """Workload and measurements."""

    size: str = "S"
    """Workload, as in experiments.bench."""
    repeats: int = 7
    """Calls of each function, in turns; the least time is printed."""
    store: int = 100_000
    """Rows of the store; 0: the store is not timed."""


def main(arguments: Sequence[str]) -> None:
    """Measures and prints the tables."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    console = Console(width=100)
    with tempfile.TemporaryDirectory() as folder:
        run = prepared(config.size, folder)
        state = run.initial_state()
        seconds, batch = [], None
        for step in range(config.repeats + 1):
            started = time.perf_counter()
            taken_step = take_step(run, state, step)
            jax.block_until_ready(taken_step.state.device.params)
            seconds.append(time.perf_counter() - started)
            state, batch = taken_step.state, taken_step.batch
        console.print(_teachers(config, run.start.model, state.device.params, batch.rollouts))
        console.print(_probes(config, run.start.model, state.device.params, batch.rollouts))
        if config.store:
            step = min(seconds[1:])
            console.print(_store(config, batch.rollouts, step), highlight=False)


def _teachers(config: Config, model: Model, params: Params, batch: Rollouts) -> Table:
    teacher = jax.tree.map(lambda x: x + 0.01, params)
    batch = jax.tree.map(jnp.asarray, batch)
    read = jax.jit(partial(policy.hidden_states, model))
    hidden, beside = read(params, batch), read(teacher, batch)
    embedded, embedded_beside = model.unembedding(params), model.unembedding(teacher)
    ids = jnp.zeros((*batch.tokens.shape, TOP_K), jnp.int32)

    def update(needs, options=()):
        """The policy's statistics with their gradient, beside the teacher if one is asked for."""

        def of(params, teacher, batch):
            measured = statistics(model, params, batch, {"logp", *needs}, options, other=teacher)
            return _total(measured)

        whole = jax.jit(jax.grad(of))
        return lambda: whole(params, teacher, batch)

    def product(needs):
        """The same on hidden states that are there."""

        def of(own, other, batch):
            flat = other[0].reshape(batch.tokens.size, -1), other[1]
            known = {"other": flat} if needs else {}
            return _total(score_hidden(model, *own, batch, {"logp", *needs}, **known))

        whole = jax.jit(jax.grad(of))
        return lambda: whole((hidden, embedded), (beside, embedded_beside), batch)

    def at_ids(states, unembedding, batch, ids):
        stats = score_hidden(model, states, unembedding, batch, {"entropy", "logsumexp"})
        return stats, logits_of_ids(model, states, unembedding, batch, ids)

    def sampled(states, unembedding, batch):
        return score_hidden(model, states, unembedding, batch, {"logp"}).logp

    scored, sampled, at_ids = (jax.jit(f) for f in (partial(policy.score, model), sampled, at_ids))
    likeliest = {"topk_logp", "topk_ids"}, (("top_k", TOP_K),)
    timed = {
        "forward": lambda: read(teacher, batch),
        "sampled": lambda: scored(teacher, batch),
        "sampled, product": lambda: sampled(beside, embedded_beside, batch),
        "none": update(()),
        "none, product": product(()),
        "kl": update({"kl"}),
        "kl, product": product({"kl"}),
        "js": update({"js"}),
        "js, product": product({"js"}),
        "likeliest, none": update(*likeliest),
        "likeliest": update({*likeliest[0], "teacher_topk_logp"}, likeliest[1]),
        "likeliest, product": lambda: at_ids(beside, embedded_beside, batch, ids),
    }
    seconds = _least(config.repeats, timed)
    table = Table("asked of the teacher", "cost, s", "forward, s", "product, s", "of forward")
    for name, cost, own in (
        ("log-probs of the sampled tokens", seconds["sampled"], seconds["sampled, product"]),
        *(
            (
                f"{each} over the vocabulary, in an update",
                seconds[each] - seconds["none"],
                seconds[f"{each}, product"] - seconds["none, product"],
            )
            for each in ("kl", "js")
        ),
        (
            f"log-probs of the policy's {TOP_K} likeliest, in an update",
            seconds["likeliest"] - seconds["likeliest, none"],
            seconds["likeliest, product"],
        ),
    ):
        ratio = (cost - own) / seconds["forward"]
        numbers = (f"{x:.4f}" for x in (cost, seconds["forward"], own))
        table.add_row(name, *numbers, f"{ratio:.2f}")
    return table


def _probes(config: Config, model: Model, params: Params, batch: Rollouts) -> Table:
    batch = jax.tree.map(jnp.asarray, batch)
    rows = len(batch.tokens)
    question = jnp.ones((rows, ASKED), jnp.int32)
    count = jnp.full(rows, ASKED, jnp.int32)
    asked = batch.replace(
        asked_tokens=question,
        asked_length=count,
        verdict_ids=jnp.tile(jnp.arange(2, dtype=jnp.int32), (rows, 1)),
    )
    wider = batch.replace(tokens=jnp.pad(batch.tokens, ((0, 0), (0, ASKED + 1))))
    # Prompts of this piece of work are of one length, and so are responses.
    whole = jnp.concatenate([batch.prompt_tokens, batch.tokens], axis=1)
    pool = empty(model, rows, whole.shape[1] + ASKED + 1)
    pool = replace(pool, key=jax.random.split(jax.random.key(0), rows))
    feed, ask = (jax.jit(partial(f, model)) for f in (prefill, probe))
    pool = feed(params, pool, whole, jnp.full(rows, whole.shape[1], jnp.int32))
    read, verdict = (jax.jit(partial(f, model)) for f in (policy.hidden_states, verdicts))
    seconds = _least(
        config.repeats,
        {
            "read": lambda: read(params, wider),
            "verdict": lambda: verdict(params, asked),
            "fed": lambda: feed(params, pool, question, count),
            "probe": lambda: ask(params, pool, question, count),
        },
    )
    table = Table(
        f"probe of {ASKED} tokens behind {whole.shape[1]}", "cost, s", "floor, s", "ratio"
    )
    for name, cost, floor in (
        ("without a cache: a pass over each row", seconds["verdict"], seconds["read"]),
        ("with the cache held: the question alone", seconds["probe"], seconds["fed"]),
    ):
        table.add_row(name, f"{cost:.4f}", f"{floor:.4f}", f"{cost / floor:.2f}")
    return table


def _total(stats: TokenStats) -> jax.Array:
    """A number with a gradient through every statistic that has one."""
    floats = [x for x in jax.tree.leaves(stats) if jnp.issubdtype(x.dtype, jnp.floating)]
    # What is constant would not be computed if nothing that is differentiated were to use it.
    if "teacher_topk_logp" in stats.records:
        floats.append(stats.records["topk_logp"] * stats.records["teacher_topk_logp"])
    return sum(jnp.sum(x) for x in floats)


def _least(repeats: int, timed: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of a call by name, called in turns: on CPUs those of all cores together, which other
    work does not change much, else of the clock on the wall."""
    clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for call in timed.values():
        jax.block_until_ready(call())
    for _ in range(repeats):
        for name, call in timed.items():
            started = clock()
            jax.block_until_ready(call())
            seconds[name].append(clock() - started)
    return {name: min(own) for name, own in seconds.items()}


def _store(config: Config, batch: Rollouts, step: float) -> str:
    rows, budget = batch.tokens.shape
    random = np.random.default_rng(0)
    store = empty_store(
        config.store,
        number=((), np.int32),
        tokens=((budget,), np.int32),
        length=((), np.int32),
        old_logp=((budget,), np.float32),
    )
    new = {
        "number": np.asarray(batch.group),
        "tokens": np.asarray(batch.tokens),
        "length": np.asarray(batch.length),
        "old_logp": np.asarray(batch.behaviour_logp),
    }
    filled = {name: np.repeat(x, -(-config.store // rows), axis=0) for name, x in new.items()}
    store = push(store, filled, 0)
    seconds = []
    for number in range(config.repeats):
        started = time.perf_counter()
        store = push(store, new, number)
        taken(store, uniform_places(store, rows, random))
        seconds.append(time.perf_counter() - started)
    own = min(seconds)
    return (
        f"store of {config.store:,} rows of {budget} tokens: {rows} pushed and {rows} read in"
        f" {own:.4f} s, {own / step:.2%} of a step of {step:.2f} s"
    )


if __name__ == "__main__":
    guarded(main)
