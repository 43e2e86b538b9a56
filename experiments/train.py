"""One training run of any method, task and model.

python -m experiments.train --method dapo --task brackets --steps 300 --run-dir runs/dapo
"""

from collections.abc import Sequence

from rlvr_jax.training import guarded, parse_config, train


def main(arguments: Sequence[str]) -> None:
    """Reads the command line and trains."""
    config = parse_config(arguments)
    summary = train(config)
    print(
        f"held-out pass@1 {summary['held_out_pass_at_1_start']:.3f} →"
        f" {summary['held_out_pass_at_1_end']:.3f}, entropy {summary['entropy_start']:.3f} →"
        f" {summary['entropy_end']:.3f} nats\nreport: {config.run_dir / 'report.html'}"
    )


if __name__ == "__main__":
    guarded(main)
