"""ReTool's vectors: odd turns are the interpreter's, tool calls half the last turn's number."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.retool import tool_use_reward

LEFT_OUT = {}


def outputs(case, hyper):
    found = {}
    for suffix, bonus in (("", 0.0), ("_shaped", hyper["turn_bonus"])):
        values = one(case, hyper, bonus)
        found |= {f"{name}{suffix}": value for name, value in values.items()}
    found["loss_mask"] = found.pop("loss_mask")
    del found["loss_mask_shaped"]
    return found


def one(case, hyper, bonus):
    method = recipe(
        "retool",
        turn_bonus=bonus,
        ceiling=hyper["ceiling"],
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
        dual=hyper["dual"],
        epsilon=hyper["eps"],
        describe=False,
        critic_steps=0,
    )
    whole = golden.rollouts(case)
    own = whole.mask & (whole.records["turn"] % 2 == 0)
    turn = np.where(whole.mask, whole.records["turn"], 0)
    reward = tool_use_reward(bonus, hyper["ceiling"])(whole.replace(turn=turn))
    done = golden.evaluate(method, case, batch=whole.replace(mask=own, reward=reward))
    return {
        "reward": reward,
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
        "loss_mask": own,
    }
