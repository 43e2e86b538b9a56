"""Games of two players who choose at the same time, again and again."""

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
    """A game that is played for some rounds; see `repeated_game`."""

    payoffs_of: Callable[[Any], Payoffs]
    rounds: int
    report: str
    stops: tuple[str, ...]
    label: str
    players: int = 2
    judges: bool = True

    def start(self, prompt: Any) -> tuple[Any, Sequence[Mapping[str, str]]]:
        """Nothing is played; the state is the table, and each player's earnings by round."""
        return (dict(self.payoffs_of(prompt)), ((), ())), []

    def reply(self, state: Any, text: Sequence[str]) -> Replies:
        """The other player's move, and its pay."""
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
    """Two players choose a move at the same time, and read the move of the other.

    A player's move is the last one that it names; who names none plays the last move of the table,
    and is counted. A round's pay is the reward of the turn, the outcome the
    mean pay so far between the least and the most that a round can pay.

    Args:
      payoffs: (own move, other's move) -> pay of a round, of every pair; or (prompt) -> such a
        table.
      rounds: of a game, at least 1.
      report: a player's text, with {other}, {own} and {paid} in it.
      stops: texts after which a player's turn ends; it also ends where its response does.
    Metrics: moves (moves), unreadable_moves (turns that name no move), chose_<move> (turns with
      this move).
    Raises:
      ValueError: a pair of moves without a payoff, payoffs that are all equal, no rounds.
    Source: of the default payoffs Axelrod 1984, "The Evolution of Cooperation".
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
