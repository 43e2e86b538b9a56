"""Trains the base models of the brackets tasks: a common habit and a rarer, weaker skill.

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

Supervised training on random traces. Same seed and machine: same weights.

brackets: an attempt has the right form with probability `right_share`, for any prompt. It is a
solution of its form, if there is one, with probability `left_skill` or `right_skill`, else a random
legal attempt. After a failure the trace ends with probability `give_up`, else it has a second one.

hinted_brackets: each batch also has prompts with a hint (the first words of a solution) or with
another answer (a solution, a trace or an attempt, some of them miscalculated). With probability
`heed` the trace follows the prompt:

  - it completes a hint to a solution
  - it repeats a correct answer
  - after an incorrect answer it makes one attempt of the other form, a solution with probability
    `repair_skill`

expressions: half of the prompts are questions, half request a proposal. An answer is correct with
probability `skill`, else that of another program. A proposal is a random program with inputs, with
an extra word with probability `malformed`.

calculations: sums and products, half of each, of the train split. With probability `call_share`,
for any question, the response calls the calculator, with an incorrect number with probability
`slip`, and repeats the reply, which is not trained on. Otherwise the response is the correct answer
only.

noted_calculations: see `experiments.noted_traces`.
forms, step_sums: see `experiments.form_traces`, which lists their errors.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

from rlvr_jax import policy, token_stats
from rlvr_jax.experiments.form_traces import form_traces, step_traces
from rlvr_jax.experiments.noted_traces import noted_traces
from rlvr_jax.keys import plain_key
from rlvr_jax.runs import described
from rlvr_jax.tasks import Prompt
from rlvr_jax.tasks.brackets import LARGEST_VALUE, PADDING, VOCABULARY, brackets, legal_attempts
from rlvr_jax.tasks.forms.words import PATTERN as FORM_PATTERN, VOCABULARY as FORM_VOCABULARY
from rlvr_jax.tasks.hinted_brackets import HINTED_VOCABULARY, with_answer, with_hint
from rlvr_jax.tasks.sums.calculations import (
    KINDS as CALCULATION_KINDS,
    UNKNOWN,
    VOCABULARY as CALCULATION_VOCABULARY,
    calculations,
)
from rlvr_jax.tasks.worlds.expressions import (
    EXPRESSIONS,
    VOCABULARY as EXPRESSION_VOCABULARY,
    random_program,
)
from rlvr_jax.tasks.worlds.triplets import KINDS, split

TaskName = Literal[
    "brackets",
    "hinted_brackets",
    "expressions",
    "calculations",
    "noted_calculations",
    "forms",
    "step_sums",
]


@dataclass(frozen=True)
class Config:
    """Distribution of the traces and training."""

    out: Path
    task: TaskName = "brackets"
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
    # Of the second base alone: rows of a step beside `batch`, and what they are shown.
    shown_batch: int = 64
    hint_share: float = 0.5
    answer_share: float = 0.4
    heed: float = 0.9
    repair_skill: float = 0.5
    # Of the third.
    skill: float = 0.5
    malformed: float = 0.1
    # Of the fourth.
    call_share: float = 0.1
    slip: float = 0.1


class Rows(NamedTuple):
    """Prompts with traces: padded tokens [n, S], lengths [n], lengths of prompts [n], and the
    tokens that a tool wrote [n, S]."""

    tokens: np.ndarray
    length: np.ndarray
    prompt_length: np.ndarray
    by_tool: np.ndarray


def trace(prompt: Prompt, config: Config, random: np.random.Generator) -> str:
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


def shown_trace(prompt: Prompt, config: Config, random: np.random.Generator) -> tuple[str, str]:
    """The text of a prompt with a hint, an answer or both, and one random response to it."""
    *numbers, target = prompt.answer
    legal = legal_attempts(*numbers)
    solutions = [a.text for a in legal if a.value == target]
    draw = random.random()
    text = prompt.text
    if draw >= config.hint_share:
        answer, response = shown_answer(prompt, config, random)
        text = with_answer(prompt, answer)
    if draw < config.hint_share or draw >= config.hint_share + config.answer_share:
        words = solutions[random.integers(len(solutions))].split()
        hint = " ".join(words[: 1 + random.integers(len(words))])
        text = with_hint(Prompt(text), hint)
        completed = [s for s in solutions if f"{s} ".startswith(f"{hint} ")]
        response = completed[random.integers(len(completed))]
    if random.random() >= config.heed:
        response = trace(prompt, config, random)
    return text, response


def shown_answer(prompt: Prompt, config: Config, random: np.random.Generator) -> tuple[str, str]:
    """An answer, correct or incorrect, and the response of a policy that follows it.

    Of ten answers four are solutions, two or three are traces, the others attempts of either form,
    one of them miscalculated.
    """
    *numbers, target = prompt.answer
    legal = legal_attempts(*numbers)
    solutions = [a.text for a in legal if a.value == target]
    draw = random.random()
    if draw < 0.4:
        answer = solutions[random.integers(len(solutions))]
    elif draw < 0.65:
        answer = trace(prompt, config, random)
    else:
        form = ("left", "right")[random.integers(2)]
        pool = [a.text for a in legal if a.form == form] or solutions
        answer = pool[random.integers(len(pool))]
    if draw >= 0.9:
        # Miscalculated: another number in the place of the inner or the final value.
        words = answer.split()
        place = [i + 1 for i, word in enumerate(words) if word == "="][random.integers(2)]
        words[place] = str(random.integers(LARGEST_VALUE + 1))
        answer = " ".join(words)
    last = answer.split(" ; ")[-1]
    if last in solutions:
        return answer, last
    form = "right" if last.startswith("(") else "left"
    pool = [a for a in legal if a.form == form] or list(legal)
    solving = [a for a in pool if a.value == target]
    pool = solving if solving and random.random() < config.repair_skill else pool
    return answer, pool[random.integers(len(pool))].text


def expression_trace(config: Config, random: Random) -> tuple[str, str]:
    """A question in the world of expressions, and one random response to it."""
    kind = random.choice(KINDS)
    number = random.choice((2, 4)) if kind == "induction" else 1
    triplet, other = random_program(random, number), random_program(random, number)
    if random.random() < 0.5:
        references = [random_program(random, number) for _ in range(random.randint(1, 3))]
        inputs = " ".join(map(str, triplet.inputs))
        response = f"{triplet.program} ; {inputs}"
        if random.random() < config.malformed:
            response += " ;"
        return EXPRESSIONS.request(kind, references), response
    shown, _ = split(kind, triplet)
    chosen = triplet if random.random() < config.skill else other
    answers = {
        "deduction": chosen.outputs[0],
        "abduction": chosen.inputs[0],
        "induction": chosen.program,
    }
    return EXPRESSIONS.show(kind, shown), str(answers[kind])


def expression_rows(config: Config, ids: dict[str, int]) -> Rows:
    """Random questions in the world of expressions and a random response to each."""
    random = Random(config.seed)
    traces = [expression_trace(config, random) for _ in range(config.num_traces)]
    return padded_rows([(text.split(), response.split()) for text, response in traces], ids)


def form_rows(config: Config, ids: dict[str, int]) -> Rows:
    """Random prompts of the tasks of forms, or states of sums, and a random response to each."""
    traces = step_traces if config.task == "step_sums" else form_traces
    return padded_rows(traces(config.num_traces, config.seed), ids)


def make_rows(config: Config, ids: dict[str, int], shown: bool) -> Rows:
    """Random prompts, plain, with a hint or with an answer, and a random response to each."""
    random = np.random.default_rng([config.seed, 2] if shown else config.seed)
    prompts = brackets().train
    kinds = {k: [p for p in prompts if p.kind == k] for k in ("easy", "hard")}
    traces = []
    for _ in range(config.num_traces):
        group = kinds["easy" if random.random() < config.easy_share else "hard"]
        prompt = group[random.integers(len(group))]
        if shown:
            text, response = shown_trace(prompt, config, random)
        else:
            text, response = prompt.text, trace(prompt, config, random)
        traces.append((text.split(), response.split()))
    return padded_rows(traces, ids)


def padded_rows(traces: Sequence[tuple[list[str], list[str]]], ids: dict[str, int]) -> Rows:
    """Words of prompts and responses as tokens."""
    rows = [[ids[word] for word in [*text, *response, "."]] for text, response in traces]
    prompt_length = [len(text) for text, _ in traces]
    lengths = np.array([len(row) for row in rows])
    tokens = np.full((len(rows), lengths.max()), ids[PADDING], np.int32)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = row
    return Rows(tokens, lengths, np.array(prompt_length), np.zeros(tokens.shape, bool))


def calculation_rows(config: Config, ids: dict[str, int]) -> Rows:
    """Random sums and products and a random response to each."""
    random = Random(config.seed)
    pool = {
        kind: [prompt for prompt in calculations().train if prompt.kind == kind]
        for kind in CALCULATION_KINDS
    }
    traces, replies = [], []
    for _ in range(config.num_traces):
        prompt = random.choice(pool[random.choice(list(pool))])
        written, reply = "", ""
        if random.random() < config.call_share:
            a, b = prompt.text[:2], prompt.text[3:5]
            if random.random() < config.slip:
                b = str(random.randint(10, 99))
            value = int(a) + int(b) if prompt.kind == "sum" else int(a) * int(b)
            written, reply = f"[{a}{prompt.text[2]}{b}]", f"{value};"
        answer = reply[:-1] or prompt.gold
        traces.append(([*prompt.text], [*written, *reply, *answer]))
        begin = len(prompt.text) + len(written)
        replies.append((begin, begin + len(reply)))
    rows = padded_rows(traces, ids)
    places = np.arange(rows.tokens.shape[1])[None]
    begin, end = np.array(replies).T[:, :, None]
    return rows._replace(by_tool=(places >= begin) & (places < end))


def noted_rows(config: Config, ids: dict[str, int]) -> Rows:
    """Calculations with notes, errors and reflections, and a random response to each."""
    traces = noted_traces(config.num_traces, config.seed)
    texts = [(" ".join(shown), " ".join("".join(t for t, _ in parts))) for shown, parts in traces]
    rows = padded_rows(texts, ids)
    by_tool = np.zeros(rows.tokens.shape, bool)
    for row, (shown, parts) in zip(by_tool, traces, strict=True):
        place = len(shown)
        for text, of_tool in parts:
            row[place : place + len(text)] = of_tool
            place += len(text)
    return rows._replace(by_tool=by_tool)


def number_features(width: int) -> np.ndarray:
    """Sines and cosines of the numbers 0..99 at ten periods: sums are learned from them."""
    periods = np.array([2, 3, 5, 7, 10, 11, 13, 20, 50, 100])
    angle = 2 * np.pi * np.arange(LARGEST_VALUE + 1)[:, None] / periods[None]
    features = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    return np.pad(features, ((0, 0), (0, width - features.shape[1]))).astype(np.float32)


def make_tokenizer(vocabulary: Sequence[str], pattern: str = "", unknown: str = PADDING) -> Any:
    """A tokenizer in transformers' form: of words between spaces, or of matches of a pattern."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    ids = {word: index for index, word in enumerate(vocabulary)}
    words = Tokenizer(models.WordLevel(ids, unk_token=unknown))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if pattern:
        words.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
        words.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token=".", pad_token=PADDING, unk_token=unknown
    )


