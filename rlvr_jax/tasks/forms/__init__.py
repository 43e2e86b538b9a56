"""Small tasks whose responses have a required form, with one vocabulary and one base model."""
