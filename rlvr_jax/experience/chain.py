"""The chain of parts that makes a batch.

    curriculum → draw → stages                          before the update
    observe of every part, with all batches of the step  after the update

Parts are pure functions of their state, the step and their inputs. State is stored by the part's
name, so checkpoints stay valid when a part is inserted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.curricula.batches import shuffled_epochs
from rlvr_jax.experience.draws.plain import plain
from rlvr_jax.experience.grades import check_task, grade_answers
from rlvr_jax.experience.parts import Actor, Curriculum, Draw, RunInfo, Stage, StepContext
from rlvr_jax.experience.requests import SampleRequest, View
from rlvr_jax.experience.returned import OF_APPLY, answer_of, check_batch, keep_state, like
from rlvr_jax.experience.stage_actor import CountedActor, StageActor
from rlvr_jax.rollout import named_key
from rlvr_jax.tasks import Task
from rlvr_jax.tools.slips import names_own
from rlvr_jax.types.parts import Part, named_parts, part

Member = Curriculum | Draw | Stage


@dataclass(frozen=True)
class Collected:
    """The result of `Experience.collect`: batches, state and metrics of a step.

    Fields:
      batch: the batch for training.
      state: of the parts, before they observe.
      seen: all graded batches of the step, in order, before any filter; groups that only rate
        prompts are separate batches.
      metrics: of the parts, and counts: sampled_tokens (all generated tokens), given_tokens (given
        first tokens of responses) and scored_tokens (of rows that parts let the actor score).
    """

    batch: Batch
    state: dict[str, Any]
    seen: Sequence[Batch]
    metrics: dict[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class Experience(Part):
    """The parts that make a batch, by name, in order; see `experience`."""

    curricula: Mapping[str, Curriculum]
    draw: tuple[str, Draw]
    stages: Mapping[str, Stage]

    @property
    def parts(self) -> dict[str, Member]:
        """All parts by name, in order of action."""
        return {**self.curricula, self.draw[0]: self.draw[1], **self.stages}

    @property
    def labels(self) -> tuple[str, ...]:
        """One per part, in order of action."""
        return tuple(one.label for one in self.parts.values())

    @property
    def reads(self) -> dict[str, frozenset[str]]:
        """Fields of prompts that parts and their views read, by the part's label."""
        known = {
            one.label: one.reads.union(*(view.reads for view in one.views))
            for one in self.parts.values()
        }
        return {label: reads for label, reads in known.items() if reads}

    @property
    def writes(self) -> frozenset[str]:
        """Records of `Rollouts` that the parts fill."""
        return frozenset().union(*(one.writes for one in self.parts.values()))

    @property
    def views(self) -> tuple[View, ...]:
        """Views in which prompts may be shown, except the plain one."""
        parts = self.parts.values()
        return tuple({view.label: view for one in parts for view in one.views}.values())

    @property
    def refreshes(self) -> bool:
        """Whether a part may make the current weights the reference."""
        return any(one.refreshes for one in self.curricula.values())

    @property
    def rounds(self) -> int:
        """Largest number of prompt batches that a step may request."""
        return 1 + sum(stage.rounds for stage in self.stages.values())

    def graded(self, task: Task) -> Task:
        """The task whose first rewards are those that stages add to its grades.

        Raises:
          ValueError: a stage adds a reward with the name of another reward.
        """
        more = [name for stage in self.stages.values() for name in stage.rewards]
        every = [*more, *task.rewards]
        if taken := sorted({name for name in more if every.count(name) > 1}):
            raise ValueError(
                f"experience: rewards of stages must have different names from each other and from"
                f" those of task {task.name!r}, got {taken} twice"
            )
        return replace(task, rewards=every) if more else task

    def verified(self, task: Task) -> Task:
        """The task of `graded`, with the rewards of the original verifier only."""
        more = {name for stage in self.stages.values() for name in stage.rewards}
        return replace(task, rewards=[name for name in task.rewards if name not in more])

    def initial_samples(self, samples: int) -> int:
        """Rollouts of a group that are sampled first, by the number of trained rollouts."""
        for stage in reversed(tuple(self.stages.values())):
            samples = stage.size(samples)
        return samples

    def init(self, setting: RunInfo) -> dict[str, Any]:
        """The state before the first step; parts without state have no entry."""
        states = {}
        for name, one in self.parts.items():
            with names_own(f"{one.label}: init"):
                check_task(one.label, getattr(one, "of_task", ()), setting.task)
                states[name] = one.init(setting)
        return {name: state for name, state in states.items() if jax.tree.leaves(state)}

    def events(self, state: Mapping[str, Any], step: int) -> frozenset[str]:
        """The loop's actions before a step; see `Curriculum`."""
        asked: frozenset[str] = frozenset()
        for name, one in self.curricula.items():
            with names_own(f"{one.label}: events"):
                asked |= one.events(state.get(name, ()), step)
        return asked

    def collect(
        self, actor: Actor, state: Mapping[str, Any], step: int, setting: RunInfo
    ) -> Collected:
        """The batch of a step.

        Args:
          state: of `init` or the last `observe`.
          setting: the run context, as for `init`.
        Raises:
          ValueError: the curricula return no request, or a stage returns no row.
        """
        return _Step(self, actor, dict(state), step, setting).run()

    def observe(
        self, collected: Collected, learned: Batch, step: int, setting: RunInfo
    ) -> tuple[dict[str, Any], dict[str, float]]:
        """The state after a step, and metrics.

        Args:
          collected: the result of `collect`.
          learned: the trained batch with its old log-probs.
        """
        state, metrics = dict(collected.state), {}
        for name, one in self.parts.items():
            turn = StepContext(step, _key(setting, f"observe/{name}", step), setting, _no_more)
            with names_own(f"{one.label}: observe"):
                answer = one.observe(state.get(name, ()), turn, collected.seen, learned)
            new, new_metrics = answer_of(f"{one.label}: observe", answer, ("state", "metrics"))
            keep_state(state, name, one.label, new)
            _add(metrics, new_metrics, name)
        return state, metrics

    def at_evaluation(self, state: Mapping[str, Any], found: Mapping[str, float]) -> dict[str, Any]:
        """The state after the held-out metrics `found`."""
        new_state = dict(state)
        for name, one in self.curricula.items():
            if one.at_evaluation is not None and name in new_state:
                with names_own(f"{one.label}: at_evaluation"):
                    new = one.at_evaluation(new_state[name], found)
                new_state[name] = like(one.label, new_state[name], new)
        return new_state


