"""The topics of a diagnosis: what can be said of a run from what it wrote, in sentences first.

`topics`: the form of a topic. `reach`: held-out problems. `uncertainty`: entropy and its exchange
  for reward. `practice`: training prompts and their outcomes. `writing`: the responses that were
  kept. `parameters`: the weights. `python -m rlvr_jax.analysis.diagnose` puts them on a page.
"""
