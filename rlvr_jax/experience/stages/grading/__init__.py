"""Stages that add numbers to grades: by a judge, a second verifier, the policy itself."""
