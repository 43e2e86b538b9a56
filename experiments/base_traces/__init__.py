"""Traces on which the base models that ship are trained; see `experiments.pretrain_base`."""
