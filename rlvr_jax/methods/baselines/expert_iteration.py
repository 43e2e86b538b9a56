"""Expert iteration: imitate the right answers of earlier rounds, from the first weights each round.

Havrilla et al. 2024, "Teaching Large Language Models to Reason with Reinforcement Learning"

    1. sample answers with the current policy, keep the right ones, drop duplicates
    2. D_i = kept ∪ D_{i-1}
    3. fit the weights that the run began with to D_i:  loss = -Σ logp / number of tokens

This is a policy gradient with reward 0 or 1, no baseline, and old data. A round is `round_steps`
steps here: in each of them answers are drawn and kept, and answers of earlier rounds are imitated;
the next round begins with the first weights and a new optimizer. The first round only draws.
Answers are the same where their tokens are, a prompt has `per_prompt` answers at most and the same
chance as another one: without that, easy prompts decide (these three are ours). The paper draws 96
answers to every question at the beginning of a round. Return-conditioned RL is the same loss over
all answers, the prompt told how good they were; it is not built.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import experience, shuffled_epochs
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Curriculum, Stage
from rlvr_jax.experience.stages.donors.imitate_right import first_of_right, to_imitate
from rlvr_jax.experience.store import Store, empty_store, oldest, push, repeatable, rewritten, taken
from rlvr_jax.objectives import imitate
from rlvr_jax.objectives.compositions import objective_of_terms
from rlvr_jax.tasks.base import Grade
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part


@part
def restart_every(steps: Count) -> Curriculum:
    """Begins every so many steps with the weights and the optimizer that the run began with.

    It leaves the asks of the part before it as they are.

    Args:
      steps: of a round, at least 1.
    """

    def propose(asks, state, turn):
        del state, turn
        return asks

    def events(state, step):
        del state
        again = step > 0 and step % steps == 0
        return frozenset({"restart", "reset"} if again else ())

    return Curriculum(propose, events=events)


@part
def imitate_right(capacity: Count, round_steps: Count, per_prompt: Count) -> Stage:
    """Keeps right answers, and gives those of earlier rounds as rows to imitate.

    An answer is kept if it is new: not the same tokens as another one to its prompt. The rows that
    are learned from are as many as a step trains, drawn without replacement so that each prompt has
    the same chance however many answers it has; the answers of the step itself are not trained. In
    the first round there is nothing to learn from. Only answers to train prompts as they are can be
    kept.

    Args:
      capacity: answers that are kept, the newest ones.
      round_steps: steps of a round.
      per_prompt: answers to a prompt that are kept at most, its first ones.
    Reads: outcome. Writes: mask (nothing is on it), supervised.
    Metrics: new_answers (kept in this step), kept_answers (in all), imitated_answers (rows).
    Source: Havrilla et al. 2024, "Teaching Large Language Models to Reason with Reinforcement
      Learning".
    """

    def init(setting):
        tokens = (setting.response_tokens,), np.int32
        return empty_store(capacity, number=((), np.int32), tokens=tokens, length=((), np.int32))

    def apply(batch, actor, state, turn):
        kept = _new_answers(batch, state, per_prompt, turn.setting)
        rollouts = batch.rollouts
        numbers = np.array([ask.number for ask in batch.asks], np.int32)
        fields = {"number": numbers, "tokens": _padded(rollouts), "length": rollouts.length}
        state = push(state, {name: array[kept] for name, array in fields.items()}, turn.step)
        places = oldest(state)
        places = places[state.step[places] < turn.step // round_steps * round_steps]
        told = {
            "new_answers": float(len(kept)),
            "kept_answers": float(state.held),
            "imitated_answers": 0.0,
        }
        if not len(places):
            return to_imitate(batch, np.zeros(len(batch), bool)), state, told
        asked = state.rows["number"][places]
        _, which, count = np.unique(asked, return_inverse=True, return_counts=True)
        most = turn.setting.prompts * turn.setting.samples
        drawn = weighted_places(places, most, 1 / count[which], turn.random())
        # Answers to one prompt stand together.
        drawn = drawn[np.argsort(state.rows["number"][drawn], kind="stable")]
        told["imitated_answers"] = float(len(drawn))
        return _as_batch(actor, state, drawn, batch, turn), state, told

    return Stage(apply, init, writes=frozenset({"supervised"}), by_row=True)


def _padded(rollouts) -> np.ndarray:
    """Tokens with 0 behind the ends of responses."""
    places = np.arange(rollouts.tokens.shape[1])[None]
    return np.where(places < rollouts.length[:, None], rollouts.tokens, 0)


def _new_answers(batch: Batch, store: Store, per_prompt: int, setting) -> np.ndarray:
    """The rows that are to be kept, in order."""
    places = oldest(store)
    known: dict[int, set[bytes]] = {}
    for number, tokens in zip(*(store.rows[x][places] for x in ("number", "tokens")), strict=True):
        known.setdefault(int(number), set()).add(tokens.tobytes())
    tokens = _padded(batch.rollouts).astype(np.int32)
    kept = []
    for row in np.flatnonzero(first_of_right(batch) & repeatable(batch, setting)).tolist():
        answers = known.setdefault(batch.asks[row].number, set())
        text = tokens[row].tobytes()
        if text not in answers and len(answers) < per_prompt:
            answers.add(text)
            kept.append(row)
    return np.array(kept, int)


def _as_batch(actor, store: Store, places: np.ndarray, batch: Batch, turn) -> Batch:
    written = rewritten(actor, turn.setting.task, taken(store, places))
    right = np.ones(len(written), batch.rollouts.outcome.dtype)
    whole = to_imitate(written, np.ones(len(written), bool))
    whole = whole.with_rollouts(outcome=right, reward=right)
    return replace(whole, grades=[Grade(1.0)] * len(whole), further=batch.further)


def weighted_places(
    places: np.ndarray, number: int, weights: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Places drawn without replacement by weight.

    Args:
      places: to draw from.
      weights: of them, positive.
    """
    # The least E / w, E exponential, is a draw in proportion to w.
    waits = random.exponential(size=len(places)) / weights
    return places[np.argsort(waits, kind="stable")[:number]]


def expert_iteration(
    round_steps: int = 50, capacity: int = 4096, per_prompt: int = 4, weight: float = 1.0
) -> Recipe:
    """Imitation of right answers of earlier rounds.

    Args:
      round_steps: steps of a round.
      capacity: answers that are kept, the newest ones.
      per_prompt: answers to a prompt that are kept at most.
      weight: of the imitation.
    """
    return Recipe(
        objective=objective_of_terms([imitate(weight)]),
        experience=experience(
            [shuffled_epochs(), restart_every(round_steps)],
            stages=[imitate_right(capacity, round_steps, per_prompt)],
        ),
    )


METHOD = Method(
    expert_iteration,
    "Teaching Large Language Models to Reason with Reinforcement Learning",
    "",
    changes="surrogate, selection, curriculum",
    ratio="other",
    evidence="reconstruction",
    left_out="sampling for every question before a round; return-conditioned RL's tags in prompts",
    reports=(
        "Llama-2 7B and 13B on GSM8K: best in most settings, with about as many samples as PPO; "
        "all methods end close to each other"
    ),
    traps=(
        "the first round only draws: a run of `round_steps` or fewer learns nothing; a prompt that "
        "is never solved drops out; epochs of imitation raise maj@1 and lower pass@96"
    ),
)
