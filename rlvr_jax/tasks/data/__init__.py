"""Data: tasks from a user's questions, in files or in Python; every omission is reported.

`paths` finds the files of a path, and which of them are test files.
`tables` reads the rows of a file: JSON, CSV, Parquet, Arrow.
`columns` finds the columns of question and answer. `cells` reads the values of a column.
`questions` compares, counts and splits rows.
`files` makes the tasks: `jsonl:` and the other kinds of files, and `from_rows`.
"""
