"""Environments for tests: one that counts what it is asked, one that is played."""

from dataclasses import dataclass, replace

import training_runs

from rlvr_jax.experience import experience, turns
from rlvr_jax.methods import recipe
from rlvr_jax.tools import Reply, repeated_game
from rlvr_jax.types import Recipe


@dataclass(frozen=True)
class Counting:
    """Answers each pause by one word; a row that ends is not answered. Its state is the number of
    replies."""

    stops: tuple[str, ...] = ("b",)
    word: str = "c"
    done_after: int = 99
    judges: bool = False
    label: str = "counting()"

    def start(self, prompt):
        del prompt
        return 0, []

    def reply(self, state, text):
        if not text.endswith("x"):  # what the actor of numpy reads where it writes "b"
            return Reply(state)
        return Reply(
            state + 1,
            self.word,
            done=state + 1 >= self.done_after,
            reward=0.25,
            outcome=1.0 if self.judges and state else None,
            info={"answered": 1.0},
        )


class Answering(Counting):
    """Answers whoever writes "=" with two words of `training_runs.WORDS`."""

    def reply(self, state, text):
        if not text.endswith("="):
            return Reply(state)
        return Reply(state + 1, "3 4", info={"answered": 1.0})


def in_turns():
    """GRPO on answers that are written with an environment."""
    chain = experience(draw=turns(Answering(stops=("=",))))
    return Recipe(recipe("grpo").objective, chain)


def words(text: str) -> str:
    """Two words of `training_runs.WORDS`, whatever is asked."""
    return "3 4"


def answering_sums():
    """The sums of `training_runs` with the environment `Answering`; an answer is shown in front."""
    return replace(
        training_runs.sums(),
        environment=Answering(stops=("=",)),
        show_answer=lambda prompt, answer: f"{answer} {prompt.text}",
    )


PAYOFFS = {("1", "1"): 3.0, ("1", "2"): 0.0, ("2", "1"): 5.0, ("2", "2"): 1.0}


def played_sums():
    """The prompts of `training_runs`, behind which two players choose 1 or 2, three times."""
    game = repeated_game(PAYOFFS, rounds=3, told="{other}", stops=("=",))
    return replace(training_runs.sums(), environment=game)
