"""Distillation: a teacher, or the policy with more in sight."""
