"""Stages that add rows which the policy did not sample."""
