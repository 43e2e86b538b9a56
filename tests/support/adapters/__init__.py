"""One file per set of reference vectors: how the library says what the vectors hold.

A file `<slug>.py` has

    outputs(case, hyper) -> {name: array}    by the names of the vectors, through public functions
    LEFT_OUT = {name: why}                   arrays of the file that are no claim about the method

`case` is what `golden_vectors` calls one, `hyper` the hyperparameters of `<slug>.json`. Names that
the file does not hold are ignored.
"""
