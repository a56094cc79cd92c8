# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds shards against those of plans.json, which numpy computed: check-shards.py attn-opt plans.json"""
import json
import re
import subprocess
import sys

SHARDINGS = {"contiguous": "contiguous", "dual_padded": "dual_chunk<padded>", "dual_even": "dual_chunk",
             "striped": "striped", "docs": "documents", "solver": 'runs<"mine">'}


def mask_of(text):
    """Of `left,right` with * for no bound, and ` br` for the bottom-right diagonal."""
    bounds, _, diagonal = text.partition(" ")
    named = [f"{name} = {x}" for name, x in zip(("left", "right"), bounds.split(",")) if x != "*"]
    return f"#attn.band<{', '.join(named + ['bottom_right'] * bool(diagonal))}>" if named else "#attn.full"


def slots_of(case):
    """As the cases were made: whole chunks for TransformerEngine's order, and padding in one other case."""
    if case["name"].startswith("P14"):
        return [8, 8]
    if case["shard"] != "dual_padded":
        return case["lens"]
    chunks = 2 * case["cp"]
    return [-(-x // chunks) * chunks for x in case["lens"]]


def module(case):
    fields = {"of": "#plan." + SHARDINGS[case["shard"]], "ranks": case["cp"], "lengths": case["lens"],
              "slots": slots_of(case), "keys": case["lens_k"], "mask": mask_of(case["mask"])}
    if case["shard"] == "solver":
        fields["given"] = [[sum(run[3] for run in runs)] + runs for runs in case["runs_q"]]
    return "module attributes {test.shards = {%s}} {}" % ", ".join(f"{name} = {x}" for name, x in fields.items())


cases = json.load(open(sys.argv[2]))
text = "module {\n" + "\n".join(map(module, cases)) + "\n}\n"
done = subprocess.run([sys.argv[1], "--test-shardings", "-o", "/dev/null"], input=text, capture_output=True, text=True)
if done.returncode:
    sys.exit(done.stderr)
lines = iter(done.stdout.splitlines())
for case in cases:
    next(lines)
    found = [[list(map(int, re.findall(r"-?\d+", run))) for run in re.findall(r"\[.*?\]", next(lines))]
             for _ in range(case["cp"])]
    if found != case["runs_q"]:
        sys.exit(f"{case['name']}: expected {case['runs_q']}, got: {found}")
print(f"{len(cases)} cases agree")
