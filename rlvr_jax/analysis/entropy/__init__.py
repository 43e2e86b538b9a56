"""Token entropy: its exchange for reward, its distribution over tokens, and traces of tokens.

- `entropy_law`: R = -a e^H + b and the covariance as its cause.
- `law_prediction`: the end of a run, predicted from its first fifth.
- `entropy_patterns`: forking tokens, overlap with the base, change by percentile, branching.
- `stages`: rise and plateau of the reward, with the change of entropy of correct and incorrect
  responses. `token_classes`: formal, logical, metacognitive and other tokens.
- `token_trace_report`: the change of every token, as columns and as JSON lines.
"""
