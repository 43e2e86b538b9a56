"""MPO: a judge's rubric is rewritten while the policy trains on it."""

import numpy as np
import pytest

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.judges import Judge, by_function, number, question, rubric_question
from rlvr_jax.methods import recipe
from rlvr_jax.methods.judges.meta_policy import judge_and_rewrite
from rlvr_jax.runs import parse_config
from rlvr_jax.runs.composition import compose
from rlvr_jax.runs.hyperparameters import method_arguments
from rlvr_jax.runs.resolved import with_rules
from rlvr_jax.tasks import load
from rlvr_jax.tasks.brackets import legal_attempts
from rlvr_jax.tasks.brackets_judge import REACHES, rewriter
from rlvr_jax.types import Criterion
from rlvr_jax.verifiers.texts.meta_policy import Rubric, Sample, evolve, read_items

FIRST = ("4: Is it clear?",)
AS_STORED = 1e-6  # rewards are float32


def judge_of(reply):
    """A judge whose replies are a function of the request."""
    call = by_function(lambda messages: reply(messages[-1]["content"]), "test")
    return Judge(call, question(), number(), ["judge"], tries=1)


def walked(reply, steps, **options):
    """The steps of a run in which the rubric may be rewritten every two steps."""
    own = {"every": 2, "examples": 2} | options
    stage = judge_and_rewrite(judge_of(reply), FIRST, **own)
    return numpy_actor.walk(experience(stages=[stage]), steps=steps)


def points(text, values):
    """Points of the items of a request, in their order."""
    return "\n".join(f"item {n}: {v}" for n, v in enumerate(values, 1) if f"item {n} (0" in text)


def by_length(text):
    """Points of a response: 2 of 4, and 4 of 4 in every other word of the response."""
    return points(text, [2 + 2 * (len(text) % 2), 10])


def test_a_rubric_is_rewritten_and_the_next_batch_is_judged_by_it():
    requests = []

    def reply(text):
        requests.append(text)
        if "Write a better rubric" in text:
            return "4: Is it clear?\n10: Is it true?"
        return by_length(text) if "Give points" in text else "It was fooled."

    found = walked(reply, 4)
    told = [collected.metrics for collected, _, _ in found]
    assert [t["rubric_version"] for t in told] == [0, 1, 1, 2]
    assert [t["rubric_items"] for t in told] == [1, 1, 2, 2]
    assert not any(t["unparsable_rubrics"] for t in told)
    # Two examples are analysed and refined, and all are merged, after two steps and after four. The
    # second merge has the words of the first, whose reply is stored.
    assert sum("Write a better rubric" in text for text in requests) == 5
    assert sum("fooled, too lenient" in text for text in requests) == 4
    judged = [text for text in requests if "Give points" in text]
    assert "Is it true?" not in judged[0] and "item 2 (0 to 10): Is it true?" in judged[-1]


def test_a_rubric_that_does_not_parse_is_counted_and_not_used():
    def reply(text):
        return by_length(text) if "Give points" in text else "I cannot."

    found = walked(reply, 4)
    told = [collected.metrics for collected, _, _ in found]
    assert [t["rubric_version"] for t in told] == [0, 0, 0, 0]
    assert [t["unparsable_rubrics"] for t in told] == [0, 1, 1, 2]
    states = [state["judge_and_rewrite"] for _, _, state in found]
    assert all(np.array_equal(state.items, states[0].items) for state in states)


def test_rewards_are_normalized_over_the_batches_of_one_rubric():
    def reply(text):
        if "Write a better rubric" in text:
            return "4: Is it clear?\n10: Is it true?"
        return by_length(text) if "Give points" in text else "It was fooled."

    def score(batch, items):
        """Mean of points / maximum of each row, from the judge's reply."""
        first = np.array([float(g.reply.splitlines()[0].split(": ")[1]) / 4 for g in batch.grades])
        return first if items == 1 else (first + 1) / 2

    found = walked(reply, 4)
    scores = [score(c.batch, c.metrics["rubric_items"]) for c, _, _ in found]
    # The second step is normalized with both batches of the first rubric, the third anew.
    for step, known in ((0, [0]), (1, [0, 1]), (2, [2]), (3, [2, 3])):
        every = np.concatenate([scores[place] for place in known])
        wanted = (scores[step] - every.mean()) / (every.std() + 1e-6)
        np.testing.assert_allclose(found[step][0].batch.rollouts.reward, wanted, atol=AS_STORED)


