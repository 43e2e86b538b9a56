"""The vectors of dynamic sampling: filters, the adaptive pool, exclusion and priorities."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask, row_advantages

from rlvr_jax.experience import RunInfo, StepContext, outside, uniform
from rlvr_jax.experience.curricula.history import no_history, visited
from rlvr_jax.experience.curricula.picks import mixed
from rlvr_jax.methods import recipe
from rlvr_jax.methods.curricula.dynamic_sampling import hard_first, undecided
from rlvr_jax.tasks import Prompt, Task

LEFT_OUT = {"excluded": "a comparison inside `prioritized`, which test_curricula.py checks"}


def outputs(case, hyper):
    size = int(golden.inputs(case)["group_size"])
    found = golden.named(filtered(case, hyper, True), True) | filtered(case, hyper, False)
    found["next_pool"] = refilled(case, hyper, False, hyper["batch_prompts"])[2]
    del found["next_pool_soft"]
    rates = [group_means(case, soft) for soft in (False, True)]
    history = no_history(len(rates[0]), prior=hyper["prior"], dtype=np.float64)
    for step, told in enumerate(rates):
        history = visited(history, step, enumerate(told), hyper["ema"])
    by_group = {
        "history": history.mean,
        "prob_hard_first": mixed(hard_first(history.mean), hyper["explore"]),
        "prob_variance": mixed(undecided(history.mean), hyper["explore"]),
    }
    return found | {name: np.repeat(values, size) for name, values in by_group.items()}


def group_means(case, soft):
    means = golden.experience_batch(golden.rollouts(case, soft)).outcomes().mean(axis=1)
    return means


def refilled(case, hyper, soft, prompts):
    """What the method's stage makes of the record if nothing more can be drawn, its metrics, and
    the prompts that it asked for."""
    chain = recipe("dynamic_sampling", max_rounds=2, epsilon=hyper["eps"]).experience
    ((_, stage),) = chain.stages.items()
    asked = [0]
    more = lambda count: asked.append(count) or []  # noqa: E731
    task = Task("golden", [Prompt("train")], [Prompt("test")], None)
    batch = golden.experience_batch(golden.rollouts(case, soft))
    setting = RunInfo(task, prompts, 1, 1, batch.rollouts.mask.shape[1], rounds=2)
    turn = StepContext(0, jax.random.key(0), setting, more)
    batch, _, told = stage.apply(batch, None, stage.init(setting), turn)
    return batch, told, asked[-1]


def filtered(case, hyper, soft):
    record = golden.rollouts(case, soft)
    size = int(golden.inputs(case)["group_size"])
    outcomes = golden.experience_batch(record).outcomes()
    _, told, pool = refilled(case, hyper, soft, hyper["batch_prompts"])
    missing = told["refill/filled_with_dropped"]
    batch, _, _ = refilled(case, hyper, soft, hyper["train_prompts"])
    method = recipe("dynamic_sampling", epsilon=hyper["eps"])
    rows = np.asarray(row_advantages(method, jax.tree.map(jnp.asarray, batch.rollouts)))
    used = batch.rollouts.mask.any(axis=1)
    # Rows of a group are all there and in order: back to where they stood.
    numbers = np.array([request.number for request in batch.requests])
    places = numbers * size + np.arange(len(numbers)) % size
    back = np.zeros((2, len(outcomes) * size))
    back[:, places] = used, np.where(used, rows, 0)
    return {
        "keep": np.repeat(~uniform(outcomes), size),
        "keep_range": np.repeat(~outside(hyper["low"], hyper["high"])(outcomes), size),
        "used": back[0],
        "n_kept": hyper["batch_prompts"] - missing,
        "missing": missing,
        "select_ratio": told["refill/accepted_fraction"],
        "advantages": on_mask(back[1][:, None], record),
        "next_pool": pool,
    }
