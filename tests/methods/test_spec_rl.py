"""Responses that go on from what is left of a prompt's last ones."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import training_runs
from everyday import everyday

from rlvr_jax.experience import StepContext, experience, plain, redraw
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.laws.numpy_actor import NumpyActor
from rlvr_jax.experience.requests import PLAIN, SampleRequest
from rlvr_jax.methods.off_policy.spec_rl import (
    accepted_prefix,
    from_drafts,
    residual,
)
from rlvr_jax.runs.step import collect

FLOAT32 = 2e-5  # log-probs of a float32 sampler and scorer, of at most some nats
ALL_OF_THEM = 4  # prompts of a step: the whole task, so that drafts are there from step 1 on


class Moved(NumpyActor):
    """A policy under which odd tokens have become less likely by a nat."""

    def score(self, batch, needs, of="current"):
        told = super().score(batch, needs, of)
        odd = batch.rollouts.mask & (batch.rollouts.tokens % 2 == 1)
        return {**told, "logp": np.where(odd, told["logp"] - 1, told["logp"])}


def chain_of(lenience=0.0, **changes):
    chain = experience(draw=from_drafts(lenience), **changes)
    return chain, numpy_actor.setting(chain, numbered_task(ALL_OF_THEM))


def two_visits(actor, lenience=0.0):
    """What is collected at a prompt's first and second visit, and the state between them."""
    chain, own = chain_of(lenience)
    ((first, _, state),) = numpy_actor.walk(chain, steps=1, own=own)
    ((second, told, _),) = numpy_actor.walk(chain, actor, 1, first=1, state=state, own=own)
    return first, second, told


def by_prompt(batch):
    """Rows of a batch by prompt and sample."""
    order = np.argsort([request.number for request in batch.requests], kind="stable")
    return batch.take(order).rollouts


def test_tokens_before_the_first_rejected_one_are_accepted():
    log_ratio = np.log(np.array([[1.0, 0.5, 0.1], [2.0, 2.0, 0.0 + 1e-9], [0.5, 1.0, 1.0]]))
    uniform = np.full((3, 3), 0.4)
    length = np.array([3, 2, 0])
    np.testing.assert_array_equal(accepted_prefix(log_ratio, length, uniform, 0.0), [2, 2, 0])
    np.testing.assert_array_equal(accepted_prefix(log_ratio, length, uniform, 2.0), [3, 2, 0])


def test_without_drafts_it_is_plain_sampling():
    chain, own = chain_of()
    plainly = experience(draw=plain())
    (one,), (other,) = (numpy_actor.walk(c, steps=1, own=own) for c in (chain, plainly))
    jax.tree.map(np.testing.assert_array_equal, one[0].batch.rollouts, other[0].batch.rollouts)


def test_an_unchanged_policy_draws_nothing_anew():
    first, second, told = two_visits(NumpyActor())
    assert second.metrics["sampled_tokens"] == 0 and told["reused_fraction"] == 1
    assert second.metrics["reused_responses"] == len(second.batch)
    before, now = by_prompt(first.batch), by_prompt(second.batch)
    for name in ("tokens", "length", "mask", "truncated"):
        np.testing.assert_array_equal(getattr(now, name), getattr(before, name))
    np.testing.assert_array_equal(now.branch_position, now.length)


def test_what_is_rejected_is_drawn_anew_and_all_is_trained():
    first, second, told = two_visits(Moved())
    before, now = by_prompt(first.batch), by_prompt(second.batch)
    cut = now.branch_position
    places = np.arange(now.mask.shape[1])[None]
    front = places < cut[:, None]
    np.testing.assert_array_equal(now.tokens[front], before.tokens[front])
    np.testing.assert_array_equal(now.mask, places < now.length[:, None])
    assert np.all(now.records["origin"] == 0)
    assert 0 < told["reused_fraction"] < 1
    assert second.metrics["sampled_tokens"] + cut.sum() == now.length.sum()
    assert second.metrics["scored_tokens"] == before.length.sum()
    # A row that was not taken over as a whole left its draft at an odd token.
    left = np.flatnonzero(cut < before.length)
    assert len(left) and np.all(before.tokens[left, cut[left]] % 2 == 1)
    odd = front & (now.tokens % 2 == 1)
    assert odd.any()
    scored = Moved().score(second.batch, ["logp"])["logp"]
    own = by_prompt(second.batch.with_rollouts(behaviour_logp=scored)).behaviour_logp
    np.testing.assert_array_equal(now.behaviour_logp[front], own[front])


def test_what_became_impossible_is_drawn_as_a_whole():
    class Lost(NumpyActor):
        def score(self, batch, needs, of="current"):
            told = super().score(batch, needs, of)
            return {**told, "logp": told["logp"] - np.float32(1e4)}

    _, second, told = two_visits(Lost())
    rollouts = second.batch.rollouts
    assert told["reused_fraction"] == 0 and np.all(rollouts.branch_position == 0)
    assert second.metrics["sampled_tokens"] == rollouts.length.sum()


