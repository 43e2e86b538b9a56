"""Synthesis of data: functions that clean, filter and generate prompts.

    deepmath      contamination by a benchmark, difficulty, agreement of independent answers
    synthrl       rewrites that are harder and have the same answer
    rstar_coder   labels of inputs by programs that agree
    concepts      concepts that fit together in a new problem, and budgets of kinds (sws)
    majority      labels by the majority of answers, and a filter by accuracy (sws)
    coverage      responses of most new n-grams (dr_sci)
    worked        worked solutions of ten data sets of reasoning-gym

The first three are commands over files: `python -m rlvr_jax.tasks.synthesis.deepmath` and so on
document their inputs and outputs.
"""
