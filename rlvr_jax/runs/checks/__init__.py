"""Checks that end a run before it wastes time, or that a resumed run must pass.

`computed_with`: the initial policies of a run. `forecast`: memory.
"""
