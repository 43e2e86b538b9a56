"""Further graders: a judge, a second verifier, the policy itself."""
