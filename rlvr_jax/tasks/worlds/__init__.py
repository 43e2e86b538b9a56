"""Worlds of small programs, in which a policy makes up its own questions.

A question is a program with inputs and outputs, of which one thing is missing: the output
("deduction"), an input ("abduction"), the program ("induction"). `triplets` defines a world
and grades answers in it; `expressions` is one of integer expressions, `python_functions` one of
Python in the sandbox.
"""
