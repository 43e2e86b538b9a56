"""Compiles a run for a TPU slice that is not present; prints whether it fits, and its cost.

    python -m rlvr_jax.parallel.compile v5e-256 --model qwen2.5-7b
    python -m rlvr_jax.parallel.compile cpu:8 --experiment --task brackets --method clip_cov
    python -m rlvr_jax.parallel.compile --table docs/results/pods

Compiled are the run's own sampler, scorer, update and critic's update, with shapes instead of
arrays. Exit code 0: all fits; 1: something does not fit; 2: the request is invalid.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import jax

from rlvr_jax.experience.prompts import encode_prompts, shared_opening
from rlvr_jax.parallel.report import describe_report
from rlvr_jax.parallel.topologies import describe
from rlvr_jax.pods.compile_table import fill_table
from rlvr_jax.pods.compiled import compile_run
from rlvr_jax.policy import REMAT_POLICIES, ModelConfig
from rlvr_jax.policy.hugging_face import from_hugging_face
from rlvr_jax.policy.json_object import json_object
from rlvr_jax.policy.published import PUBLISHED
from rlvr_jax.runs.command_line import parse_config
from rlvr_jax.runs.config import SETTINGS, TrainConfig
from rlvr_jax.runs.resolved import with_task
from rlvr_jax.runs.task import load_task, load_tokenizer

_NAMES = {
    "prompts": "prompts_per_step",
    "samples": "samples_per_prompt",
    "prompt_len": "prompt_tokens",
    "response_len": "response_tokens",
}
"""Settings of `TrainConfig` by the options with another name."""


def _shape_of(model: str) -> ModelConfig:
    """The shape of a model: one of `PUBLISHED`, a config.json, or a folder that has one."""
    if model in PUBLISHED:
        return PUBLISHED[model]
    path = Path(model)
    path = path / "config.json" if path.is_dir() else path
    if path.name != "config.json" or not path.is_file():
        raise ValueError(
            f"model must be one of {', '.join(PUBLISHED)}, or a config.json or a folder with one,"
            f" got {model!r}"
        )
    return from_hugging_face(json_object(path.read_bytes(), path))


def _experiment(arguments: Sequence[str]) -> tuple[TrainConfig, ModelConfig, str, int]:
    """Settings, model, its name, and the common beginning of the prompts of a command of
    `python -m rlvr_jax train`."""
    config = parse_config(arguments)
    task = load_task(config)
    config = with_task(config, task)
    tokenizer = load_tokenizer(config.data, config.policy.model)
    tables = [
        encode_prompts(tokenizer, prompts, config.data.prompt_tokens, "task")
        for prompts in (task.train, task.test)
    ]
    config = config.replace(prompt_tokens=max(table.tokens.shape[1] for table in tables))
    return config, _shape_of(config.policy.model), config.policy.model, shared_opening(tables)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_jax.parallel.compile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("topology", nargs="?", help="slice such as v5e-256 or v5p-128, or cpu:8")
    add("--model", help=f"{', '.join(PUBLISHED)}, a config.json, or a folder with one")
    add("--method", default="grpo", help="a published method (grpo)")
    add("--hyperparameters", nargs="*", default=[], help="name=value pairs of the method")
    add("--prompts", type=int, default=512, help="number of prompts of a step (512)")
    add("--samples", type=int, default=16, help="number of responses per prompt (16)")
    add("--prompt-len", type=int, default=1024, help="number of tokens of a prompt (1024)")
    add("--response-len", type=int, default=8192, help="number of tokens of a response (8192)")
    add("--mesh", default="", help="training mesh, data=..,fsdp=..,tensor=..; chosen if not given")
    add("--sample-mesh", default="", help="mesh of the same devices for the sampler")
    add("--sampling-batches", type=int, default=0, help="number; the fewest that fit if not given")
    add("--micro-batches", type=int, default=0, help="number; one row per device if not given")
    add("--remat", default="layers", choices=REMAT_POLICIES, help="as in rlvr_jax train (layers)")
    add(
        "--compute-dtype",
        default="bfloat16",
        choices=("float32", "bfloat16"),
        help="dtype of activations and products (bfloat16)",
    )
    add("--lora-rank", type=int, default=0, help="rank of adapters; 0 trains all weights (0)")
    add("--json", action="store_true", help="print one JSON object")
    add(
        "--table",
        metavar="FOLDER",
        type=Path,
        help="folder such as docs/results/pods; compiles the rows missing in its rows.jsonl",
    )
    add(
        "--experiment",
        nargs=argparse.REMAINDER,
        help="options of rlvr_jax train instead of the ones above; must be last",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    jax.config.update("jax_platforms", "cpu")  # with libtpu there, JAX would look for a TPU
    try:
        if options.table is not None:
            return 0 if fill_table(options.table, partial(print, flush=True)) else 1
        if options.topology is None:
            raise ValueError(
                "either TOPOLOGY, such as v5e-256, or --table must be given, got neither"
            )
        topology = describe(options.topology)
        if options.experiment is not None:
            config, shape, model, opening = _experiment(options.experiment)
        elif options.model is None:
            raise ValueError(
                "either --model, or --experiment with options of a run, must be given, got neither"
            )
        else:
            model, shape, opening = options.model, _shape_of(options.model), 0
            given = {_NAMES.get(name, name): value for name, value in vars(options).items()}
            known = given.keys() & SETTINGS.keys() - {"model"}
            given["hyperparameters"] = tuple(options.hyperparameters)
            config = TrainConfig.of(**{name: given[name] for name in known})
        say = (lambda line: print(line, file=sys.stderr)) if not options.json else (lambda _: None)
        report = {"model": model, **compile_run(config, shape, topology, say, opening)}
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(report) if options.json else describe_report(report))
    return 0 if report["fits"] else 1
