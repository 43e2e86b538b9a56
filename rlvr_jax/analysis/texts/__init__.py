"""Analyses of responses: diversity, formats, calibration, and consistency of their grades.

`diversity_metrics`: n-grams, self-BLEU, Vendi score, answers. `echo_chamber`: format fractions.
`calibration`: confidence against outcome. `reward_consistency`: a reward on pairs of similar
  prompts.
"""
