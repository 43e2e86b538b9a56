"""Stages that draw more: again, further, from a place inside."""
