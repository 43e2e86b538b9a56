"""Stages that change what a row is worth."""
