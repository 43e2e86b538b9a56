"""Token entropy: its exchange for reward, where it sits, and every token of a rollout by itself.

`entropy_law`: R = -a e^H + b and the covariance behind it; `law_prediction`: what the first fifth
  of a run says about its end.
`entropy_patterns`: forking tokens, overlap with the base, change by percentile, branching.
`stages`: where a run's reward stops to rise, and whether the entropy of correct or of incorrect
  rollouts changed. `token_classes`: numbers and operators, conclusions, second thoughts, the rest.
`token_trace_report`: what happened to every token, as columns and as JSON lines.
"""
