"""Changes of the weights by training, matrix by matrix, in float64 and in the stored dtype.

`geometry`: spectra, angles and masks of a matrix before and after. `off_principal`: whether an
  update avoids principal weights. `spectral`: sparsity, rank, linearity over checkpoints.
  `alpha_rl`: predicts a later checkpoint from early ones. `checkpoints`: two policy folders.
"""
