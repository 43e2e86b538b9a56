"""Evidence: results of a board of methods and seeds, stored as one line a run.

`rows` makes the lines and reads them, `ranking` says what may be told apart, `board_page` writes
the page.
"""
