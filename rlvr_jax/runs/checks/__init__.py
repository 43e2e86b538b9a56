"""Checks that end a run before it wastes time, or that a resumed run must pass.

- `computed_with`: a resumed run has the initial policies of its beginning.
- `forecast`: memory that the run will need.
"""
