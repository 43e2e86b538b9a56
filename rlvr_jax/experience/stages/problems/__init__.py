"""Problems, statements and help that the policy writes for its next requests.

The task reads a written text (`Task.read_problem`), or its last ```text fence is the problem. It is
sampled at once. The writer's reward depends on the responses, in the way of each paper.
"""
