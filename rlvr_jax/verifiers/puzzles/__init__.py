"""Puzzles: instances from a generator, answers by their rules.

`countdown`, `knights`, `combinatorial`: their own forms of an answer.
`enigmata`: the check of all puzzles whose answer is a block, and the table of them: `sudoku`,
  `binario`, `kakurasu`, `skyscraper`, `magic_square`, `light_up`, `star_battle`, `hitori`,
  `slant`, `minesweeper`, `campsite`, `hamiltonian`, `maze`, `sliding`, `stack_permutation`,
  `tic_tac_toe`, `zebra`, a file each with `LEVELS`, `generate` and `check`.
`board`: questions, cells and neighbours; `notation`: readers of answers.
"""