def main(config: Config) -> None:
    """Samples the traces, trains the model, writes the folder."""
    hinted, letters = config.task == "hinted_brackets", config.task.endswith("calculations")
    vocabulary = {
        "brackets": VOCABULARY,
        "hinted_brackets": HINTED_VOCABULARY,
        "expressions": EXPRESSION_VOCABULARY,
        "calculations": CALCULATION_VOCABULARY,
        "noted_calculations": CALCULATION_VOCABULARY,
        "forms": FORM_VOCABULARY,
        "step_sums": FORM_VOCABULARY,
    }[config.task]
    forms = config.task in ("forms", "step_sums")
    reading = (".", UNKNOWN) if letters else (FORM_PATTERN,) if forms else ()
    tokenizer = make_tokenizer(vocabulary, *reading)
    ids = tokenizer.get_vocab()
    started = time.perf_counter()
    made = {
        "expressions": expression_rows,
        "calculations": calculation_rows,
        "noted_calculations": noted_rows,
        "forms": form_rows,
        "step_sums": form_rows,
    }.get(config.task, partial(make_rows, shown=False))
    rows = made(config, ids)
    parts = [(rows, config.batch)]
    if hinted:
        parts.append((make_rows(config, ids, shown=True), config.shown_batch))
    print(f"{len(parts)} x {config.num_traces} traces in {time.perf_counter() - started:.0f} s")

    # Prompts with a hint and an answer, and the response, are 65 tokens at most; six references
    # with six inputs each are 97; a turn of tools after its state is 68; a note or a response of
    # 32 tokens may be shown with a calculation.
    positions = {"hinted_brackets": 96, "noted_calculations": 96, "expressions": 128, "forms": 96}
    positions = positions.get(config.task, 64)
    shape = policy.named_config("brackets", len(vocabulary), max_positions=positions)
    model = policy.Model(shape)
    params = model.init(plain_key(config.seed))
    # The first tokens are numbers: all of them, or the digits.
    numbers = number_features(shape.width)[: 10 if letters else LARGEST_VALUE + 1]
    params["embedding"] = params["embedding"].at[: len(numbers)].add(0.1 * numbers)
    schedule = optax.cosine_decay_schedule(config.peak_learning_rate, config.steps)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule, b2=0.98))

    def loss_function(params, batches):
        total, count = 0.0, 0
        for batch in batches:
            hidden = model.hidden(params, batch.tokens[:, :-1])
            positions = jnp.arange(1, batch.tokens.shape[1])[None]
            mask = positions >= batch.prompt_length[:, None]
            mask &= (positions < batch.length[:, None]) & ~batch.by_tool[:, 1:]
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
