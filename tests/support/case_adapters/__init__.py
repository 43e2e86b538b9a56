"""What the verifiers say of a case, in the words of its file; a module per slug."""
