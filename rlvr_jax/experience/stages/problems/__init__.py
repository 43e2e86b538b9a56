"""Problems, statements and hints that the policy writes for its next requests.

The task reads a written text (`Task.read_problem`); without that function, the last ```text fence
is the problem. It is sampled at once. The writer's reward depends on the responses to it, by the
rule of each paper.
"""
