"""Trees: responses that share beginnings, and searches."""
