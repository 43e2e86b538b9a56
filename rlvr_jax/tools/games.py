"""Repeated games of two players who choose at the same time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_jax.tools.environment import Replies, Reply

Payoffs = Mapping[tuple[str, str], float]

DILEMMA = {
    ("cooperate", "cooperate"): 3.0,
    ("cooperate", "defect"): 0.0,
    ("defect", "cooperate"): 5.0,
    ("defect", "defect"): 1.0,
}
"""The prisoner's dilemma with the payoffs of Axelrod's tournaments."""


@dataclass(frozen=True)
class RepeatedGame:
    """A game of several rounds; see `repeated_game`."""

    payoffs_of: Callable[[Any], Payoffs]
    rounds: int
    report: str
    stops: tuple[str, ...]
    label: str
    players: int = 2
    judges: bool = True

    def start(self, prompt: Any) -> tuple[Any, Sequence[Mapping[str, str]]]:
        """The state at the start: the table, and no earnings of the players."""
        return (dict(self.payoffs_of(prompt)), ((), ())), []

    def reply(self, state: Any, text: Sequence[str]) -> Replies:
        """The other player's move, and the pay."""
        payoffs, earned = state
        known = _moves(payoffs)
        # The move that a text names last, "" without one.
        moves = [max(known, key=each.rfind) if any(map(each.count, known)) else "" for each in text]
        chosen = [move or known[-1] for move in moves]
        pay = [payoffs[chosen[player], chosen[1 - player]] for player in (0, 1)]
        earned = tuple((*past, paid) for past, paid in zip(earned, pay, strict=True))
        done = len(earned[0]) >= self.rounds
        least, most = min(payoffs.values()), max(payoffs.values())
        each = [
            Reply(
                None,
                self.report.format(other=chosen[1 - player], own=chosen[player], paid=pay[player]),
                done,
                pay[player],
                (sum(earned[player]) / len(earned[player]) - least) / (most - least),
                {"moves": 1.0, "unreadable_moves": float(not moves[player])}
                | {f"chose_{move}": float(move == chosen[player]) for move in known},
            )
            for player in (0, 1)
        ]
        return Replies((payoffs, earned), each)


def _moves(payoffs: Payoffs) -> list[str]:
    return list(dict.fromkeys(own for own, _ in payoffs))


def repeated_game(
    payoffs: Payoffs | Callable[[Any], Payoffs] = DILEMMA,
    rounds: int = 5,
    report: str = "\nThe other player: {other}. You earn {paid:g}.\n",
    stops: Sequence[str] = ("\n",),
) -> RepeatedGame:
    """Two players choose a move at the same time, and read the move of the other player.

    A player's move is the last one that it names. A text without a move counts as the last move of
    the table (`unreadable_moves`). The reward of a turn is the pay of the round. The outcome is the
    mean pay so far, scaled so that the smallest pay of a round is 0 and the largest is 1.

    Args:
      payoffs: pay of a round by (own move, other's move), for every pair; or (prompt) -> such a
        table.
      rounds: number of rounds of a game, at least 1.
      report: text for a player, with {other}, {own} and {paid} in it.
      stops: texts that end a player's turn; the end of its response also ends it.
    Raises:
      ValueError: a pair of moves has no payoff, all payoffs are equal, or there are no rounds.
    Source: of the default payoffs Axelrod 1984, "The Evolution of Cooperation".

    Metrics: moves (moves), unreadable_moves (turns that name no move), chose_<move> (turns with
      this move).
    """
    if rounds < 1:
        raise ValueError(f"repeated_game: rounds must be at least 1, got {rounds}")
    if callable(payoffs):
        return RepeatedGame(
            payoffs, rounds, report, tuple(stops), f"repeated_game(rounds={rounds})"
        )
    table, moves = dict(payoffs), _moves(payoffs)
    missing = [(own, other) for own in moves for other in moves if (own, other) not in table]
    if missing or len({*table.values()}) < 2:
        raise ValueError(
            "repeated_game: payoffs must be of every pair of moves and not all equal, got"
            f" {dict(payoffs)}"
        )
    label = f"repeated_game({', '.join(moves)}, rounds={rounds})"
    return RepeatedGame(lambda prompt: table, rounds, report, tuple(stops), label)
