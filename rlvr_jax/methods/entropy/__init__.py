"""Entropy: methods that raise, hold or use token entropy."""
