"""The boards of the leaderboard, and their pages."""
