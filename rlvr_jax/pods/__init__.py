"""Runs that are compiled ahead of time for a pod that is not present.

`compile_run` compiles the functions of a run from shapes (`abstract_run`) and reports memory and
cost. `compile` is the command, `compile_table` its table of models on slices. `papers` runs the
settings of published papers, compiles them for a slice, or tries them on a laptop.
"""

from rlvr_jax.pods.compiled import compile_run
from rlvr_jax.pods.papers import Paper, Setting, run_paper

__all__ = ["Paper", "Setting", "compile_run", "run_paper"]
