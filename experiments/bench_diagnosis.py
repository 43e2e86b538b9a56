"""Time and memory of a diagnosis: of stored responses and of weights.

    python -m experiments.bench_diagnosis
    python -m experiments.bench_diagnosis --scorer rlvr_jax/tasks/base_models/brackets --length 32
    python -m experiments.bench_diagnosis --spectra

Responses of random policies are written like those of `diagnose --keep` and read again. Sampling
and scoring are not timed. With --scorer the responses have the tokens of that policy, and the time
of scoring both samples under both policies is printed next to that of the diagnosis. With --spectra
two folders of random weights in the shape of SmolLM2-135M are compared as well.
"""

import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import tyro

from rlvr_jax import policy
from rlvr_jax.analysis.diagnosis import diagnose_answers, write_page
from rlvr_jax.analysis.weights.checkpoints import compare_folders
from rlvr_jax.diagnosis.policy_pair import score_answers, score_branching
from rlvr_jax.diagnosis.stored_pair import load_answers
from rlvr_jax.policy.scoring import CHUNK
from rlvr_jax.rollout import load_rollouts, named_key, save_rollouts
from rlvr_jax.runs import described, guarded
from rlvr_jax.types import Rollouts, TokenStats

VOCABULARY, PROMPT = 49_152, 4
SHAPE = policy.ModelConfig(
    vocab_size=VOCABULARY,
    width=576,
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_size=64,
    mlp_width=1536,
)


@dataclass(frozen=True)
class Config:
    """Size of the diagnosis."""

    tokens: int = 1_000_000
    """Tokens of all responses of the three samples."""
    length: int = 256
    """Highest number of tokens of a response; half of it on average."""
    samples: int = 32
    """Responses per problem and sample."""
    scorer: str = ""
    """Policy folder that scores the responses; timed after a first call that compiles."""
    spectra: bool = False
    """Also compare weights."""
    seed: int = 0
    """Seed of the responses and the weights."""


def main(arguments: Sequence[str]) -> None:
    """Prints a line for each."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    problems = round(2 * config.tokens / (3 * config.samples * config.length))
    if problems < 2:
        raise ValueError(f"--tokens must be enough for two problems, got {config.tokens}")
    scorer = policy.load(config.scorer) if config.scorer else None
    vocabulary = scorer[0].config.vocab_size if scorer else VOCABULARY
    with tempfile.TemporaryDirectory() as folder:
        number = _store(Path(folder), problems, vocabulary, config)
        held = _memory()
        started = time.perf_counter()
        topics = diagnose_answers(*load_answers(folder))
        write_page(Path(folder) / "page.html", topics, "bench")
        seconds = time.perf_counter() - started
        alone, scored = _scoring(Path(folder), *scorer) if scorer else (None, None)
    print(
        f"{number:,} stored tokens of {problems} problems: {seconds:.1f} s, memory"
        f" {held:.2f} → {_memory():.2f} GB"
    )
    if alone is not None:
        print(
            f"scored by {config.scorer}: {alone:.1f} s, with branching {scored:.1f} s, with the"
            f" diagnosis {scored + seconds:.1f} s, {(scored + seconds) / alone:.2f} times as long"
        )
    if config.spectra:
        _spectra(config)


def _scoring(folder: Path, model: policy.Model, params: policy.Params) -> tuple[float, float]:
    """Seconds of scoring `before` and `after` twice each, as under two policies: log-probs and
    entropies alone, and with all that a diagnosis asks for."""
    before, after = (load_rollouts(folder / f"{name}.npz")[0] for name in ("before", "after"))

    def timed(of_before, of_after):
        parts = [(of_before, before), (of_before, before), (of_after, after), (of_after, after)]
        for score, rollouts in parts[::2]:
            score(model, params, jax.tree.map(lambda x: x[:CHUNK], rollouts))
        started = time.perf_counter()
        for score, rollouts in parts:
            score(model, params, rollouts)
        return time.perf_counter() - started

    return timed(score_answers, score_answers), timed(score_branching, score_answers)


def _store(folder: Path, problems: int, vocabulary: int, config: Config) -> int:
    """Writes three draws of random policies; gives the number of tokens.

    Args:
      problems: of each draw. vocabulary: number of different tokens.
    """
    random = np.random.default_rng(config.seed)
    rows, total = problems * config.samples, 0
    for name in ("before", "after", "again"):
        shape = (rows, config.length)
        tokens = random.integers(vocabulary, size=shape, dtype=np.int32)
        length = random.integers(1, config.length + 1, size=rows)
        mask = np.arange(config.length) < length[:, None]
        logp, other = -random.exponential(0.3, (2, *shape)).astype(np.float32)
        entropy, changed = random.exponential(0.3, (2, *shape)).astype(np.float32)
        rollouts = Rollouts.of_responses(
            tokens,
            mask=mask,
            group=np.repeat(np.arange(problems, dtype=np.int32), config.samples),
            reward=(random.uniform(size=rows) < 0.3).astype(np.float32),
        )
        rollouts = rollouts.replace(
            prompt_tokens=np.zeros((rows, PROMPT), np.int32),
            prompt_length=np.full(rows, PROMPT, np.int32),
            behaviour_logp=logp,
            entropy=entropy,
        )
        texts = {"answer": [str(x) for x in random.integers(20, size=rows)]}
        stats = TokenStats(logp=other, entropy=changed)
        save_rollouts(folder / f"{name}.npz", rollouts, stats, texts)
        total += int(mask.sum())
    return total


def _spectra(config: Config) -> None:
    """Compares two folders of random weights."""
    model = policy.Model(SHAPE)
    params = model.init(named_key(config.seed, "weights"))
    with tempfile.TemporaryDirectory() as folder:
        before, after = (Path(folder) / name for name in ("before", "after"))
        policy.save(before, model, params)
        policy.save(after, model, jax.tree.map(_moved, params))
        del params
        held = _memory()
        started = time.perf_counter()
        changes = compare_folders(before, after)
        seconds = time.perf_counter() - started
    print(
        f"{len(changes)} tensors of SmolLM2-135M: {seconds:.0f} s, memory {held:.2f} →"
        f" {_memory():.2f} GB"
    )


def _moved(leaf: jax.Array) -> jax.Array:
    """Weights after a small update: noise of a thousandth of their size."""
    noise = np.random.default_rng(leaf.size).normal(size=leaf.shape)
    return leaf + (1e-3 * leaf.std() * noise).astype(leaf.dtype)


def _memory() -> float:
    """The most that the process has held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    guarded(main)
