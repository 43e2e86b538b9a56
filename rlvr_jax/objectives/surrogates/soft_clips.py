"""Trust regions other than the hard clip of a token: gates, geometric means, kept gradients."""

__all__ = []


def never_holds_back(plan):
    if plan.updates_per_batch == 1:
        return "holds nothing back: with one update per batch the ratio is exactly 1."
    return None
