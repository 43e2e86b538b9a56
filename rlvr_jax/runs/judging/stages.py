"""The stage of a run that calls its judge."""

from pathlib import Path
from typing import Any

from rlvr_jax.experience import Stage, compare_with, give_again, judge
from rlvr_jax.experience.stages.rewards.tournament import Compare
from rlvr_jax.judges import Judge
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.judging.checks import check_again
from rlvr_jax.runs.judging.named import AGAIN, STRENGTH_OF_PAIRS, TWO, judge_of


def judging(config: TrainConfig) -> tuple[list[Stage], Compare | None]:
    """Returns the stage that calls the judge, or for a judge that compares two responses its
    function. Without a judge both are empty.

    Raises:
      ValueError: as `judge_of`.
    """
    if config.judging.judge_prompt == AGAIN:
        check_again(config)
        return [give_again()], None
    found = judge_of(config, config.run_dir / "judge.jsonl")
    if found is None:
        return [], None
    asked, sampling = found
    if asked.names == TWO:
        both = config.judging.judge_prompt != STRENGTH_OF_PAIRS
        return [], compare_with(asked, both_orders=both, sampling=sampling)
    return [judge(asked, sampling)], None


def scoring_judge(config: TrainConfig, replies: Path | None) -> tuple[Judge, dict[str, Any]]:
    """Returns the judge of the settings for single responses; see `judge_of`.

    Raises:
      ValueError: no judge, one that compares two responses, or the prompt `AGAIN`.
    """
    found = None if config.judging.judge_prompt == AGAIN else judge_of(config, replies)
    if found is None or found[0].names == TWO:
        raise ValueError(
            "--judge-prompt must be a request in words about one response, got"
            f" {config.judging.judge_prompt!r} for --judge {config.judging.judge!r}"
        )
    return found
