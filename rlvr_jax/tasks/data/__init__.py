"""Data: questions as users have them, in files or in Python, with nothing lost unsaid.

`paths`: which files a path means, and which of them are to evaluate.
`tables`: the rows of a file: JSON, CSV, Parquet, Arrow.
`columns`: which column is the question and which the answer; `cells`: the values of a column.
`questions`: rows compared, counted and split.
`files`: the tasks of it, `jsonl:` and its like, and `from_rows`.
"""
