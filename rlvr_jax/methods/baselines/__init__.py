"""Baselines: policy gradients on graded responses, and how rewards are normalized."""