@part
def experience(
    curriculum: Curriculum | Sequence[Curriculum] | None = None,
    draw: Draw | None = None,
    stages: Sequence[Stage] = (),
) -> Experience:
    """Composes parts into an experience.

    Examples:
      >>> from rlvr_jax.experience import all_incorrect, experience, redraw
      >>> from rlvr_jax.experience.views import hint
      >>> list(experience(stages=[redraw(all_incorrect, hint(0.5))]).stages)
      ['redraw']

    Args:
      curriculum: one, or several: the first one picks prompts, the others change its requests.
        None: shuffled epochs over the task's train prompts.
      draw: None: plain sampling.
      stages: act on the sampled batch, in order.
    Raises:
      ValueError: an object that is not a part; a stage with `by_row` after a draw with `splits`; a
        stage with `counts` after a draw with `fewer`.
    """
    curricula = [curriculum] if isinstance(curriculum, Curriculum) else list(curriculum or ())
    for stage in stages:
        if draw is not None and draw.splits and stage.by_row:
            raise ValueError(
                f"experience: draw must return each response as one row for {stage.label}, got"
                f" {draw.label}"
            )
        if draw is not None and draw.fewer and stage.counts:
            raise ValueError(
                f"experience: draw must return all rows that {stage.label} needs, got {draw.label}"
            )
    first = named_parts(curricula or [shuffled_epochs()])
    (second,) = named_parts([draw or plain()], first).items()
    return Experience(first, second, named_parts(stages, {*first, second[0]}))


