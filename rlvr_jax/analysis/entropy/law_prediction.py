"""The entropy law as a forecast: the end of a run predicted from its first fifth.

    python -m rlvr_jax.analysis.entropy.law_prediction RUN [RUN …]

Cui et al. 2025, https://arxiv.org/abs/2505.22617, fit R = -a e^H + b to the first steps of runs
without entropy control. They make two claims about later steps. Both are measured here on
evaluations, with H and R of equal held-out samples:

    score error     (b - a e^H) - R at the last evaluation, given its H
    ceiling error   (b - a) - R at the last evaluation: the claim that the run ends near H = 0

A run whose objective controls entropy does not follow the curve, so such runs have separate rows. A
fit is undefined if all first points have one entropy. Undefined fits are counted.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import columns
from rlvr_jax.analysis.entropy.entropy_law import EntropyLaw, fit_entropy_law
from rlvr_jax.analysis.run_directory import Run, load_run
from rlvr_jax.arguments import as_typed

FIRST_FRACTION = 0.2
ENTROPY, SCORE = "held_out/entropy", "held_out/pass@1"

# Parts that do not use entropies, and whose clip is equally wide in both directions.
_PLAIN = {
    *("reinforce", "importance_weighted", "ppo_clip"),
    *("group_normalized", "group_centered", "leave_one_out", "length_centered", "relative_to"),
    *("plain_reward", "whitened", "reward_to_go"),
    *("token_mean", "rollout_mean_token_mean", "rollout_mean_token_sum", "row_mean_token_mean"),
    *("fixed_length_mean", "fixed_length_sum"),
}


class Forecast(NamedTuple):
    """The end of a run, predicted from its beginning.

    Fields:
      law: fit of the first points; None if it is undefined.
      num_first, num_points: number of fitted points, and of all points.
      score_error, ceiling_error: errors in units of the score (see the module); None without a fit.
    """

    law: EntropyLaw | None
    num_first: int
    num_points: int
    score_error: float | None
    ceiling_error: float | None


def forecast(
    steps: ArrayLike, entropy: ArrayLike, score: ArrayLike, fraction: float = FIRST_FRACTION
) -> Forecast:
    """Fits the first points and predicts the last one.

    Args:
      steps: [N], ascending.
      entropy: H, [N] nats.
      score: score at each step, such as pass@1, [N] (R).
      fraction: points up to this fraction of the last step are fitted.
    """
    steps, entropy, score = columns("forecast", "N", steps=steps, entropy=entropy, score=score)
    if not 0 < fraction < 1:
        raise ValueError(f"forecast: fraction must be in (0, 1), got {fraction}")
    first = steps <= fraction * steps[-1] if len(steps) else np.zeros(0, bool)
    number, points = int(first.sum()), len(steps)
    try:
        law = fit_entropy_law(entropy[first], score[first])
    except ValueError:
        return Forecast(None, number, points, None, None)
    error = float(law.predict(entropy[-1]) - score[-1])
    return Forecast(law, number, points, error, float(law.ceiling - score[-1]))


def forecast_run(run: Run, fraction: float = FIRST_FRACTION) -> Forecast:
    """The forecast of a run, from the evaluations that have entropy and score."""
    return forecast(*run.common(ENTROPY, SCORE), fraction)


def controls_entropy(run: Run) -> bool:
    """Whether the objective or the sampler of a run acts on entropy, as far as it is known.

    False if all terms of the loss are plain ones, clips are equally wide above and below, and the
    temperature is 1.
    """
    terms = [str(term) for term in run.setting("loss_terms", ())]
    return not terms or run.setting("temperature", 1.0) != 1.0 or not all(map(_is_plain, terms))


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints both errors of every run, in separate tables with and without entropy control."""
    parser = argparse.ArgumentParser(description="Forecasts runs' ends by the entropy law.")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory")
    paths = parser.parse_args(arguments).runs
    try:
        with as_typed("RUN", "load_run: path"):
            runs = [load_run(path) for path in paths]
    except ValueError as error:
        sys.exit(f"error: {error}")
    found = {str(run.path): (controls_entropy(run), forecast_run(run)) for run in runs}
    for kind, controlled in (
        ("without entropy control", False),
        ("with entropy control, or not known to be without", True),
    ):
        _print(kind, {path: own for path, (acts, own) in found.items() if acts == controlled})
    undefined = sum(own.law is None for _, own in found.values())
    print(f"{undefined} of {len(found)} fits are undefined")


def _print(kind: str, runs: Mapping[str, Forecast]) -> None:
    """A line for each run, and the mean absolute errors."""
    if not runs:
        return
    print(f"{kind}, {len(runs)} runs\n  points     a      b  score error  ceiling error  run")
    fitted = [each for each in runs.values() if each.law is not None]
    for path, each in runs.items():
        points = f"{each.num_first} of {each.num_points}"
        errors = "no fit".rjust(42)
        if each.law is not None:
            errors = f"{each.law.a:6.3f} {each.law.b:6.3f} {each.score_error:+12.3f}"
            errors += f" {each.ceiling_error:+14.3f}"
        print(f"{points:>8} {errors}  {path}")
    if fitted:
        score = np.mean([abs(each.score_error) for each in fitted])
        ceiling = np.mean([abs(each.ceiling_error) for each in fitted])
        sizes = f"{score:12.3f} {ceiling:14.3f}"
        print(f"{'':8} {'':6} {'':6} {sizes}  mean size over {len(fitted)} runs")


def _is_plain(term: str) -> bool:
    if term.partition("(")[0] not in _PLAIN:
        return term.startswith("critic: ")
    sides = dict(re.findall(r"\b(low|high)=([^,)]+)", term))
    return sides.get("low") == sides.get("high")


if __name__ == "__main__":
    main()
