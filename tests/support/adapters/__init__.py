"""One file per set of reference vectors: how the library says what the vectors hold.

A file `<slug>.py` has

    outputs(case, hyper) -> {name: array}    by the names of the vectors, through public functions
    LEFT_OUT = {name: why}                   arrays of the file that are no claim about the method,
                                             where there are any

`case` is what `golden_vectors` calls one, `hyper` the hyperparameters of `<slug>.json`. Names that
the file does not hold are ignored. An array may be a function without arguments, which is called
where the file holds the name. `common.recipe_with` gives a method the hyperparameters of the
vectors by their names, and `Evaluation.outputs` names what most vectors have.
"""
