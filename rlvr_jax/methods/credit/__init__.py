"""Credit: which tokens and steps of a response earn its reward."""
