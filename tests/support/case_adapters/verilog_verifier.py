from rlvr_jax.verifiers.programs import verilog_verifier


def verdict(response, gold, engines=verilog_verifier.ENGINES):
    code = verilog_verifier.extract(response)
    if code is None:
        return {"tools": 0, "none": 0}
    tools = verilog_verifier.check(code, gold, engines=engines)
    none = verilog_verifier.check(code, gold, engines=())
    return {"tools": tools.outcome, "none": none.outcome}


def agree(got, wanted):
    """Without an engine only what is said without one can be compared."""
    tools = verilog_verifier.installed()
    return got["none"] == wanted["none"] and (not tools or got["tools"] == wanted["tools"])
