"""The policy judges its own answers: shown one, does it give it again?"""

from dataclasses import replace

from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.siblings import SHOWN
from rlvr_jax.experience.views import with_answer
from rlvr_jax.types.parts import part

NAME = "again"
"""Of the number that a grade gets."""


@part(at_grading=True, by_row=True, of_task=frozenset({"answers"}), rewards=(NAME,), views=(SHOWN,))
def give_again() -> Stage:
    """Adds to the grade of an answer whether the policy gives it again once it is shown it.

    1 if the greedy response behind the prompt with the final answer (`with_answer`) has the same
    final answer, 0 if it has another or none; 0, too, for a response without a final answer. So a
    policy judges that cannot read a question in words. The verifier reads final answers and is not
    asked whether they are right. Equal answers to one prompt are shown once. The number becomes the
    first of `Task.rewards`; the outcome stays.

    Reads: final answers. Draws: a response for every answer that is another one. Writes: info of
    grades. Metrics: shown_answers, answers_given_again (counts); a curve info/again.
    Raises:
      ValueError: when a run begins, a task whose grades name no final answers, or one that shows
        answers in words that the policy does not know.
    """

    def init(setting):
        if not setting.task.answers:
            raise ValueError(
                "give_again: task must name final answers (Task.answers), got"
                f" {setting.task.name!r}, which does not"
            )
        return ()

    def apply(batch, actor, state, turn):
        asked = batch.decided & [not ask.rating for ask in batch.asks]
        keys = [
            (ask.number, grade.answer) if own and (grade.answer or "").strip() else None
            for ask, grade, own in zip(batch.asks, batch.grades, asked, strict=True)
        ]
        first = {key: keys.index(key) for key in keys if key}
        again: dict[tuple[int, str] | None, float] = {None: 0.0}
        if first:
            asks = [
                replace(
                    batch.asks[row],
                    view=with_answer(key[1]),
                    samples=1,
                    given=(),
                    prefix=None,
                    temperature=None,
                    limit=None,
                )
                for key, row in first.items()
            ]
            told = actor.grade(actor.draw(asks, turn.key, {"top_k": 1})).grades
            again |= {
                key: float(one.answer == key[1]) for key, one in zip(first, told, strict=True)
            }
        grades = [
            replace(grade, info={**grade.info, NAME: again[key] if own else float("nan")})
            for grade, key, own in zip(batch.grades, keys, asked, strict=True)
        ]
        counts = {"shown_answers": len(first), "answers_given_again": sum(again.values())}
        return replace(batch, grades=grades), state, {name: float(n) for name, n in counts.items()}

    return Stage(apply, init=init)
