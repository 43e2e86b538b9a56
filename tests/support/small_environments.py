"""Environments for tests: one that counts what it is asked, one that is played."""

from dataclasses import dataclass, replace

import training_runs

from rlvr_jax.experience import branch_turns, experience, turns
from rlvr_jax.methods import recipe
from rlvr_jax.tools import Reply, repeated_game
from rlvr_jax.types import Recipe


@dataclass(frozen=True)
class Counting:
    """Answers each pause by one word; a row that ends is not answered. Its state is the number of
    replies."""

    stops: tuple[str, ...] = ("x",)
    word: str = "c"
    done_after: int = 99
    judges: bool = False
    label: str = "counting()"

    def start(self, prompt):
        del prompt
        return 0, []

    def reply(self, state, text):
        if not text.endswith("x"):
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


@dataclass(frozen=True)
class Asked(Counting):
    """Answers each text with "!" in it, which is to be in its last token, of three letters."""

    stops: tuple[str, ...] = ("!",)
    label: str = "asked()"

    def reply(self, state, text):
        if "!" not in text:
            return Reply(state)
        if "!" in text[:-3]:
            raise AssertionError(f"nobody was asked at the first stop of {text!r}")
        return Reply(state + 1, "12", info={"answered": 1.0})


@dataclass(frozen=True)
class Ending:
    """A statement is proved by a text that ends in "5", and refuted by one that ends in an odd
    number; else the text is the next state."""

    stops: tuple[str, ...] = ()
    judges: bool = True
    label: str = "ending()"

    def start(self, prompt):
        return prompt.text, []

    def reply(self, state, text):
        proved, incorrect = text.endswith("5"), text[-1:] in ("1", "3", "7", "9", "")
        return Reply(state, f"{state} {text}", proved or incorrect, outcome=float(proved))


@dataclass(frozen=True)
class Counters:
    """From a the sum a + b is to be reached in steps of one digit, the first word of a text. One
    that is none, or goes beyond, is an error; else the next state is asked like a prompt."""

    stops: tuple[str, ...] = ()
    judges: bool = True
    label: str = "counters()"

    def start(self, prompt):
        first, _, second, _ = prompt.text.split()
        return (int(first), int(first) + int(second)), []

    def reply(self, state, text):
        at, goal = state
        word = text.partition(" ")[0]
        if not word.isdigit() or at + int(word) > goal:
            return Reply(state, done=True, outcome=0.0)
        at += int(word)
        return Reply((at, goal), f"{at} + {goal - at} =", at == goal, outcome=float(at == goal))


def counted_sums():
    """The sums of `training_runs` as statements to be proved in steps."""
    return replace(training_runs.sums(), environment=Counters())


def in_turns():
    """GRPO on answers that are written with an environment."""
    chain = experience(draw=turns(Answering(stops=("=",))))
    return Recipe(recipe("grpo").objective, chain)


def asked_in_turns():
    """GRPO on answers that pause at "!"."""
    return Recipe(recipe("grpo").objective, experience(draw=turns(Asked(), limit=4)))


def asked_in_branches():
    """GRPO on branches of answers that pause at "!"."""
    return Recipe(recipe("grpo").objective, experience(draw=branch_turns(Asked(), limit=4, top=3)))


def hinted_sums():
    """`answering_sums`, whose prompts have a hint."""
    task = answering_sums()
    return replace(task, train=[replace(prompt, hints=("3 4",)) for prompt in task.train])


class Failing(Counting):
    """Tells whoever writes "=" of an error."""

    def reply(self, state, text):
        if not text.endswith("="):
            return Reply(state)
        return Reply(state + 1, " Error: 3 ", info={"tool_errors": 1.0})


def failing_sums():
    """The sums of `training_runs` with the environment `Failing`."""
    return replace(training_runs.sums(), environment=Failing(stops=("=",)))


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
    game = repeated_game(PAYOFFS, rounds=3, report="{other}", stops=("=",))
    return replace(training_runs.sums(), environment=game)
