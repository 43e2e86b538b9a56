from case_adapters.math_verifier import verdict as verdict
