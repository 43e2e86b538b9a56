"""Clipping: surrogate losses and trust regions."""
