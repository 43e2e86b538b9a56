"""The diagnosis of a run directory, finished or growing.

Missing data are listed, with the settings or files that would provide them. Nothing is sampled or
scored, and no device is used.
"""

from collections.abc import Mapping
from pathlib import Path

from rlvr_jax.analysis.diagnosis.formats import FORMATS, formats_of_run
from rlvr_jax.analysis.diagnosis.parameters import parameters
from rlvr_jax.analysis.diagnosis.practice import practice
from rlvr_jax.analysis.diagnosis.reach import reach
from rlvr_jax.analysis.diagnosis.topics import Topic
from rlvr_jax.analysis.diagnosis.uncertainty import uncertainty
from rlvr_jax.analysis.diagnosis.writing import writing
from rlvr_jax.analysis.run_directory import Run, load_run


def diagnose_run(
    run: str | Path,
    against: str | Path | None = None,
    weights: bool = True,
    rules: Mapping[str, str] = FORMATS,
) -> list[Topic]:
    """The diagnosis of a run, topic by topic.

    Args:
      run: run directory.
      against: another run directory, or a policy folder; None: the initial policy of the run.
      weights: whether weights are compared, if both folders exist. A model of 135 million
        parameters takes minutes.
      rules: formats of responses, regular expressions by name.
    Raises:
      ValueError: a directory is not a run, or `against` is neither a run nor a policy folder.
    """
    own = load_run(run)
    other = _other_run(against)
    topics = [_reach(own, other), uncertainty(own), practice(own), writing(own, other is None)]
    topics.append(formats_of_run(own, rules))
    if weights:
        topics.append(_weights(own, other, against))
    return topics


def _other_run(against: str | Path | None) -> Run | None:
    """The run of `--against`; None if it is a policy folder or not given."""
    if against is None:
        return None
    path = Path(against)
    if (path / "metrics.jsonl").is_file():
        return load_run(path)
    if not list(path.glob("*.safetensors")):
        raise ValueError(
            f"diagnose_run: against must be a run directory or a policy folder, got {against}"
        )
    return None


def _reach(run: Run, other: Run | None) -> Topic:
    """Compares the last evaluation with the first one, or with the last one of the other run."""
    if other is None:
        first, names = run.held_out[:1], ("the initial policy", "the last policy")
        enough = len(run.held_out) > 1
    else:
        first, names = other.held_out[-1:], ("the other run", "this run")
        enough = bool(first) and bool(run.held_out)
    if not enough:
        missing = (
            "Held-out verdicts need two evaluations that were counted problem by problem"
            " (held_out.jsonl)."
        )
        return Topic("Solved problems", missing=[missing])
    try:
        return reach(first[0], run.held_out[-1], names)
    except ValueError as error:
        return Topic("Solved problems", missing=[f"Held-out verdicts: {error}."])


def _weights(run: Run, other: Run | None, against: str | Path | None) -> Topic:
    """Compares the run's policy with its initial policy, the other run's policy, or the folder."""
    start = str(run.setting("model")) if against is None else against
    before, after = Path(start if other is None else other.path / "policy"), run.path / "policy"
    absent = [folder for folder in (before, after) if not list(folder.glob("*.safetensors"))]
    if absent:
        places = " and ".join(str(folder) for folder in absent)
        return Topic("Weights", missing=[f"Weights need safetensors in {places}."])
    return parameters(before, after)
