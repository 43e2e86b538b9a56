"""Tasks whose answers are texts that follow instructions."""
