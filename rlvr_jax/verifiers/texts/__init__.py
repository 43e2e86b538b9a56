"""Rules about texts: formats, verdicts, steps, routes, lists of words.

`format_rewards`: published readings of a format of thinking and answer tags.
`critique_rl`: compares a verdict on a solution with the result of the tests. `heimdall`: a verdict
  in the last line.
`tp_judge`: checks the relations of a reasoning step exactly; a formaliser's loop of repairs.
`rewardmap`: routes on a map of lines, with partial credit.
`longrlvr`: cited chunks of a context. `br_rm`: a comparison in two turns.
`carr_cgrpo`: statements of a rubric that evidence links to the answer. `automated_tool_envs`: calls
  of a turn that solve open questions, and turns without calls.
`rlmt`: the part of a response that a reward model sees. `meta_policy`: points of a rubric's items.
`affectgpt_r1`: lists of words as sets, with synonyms and a penalty per word.
`instruction_following`: named checks of instructions. They are in `instruction_checks` and
  `ifbench_checks`, which count by `words`.
`table2latex_dual_reward`: compares the structure of LaTeX tables (`latex_table`,
  `tree_distance`).
"""
