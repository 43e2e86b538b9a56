"""Checks that end a run before it wastes time, or that a resumed run must pass.

`computed_with`: the policies that a run began with. `forecast`: memory. `learnable`: grades.
"""
