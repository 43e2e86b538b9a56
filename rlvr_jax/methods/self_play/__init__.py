"""Self-play: the policy writes problems, statements or questions."""
