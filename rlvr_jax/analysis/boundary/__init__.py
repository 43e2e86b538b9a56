"""Problems that a policy can solve: pass@k, base and trained policy, support, unsolved ones.

Everything is about problems with a number of correct samples each. Two policies are compared by
problem, together with the noise floor of a second draw of the same policy.

  `pass_at_k`: the estimators. `paired_problems`: exact tests and intervals on two policies.
  `base_vs_rl`: curves, their crossing, solvable sets. `support_shrinkage`: problems preserved,
    found and lost, with the noise floor. `math_beyond`: problems that the base cannot solve.
  `model_task_alignment`: recipes' gains by how well the base did.
"""
