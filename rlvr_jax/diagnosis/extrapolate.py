"""Predicts the weights of a later policy from early ones, and writes them as a policy folder.

    python -m rlvr_jax.diagnosis.extrapolate --start START RUN RUN … --target 0.6 --out FOLDER
    python -m rlvr_jax.diagnosis.extrapolate --start START POLICY --rank 1 --out FOLDER

The first form takes two or more policies in the order of training: runs, policy folders or .gguf
files. A line through the scores extrapolates the rank-1 part of each update W_t - W₀ to the target
score. The score of a run is its last held-out pass@1; --scores names those of folders. The second
form writes W₀ plus the rank-k part of the update of one policy, with the norm of the whole update.

Only matrices of attention and MLP change; embeddings and norms are those of START. The weights are
float32. `analysis.weights.alpha_rl` has the equations. `python -m rlvr_jax evaluate` measures the
folder.
"""

import argparse
import contextlib
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import jax
import numpy as np

from rlvr_jax.analysis.run_directory import load_run
from rlvr_jax.analysis.weights.alpha_rl import predict_update, rank_one_series
from rlvr_jax.analysis.weights.checkpoints import TensorPair, tensor_pairs
from rlvr_jax.analysis.weights.geometry import decompose, replacement
from rlvr_jax.diagnosis.policy_pair import policy_folder
from rlvr_jax.policy.tensors import write_tensors

_SCORE = "held_out/pass@1"
_SHARD_BYTES = 5_000_000_000


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = _parser().parse_args(arguments)
    try:
        _check(options)
        scores = _scores(options)
        with contextlib.ExitStack() as opened:
            start, *policies = (
                opened.enter_context(policy_folder(_policy(path)))
                for path in (options.start, *options.policies)
            )
            found = _write(options, start, policies, scores)
    except ValueError as error:
        sys.exit(f"error: {error}")
    if scores:
        told = ", ".join(f"{score:.3f}" for score in scores)
        print(f"scores {told} → target {options.target:.3f}")
    means = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
    print(f"means over {len(found)} matrices")
    for name, value in means.items():
        print(f"  {name:<52} {value:.3f}")
    print(options.out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_jax.diagnosis.extrapolate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("policies", nargs="+", metavar="POLICY", help="runs or policies, in the order of training")
    add("--start", required=True, help="the initial policy of all of them")
    add("--out", type=Path, required=True, help="the policy folder to write")
    add("--target", type=float, help="score of the predicted policy")
    add(
        "--scores",
        type=float,
        nargs="*",
        default=(),
        help="scores of the policies, one each (default: those of the runs)",
    )
    add(
        "--largest",
        type=float,
        default=3.0,
        help="bound of the predicted update, relative to the last one",
    )
    add("--rank", type=int, help="rank of the written update, instead of a prediction")
    return parser


def _check(options: argparse.Namespace) -> None:
    if (options.target is None) == (options.rank is None):
        raise ValueError("extrapolate: either --target or --rank must be given, got both or none")
    if options.rank is not None and (options.rank < 1 or len(options.policies) != 1):
        raise ValueError(
            "extrapolate: --rank must be at least 1, with one POLICY, got"
            f" {options.rank} with {len(options.policies)}"
        )
    if options.rank is None and len(options.policies) < 2:
        raise ValueError(
            f"extrapolate: POLICY must be given twice or more with --target, got {options.policies}"
        )
    if options.out.exists() and any(options.out.iterdir()):
        raise ValueError(f"extrapolate: --out must be a new folder, got {options.out}")


def _scores(options: argparse.Namespace) -> list[float]:
    """A score per policy; none without a target."""
    if options.rank is not None:
        return []
    if options.scores:
        if len(options.scores) != len(options.policies):
            raise ValueError(
                f"extrapolate: --scores must be {len(options.policies)}, one per POLICY, got"
                f" {len(options.scores)}"
            )
        return list(options.scores)
    found = []
    for path in options.policies:
        if not (Path(path) / "metrics.jsonl").is_file():
            raise ValueError(f"extrapolate: --scores must be given, as {path} is not a run")
        scores = load_run(path).series(_SCORE)[1]
        if not len(scores):
            raise ValueError(f"extrapolate: --scores must be given, as {path} has no {_SCORE}")
        found.append(float(scores[-1]))
    return found


def _policy(path: str) -> Path:
    """The policy of a run, or the folder or file itself."""
    place = Path(path)
    return place / "policy" if (place / "metrics.jsonl").is_file() else place


def _write(
    options: argparse.Namespace, start: Path, policies: Sequence[Path], scores: Sequence[float]
) -> list[dict[str, float]]:
    """Writes the folder; returns numbers of each matrix."""
    found: list[dict[str, float]] = []

    def tensors() -> Iterator[tuple[str, np.ndarray]]:
        each = (tensor_pairs(start, path) for path in policies)
        for pairs in zip(*each, strict=True):
            values = pairs[0].before
            if pairs[0].is_matrix and all(np.any(pair.after != values) for pair in pairs):
                update, numbers = _update(options, pairs, scores)
                values = values + update
                found.append(numbers)
            yield pairs[0].name, values.astype(np.float32)

    shapes = {
        pair.name: jax.ShapeDtypeStruct(pair.before.shape, np.float32)
        for pair in tensor_pairs(start, policies[0])
    }
    options.out.mkdir(parents=True, exist_ok=True)
    write_tensors(options.out, shapes, tensors(), _SHARD_BYTES)
    for file in start.glob("*.json"):
        if not file.name.endswith(".index.json"):
            shutil.copy(file, options.out)
    config = options.out / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"torch_dtype": "float32"}))
    if not found:
        raise ValueError(
            f"extrapolate: every POLICY must differ from {options.start} in a matrix, got none"
        )
    return found


def _update(
    options: argparse.Namespace, pairs: Sequence[TensorPair], scores: Sequence[float]
) -> tuple[np.ndarray, dict[str, float]]:
    updates = [pair.after - pair.before for pair in pairs]
    last = updates[-1]
    if options.rank is not None:
        made = replacement(decompose(last), options.rank)
        numbers = {}
    else:
        series = rank_one_series(updates)
        prediction = predict_update(series, scores, options.target, options.largest)
        made = prediction.update
        numbers = {
            "fraction of the last update's energy in rank 1": series.energy[-1],
            "R² of the line of the scores": prediction.r_squared,
            "fraction of matrices whose step was capped": float(prediction.capped),
        }
    size = np.linalg.norm(made)
    return made, numbers | {
        "norm of the written update over the last one's": size / np.linalg.norm(last),
        "cosine of the written and the last update": float(
            np.sum(made * last) / max(size * np.linalg.norm(last), 1e-30)
        ),
    }


if __name__ == "__main__":
    main()
