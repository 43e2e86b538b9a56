"""Tasks of the package reasoning-gym, with reliable scorers."""
