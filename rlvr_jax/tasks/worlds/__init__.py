"""Worlds of small programs, about which a policy writes questions.

A question is a program with inputs and outputs, of which one part is missing: the output
("deduction"), an input ("abduction"), or the program ("induction"). `triplets` defines a world and
grades answers in it. `expressions` is a world of integer expressions, `python_functions` one of
Python functions in the sandbox.
"""
