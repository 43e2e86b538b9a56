"""One training run of any method, task and model.

    python -m rlvr_jax train --method dapo --task brackets --steps 300 --run-dir runs/dapo

`--help` lists the settings by group, with the values of the preset of task and method.
"""

from collections.abc import Sequence

from rlvr_jax.runs import describe_end, guarded, parse_config, train


def main(arguments: Sequence[str]) -> None:
    """Reads the command line and trains."""
    config = parse_config(arguments)
    print(describe_end(config, train(config)))


if __name__ == "__main__":
    guarded(main)
