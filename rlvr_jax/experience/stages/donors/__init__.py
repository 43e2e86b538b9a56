"""Stages that bring in rows which the policy did not draw."""
