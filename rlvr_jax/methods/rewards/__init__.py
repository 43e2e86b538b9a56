"""Rewards: what a response earns beside or instead of a verdict."""
