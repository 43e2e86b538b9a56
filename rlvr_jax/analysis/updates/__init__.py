"""Effects of one update or one reward on probabilities.

`mass_balance`: of correct tokens in one step. `interference`: of the correct answers of other
  problems. `policy_cliff`: of an optimal policy when rewards change a little. `did`: the
  responses that an update reinforces.
"""
