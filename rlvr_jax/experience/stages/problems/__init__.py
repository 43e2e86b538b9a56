"""Stages in which the policy writes what it is asked next: problems, statements, what may help.

What is written is read by the task (`Task.read_problem`), or from its last ```text fence, and asked
at once; who wrote it earns by how it is solved, in the paper's own way.
"""
