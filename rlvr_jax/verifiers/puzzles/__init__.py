"""Puzzles: generators of instances, and checks of answers by the rules.

`countdown`, `knights` and `combinatorial` have separate forms of an answer.
`enigmata` checks all puzzles whose answer is a block. Each has a file with `LEVELS`, `generate` and
  `check`: `sudoku`, `binario`, `kakurasu`, `skyscraper`, `magic_square`, `light_up`, `star_battle`.
  Also `hitori`, `slant`, `minesweeper`, `campsite`, `hamiltonian`, `maze`, `sliding`,
  `stack_permutation`, `tic_tac_toe`, `zebra`.
`board` has questions, cells and neighbours; `notation` reads answers.
"""
