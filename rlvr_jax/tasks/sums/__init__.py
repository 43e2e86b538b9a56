"""Tasks of sums and other calculations with small numbers."""
