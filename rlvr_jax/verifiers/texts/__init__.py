"""Rules about texts: formats, verdicts, steps, routes, lists of words.

`format_rewards`: published readings of a format of thinking and answer tags.
`critique_rl`: a verdict on a solution against the result of the tests.
`tp_judge`: the relations of a reasoning step, checked exactly; a formaliser's loop of repairs.
`rewardmap`: routes on a map of lines, with partial credit.
`longrlvr`: chunks of a context that are cited; `br_rm`: a comparison in two turns.
`rlmt`: the part of a response that a reward model sees.
`meta_policy`: points of a rubric's items.
`affectgpt_r1`: lists of words as sets, with synonyms and a price per word.
`instruction_following`: named checks of instructions (`instruction_checks`, `ifbench_checks`, which
  count by `words`).
`table2latex_dual_reward`: the structure of a LaTeX table (`latex_table`, `tree_distance`).
"""
