# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds what ranks send, attend to and compute against plans.json: check-plans.py plans.json"""
import json
import subprocess
import sys
import tempfile

from plan_cases import dictionary, given_of, load, mask_of, sharding_of, slots_of

STRATEGIES = {"gather": "strategy=gather", "cast": "strategy=cast", "ring": "strategy=ring",
              "ulysses": "head-group=0", "hybrid": "strategy=ring head-group=2"}


def module(number, case):
    fields = {"lengths": case["lens"], "slots": slots_of(case, case["lens"]), "keys": case["lens_k"],
              "key_slots": slots_of(case, case["lens_k"]), "given": given_of(case)}
    plans = "\n".join(
        f"plan.def @p{number}{suffix} of(@problem) ranks({case['cp']}) sharding({sharding_of(case)}) {suffix} "
        f"attributes {{test.sequences = {dictionary(fields)}}} {{}}" for suffix in ("", "backward"))
    problem = (f"attn.problem @problem mask({mask_of(case['mask'])}) layout(thd) heads({case['h']}, {case['g']}) "
               "dims(8) dtype(bf16) scale(0.5)")
    return (f"module {{\n{problem}\n"
            f"attn.backward @grads of(@problem)\n{plans}\n}}\n")


cases = load(sys.argv[1])
compared = fewer = summed = 0
for strategy, options in STRATEGIES.items():
    text = "".join(module(number, case) for number, case in enumerate(cases)
                   if strategy != "hybrid" or case["cp"] % 2 == 0)
    text = f"module {{\n{text}\n}}\n"
    passes = f"plan.def(plan-make-steps{{{options}}},test-plan-tables)"
    done = subprocess.run(["attn-opt", f"--pass-pipeline=builtin.module(builtin.module({passes}))",
                           "--mlir-disable-threading", "-o", "/dev/null"], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{strategy}: {done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = {line["plan"]: line for line in lines}
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        run = subprocess.run(["attn-plan-test", file.name, f"--steps={options}"], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{strategy}: {run.stderr}")
    values = {line["plan"]: line for line in map(json.loads, run.stdout.splitlines())}
    for number, case in enumerate(cases):
        if f"p{number}" not in found:
            continue
        forward, backward = found[f"p{number}"], found[f"p{number}backward"]
        if backward["pairs"] != forward["pairs"]:
            sys.exit(f"{case['name']}, {strategy}: expected gradients of the pairs of {forward}, got: {backward}")
        if "head-group" not in options and sum(map(sum, forward["pairs"])) != case["visible_pairs"]:
            sys.exit(f"{case['name']}, {strategy}: expected {case['visible_pairs']} pairs, got: {forward}")
        sums = {**values[f"p{number}"], **values[f"p{number}backward"]}
        for name, sum_ in case["sums"].items():
            if abs(sums[name] - sum_) > 2e-9 * max(1, abs(sum_)):
                sys.exit(f"{case['name']}, {strategy}: expected a sum of {name} of {sum_}, got: {sums[name]}")
            summed += 1
        wanted = case["plans"].get(strategy)
        if not wanted:
            continue
        compared += 1
        # A group's keys go on together in the hybrid of numpy, and by themselves in ours.
        messages = [message for message in wanted["sent_row_heads"] if message[2]]
        agrees = forward["sent"] == messages
        if strategy == "hybrid":
            most = {(a, b): n for a, b, n in messages}
            fewer += not agrees
            agrees = all(n <= most[a, b] for a, b, n in forward["sent"])
        # Steps of other ranks' keys come in another order, and steps without pairs are not all there.
        pairs = [[x[0]] + sorted(filter(None, x[1:])) for x in forward["pairs"] if x]
        expected = [[x[0]] + sorted(filter(None, x[1:])) for x in wanted["pairs"] if x]
        if not agrees or pairs != expected:
            sys.exit(f"{case['name']}, {strategy}: expected {wanted}, got: {forward}")
print(f"{len(cases)} cases and {compared} plans agree, {fewer} of them with fewer rows sent; {summed} sums of results")
