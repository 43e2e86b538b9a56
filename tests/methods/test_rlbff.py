"""RLBFF: pays a response by the odds, yes against no, that it satisfies a principle."""

import numpy as np
import pytest
from training_runs import trained, values

from rlvr_jax.experience import experience, request_verdict
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.judges.rlbff import reward_odds


@pytest.mark.thorough
def test_odds_of_the_first_policy_are_a_reward(model, tmp_path):
    given = ("principle=+ =", "yes=8", "no=7")
    lines = trained(model, tmp_path / "run", "rlbff", *given)
    assert values(lines, "info/odds") == pytest.approx(values(lines, "experience/reward/odds"))
    with pytest.raises(ValueError, match=r"answers must be different tokens .*' Yes', ' No'"):
        trained(model, tmp_path / "none", "rlbff", *given[:1])


def test_odds_are_asked_of_the_first_policy_for_rows_of_every_round():
    chain = experience(stages=[reward_odds("so?", ["a", "b"])])
    ((collected, _, _),) = numpy_actor.walk(chain, steps=1)
    actor, batch = numpy_actor.NumpyActor(), collected.batch
    asked = request_verdict(["a", "b"], "so?").apply(batch, actor, (), None)[0]
    logp = actor.score(asked, ["verdict_logp"], "start")["verdict_logp"]
    told = [grade.info["odds"] for grade in batch.grades]
    np.testing.assert_allclose(told, logp[:, 0] - logp[:, 1], rtol=1e-6)
    assert len(set(told)) > 1
    spread = np.mean([np.std([told[row] for row in rows]) for rows in batch.groups])
    assert collected.metrics["odds_deviation"] == pytest.approx(spread, rel=1e-5)