def test_a_response_without_points_leaves_its_batch_and_counts_0_in_the_published_form():
    def reply(text):
        return "hm" if len(text) % 2 else "item 1: 4"

    for summed in (False, True):
        ((collected, _, _),) = walked(reply, 1, summed=summed)
        valid, told = np.asarray(collected.batch.rollouts.valid), collected.metrics
        assert 0 < told["judge_no_verdict"] < len(valid)
        assert valid.sum() == (len(valid) if summed else len(valid) - told["judge_no_verdict"])
    ((collected, _, _),) = walked(lambda text: 1 / 0, 1, summed=True)
    assert not collected.batch.rollouts.valid.any()  # no reply is no verdict


@pytest.mark.parametrize("rubric", [(), ("clear?",), ("4: a", "4: a"), ("4: a", "b")])
def test_a_first_rubric_that_does_not_parse_is_refused(rubric):
    with pytest.raises(ValueError, match=r"rubric must be 1 to 20 different items .*, got \["):
        judge_and_rewrite(judge_of(by_length), rubric, every=2, examples=2)


def test_a_run_gives_the_method_its_judge_and_its_first_rubric(tmp_path):
    path = tmp_path / "rubric.json"
    path.write_text('[{"name": "legal", "text": "Is it legal?", "maximum": 5}, {"name": "short"}]')
    line = "--method meta_policy --task brackets --judge rlvr_jax.tasks.brackets_judge:rewriter"
    config = with_rules(parse_config(line.split())).replace(run_dir=tmp_path, response_tokens=24)
    task, arguments = load("brackets"), method_arguments(config)

    def rubric_of(**settings):
        own = config.replace(**settings)
        made = compose(own, task, recipe("meta_policy", **arguments), arguments)
        return dict(made.experience.stages["judge_and_rewrite"].made.arguments)["rubric"]

    assert rubric_of() == ("5: Is the response correct, complete and clear?",)
    assert rubric_of(judge_rubric=str(path)) == ("5: Is it legal?", "1: short")
    with pytest.raises(ValueError, match=r"--judge-prompt must be empty for method 'meta_policy'"):
        rubric_of(judge_prompt=str(path))


def test_the_judge_of_brackets_is_fooled_by_legal_attempts_until_it_rewrites_its_rubric():
    prompt = load("brackets").train[0]
    target = prompt.answer[-1]
    legal = next(a.text for a in legal_attempts(*prompt.answer[:3]) if a.value != target)

    def meta(texts):
        return [rewriter([{"role": "user", "content": text}]) for text in texts]

    def judged(rubric, response):
        criteria = [
            Criterion(f"item {n}", maximum=item.maximum, text=item.text)
            for n, item in enumerate(rubric.items, 1)
        ]
        return rewriter(rubric_question(criteria)(prompt=prompt.text, response=response))

    first = Rubric(tuple(read_items("4: Is it good?")))
    assert judged(first, legal) == judged(first, prompt.gold) == "item 1: 4"
    same, used = evolve(first, [Sample(prompt.text, prompt.gold, ("item 1: 4",))], meta)
    assert used and same.items == first.items
    new, _ = evolve(first, [Sample(prompt.text, legal, ("item 1: 4",))], meta)
    assert [item.line for item in new.items] == ["4: Is it good?", f"5: {REACHES}"]
    assert judged(new, legal) == "item 1: 4\nitem 2: 0"
    assert judged(new, prompt.gold) == "item 1: 4\nitem 2: 5"
    again, _ = evolve(new, [Sample(prompt.text, legal, ("item 1: 4\nitem 2: 0",))], meta)
    assert again.items == new.items
