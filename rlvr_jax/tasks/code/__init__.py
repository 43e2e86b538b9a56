"""Tasks whose answers are programs, queries, circuits, models or proofs, each with its engine."""
