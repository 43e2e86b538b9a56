"""Judges: rewards from models, rubrics and pairwise comparisons."""
