"""Agents: tools, turns and environments."""
