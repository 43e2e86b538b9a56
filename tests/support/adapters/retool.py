"""ReTool's vectors: odd turns are the interpreter's, tool calls half the last turn's number."""

import golden_vectors as golden
import numpy as np
from adapters.common import recipe_with

from rlvr_jax.methods.agents.retool import tool_use_reward


def outputs(case, hyper):
    found = {}
    for suffix, bonus in (("", 0.0), ("_shaped", hyper["turn_bonus"])):
        values = one(case, hyper, bonus)
        found |= {f"{name}{suffix}": value for name, value in values.items()}
    found["loss_mask"] = found.pop("loss_mask")
    del found["loss_mask_shaped"]
    return found


def one(case, hyper, bonus):
    method = recipe_with(hyper, "retool", turn_bonus=bonus, describe=False, critic_steps=0)
    whole = golden.rollouts(case)
    own = whole.mask & (whole.records["turn"] % 2 == 0)
    turn = np.where(whole.mask, whole.records["turn"], 0)
    reward = tool_use_reward(bonus, hyper["ceiling"])(whole.replace(turn=turn))
    done = golden.evaluate(method, case, batch=whole.replace(mask=own, reward=reward))
    return {
        **done.outputs(),
        "reward": reward,
        "loss_mask": own,
    }
