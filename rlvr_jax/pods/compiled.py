"""A run compiled from shapes: whether it fits a topology, and the cost of a step there."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from importlib import metadata
from typing import Any

import jax

from rlvr_jax import methods
from rlvr_jax.parallel import bytes_per_device, mesh_sizes, row_shards
from rlvr_jax.parallel.measure import ByHand, Target, measured
from rlvr_jax.parallel.memory import cache_bytes, sample_buffers, update_buffers
from rlvr_jax.parallel.plan import sample_mesh, train_mesh
from rlvr_jax.parallel.roofline import sample_work, score_work, update_work
from rlvr_jax.parallel.topologies import Topology
from rlvr_jax.pods.abstract import AbstractRun, abstract_run
from rlvr_jax.policy import ModelConfig
from rlvr_jax.policy.cached import OWN_SLOTS, mean_slots_read
from rlvr_jax.policy.flash import flash_serves
from rlvr_jax.rollout import sampling_batches
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.config_checks import check_config
from rlvr_jax.runs.hyperparameters import method_arguments
from rlvr_jax.runs.resolved import with_rules
from rlvr_jax.training.layout import copies_weights
from rlvr_jax.training.scorers import scorer_needs
from rlvr_jax.training.statistics import DIVERGENCES
from rlvr_jax.training.update import old_shapes
from rlvr_jax.types import replace

_ATTEMPTS = 3  # sampling batches to compile before sampling is reported not to fit


def compile_run(
    config: TrainConfig,
    shape: ModelConfig,
    topology: Topology,
    say: Callable[[str], None] = lambda line: None,
    opening: int = 0,
) -> dict[str, Any]:
    """Compiles the functions of a run.

    Args:
      config: with prompt_tokens and response_tokens. A mesh and the number of sampling batches (the
        fewest that fit) are chosen if it has none.
      shape: configuration of the model.
      topology: slice of TPUs, or host devices.
      say: called with a line of progress before each compilation.
      opening: number of tokens at the beginning of all prompts. The compiled functions compute them
        once. The counts of FLOPs and bytes include them for every prompt.
    Returns:
      The report, as `--json` prints it.
    """
    # The report is about compiling: the compiler's dumps, and its time.
    jax.config.update("jax_enable_compilation_cache", False)
    if config.policy.compute_dtype == "auto":
        # That of the slice, not of this machine.
        config = config.replace(compute_dtype="bfloat16")
    rows = config.plan.rows
    length = config.data.prompt_tokens + config.sampling.response_tokens
    recipe = methods.recipe(config.method, **method_arguments(with_rules(config)))
    objective = recipe.objective
    if not config.devices.mesh:
        # float32: a parameter and its two moments, or the base of adapters; and a reference.
        beside = "reference_logp" in objective.reads or recipe.teacher is not None
        full = 12 + 4 * beside + 4 * bool(DIVERGENCES & objective.reads)
        held = 4 if config.policy.lora_rank else full
        held += 12 * (recipe.critic is not None)
        shaped = replace(shape, **config.policy.options())
        config = config.replace(mesh=train_mesh(shaped, topology, rows, length, held))
        if not config.devices.sample_mesh:
            chosen = sample_mesh(shaped, topology, config.sampling.prompts_per_step, held)
            config = config.replace(sample_mesh=chosen)
    for spec in filter(None, (config.devices.mesh, config.devices.sample_mesh)):
        if math.prod(mesh_sizes(spec).values()) != topology.num_devices:
            raise ValueError(
                f"mesh: sizes must multiply to the {topology.num_devices} devices of"
                f" {topology.name}, got {spec!r}"
            )
    if not config.update.micro_batches:
        micro_batches = max(1, rows // row_shards(config.devices.mesh))
        config = config.replace(micro_batches=micro_batches)
    check_config(config)
    run = abstract_run(config, shape, recipe, topology.devices(), opening)
    target = Target(
        topology,
        run.model.config,
        (run.model.mesh, run.sampler.mesh),
        config.sampling.response_tokens,
    )
    report: dict[str, Any] = {
        "topology": topology.name,
        "devices": topology.num_devices,
        "method": config.method,
        "prompts": config.sampling.prompts_per_step,
        "samples": config.sampling.samples_per_prompt,
        "prompt_len": config.data.prompt_tokens,
        "response_len": config.sampling.response_tokens,
        "mesh": config.devices.mesh,
        "sample_mesh": config.devices.sample_mesh or config.devices.mesh,
        "rows_at_once": config.sampling.rows_at_once,
        "micro_batches": config.update.micro_batches,
        "remat": config.policy.remat,
        "compute_dtype": config.policy.compute_dtype,
        "hbm_bytes": topology.hbm_bytes,
        "versions": {name: _version(name) for name in ("jax", "jaxlib", "libtpu")},
    }
    # Of the settings as given: those of the run have one batch in place of 0.
    sizes = (
        [config.sampling_batch()]
        if config.sampling.sampling_batches
        else sampling_batches(
            config.sampling.prompts_per_step,
            config.sampling.samples_per_prompt,
            row_shards(config.devices.sample_mesh or config.devices.mesh),
        )
    )
    programs = {"sample": _sampling(run, target, sizes, say)}
    report["sampling_batches"] = programs["sample"]["sampling_batches"]
    parts = mesh_sizes(config.devices.mesh)["tensor"]
    shared = dict(
        rows=rows / row_shards(config.devices.mesh),
        micro_batches=config.update.micro_batches,
        prompt=config.data.prompt_tokens,
        response=config.sampling.response_tokens,
        parts=parts,
        flash=flash_serves(run.model.config, config.sampling.response_tokens, run.model.mesh),
    )
    sizes = {name: bytes_per_device(tree) for name, tree in _held(run).items()}
    counted = partial(
        update_buffers,
        rows=rows / row_shards(config.devices.mesh) / config.update.micro_batches,
        tokens=length,
        parts=parts,
        devices=topology.num_devices,
    )
    buffers = counted(run.model.config)
    if (lowered := run.lower_score()) is not None:
        say("compiling the scorer")
        # As `lower_score`: the policy, or with one update per step the reference.
        scored = _of_policy(run) if config.plan.updates > 1 else {"frozen weights"}
        by_hand = ByHand(
            given={name: sizes[name] for name in scored},
            rest={name: size for name, size in sizes.items() if name not in scored},
            buffers=buffers,
            work=score_work(run.model.config, **shared),
        )
        programs["score"] = measured(lowered, target, by_hand)
    say("compiling the update")
    read = run.model.config.lora or (run.other() is not None and run.recipe.teacher is not None)
    beside = {"critic"} if read else {"critic", "frozen weights"}
    by_hand = ByHand(
        given={name: size for name, size in sizes.items() if name not in beside},
        rest={name: sizes[name] for name in beside & sizes.keys()},
        buffers=buffers,
        work=update_work(
            run.model.config,
            devices=topology.num_devices,
            forward_first="batch_statistics" in objective.reads,
            **shared,
        ),
    )
    programs["update"] = measured(run.lower_update(), target, by_hand)
    if (lowered := run.lower_fit()) is not None:
        say("compiling the critic's update")
        whole = replace(run.model.config, lora=None)
        by_hand = ByHand(
            given={"critic": sizes["critic"]},
            rest={name: size for name, size in sizes.items() if name != "critic"},
            buffers=counted(whole),
            work=update_work(
                whole,
                devices=topology.num_devices,
                forward_first=False,
                vocabulary=False,
                **shared,
            ),
        )
        programs["critic"] = measured(lowered, target, by_hand)
    calls = {"sample": programs["sample"]["sampling_batches"], **_calls(run)}
    for name, program in programs.items():
        program["calls"] = calls[name]
    if all("compiler_seconds" in program for program in programs.values()):
        for kind in ("compiler", "roofline"):
            seconds = (calls[n] * each[f"{kind}_seconds"] for n, each in programs.items())
            report[f"step_{kind}_seconds"] = sum(seconds)
    totals = {f"{name}_bytes": program["bytes"] for name, program in programs.items()}
    fits = all(program["fits"] for program in programs.values())
    return {"fits": fits, **report, **totals, "programs": programs}


def _calls(run: AbstractRun) -> dict[str, int]:
    """How often a step calls each program of training; all take the rollouts of an update."""
    objective, plan = run.objective, run.config.plan
    once = plan.updates > 1 and objective.decide_once is not None
    compared = once and {"logp", *old_shapes(objective, (1, 1))} & objective.once_reads
    read = objective.reads | scorer_needs(run.recipe.critic)
    # The first update has the old statistics of its part in its own pass.
    of_policy = plan.minibatches if compared else plan.minibatches - 1
    return {
        "score": of_policy + plan.minibatches * ("reference_logp" in read),
        "update": plan.updates,
        "critic": plan.minibatches * plan.critic_epochs,
    }


def _version(package: str) -> str | None:
    """Of an installed package; None if there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _sampling(
    run: AbstractRun,
    target: Target,
    sizes: Sequence[tuple[int, int]],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """The sampler of the largest sampling batch that fits; of the smallest tried one if none does.

    Args:
      sizes: prompts and samples of a sampling batch, the largest first.
    """
    config, shape = run.config, run.model.config
    mesh = config.devices.sample_mesh or config.devices.mesh
    shards, parts = row_shards(mesh), mesh_sizes(mesh)["tensor"]
    lengths = {"prompt": config.data.prompt_tokens, "response": config.sampling.response_tokens}
    weights = bytes_per_device(run.sampler_params())
    rest = {name: bytes_per_device(tree) for name, tree in _held(run).items()}
    if not copies_weights(run.model, run.sampler):
        rest = {name: size for name, size in rest.items() if name not in _of_policy(run)}
    columns = config.sampling.response_tokens
    read = mean_slots_read(columns, columns) / columns
    free = 0.93 * target.topology.hbm_bytes - weights - sum(rest.values())
    slots = config.slots()
    choices = []
    for prompts, samples in sizes:
        rows = prompts * samples / shards
        own = prompts / shards if prompts % shards == 0 else prompts
        # Rows in turn are cached while they are computed, each with a copy of its prompt.
        held = {"rows": rows, "prompts": own}
        if slots is not None and slots / shards < rows:
            held = {"rows": slots / shards, "prompts": own + slots / shards}
        buffers = sample_buffers(shape, parts=parts, **held, **lengths)
        choices.append((prompts, samples, rows, own, held, buffers))
    fitting = [choice for choice in choices if sum(choice[-1].values()) <= free]
    for prompts, samples, rows, own, held, buffers in (fitting or choices[-1:])[:_ATTEMPTS]:
        say(f"compiling the sampler of {prompts} x {samples} responses")
        work = sample_work(shape, rows=rows, prompts=own, parts=parts, **lengths)
        by_hand = ByHand({"sampler's weights": weights}, rest, buffers, work)
        lowered = run.lower_sample(prompts, samples)
        found = measured(lowered, target, by_hand, {OWN_SLOTS: read})
        if held["rows"] < rows:
            # How many rounds they take together is known when they are drawn.
            found.pop("compiler_seconds", None)
        if found["fits"]:
            break
    if "parts" in found:
        temporaries = found["parts"].pop("temporaries")
        padded = target.topology.chip is not None
        cache = sum(
            cache_bytes(shape, count, columns, parts, padded=padded)
            for count, columns in zip(held.values(), (columns, lengths["prompt"]), strict=True)
        )
        # Of a small model the compiler keeps a part on the chip.
        found["parts"]["cache"] = cache = min(cache, temporaries)
        found["parts"]["temporaries"] = temporaries - cache
    total = config.sampling.prompts_per_step * config.sampling.samples_per_prompt
    sampling_batch = {
        "prompts": prompts,
        "samples": samples,
        "sampling_batches": total // (prompts * samples),
    }
    return {**found, **sampling_batch}


def _held(run: AbstractRun) -> dict[str, Any]:
    """What lies on the devices all the time."""
    state = run.state()
    held = {
        "parameters": state.params,
        "optimizer": state.optimizer_state,
        "critic": run.critic(),
        "frozen weights": run.frozen(),
        # A copy of the weights that sampled, where no teacher stands in their place.
        "second policy": run.other() if run.recipe.teacher is None else None,
    }
    return {name: tree for name, tree in held.items() if tree is not None}


def _of_policy(run: AbstractRun) -> set[str]:
    """What of `_held` are the policy's weights: with adapters, these and the base below them."""
    return {"parameters", "frozen weights"} if run.model.config.lora else {"parameters"}
