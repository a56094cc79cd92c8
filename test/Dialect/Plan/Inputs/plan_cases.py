# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of plans.json, which numpy computed, as attributes of test passes."""
import json

SHARDINGS = {"contiguous": "contiguous", "dual_padded": "dual_chunk<padded>", "dual_even": "dual_chunk",
             "striped": "striped", "docs": "documents", "solver": 'runs<"mine">'}


def load(path):
    with open(path) as f:
        return json.load(f)


def mask_of(text):
    """Of `left,right` with * for no bound, and ` br` for the bottom-right diagonal."""
    bounds, _, diagonal = text.partition(" ")
    named = [f"{name} = {x}" for name, x in zip(("left", "right"), bounds.split(",")) if x != "*"]
    return f"#attn.band<{', '.join(named + ['bottom_right'] * bool(diagonal))}>" if named else "#attn.full"


def sharding_of(case):
    return "#plan." + SHARDINGS[case["shard"]]


def slots_of(case, lengths):
    """As the cases were made: whole chunks for TransformerEngine's order, and padding in one other case."""
    if case["name"].startswith("P14"):
        return [8, 8]
    if case["shard"] != "dual_padded":
        return lengths
    chunks = 2 * case["cp"]
    return [-(-x // chunks) * chunks for x in lengths]


def given_of(case):
    """The shards of a solver that attnc does not have."""
    return [[sum(run[3] for run in runs)] + runs for runs in case["runs_q"]] if case["shard"] == "solver" else None


def dictionary(fields):
    return "{%s}" % ", ".join(f"{name} = {x}" for name, x in fields.items() if x is not None)
