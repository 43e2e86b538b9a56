"""Python programs against tests: `code` grades, `trial` runs the tests, `outputs` compares results.

Inside the sandbox, `session` starts the processes. `judge` has the tests, `candidate` has the
program, and `crossing` writes the values that go from one to the other. `functions` runs functions
on given inputs.
"""
