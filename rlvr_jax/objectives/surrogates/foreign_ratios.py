"""Losses of tokens that were not drawn from the policy under its prompt.

A teacher's probabilities are not known, and those under another prompt are far from the policy's:
a plain importance ratio is then no use. Losses for the foreign side of `by_origin`.
"""

__all__ = []


def unclipped_loss(signals, context):
    del context
    return -signals.advantage * signals.ratio
