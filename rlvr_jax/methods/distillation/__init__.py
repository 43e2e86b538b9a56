"""Distillation: from a teacher, or from the policy with more in its prompt."""