def test_drafts_are_used_once_in_a_step():
    chain, own = chain_of()
    again = redraw(lambda outcomes: np.ones(len(outcomes), bool), PLAIN)
    twice, _ = chain_of(stages=[again])
    ((_, _, state),) = numpy_actor.walk(chain, steps=1, own=own)
    ((found, _, _),) = numpy_actor.walk(twice, NumpyActor(), 1, first=1, state=state, own=own)
    assert found.metrics["sampled_tokens"] == found.batch.rollouts.length.sum() > 0


def test_rows_without_log_probs_leave_the_older_draft():
    chain, own = chain_of()
    ((found, _, state),) = numpy_actor.walk(chain, steps=1, own=own)
    learned = found.batch.with_rollouts(
        old_logp=np.ones_like(found.batch.rollouts.entropy), tokens=found.batch.rollouts.tokens + 1
    )
    cleared = np.arange(len(learned)) % 2 == 0
    turn = StepContext(1, jax.random.key(0), own, lambda count: [])
    draw = chain.draw[1]
    after, _ = draw.observe(state["from_drafts"], turn, [], learned.without(cleared))
    changed = (after["tokens"] != state["from_drafts"]["tokens"]).any(axis=-1)
    np.testing.assert_array_equal(changed, np.tile([False, True], (ALL_OF_THEM, 2)))


def test_a_lenience_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="from_drafts: lenience must be finite, got nan"):
        from_drafts(float("nan"))


SAMPLES = 4000  # of each of three prompts
FOUR_SIGMA = 4 * np.sqrt(0.25 / (3 * SAMPLES))  # of a share; the largest deviation of 40


class Tabled(NumpyActor):
    """A policy of two tokens, that does not look at what it has written: 0 ends, 1 and 2 go on."""

    def __new__(cls, *chances):
        made = super().__new__(cls)
        object.__setattr__(made, "chances", np.array([*chances, *[0] * (numpy_actor.WORDS - 3)]))
        return made

    def __init__(self, *chances):
        super().__init__(response_tokens=3)

    def _row(self, request, sample, key):
        seed = np.asarray(jax.random.key_data(key)).tolist()
        random = np.random.default_rng(
            [*seed, request.round, request.number, request.first_sample + sample]
        )
        tokens = random.choice(numpy_actor.WORDS, 3, p=self.chances)
        ends = np.flatnonzero(tokens == 0)
        length = int(ends[0]) + 1 if len(ends) else 3
        tokens[length:] = 0
        on = np.arange(3) < length
        logp = np.where(on, np.log(self.chances[tokens]), 0).astype(np.float32)
        told = {"logp": logp, "entropy": np.zeros(3, np.float32)}
        numbers = {"length": np.int32(length), "truncated": np.bool_(not len(ends))}
        return {"tokens": tokens.astype(np.int32), **numbers, **told}

    def score(self, batch, needs, of="current"):
        rollouts = batch.rollouts
        with np.errstate(divide="ignore"):
            every = np.log(self.chances).astype(np.float32)
        logp = np.where(rollouts.mask, every[rollouts.tokens], 0)
        known = {"logp": logp, "entropy": np.zeros_like(logp)}
        known["all_logp"] = np.broadcast_to(every, (*logp.shape, len(every)))
        return {name: known[name] for name in needs}


def answers(batch):
    """How often each answer is given."""
    rollouts = batch.rollouts
    rows = [tuple(ids[:n]) for ids, n in zip(rollouts.tokens, rollouts.length, strict=True)]
    found, counts = np.unique([str(list(map(int, row))) for row in rows], return_counts=True)
    return dict(zip(found.tolist(), (counts / len(rows)).tolist(), strict=True))


def expected(chances):
    """The chance of each answer of at most three tokens."""
    found = {}
    for one in range(3):
        for two in range(3):
            for three in range(3):
                ids = [one, two, three]
                ids = ids[: ids.index(0) + 1] if 0 in ids else ids
                found[str(ids)] = float(np.prod(chances[ids]))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("selects", everyday([False, True], True))
