"""Tasks of the package reasoning-gym, with scorers that can be trusted."""
