# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds what ranks send and attend to against plans.json: check-plans.py attn-opt plans.json"""
import json
import subprocess
import sys

from plan_cases import dictionary, given_of, load, mask_of, sharding_of, slots_of

STRATEGIES = ("gather", "cast", "ring")


def module(number, case):
    fields = {"lengths": case["lens"], "slots": slots_of(case, case["lens"]), "keys": case["lens_k"],
              "key_slots": slots_of(case, case["lens_k"]), "given": given_of(case)}
    plans = "\n".join(
        f"plan.def @p{number}{suffix} of(@problem) ranks({case['cp']}) sharding({sharding_of(case)}) {suffix} "
        f"attributes {{test.sequences = {dictionary(fields)}}} {{}}" for suffix in ("", "backward"))
    heads = f"heads({case['h']}, {case['g']})"
    return (f"module {{\nattn.problem @problem mask({mask_of(case['mask'])}) layout(thd) {heads} dims(64) dtype(bf16)\n"
            f"{plans}\n}}")


cases = load(sys.argv[2])
text = "module {\n" + "\n".join(module(number, case) for number, case in enumerate(cases)) + "\n}\n"
compared = 0
for strategy in STRATEGIES:
    passes = f"plan.def(plan-make-steps{{strategy={strategy}}},test-plan-tables)"
    done = subprocess.run([sys.argv[1], f"--pass-pipeline=builtin.module(builtin.module({passes}))",
                           "--mlir-disable-threading", "-o", "/dev/null"], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{strategy}: {done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = {line["plan"]: line for line in lines}
    for number, case in enumerate(cases):
        forward, backward = found[f"p{number}"], found[f"p{number}backward"]
        if sum(map(sum, backward["pairs"])) != case["visible_pairs"]:
            sys.exit(f"{case['name']}, {strategy}, gradients: expected {case['visible_pairs']} pairs, got: {backward}")
        wanted = case["plans"].get(strategy)
        if not wanted:
            continue
        compared += 1
        # Steps of other ranks' keys come in another order, and steps without pairs are not all there.
        pairs = [[x[0]] + sorted(filter(None, x[1:])) for x in forward["pairs"]]
        expected = [[x[0]] + sorted(filter(None, x[1:])) for x in wanted["pairs"]]
        if forward["sent"] != wanted["sent_row_heads"] or pairs != expected:
            sys.exit(f"{case['name']}, {strategy}: expected {wanted}, got: {forward}")
print(f"{len(cases)} cases and {compared} plans agree")
