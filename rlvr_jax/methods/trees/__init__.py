"""Trees: responses with common beginnings, and searches."""