def test_exact_responses_have_the_distribution_of_the_current_policy(selects):
    """Also where stages keep right answers alone: those are no drafts of their policy."""
    before, now = Tabled(0.2, 0.6, 0.2), Tabled(0.5, 0.1, 0.4)

    def visits(**how):
        chain = experience(draw=from_drafts(0.0, **how))
        task = numbered_task(3)
        own = replace(numpy_actor.setting(chain, task, 3, SAMPLES), response_tokens=3)
        turn = StepContext(0, jax.random.key(3), own, lambda count: [])
        draw = chain.draw[1]
        requests = [
            SampleRequest(prompt, number, SAMPLES) for number, prompt in enumerate(task.train)
        ]
        first, state, _ = draw.apply(requests, before, draw.init(own), turn)
        learned = first.with_rollouts(old_logp=before.score(first, ["logp"])["logp"])
        if selects:
            learned = learned.without(learned.rollouts.length > 1)
        state, _ = draw.observe(state, turn, [first], learned)
        again = turn._replace(step=1, key=jax.random.key(4))
        return draw.apply(requests, now, state, again)

    def furthest(found):
        wanted = expected(now.chances)
        return max(abs(found.get(name, 0) - chance) for name, chance in wanted.items())

    batch, _, told = visits(exact_mb=10)
    assert furthest(answers(batch)) < FOUR_SIGMA < 0.02
    assert told["reused_tokens"] > 0 and told["residual_tokens"] > 0
    rollouts = batch.rollouts
    scored = now.score(batch, ["logp"])["logp"]
    np.testing.assert_allclose(rollouts.behaviour_logp, scored, atol=FLOAT32)
    np.testing.assert_array_equal(rollouts.mask.sum(axis=1), rollouts.length)
    np.testing.assert_array_equal(rollouts.truncated, (rollouts.tokens != 0).all(axis=1))
    authors, _, _ = visits()
    assert furthest(answers(authors)) > FOUR_SIGMA


def test_a_residual_is_what_the_drafts_lack():
    p, q = np.log([0.7, 0.2, 0.1]), np.log([0.4, 0.1, 0.5])
    np.testing.assert_allclose(residual(p, q), [0.75, 0.25, 0])
    np.testing.assert_allclose(residual(p, p), np.exp(p))


def test_exact_needs_the_bytes_that_it_names():
    chain = experience(draw=from_drafts(0.0, exact_mb=0.001))
    task = numbered_task(ALL_OF_THEM)
    with pytest.raises(ValueError, match=r"exact_mb must be at least.*6,144 bytes\), got 0.001"):
        chain.init(numpy_actor.setting(chain, task))
    with pytest.raises(ValueError, match=r"with exact_mb lenience must be 0, got 0.5"):
        from_drafts(0.5, exact_mb=1)
    with pytest.raises(ValueError, match=r"exact_mb must be at least 0, got -1"):
        from_drafts(0, exact_mb=-1)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that asks all prompts of its task in each step."""
    policy = training_runs.write_policy(tmp_path_factory.mktemp("policy"))
    config = training_runs.settings(policy, "unused", method="spec_rl", prompts_per_step=15)
    return training_runs.prepared(replace(config, hyperparameters=("kl_coefficient=0",)))


@pytest.mark.thorough
def test_a_response_goes_on_from_its_draft_as_the_policy_would_have_written_it(run):
    state = run.initial_state()
    scorer = run.scorer(state.device)
    collected = collect(run, state, 0)
    batch = collected.batch
    learned = batch.with_rollouts(old_logp=scorer(batch.rollouts, ["logp"], "current")["logp"])
    data, _ = run.experience.observe(collected, learned, 0, run.setting)
    # The second token of every draft is made to look as if it had been certain: it is rejected.
    data["from_drafts"]["logp"][..., 2] += 1e4
    drafts = data["from_drafts"]["length"]
    found = collect(run, replace(state, host=replace(state.host, data=data)), 1)
    rollouts = found.batch.rollouts
    order = [(request.number, row % 4) for row, request in enumerate(found.batch.requests)]
    before = np.array([drafts[place] for place in order])
    np.testing.assert_array_equal(rollouts.branch_position, np.where(before > 2, 2, before))
    assert 0 < found.metrics["experience/reused_responses"] < len(order)
    on = rollouts.mask
    logp = scorer(rollouts, ["logp"], "current")["logp"]
    np.testing.assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)


@pytest.mark.slow
def test_it_trains_and_reuses(run, tmp_path):
    config = replace(run.config, run_dir=tmp_path / "run", steps=2)
    training_runs.quietly(config)
    first, second = training_runs.metrics(tmp_path / "run")[-2:]
    fractions = [line["experience/reused_fraction"] for line in (first, second)]
    assert fractions[0] == 0 < fractions[1] <= 1


@pytest.mark.slow
def test_it_trains_in_the_exact_mode_and_its_ratios_are_one(run, tmp_path):
    exact = ("kl_coefficient=0", "lenience=0", "exact_mb=10")
    config = replace(run.config, run_dir=tmp_path / "run", steps=3, hyperparameters=exact)
    training_runs.quietly(config)
    *_, last = training_runs.metrics(tmp_path / "run")
    assert last["experience/reused_tokens"] > 0 and last["experience/residual_tokens"] >= 0
    for extreme in ("min", "max"):
        assert last[f"sampler_ratio/{extreme}"] == pytest.approx(1, abs=1e-4)
