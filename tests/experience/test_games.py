"""Responses that play a game with each other."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from rlvr_jax.experience import experience, turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numpy_actor import NumpyActor
from rlvr_jax.experience.reply_log import ReplyLog
from rlvr_jax.tools import Replies, Reply, repeated_game


@dataclass(frozen=True)
class Sums:
    """Tells each player how long the texts of both are, modulo 3, in a letter; three rounds."""

    stops: tuple[str, ...] = ("x",)
    judges: bool = True
    players: int = 2
    label: str = "sums()"

    def start(self, prompt):
        del prompt
        return 0, []

    def reply(self, state, text):
        word = "abc"[sum(map(len, text)) % 3]
        pay = [float(len(own) > len(other)) for own, other in (text, text[::-1])]
        each = [Reply(None, word, state == 2, paid, paid, {"rounds": 0.5}) for paid in pay]
        return Replies(state + 1, each)


def walked(world, steps=6, actor=None):
    chain = experience(draw=turns(world))
    return [found for found, _, _ in numpy_actor.walk(chain, actor or NumpyActor(), steps=steps)]


def turns_of(rollouts, row):
    """Policy turns and replies of a row, as lists of tokens by the turn's number."""
    length = rollouts.length[row]
    turn, tokens = rollouts.records["turn"][row, :length], rollouts.tokens[row, :length]
    return {int(n): tokens[turn == n].tolist() for n in np.unique(turn[turn >= 0])}


def test_players_of_a_game_are_told_at_the_same_time():
    rounds = longest = 0
    for found in walked(Sums()):
        rollouts = found.batch.rollouts
        for first in range(0, len(found.batch), 2):
            one, two = (turns_of(rollouts, row) for row in (first, first + 1))
            replies = [{n: x for n, x in own.items() if n % 2} for own in (one, two)]
            # Both hear the same word, unless the one who had no room for it is out.
            for number in replies[0].keys() & replies[1].keys():
                assert replies[0][number] == replies[1][number]
                rounds += 1
            assert abs(max(one) - max(two)) <= 2
            longest = max(longest, *one, *two)
    assert rounds > 4 and longest >= 4


def test_each_turn_is_paid_by_what_both_wrote():
    for found in walked(Sums()):
        rollouts = found.batch.rollouts
        paid = rollouts.records["process_reward"]
        assert not paid[~rollouts.mask].any()
        # In a round one of them wrote more, or neither.
        for first in range(0, len(found.batch), 2):
            assert (
                paid[first : first + 2].sum()
                <= 1 + rollouts.records["turn"][first : first + 2].max() // 2
            )
    assert any(found.batch.rollouts.records["process_reward"].any() for found in walked(Sums()))


def test_a_step_that_is_drawn_again_hears_the_same_without_the_game(tmp_path):
    class Silent(Sums):
        def reply(self, state, text):
            raise AssertionError("the game was asked again")

    chain, again = experience(draw=turns(Sums())), experience(draw=turns(Silent()))
    own = replace(numpy_actor.setting(chain), reply_log=ReplyLog(tmp_path / "said"))
    one = numpy_actor.walk(chain, steps=2, own=own)
    own = replace(own, reply_log=ReplyLog(tmp_path / "said"))
    two = numpy_actor.walk(again, steps=2, own=own)
    for (a, _, _), (b, _, _) in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.batch.rollouts.tokens, b.batch.rollouts.tokens)
        np.testing.assert_array_equal(a.batch.rollouts.reward, b.batch.rollouts.reward)


def test_groups_that_are_no_multiple_of_the_players_are_refused():
    chain = experience(draw=turns(Sums(players=3)))
    with pytest.raises(ValueError, match=r"multiple of the 3 players of sums\(\), got 4"):
        chain.init(numpy_actor.setting(chain))


def test_a_repeated_game_pays_by_its_table_and_says_what_the_other_chose():
    game = repeated_game(rounds=2)
    state, messages = game.start(None)
    assert not messages
    told = game.reply(state, ["I cooperate", "cooperate? No: defect"])
    assert [each.reward for each in told.each] == [0.0, 5.0]
    assert told.each[0].text == "\nThe other player: defect. You earn 0.\n"
    assert [each.done for each in told.each] == [False, False]
    told = game.reply(told.state, ["what?", "cooperate"])
    assert [each.reward for each in told.each] == [5.0, 0.0]
    assert [each.done for each in told.each] == [True, True]
    assert [each.outcome for each in told.each] == [0.5, 0.5]
    assert [each.info["unreadable_moves"] for each in told.each] == [1.0, 0.0]


@pytest.mark.parametrize(
    "payoffs",
    [{("a", "a"): 1.0, ("a", "b"): 0.0, ("b", "a"): 0.0}, {("a", "a"): 1.0}],
)
def test_games_that_cannot_be_played_are_refused(payoffs):
    with pytest.raises(ValueError, match="payoffs must be of every pair of moves"):
        repeated_game(payoffs)
    with pytest.raises(ValueError, match="rounds must be at least 1, got 0"):
        repeated_game(rounds=0)
