"""Answers that are programs: engines with limits, and readers of our own.

`python`: Python programs against tests.
`sql_verifier`: rows of a query against those of the gold query (`sqlite_engine`, `duckdb_engine`,
  `result_tables`).
`sirl_solver`: a linear program, solved (`linear_program` and `lp_text` read it).
`lean_verifier`: a proof, checked by Lean (`lean_guard` before and after; `prelude.lean`).
`verilog_verifier`: a module against the gold module (`verilog_text`, `verilog_yosys`,
  `verilog_simulation`).
`symbolic_regression`: an equation, fitted; `geometry_formal`: a construction, with `plane`. Both
  are read by `expressions`.
`swe_rl`: edits of files, compared as texts.
`tools`: engines in the sandbox.
"""
