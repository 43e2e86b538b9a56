"""Tasks as the package `verifiers` has them, written here without it."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import training_runs

from rlvr_jax.tasks import GradingError, Response
from rlvr_jax.tasks.from_verifiers import from_verifiers


def marked(mark, **more):
    def decorate(function):
        for name, value in {mark: True, **more}.items():
            setattr(function, name, value)
        return function

    return decorate


@dataclass
class Data:
    prompt: object
    answer: str = "3"
    system_prompt: str | None = None
    image: str | None = None


class Base:
    """As the package's own class: it scores, and has empty steps."""

    NEEDS_CONTAINER = False

    def __init__(self, data, config=None):
        self.data, self.config = data, config or SimpleNamespace(judges=[])

    async def setup(self, trace, runtime):
        return None

    async def score(self, trace, runtime=None):
        raise AssertionError("the adapter grades by itself")

    @classmethod
    def toolsets(cls, config):
        return []


class Sum(Base):
    @marked("reward", _vf_weight=1.0)
    async def correct(self, trace):
        return float(self.data.answer in trace.last_reply.split())

    @marked("reward", _vf_weight=0.5)
    def brief(self, task, trace):
        assert task is self.data
        return {"brief": len(trace.last_reply.split()) < 3, "ended": not trace.is_truncated}

    @marked("metric")
    async def words(self, trace):
        assert [message.role for message in trace.messages][-2:] == ["user", "assistant"]
        return len(trace.last_message.content.split())


def sums(kind=Sum, number=10, **fields):
    return [
        kind(Data(f"{n % 4} + {n // 4} =", str(n % 4 + n // 4), **fields)) for n in range(number)
    ]


def graded(kind, text, **how):
    task = from_verifiers(sums(kind))
    return task.verify(task.train[3:4], [Response(text, **how)])[0]


def test_rewards_are_weighed_and_summed_and_all_numbers_told():
    right = graded(Sum, "it is 3")
    assert (right.reward, right.outcome) == (1.5, 1.0)
    told = {"correct": 1, "brief": 0, "ended": 1, "words": 3, "reward_errors": 0}
    assert right.info == told
    wrong = graded(Sum, "4", truncated=True)
    assert (wrong.reward, wrong.outcome) == (0.5, 0.5)


def test_prompts_keep_their_messages_and_equal_texts_one_split():
    asked = [
        {"role": "user", "content": "hello"},
        SimpleNamespace(role="assistant", content="yes?"),
        SimpleNamespace(role="user", content=[{"type": "text", "text": "1 + 2 ="}]),
    ]
    twice = [Sum(Data("0 + 1 =", "1")), Sum(Data("0 + 1 =", "1"))]
    task = from_verifiers([*twice, Sum(Data(asked, system_prompt="Add."))])
    assert [prompt.text for prompt in task.train] == ["0 + 1 =", "0 + 1 ="]
    (prompt,) = task.test
    assert prompt.text == "1 + 2 =" and prompt.answer["answer"] == "3"
    roles = [(message["role"], message["content"]) for message in prompt.messages]
    assert roles == [("system", "Add."), ("user", "hello"), ("assistant", "yes?")]


class Raising(Sum):
    @marked("reward")
    def broken(self, trace):
        return 1 / 0


class Unscored(Sum):
    @marked("reward")
    def unknown(self, trace):
        return None


class Reading(Sum):
    @marked("reward")
    def nodes(self, trace):
        return float(len(trace.nodes))


def test_a_reward_that_raises_is_counted_and_none_is_no_verdict():
    found = graded(Raising, "3")
    assert found.info["reward_errors"] == 1 and found.reward == 2.0
    assert graded(Unscored, "3").outcome is None
    with pytest.raises(GradingError, match=r"Reading.nodes must read .* got trace.nodes"):
        graded(Reading, "3")


class Configured(Sum):
    def hooks(self, mark):
        return [self.words] if mark == "reward" else []


def test_a_task_that_says_what_its_rewards_are_is_believed():
    assert graded(Configured, "it is 3").info == {"words": 3, "reward_errors": 0}


class Contained(Sum):
    NEEDS_CONTAINER = True


class Prepared(Sum):
    async def setup(self, trace, runtime):
        return None


class Tooled(Sum):
    @classmethod
    def toolsets(cls, config):
        return ["search"]


class Run(Sum):
    @marked("reward")
    async def tests(self, trace, runtime):
        return 1.0


class Judged(Sum):
    def __init__(self, data):
        super().__init__(data, SimpleNamespace(judges=["a judge"]))


@dataclass
class Nothing:
    data: Data = field(default_factory=lambda: Data("question"))


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (Contained(Data("?")), "Contained must have no container"),
        (Sum(Data("?", image="python")), "Sum must have no container"),
        (Prepared(Data("?")), "Prepared must have no setup method"),
        (Tooled(Data("?")), "Tooled must have no tools"),
        (Run(Data("?")), r"rewards of only task and trace, got tests\(runtime\)"),
        (Judged(Data("?")), "Judged must have no judges"),
        (Sum(Data(None)), "Sum must have a prompt in data, got none"),
        (Nothing(), "Nothing must have a method that is marked as a reward"),
        (Sum(Data([{"role": "assistant", "content": "?"}])), "ends with a message of the user"),
    ],
)
def test_what_is_more_than_a_prompt_with_rewards_is_refused(task, said):
    with pytest.raises(ValueError, match=said):
        from_verifiers([*sums(), task])


def test_too_few_prompts_are_refused():
    with pytest.raises(ValueError, match="two different prompts at least, got 1"):
        from_verifiers(sums(number=1))
    with pytest.raises(ValueError, match=r"test_fraction must be in \(0, 1\), got 1"):
        from_verifiers(sums(), test_fraction=1)


def task():
    """The task, as a command line names it."""
    return from_verifiers(sums(number=16), 0.25, response_tokens=6)


@pytest.mark.thorough
def test_a_run_trains_on_it(tmp_path):
    policy = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(policy, tmp_path / "run", task=f"{__name__}:task")
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    assert max(training_runs.values(steps, "info/ended")) > 0
