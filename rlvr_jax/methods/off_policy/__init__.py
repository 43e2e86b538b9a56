"""Off-policy data: rollouts of older weights or of another sampler."""