class _Step:
    """One step of a chain."""

    def __init__(
        self,
        chain: Experience,
        actor: Actor,
        state: dict[str, Any],
        step: int,
        setting: RunInfo,
    ):
        self.chain, self.state = chain, state
        self.step, self.setting = step, setting
        self.rounds = 0
        self.seen: list[Batch] = []
        counts = ("sampled_tokens", "given_tokens", "scored_tokens")
        self.metrics: dict[str, float] = dict.fromkeys(counts, 0.0)
        self.actor = CountedActor(actor, self.metrics)
        self.of_graded = CountedActor(actor, self.metrics, chain.draw[1].as_sampled)
        self.of_stages = StageActor(actor, self.metrics, self.draw, self.grade)

    def run(self) -> Collected:
        requests = self._propose()
        if not requests:
            labels = ", ".join(one.label for one in self.chain.curricula.values())
            raise ValueError(
                f"{labels}: propose must return requests to train on, got none in step {self.step}"
            )
        key = self.setting.sampler_key(self.step)
        batch = self.grade(self._drawn(requests, key, self.of_graded))
        for name, stage in self.chain.stages.items():
            if not stage.at_grading:
                batch = self._staged(name, stage, batch)
        return Collected(batch, self.state, self.seen, self.metrics)

    def _staged(self, name: str, stage: Stage, batch: Batch) -> Batch:
        # A stage that adds to grades sees only the verifier's; otherwise it would call itself.
        actor, more = (self.actor, _no_more) if stage.at_grading else (self.of_stages, self.more)
        key = _key(self.setting, name, self.step)
        return self._applied(
            name, stage, batch, actor, StepContext(self.step, key, self.setting, more)
        )

    def _applied(
        self, name: str, one: Draw | Stage, given: Any, actor: Actor, turn: StepContext
    ) -> Batch:
        """The batch that a draw makes of requests, or a stage of a batch."""
        with names_own(f"{one.label}: apply"):
            answer = one.apply(given, actor, self.state.get(name, ()), turn)
        batch, state, new_metrics = answer_of(f"{one.label}: apply", answer, OF_APPLY)
        check_batch(one.label, batch, graded=isinstance(one, Stage))
        keep_state(self.state, name, one.label, state)
        # Draws and stages at grading act several times in a step.
        _add(self.metrics, new_metrics, name, sums=isinstance(one, Draw) or one.at_grading)
        return batch

    def _propose(self) -> list[SampleRequest]:
        """The requests of a round for training; requests that only rate are sampled here."""
        requests: list[SampleRequest] = []
        for name, one in self.chain.curricula.items():
            key = _key(self.setting, name, self.step)
            turn = StepContext(self.step, key, self.setting, _no_more, self.rounds)
            with names_own(f"{one.label}: propose"):
                requests = list(one.propose(requests, self.state.get(name, ()), turn))
            for request in requests:
                if not isinstance(request, SampleRequest):
                    raise ValueError(
                        f"{one.label}: propose must return requests, got {request!r:.80}"
                    )
        self.rounds += 1
        ratings = [request for request in requests if request.rating]
        if ratings:
            self.grade(self.draw(ratings, _key(self.setting, "ratings", self.step)))
        return [request for request in requests if not request.rating]

    def draw(self, requests: Sequence[SampleRequest], key: jax.Array) -> Batch:
        """Responses by the chain's draw."""
        return self._drawn(requests, key, self.actor)

    def _drawn(self, requests: Sequence[SampleRequest], key: jax.Array, actor: Actor) -> Batch:
        turn = StepContext(self.step, key, self.setting, _no_more)
        return self._applied(*self.chain.draw, requests, actor, turn)

    def grade(self, batch: Batch) -> Batch:
        """The batch with grades; all rows of a trace have the grade of its last row. Observers see
        the batch unless another policy wrote all of it."""
        graded = grade_answers(self.actor.grade, batch)
        for name, stage in self.chain.stages.items():
            if stage.at_grading:
                graded = self._staged(name, stage, graded)
        foreign = batch.rollouts.records.get("off_policy")
        if foreign is None or not foreign.all():
            self.seen.append(graded)
        return graded

    def more(self, count: int) -> list[SampleRequest]:
        """Further requests of the curriculum; none when the rounds are used up."""
        if self.setting.rounds < 2:
            raise ValueError("more: a stage that requests prompts must declare rounds, got 0")
        requests: list[SampleRequest] = []
        while len(requests) < count and self.rounds < self.setting.rounds:
            requests += self._propose()
        return requests[:count]


def _key(setting: RunInfo, name: str, step: int) -> jax.Array:
    return named_key(setting.seed, f"experience/{name}", step)


def _no_more(count: int) -> list[SampleRequest]:
    raise ValueError(f"more: only stages may request further prompts, got {count}")


def _add(metrics: dict[str, float], new: Mapping[str, float], name: str, sums: bool = False):
    for metric, value in new.items():
        if sums:
            metrics[metric] = metrics.get(metric, 0.0) + float(value)
        else:
            metrics[f"{name}/{metric}" if metric in metrics else metric] = float(value)
