"""Stages that choose what is learned from."""
