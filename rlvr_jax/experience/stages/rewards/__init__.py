"""Stages that change the reward of a row."""
