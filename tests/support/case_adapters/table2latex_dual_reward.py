from rlvr_jax.verifiers.texts import table2latex_dual_reward


def verdict(output, reference):
    finding = table2latex_dual_reward.check(output, reference)
    if finding.outcome is None:
        return None
    return {
        "teds": finding.info["teds"],
        "structure": int(finding.outcome),
        "visual_skipped": int(finding.info["visual_skipped"]),
    }
