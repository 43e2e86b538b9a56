"""A task and a policy so small that a training run of a few steps takes about a second.

The task asks for sums of two digits; a policy with random weights answers now and then by chance,
so that groups of rollouts are mixed. `settings` is a run of it; `python training_runs.py` is
its command line, for tests that kill it.
"""

import contextlib
import io
import itertools
import json
import os
import sys
from pathlib import Path

import jax
import pytest
from rich.console import Console
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from rlvr_jax import methods, policy
from rlvr_jax.runs import TrainConfig, guarded, parse_config, train
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import make_run
from rlvr_jax.tasks import Grade, Prompt, Task
from rlvr_jax.training.update import check_needs

WORDS = ["<pad>", "<unk>", "<eos>", "+", "=", *(str(number) for number in range(9))]
BUDGET = 6
# Calls of the verifier by the self-check: the prompts of each kind in two parts.
CHECKS = 4
GRPO = dict(method="grpo", minibatches=2)


_watchers = []


@contextlib.contextmanager
def watched(callback):
    """Within it, `callback` is called whenever responses are graded."""
    _watchers.append(callback)
    try:
        yield
    finally:
        _watchers.remove(callback)


def at_call(number, action):
    """A callback that acts when it is called for the given time, counted from 1."""
    calls = itertools.count(1)
    return lambda: action() if next(calls) == number else None


def verify(prompts, responses):
    """Right if the sum is among the words of the answer."""
    for callback in _watchers:
        callback()
    grades = []
    for prompt, response in zip(prompts, responses, strict=True):
        words = response.text.split()
        correct = str(prompt.answer) in words
        info = {"words": float(len(words))}
        grades.append(Grade(float(correct), info=info, answer=" ".join(words[-1:])))
    return grades


def sums(offset=0):
    """The task; another offset makes other prompts."""
    prompts = [
        Prompt(
            f"{a} + {b} =",
            a + b + offset,
            "small" if a + b < 4 else "large",
            str(a + b),
            meta={"level": 1 + (a + b) // 2},
        )
        for a in range(5)
        for b in range(4)
    ]
    train = [prompt for number, prompt in enumerate(prompts) if number % 4]
    rewards = ("outcome", "words")
    return Task("sums", train, prompts[::4], verify, BUDGET, rewards=rewards, answers=True)


def write_policy(folder, seed=0, **overrides):
    """Writes a random policy that knows `WORDS`; returns its folder."""
    words = WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<unk>")
    plain = Tokenizer(words)
    plain.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token="<eos>", pad_token="<pad>", unk_token="<unk>"
    )
    overrides = {"qkv_bias": True, "max_positions": 32, **overrides}
    model = policy.Model(policy.named_config("tiny", len(WORDS), **overrides))
    policy.save(folder, model, jax.jit(model.init)(jax.random.key(seed)), tokenizer)
    return folder


def settings(folder, run_dir, **changes):
    """A run of three steps; `changes` are fields of `TrainConfig`."""
    small = dict(
        task="training_runs:sums",
        model=str(folder),
        run_dir=Path(run_dir),
        steps=3,
        prompts_per_step=4,
        samples_per_prompt=4,
        mask_truncated=False,
        learning_rate=1e-2,
        warmup_updates=0,
        evaluation_prompts=4,
        evaluation_samples=4,
        evaluate_every=2,
        samples_stored=2,
    )
    return TrainConfig.of(**{**small, **changes})


def arguments(config):
    """The command line that gives this configuration."""
    line = []
    for setting, value in config.flat.items():
        name = setting.replace("_", "-")
        if setting == "preset":
            continue
        if isinstance(value, bool):
            line.append(f"--{name}" if value else f"--no-{name}")
        elif isinstance(value, tuple):
            line += [f"--{name}", *value] if value else []
        else:
            line += [f"--{name}", str(value)]
    return line


def quietly(config):
    """Trains without printing; returns the summary."""
    return train(config, Console(file=io.StringIO()))


def on_brackets(method, run_dir, task="hinted_brackets:train=64", **changes):
    """Two small steps of a method on brackets with hints, from its base; gives the metrics."""
    small = dict(
        task=task,
        method=method,
        run_dir=run_dir,
        steps=2,
        prompts_per_step=8,
        samples_per_prompt=8,
        evaluation_prompts=8,
        evaluation_samples=2,
    )
    quietly(TrainConfig.of(**{**small, **changes}))
    return metrics(run_dir)


def trained(folder, run_dir, method, *hyperparameters, **changes):
    """The lines of a run of two steps, one of which moves the policy."""
    small = dict(method=method, hyperparameters=hyperparameters, steps=2)
    quietly(settings(folder, run_dir, **{**small, **changes}))
    lines = metrics(run_dir)
    assert max(values(lines, "gradient_norm")) > 0
    return lines


def values(lines, name):
    """The numbers of one curve, of the steps that have it."""
    return [line[name] for line in lines if name in line]


def prepared(config):
    """The run that `train` would begin, for tests that take its steps one by one."""
    return make_run(resolve(config))


def every_trainable_method(*fast, without=frozenset()):
    """Marks a test for all methods that training can feed; those not named as fast are slow.

    One that allows a single update per batch is not among them.
    """

    def is_trainable(name):
        try:
            check_needs(methods.recipe(name), name, updates_per_step=4)
        except ValueError:
            return False
        return True

    marks = {name: () if name in fast else pytest.mark.slow for name in methods.names()}
    names = [name for name in marks if name not in without and is_trainable(name)]
    known = [pytest.param(name, marks=marks[name]) for name in names]
    return pytest.mark.parametrize("name", known)


def metrics(run_dir):
    """The lines of `metrics.jsonl`."""
    return [json.loads(line) for line in (Path(run_dir) / "metrics.jsonl").read_text().splitlines()]


def contents(run_dir):
    """Bytes of the files that equal runs have in common, by name."""
    folder = Path(run_dir)
    files = ["metrics.jsonl", "policy/model.safetensors"]
    files += sorted(str(path.relative_to(folder)) for path in folder.glob("samples/*"))
    return {name: (folder / name).read_bytes() for name in files}


def environment():
    """Variables for a process that runs this module from anywhere."""
    here = Path(__file__).parent
    root = here.parents[1]
    flags = "--xla_cpu_multi_thread_eigen=false"
    paths = os.pathsep.join([str(root), str(here)])
    return {**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}


if __name__ == "__main__":
    guarded(lambda line: print(train(parse_config(line))))
    sys.exit(0)
