"""Responses that branch after rounds that the policy was less sure of than of the first one."""

from rlvr_jax.experience.draws.trees.branching import Branches, Row
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.parts import Draw
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part


@part
def branch_rounds(
    tokens: Count = 64,
    weight: float = 0.2,
    base: float = 0.5,
    penalty: float = 0.0,
    share: float = 0.5,
    sensitivity: float | None = None,
    top: int = 10,
    window: int = 20,
) -> Draw:
    """Writes responses in rounds, and forks one after a round that was less sure than its first.

    Of the M samples of an ask, `share` · M (at least one) begin at the prompt. After each of its
    rounds but the first a response that goes on is forked, while there is room, with probability
    `branch_probability` of ΔE = E_round - E_first (`first_entropy`); a fork copies what was written
    and goes on with random numbers of its own. A prompt that has room and no active row begins
    anew, so that there are always M whole responses. Tokens that several rows share are trained in
    each.

    With `sensitivity` one response to each prompt is written first; from its first tokens and its
    rounds `num_from_prompt` says how many begin at the prompt, of which it is one.

    Args:
      tokens: of a round.
      weight: of ΔE in the probability (w).
      base: probability at ΔE = 0.
      penalty: each fork that a prompt has made already damps further ones by so much.
      share: of the samples, that begin at the prompt; without sensitivity.
      sensitivity: β of `num_from_prompt`; None: `share` holds.
      top: likeliest tokens that an entropy is of.
      window: first tokens of a round that its entropy is of.
    Metrics: forked_rows, begun_rows (at the prompt), rounds.
    Source: ARPO and AEPO draw so (the links stand in the methods' cards).
    """
    branches = Branches(weight, base, penalty, share, sensitivity, top, window)
    branches.check("branch_rounds")

    def init(setting):
        branches.check_vocabulary("branch_rounds", setting)
        return ()

    def apply(asks, actor, state, turn):
        pieces = Pieces(actor, turn.key, {"record_top": top})
        vocabulary = turn.setting.vocabulary

        def write(rows):
            drawn = pieces.draw(
                [asks[row.group] for row in rows],
                [row.sample for row in rows],
                [row.tip for row in rows],
                [row.cut for row in rows],
                tokens,
            )
            length = pieces.batch.rollouts.length
            for row, tip, active in zip(rows, drawn, pieces.goes_on(drawn), strict=True):
                row.tip, row.cut, row.active = int(tip), int(length[tip]), bool(active)
            return branches.entropies(pieces, drawn, vocabulary)

        rows = branches.grow(asks, pieces, turn.random(), vocabulary, Row, write)
        told = {
            "forked_rows": float(sum(row.forked for row in rows)),
            "begun_rows": float(sum(not row.forked for row in rows)),
            "rounds": float(len(pieces)),
        }
        return pieces.responses([row.tip for row in rows], asks), state, told

    return Draw(apply, init)
