"""Workloads of `experiments.bench`, each as a run that is ready to step.

`quickstart` and `SmolLM2` are the first steps of those programs, with GRPO. S, M and L are fixed:

- a random policy of Qwen2's shape in float32, temperature 1
- prompts of 32 tokens, exactly 64 new tokens (no stop token)
- reward: the fraction of even token ids
- GRPO with Adam, one update on the whole batch

`Qwen2.5-0.5B` is a workload of that kind for an accelerator: products in bfloat16, 256 new tokens.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from rlvr_jax import methods, policy, tasks
from rlvr_jax.keys import plain_key
from rlvr_jax.policy import ModelConfig, shipped_weights
from rlvr_jax.runs import TrainConfig, preset
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import Run, make_run
from rlvr_jax.tasks import Prompt, Task, graded_one_by_one

PROMPT_TOKENS, SAMPLES = 32, 8


@dataclass(frozen=True)
class Work:
    """A fixed size: the policy's shape, prompts of a step, and number of timed steps."""

    model: ModelConfig
    prompts: int
    steps: int
    new_tokens: int = 64
    settings: Mapping[str, Any] = field(default_factory=dict)


def _work(
    vocabulary, prompts, steps, width, layers, heads, kv_heads, head_size, mlp, **others
) -> Work:
    config = ModelConfig(
        vocabulary, width, layers, heads, kv_heads, head_size, mlp, qkv_bias=True, max_positions=512
    )
    return Work(config, prompts, steps, **others)


_FIXED = {
    "S": _work(64, 16, 7, width=128, layers=4, heads=4, kv_heads=2, head_size=32, mlp=512),
    "M": _work(8192, 4, 5, width=512, layers=8, heads=8, kv_heads=4, head_size=64, mlp=1536),
    # The shape of SmolLM2-135M.
    "L": _work(49152, 2, 3, width=576, layers=30, heads=9, kv_heads=3, head_size=64, mlp=1536),
    "Qwen2.5-0.5B": _work(
        151936,
        32,
        20,
        width=896,
        layers=24,
        heads=14,
        kv_heads=2,
        head_size=64,
        mlp=4864,
        new_tokens=256,
        settings={"compute_dtype": "bfloat16", "micro_batches": 4},
    ),
}
ACCELERATED = ("Qwen2.5-0.5B",)
"""Sizes for an accelerator. A CPU measures them only if they are named."""
_PROGRAMS = {"quickstart": ("brackets", "grpo"), "SmolLM2": ("arithmetic", "gdpo")}
STEPS = {"quickstart": 7, "SmolLM2": 5, **{size: work.steps for size, work in _FIXED.items()}}
"""All sizes, and the number of timed warm steps of each."""


def prepared(
    size: str,
    folder: str,
    method: str = "",
    micro_batches: int | None = None,
    compute_dtype: str = "",
    bitwise: bool = False,
) -> Run:
    """The run whose steps are timed.

    Args:
      folder: folder for the random policy of a fixed size.
      method: empty: GRPO, or the first method of the program.
      micro_batches: micro-batches of an update; None: those of the program, or the usual number.
      compute_dtype: dtype of the products; empty: that of the workload.
      bitwise: log-probs have equal bits in sampler and update.
    Raises:
      ValueError: SmolLM2's weights are not installed.
    """
    settings: dict[str, Any] = {} if micro_batches is None else {"micro_batches": micro_batches}
    if compute_dtype:
        settings["compute_dtype"] = compute_dtype
    if bitwise:
        settings["bitwise"] = True
    if size in _FIXED:
        return _prepared(_FIXED[size], folder, method or "grpo", settings)
    task_name, first = _PROGRAMS[size]
    task, method = tasks.load(task_name), method or first
    path = str(shipped_weights()) if size == "SmolLM2" else task.base_model
    config = preset(task.name, method).replace(model=path, **settings)
    return make_run(resolve(config, task))


def _prepared(work: Work, folder: str, method: str, settings: Mapping[str, Any]) -> Run:
    words = {_word(number): number for number in range(work.model.vocab_size)}
    plain = Tokenizer(WordLevel(words, unk_token=_word(0)))
    plain.pre_tokenizer = WhitespaceSplit()
    model = policy.Model(work.model)
    params = jax.jit(model.init)(plain_key(0))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, eos_token=_word(0))
    policy.save(folder, model, params, tokenizer)
    config = TrainConfig.of(
        method=method,
        task="bench",
        model=folder,
        run_dir=Path(folder) / "run",
        prompts_per_step=work.prompts,
        samples_per_prompt=SAMPLES,
        mask_truncated=False,
        learning_rate=1e-5,
        warmup_updates=0,
        **{**work.settings, **settings},
    )
    hyperparameters = {"kl_coefficient": 0.0} if method == "grpo" else {}
    recipe = methods.recipe(method, **hyperparameters)
    run = make_run(resolve(config, _task(work), recipe))
    sampler = dataclasses.replace(run.start.sampler, stop_tokens=())
    return dataclasses.replace(run, start=dataclasses.replace(run.start, sampler=sampler))


def _task(work: Work) -> Task:
    """Prompts of random tokens, and even token ids as the reward."""
    random = np.random.default_rng(0)
    numbers = random.integers(0, work.model.vocab_size, (work.prompts * 16, PROMPT_TOKENS))
    prompts = [Prompt(" ".join(map(_word, row))) for row in numbers.tolist()]

    def fraction_of_even_ids(prompt, response):
        del prompt
        ids = [int(word[1:]) for word in response.text.split()]
        return sum(number % 2 == 0 for number in ids) / len(ids)

    verify = graded_one_by_one(fraction_of_even_ids)
    return Task("bench", prompts[:-1], prompts[-1:], verify, work.new_tokens)


def _word(number: int) -> str:
    """Token `number` as text; none is part of another, as the special token may not be."""
    return f"w{number}"
