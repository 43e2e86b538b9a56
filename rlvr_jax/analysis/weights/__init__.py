"""What training did to the weights, matrix by matrix, in float64 and in the dtype they lie in.

`geometry`: spectra, angles, masks of one matrix before and after. `off_principal`: whether an
  update avoids principal weights. `spectral`: sparsity, rank, linearity over checkpoints.
`alpha_rl`: predicts a later checkpoint from early ones. `checkpoints`: two policy folders.
"""
