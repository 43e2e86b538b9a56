"""Expert iteration: imitates correct responses of earlier rounds, always from the initial policy.

Havrilla et al. 2024, "Teaching Large Language Models to Reason with Reinforcement Learning"

    1. sample responses with the current policy, store the correct ones, drop duplicates
    2. D_i = stored ∪ D_{i-1}
    3. fit the initial policy to D_i:  loss = -Σ logp / number of tokens

This is a policy gradient with reward 0 or 1, no baseline, and old data. A round has `round_steps`
steps. Each step samples and stores responses, and imitates responses of earlier rounds. The next
round begins with the initial policy and a new optimizer. The first round only samples.

Three choices are ours; without them, easy prompts dominate. Responses are duplicates if their
tokens are equal. A prompt has at most `per_prompt` responses. Every prompt has the same chance. The
paper samples 96 responses to every question at the beginning of a round.

Left out: sampling for every question before a round; return-conditioned RL, the same loss over all
responses with a tag of their quality in the prompt.
Reports: Llama-2 7B and 13B on GSM8K: best in most settings, with about as many samples as PPO. All
methods end close to each other (no numbers).
Traps: A run of at most `round_steps` steps learns nothing. A prompt that is never solved is not
trained. Imitation raises maj@1 and lowers pass@96.
"""

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import Batch, Curriculum, Stage, experience, shuffled_epochs
from rlvr_jax.experience.stages.donors.imitate_correct import first_of_correct, to_imitate
from rlvr_jax.experience.store import Store, empty_store, oldest, push, repeatable, rewritten, taken
from rlvr_jax.objectives import imitate, objective_of_terms, part
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import Count, NonNegative
from rlvr_jax.verifiers.grade import Grade


@part
def restart_every(steps: Count) -> Curriculum:
    """Restores the initial weights and optimizer every so many steps; prompts do not change."""

    def propose(requests, state, turn):
        return requests

    def events(state, step):
        again = step > 0 and step % steps == 0
        return frozenset({"restart", "reset"} if again else ())

    return Curriculum(propose, events=events)


@part
def imitate_correct(capacity: Count, round_steps: Count, per_prompt: Count) -> Stage:
    """Stores correct responses, and replaces the batch by stored ones of earlier rounds to imitate.

    It imitates as many rows as a step trains, sampled without replacement so that each prompt has
    the same chance. In the first round nothing is trained. Only responses to unchanged train
    prompts are stored.

    Args:
      capacity: maximum number of stored responses; the oldest are removed.
      round_steps: steps of a round.
      per_prompt: maximum number of stored responses per prompt, its first ones.
    Reads: outcome. Writes: mask (cleared), supervised.
    Metrics: new_answers (stored in this step), stored_answers (stored in all steps),
      imitated_answers (rows).
    """

    def init(setting):
        tokens = (setting.response_tokens,), np.int32
        return empty_store(capacity, number=((), np.int32), tokens=tokens, length=((), np.int32))

    def apply(batch, actor, state, turn):
        new = _new_responses(batch, state, per_prompt, turn.setting)
        rollouts = batch.rollouts
        numbers = np.array([request.number for request in batch.requests], np.int32)
        fields = {"number": numbers, "tokens": _padded(rollouts), "length": rollouts.length}
        state = push(state, {name: array[new] for name, array in fields.items()}, turn.step)
        places = oldest(state)
        places = places[state.step[places] < turn.step // round_steps * round_steps]
        metrics = {
            "new_answers": float(len(new)),
            "stored_answers": float(state.held),
            "imitated_answers": 0.0,
        }
        if not len(places):
            return to_imitate(batch, np.zeros(len(batch), bool)), state, metrics
        prompts = state.rows["number"][places]
        _, which, count = np.unique(prompts, return_inverse=True, return_counts=True)
        most = turn.setting.prompts * turn.setting.samples
        chosen = weighted_places(places, most, 1 / count[which], turn.random())
        # Responses to one prompt form a group.
        chosen = chosen[np.argsort(state.rows["number"][chosen], kind="stable")]
        metrics["imitated_answers"] = float(len(chosen))
        written = rewritten(actor, turn.setting.task, taken(state, chosen))
        whole = to_imitate(written, np.ones(len(written), bool))
        whole = replace(whole.graded([Grade(1.0)] * len(whole)), further=batch.further)
        return whole, state, metrics

    return Stage(apply, init, writes=frozenset({"supervised"}), by_row=True)


def _padded(rollouts) -> np.ndarray:
    """Tokens with 0 after the ends of responses."""
    places = np.arange(rollouts.tokens.shape[1])[None]
    return np.where(places < rollouts.length[:, None], rollouts.tokens, 0)


def _new_responses(batch: Batch, store: Store, per_prompt: int, setting) -> np.ndarray:
    """The rows to store, in order."""
    places = oldest(store)
    known: dict[int, set[bytes]] = {}
    for number, tokens in zip(*(store.rows[x][places] for x in ("number", "tokens")), strict=True):
        known.setdefault(int(number), set()).add(tokens.tobytes())
    tokens = _padded(batch.rollouts).astype(np.int32)
    new = []
    for row in np.flatnonzero(first_of_correct(batch) & repeatable(batch, setting)).tolist():
        responses = known.setdefault(batch.requests[row].number, set())
        text = tokens[row].tobytes()
        if text not in responses and len(responses) < per_prompt:
            responses.add(text)
            new.append(row)
    return np.array(new, int)


def weighted_places(
    places: np.ndarray, number: int, weights: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Places sampled without replacement in proportion to positive weights.

    Args:
      places: candidates, int [n].
      number: of places in the sample; all if there are fewer.
      weights: weight of each candidate, above 0, [n].
      random: source of the random numbers; its state advances.
    """
    # The least E / w, E exponential, is a sample in proportion to w.
    waits = random.exponential(size=len(places)) / weights
    return places[np.argsort(waits, kind="stable")[:number]]


def expert_iteration(
    round_steps: Count = 50,
    capacity: Count = 4096,
    per_prompt: Count = 4,
    weight: NonNegative = 1.0,
) -> Recipe:
    """Imitates correct responses of earlier rounds.

    Args:
      round_steps: steps of a round.
      capacity: maximum number of stored responses; the oldest are removed.
      per_prompt: maximum number of stored responses per prompt, its first ones.
      weight: weight of the imitation.
    """
    return Recipe(
        objective=objective_of_terms([imitate(weight)]),
        experience=experience(
            [shuffled_epochs(), restart_every(round_steps)],
            stages=[imitate_correct(capacity, round_steps, per_prompt)],
        ),
    )


METHOD = Method(
    expert_iteration,
    changes="surrogate, selection, curriculum",
    ratio="other",
    evidence="reconstruction",
    shown=Shown(
        "brackets",
        "experience/imitated_answers",
        without={"round_steps": 300},
        hyperparameters={"round_steps": 10},
        settings={"prompts_per_step": 16},
        steps=300,
        within=12,
    ),
)
