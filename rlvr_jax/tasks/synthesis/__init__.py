"""Making data: functions of texts and arrays that clean, filter and synthesise prompts.

    decontamination   what is like a benchmark's question (deepmath)
    agreement         answers that independent solutions give alike, difficulty (deepmath)
    evolution         rewrites that are harder and keep their answer (synthrl)
    mutual            labels of inputs by programs that agree (rstar_coder)
    inputs            inputs of programs, from a generator and a validator (rstar_coder)
    concepts          what goes together in a new problem, and how many of each kind (sws)
    coverage          responses of most new n-grams (dr_sci)
    worked            worked solutions of ten data sets of reasoning-gym

Each of deepmath, synthrl and rstar_coder is a command over files: `python -m
rlvr_jax.tasks.synthesis.deepmath` and so on say what they read and write.
"""
