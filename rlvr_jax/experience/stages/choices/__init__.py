"""Stages that choose groups and rows for training."""
