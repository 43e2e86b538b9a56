"""The boards of the leaderboard: what they compare, and their pages."""
