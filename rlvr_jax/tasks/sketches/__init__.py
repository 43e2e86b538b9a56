"""Small tasks in the answer formats of papers about search, pictures, files and games.

They share one vocabulary and one base model.
"""
