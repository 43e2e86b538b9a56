"""What ends a run before it wastes time, or what it may not go on with.

`computed_with`: the policies that a run began with. `forecast`: memory. `learnable`: grades.
"""
