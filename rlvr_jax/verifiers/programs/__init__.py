"""Answers that are programs, and what runs them.

`code`: Python programs against tests; `trial` runs the tests, `outputs` compares what came out.
Inside the sandbox, `session` starts the processes: `judge` has the tests, `candidate` the program,
and what goes from one to the other is written by `crossing`.
"""
