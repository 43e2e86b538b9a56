"""Makes the base model of the brackets task: a habit, and a rarer, less practised skill.

    python -m experiments.pretrain_base --out rlvr_jax/tasks/base_models/brackets

Supervised on random traces. Each attempt takes the right form with probability `right_share`,
whatever the prompt; it is then a solution of that form, if there is one, with probability
`left_skill` or `right_skill`, else a random legal attempt; after a failure the trace stops with
probability `give_up`, else makes a second attempt. Same seed, same machine: same weights.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

from rlvr_jax import policy, token_stats
from rlvr_jax.tasks.brackets import LARGEST_VALUE, PADDING, VOCABULARY, brackets, legal_attempts


@dataclass(frozen=True)
class Config:
    """How the traces are drawn and learned."""

    out: Path
    seed: int = 0
    num_traces: int = 200_000
    right_share: float = 0.03
    left_skill: float = 0.5
    right_skill: float = 0.07
    give_up: float = 0.5
    easy_share: float = 0.67
    steps: int = 4000
    batch: int = 128
    peak_learning_rate: float = 3e-3


def trace(prompt, config: Config, random: np.random.Generator) -> str:
    """One random response to a prompt, without the stop token."""
    *numbers, target = prompt.answer
    attempts = []
    while len(attempts) < 2:
        form = "right" if random.random() < config.right_share else "left"
        skill = config.right_skill if form == "right" else config.left_skill
        legal = [a for a in legal_attempts(*numbers) if a.form == form]
        solutions = [a for a in legal if a.value == target]
        pool = solutions if solutions and random.random() < skill else legal
        if not pool:
            continue
        attempts.append(pool[random.integers(len(pool))])
        if attempts[-1].value == target or random.random() < config.give_up:
            break
    return " ; ".join(attempt.text for attempt in attempts)


def make_traces(config: Config, ids: dict[str, int]) -> tuple[np.ndarray, np.ndarray, int]:
    """Padded token rows [n, S], their lengths [n] and the (constant) length of a prompt."""
    random = np.random.default_rng(config.seed)
    prompts = brackets().train
    kinds = {k: [p for p in prompts if p.kind == k] for k in ("easy", "hard")}
    rows = []
    for _ in range(config.num_traces):
        group = kinds["easy" if random.random() < config.easy_share else "hard"]
        prompt = group[random.integers(len(group))]
        text = f"{prompt.text} {trace(prompt, config, random)} ."
        rows.append([ids[word] for word in text.split()])
    lengths = np.array([len(row) for row in rows])
    tokens = np.full((len(rows), lengths.max()), ids[PADDING], np.int32)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = row
    return tokens, lengths, len(prompts[0].text.split())


def number_features(width: int) -> np.ndarray:
    """Sines and cosines of the numbers 0..99 at ten periods: sums are learned from them."""
    periods = np.array([2, 3, 5, 7, 10, 11, 13, 20, 50, 100])
    angle = 2 * np.pi * np.arange(LARGEST_VALUE + 1)[:, None] / periods[None]
    features = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    return np.pad(features, ((0, 0), (0, width - features.shape[1]))).astype(np.float32)


def make_tokenizer():
    """The word-level tokenizer of the brackets vocabulary, in transformers' form."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    ids = {word: index for index, word in enumerate(VOCABULARY)}
    words = Tokenizer(models.WordLevel(ids, unk_token=PADDING))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token=".", pad_token=PADDING, unk_token=PADDING
    )


def main(config: Config) -> None:
    """Draws the traces, trains the model, writes the folder."""
    tokenizer = make_tokenizer()
    ids = tokenizer.get_vocab()
    started = time.perf_counter()
    tokens, lengths, prompt_length = make_traces(config, ids)
    print(f"{len(tokens)} traces in {time.perf_counter() - started:.0f} s")

    shape = policy.named_config("brackets", len(VOCABULARY), max_positions=64)
    model = policy.Model(shape)
    params = model.init(jax.random.key(config.seed))
    scale = 0.1
    params["embedding"] = (
        params["embedding"].at[: LARGEST_VALUE + 1].add(scale * number_features(shape.width))
    )
    schedule = optax.cosine_decay_schedule(config.peak_learning_rate, config.steps)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule, b2=0.98))

    def loss_function(params, batch, batch_lengths):
        hidden = model.hidden(params, batch[:, :-1])
        positions = jnp.arange(1, batch.shape[1])[None]
        mask = (positions >= prompt_length) & (positions < batch_lengths[:, None])
        stats = token_stats(
            hidden.reshape(-1, shape.width),
            model.unembedding(params),
            batch[:, 1:].reshape(-1),
            needs=("logp",),
            mask=mask.reshape(-1),
        )
        return -jnp.sum(stats.logp) / jnp.sum(mask)

    @jax.jit
    def update(params, state, batch, batch_lengths):
        loss, gradient = jax.value_and_grad(loss_function)(params, batch, batch_lengths)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, loss

    state = optimizer.init(params)
    random = np.random.default_rng([config.seed, 1])
    for step in range(config.steps):
        rows = random.integers(len(tokens), size=config.batch)
        params, state, loss = update(params, state, tokens[rows], lengths[rows])
        if step % 250 == 0 or step == config.steps - 1:
            print(
                f"step {step}: loss {loss:.4f}, {time.perf_counter() - started:.0f} s", flush=True
            )
    policy.save(config.out, model, params, tokenizer)


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
