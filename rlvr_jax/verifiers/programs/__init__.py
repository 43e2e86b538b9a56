"""Answers that are programs or formal texts: engines with limits, and our own readers.

`python` runs Python programs against tests.
`sql_verifier` compares the rows of a query with those of the gold query. It uses `sqlite_engine`,
  `duckdb_engine` and `result_tables`.
`sirl_solver` solves a linear program, which `linear_program` and `lp_text` read.
`lean_verifier` checks a proof by Lean; `lean_guard` checks its text before, and the output after.
`verilog_verifier` compares a module with the gold module. It uses `verilog_text`, `verilog_yosys`
  and `verilog_simulation`.
`symbolic_regression` fits an equation; `geometry_formal` executes a construction in the `plane`.
  `expressions` reads both.
`swe_rl` compares edits of files as texts. `tools` runs engines in the sandbox.
"""
