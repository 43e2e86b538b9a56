"""Updates of rows with common prefixes: as trees (`--prefix-trees`), and row by row.

    python -m experiments.bench_prefixes
    python -m experiments.bench_prefixes --topology v5e-16 v5p-8

Without a topology, the update of ARPO is timed on the current machine. Its rows use tools, and some
of them fork after a round with a tool. The task's base model samples them. Policies of several
widths, with random weights, then learn from the same batch with trees and without them, in turns.
The least time of each counts.

With a topology, both updates are compiled for slices of TPUs that are not present (pip install
libtpu). Episodes have 8 turns, each of 128 generated tokens and a reply of 128 tokens, after a
prompt of 512. Half of the 8 episodes of a prompt fork at the end of a turn (`forks`). Or each turn
is a row whose prompt is the episode so far (`turns`). Printed for each device: tokens that the
layers read, FLOPs of the products (by hand), memory, and the compiler's estimate of the time.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import jax
import numpy as np
import tyro
from rich.console import Console

from rlvr_jax import methods, policy, tasks
from rlvr_jax.parallel import row_sharding
from rlvr_jax.parallel.measure import ByHand, Target, measured
from rlvr_jax.parallel.roofline import Work
from rlvr_jax.parallel.topologies import describe
from rlvr_jax.pods.abstract import abstract_run
from rlvr_jax.policy import ModelConfig
from rlvr_jax.policy.attention import STRIP
from rlvr_jax.policy.published import PUBLISHED
from rlvr_jax.runs import TrainConfig, described, guarded, preset
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import make_run
from rlvr_jax.runs.step import collect
from rlvr_jax.training.learning import learn
from rlvr_jax.training.prefixes import Prefixes
from rlvr_jax.types import Rollouts

TURNS, SPOKEN, REPLY, PROMPT = 8, 128, 128, 512
EPISODES = 8
"""Episodes of a prompt, of which half fork."""

MICRO_BATCHES = {"forks": 1, "turns": 4}
"""Micro-batches of an update whose rows are episodes, or turns of them."""


@dataclass(frozen=True)
class Config:
    """Devices and repetitions."""

    topology: tuple[str, ...] = ()
    """Slices of TPUs to compile for, for example v5e-16; empty: measure on this machine."""
    model: str = "qwen2.5-0.5b"
    """Shape of the policy that is compiled."""
    rows: tuple[Literal["forks", "turns"], ...] = ("forks", "turns")
    """Rows that are compiled."""
    widths: tuple[int, ...] = (64, 256, 512)
    """Widths of the policies that are timed, multiples of 32."""
    repeats: int = 5
    """Timed updates of each kind."""


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    console = Console(highlight=False, soft_wrap=True)
    for width in () if config.topology else config.widths:
        console.print(measured_here(width, config.repeats))
    for rows in config.rows:
        for topology in config.topology:
            for line in compiled_for(topology, config.model, rows):
                console.print(line)


def measured_here(width: int, repeats: int) -> str:
    """A line with the times of an update of ARPO with trees and without, for a policy's width."""
    with tempfile.TemporaryDirectory() as folder:
        task = tasks.load("noted_calculations")
        settings = preset(task.name, "arpo").replace(run_dir=Path(folder) / "run")
        base = make_run(resolve(settings.replace(model=task.base_model), task))
        rollouts = collect(base, base.initial_state(), 0).batch.rollouts
        wide = settings.replace(model=_with_width(task.base_model, width, Path(folder) / "wide"))
        runs = {
            when: make_run(resolve(wide.replace(prefix_trees=when), task))
            for when in ("always", "never")
        }
        times: dict[str, list[float]] = {when: [] for when in runs}
        for turn in range(1 + repeats):
            for when, own in runs.items():
                device = own.initial_state().device
                started = time.perf_counter()
                _, metrics, _ = learn(own.learner, device, rollouts, 0)
                if turn:
                    times[when].append(time.perf_counter() - started)
                if when == "always":
                    fraction = metrics["update_tokens_fraction"]
    shared, alone = (min(times[when]) for when in ("always", "never"))
    forked = int(np.sum(rollouts.parent >= 0))
    return (
        f"width {width}, {len(rollouts.group)} rows, {forked} forked: update with trees"
        f" {shared:.3f} s, without {alone:.3f} s: {shared / alone:.2f}; tokens {fraction:.2f}; load"
        f" {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )


def _with_width(base_model: str, width: int, folder: Path) -> str:
    """A policy of the base model's layers and tokenizer, of another width, with random weights."""
    model, _ = policy.load(base_model)
    sizes = {"num_heads": width // 32, "num_kv_heads": width // 32, "mlp_width": 11 * width // 4}
    wide = policy.Model(replace(model.config, width=width, head_size=32, **sizes))
    policy.save(folder, wide, wide.init(jax.random.key(0)), policy.tokenizer(base_model))
    return str(folder)


def episodes(prompts: int, rows: str) -> Rollouts:
    """Episodes of random tokens: a row each, half of which fork, or a row for each turn."""
    random, budget = np.random.default_rng(0), TURNS * (SPOKEN + REPLY)
    tokens = random.integers(0, 1000, (prompts, EPISODES, budget)).astype(np.int32)
    parent = np.full((prompts, EPISODES), -1, np.int32)
    for own, above in zip(tokens, parent, strict=True):
        for row in range(EPISODES // 2, EPISODES):
            above[row] = random.integers(0, row)
            cut = (SPOKEN + REPLY) * random.integers(1, TURNS)
            own[row, :cut] = own[above[row], :cut]
    questions = random.integers(0, 1000, (prompts, PROMPT)).astype(np.int32)
    whole = np.concatenate([np.repeat(questions[:, None], EPISODES, axis=1), tokens], axis=2)
    whole = whole.reshape(-1, PROMPT + budget)
    group = np.repeat(np.arange(prompts), EPISODES)
    starts = np.full(len(whole), PROMPT)
    spoken = np.arange(budget) % (SPOKEN + REPLY) < SPOKEN
    if rows == "turns":
        whole, group = np.repeat(whole, TURNS, axis=0), np.repeat(group, TURNS)
        parent = np.zeros(len(whole), np.int32)
        starts = PROMPT + (SPOKEN + REPLY) * np.tile(np.arange(TURNS), len(whole) // TURNS)
        spoken, budget = np.ones(SPOKEN, bool), SPOKEN
    width = int(starts.max())
    places = starts[:, None] + np.arange(budget)
    rollouts = Rollouts.of_responses(
        np.take_along_axis(whole, places, axis=1),
        np.broadcast_to(spoken, places.shape),
        random.random(len(whole)).astype(np.float32),
        group,
        prompt_tokens=whole[:, :width],
        prompt_length=starts.astype(np.int32),
        length=np.full(len(whole), budget, np.int32),
        parent=parent.reshape(-1),
    )
    return jax.tree.map(np.asarray, rollouts)


def compiled_for(topology: str, model: str, rows: str) -> Iterator[str]:
    """A line for each of both updates, with numbers for each device."""
    target = describe(topology)
    devices = target.num_devices
    rollouts = episodes(devices, rows)
    (number, prompt), budget = rollouts.prompt_tokens.shape, rollouts.tokens.shape[1]
    # Turns have prompts of their own.
    prompts = devices if rows == "forks" else number
    config = TrainConfig.of(
        method="dapo",
        model=model,
        prompts_per_step=prompts,
        samples_per_prompt=number // prompts,
        prompt_tokens=prompt,
        response_tokens=budget,
        micro_batches=MICRO_BATCHES[rows],
        mesh=f"fsdp={devices}",
        compute_dtype="bfloat16",
        remat="layers",
        prefix_trees="always",
    )
    run = abstract_run(config, PUBLISHED[model], methods.recipe("dapo"), target.devices())
    shape = run.model.config
    tree = Prefixes(run.model, run.config.plan).of(rollouts).tree
    placed = row_sharding(run.model.mesh)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=placed), tree)
    size, (_, strips, depth) = tree.tokens.shape[2], tree.path.shape
    strip = min(STRIP, depth) * size
    first = np.arange(tree.twin.size // len(tree.tokens))
    own = tree.twin.reshape(len(tree.tokens), -1) == first
    places = rollouts.scored.sum(), (own & rollouts.scored.reshape(own.shape)).sum()
    alone = prompts * prompt + number * budget
    pairs = prompts * prompt**2 + number * budget * (prompt + budget)
    in_trees = len(tree.path) * strips * strip * depth * size
    where = Target(target, shape, (run.model.mesh, run.sampler.mesh), budget)
    for name, trees, *counts in (
        ("with trees", shapes, tree.tokens.size, in_trees, places[1]),
        ("without", None, alone, pairs, places[0]),
    ):
        facts = measured(run.lower_update(trees), where, ByHand({}, {}, {}, Work(0, 0)))
        flops = update_flops(shape, *counts) / devices / 1e12
        yield (
            f"{topology}, {rows} {name}: {counts[0] / devices:,.0f} tokens, {flops:.1f} TFLOP,"
            f" {facts['bytes'] / 2**30:.2f} GiB{'' if facts['fits'] else ' (does not fit)'},"
            f" {facts.get('compiler_seconds', float('nan')):.2f} s"
        )


def update_flops(config: ModelConfig, tokens: int, pairs: int, places: int) -> float:
    """FLOPs of matrix products: those of two forward passes and of a backward pass, which has
    twice as many.

    Args:
      pairs: of a query and a key, those off the mask included.
      places: where statistics are computed.
    """
    heads = config.num_heads * config.head_size
    weights = config.width * (2 * heads + 2 * config.num_kv_heads * config.head_size)
    weights += 3 * config.width * config.mlp_width
    layers = config.num_layers * (2.0 * tokens * weights + 4.0 * pairs * heads)
    return 4 * (layers + 2.0 * places * config.width * config.vocab_size)


if __name__ == "__main__":
    guarded(main)
