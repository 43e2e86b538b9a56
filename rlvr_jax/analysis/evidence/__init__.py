"""Results of a board of methods and seeds, stored as one line per run.

`rows` makes the lines and reads them, `ranking` computes which entries differ, `board_page` writes
the page.
"""
