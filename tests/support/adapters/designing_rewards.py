"""The vectors of Clip and Delta."""

import golden_vectors as golden

from rlvr_jax.methods.credit.designing_rewards import clip_and_delta
from rlvr_jax.objectives import discounted_returns, masked_sum, own_reward, paid_tokens, step_ends
from rlvr_jax.objectives.statistics.steps import find_steps


def outputs(case, hyper):
    batch = golden.rollouts(case)
    mask, eta = batch.mask, hyper["eta"]
    forms = {
        "process_clip": clip_and_delta(eta, delta=False),
        "process_delta": clip_and_delta(eta, clip=False),
        "process_clip_delta": clip_and_delta(eta),
    }
    both = forms["process_clip_delta"]
    paid = paid_tokens(batch, mask, both, hyper["alpha"], own_reward)
    delta = paid_tokens(batch, mask, forms["process_delta"], hyper["alpha"], own_reward)
    return {
        "step_end": step_ends(find_steps(batch.records["step"], mask)),
        **{name: form.of(batch, mask) for name, form in forms.items()},
        "token_rewards": paid,
        "returns_to_go": discounted_returns(paid, mask),
        "returns_to_go_delta": discounted_returns(delta, mask),
        "sum_clip_delta": masked_sum(both.of(batch, mask), mask, axis=1),
    }
