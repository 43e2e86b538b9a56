"""Tasks of puzzles, generated from a seed; their rules are in `rlvr_jax.verifiers.puzzles`."""
