"""Stages that sample more: again, further, from a position inside."""
