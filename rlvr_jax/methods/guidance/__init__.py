"""Guidance: hints, worked solutions and imitation."""
