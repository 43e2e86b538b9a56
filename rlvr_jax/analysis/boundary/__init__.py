"""Problems that a policy can solve: pass@k, base and trained policy, support, unsolved ones.

The input is the number of correct samples of each problem. Two policies are compared by problem,
together with the noise floor of a second sampling of one policy.

- `pass_at_k`: the estimators. `paired_problems`: exact tests and intervals on two policies.
- `base_vs_rl`: curves, their crossing, solvable sets. `math_beyond`: unsolved problems of the base.
- `support_shrinkage`: problems preserved, found and lost, with the noise floor.
- `model_task_alignment`: gains of recipes by the pass@k of the base.
"""
