# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds shards against those of plans.json: check-shards.py attn-opt plans.json"""
import re
import subprocess
import sys

from plan_cases import dictionary, given_of, load, mask_of, sharding_of, slots_of


def module(case):
    fields = {"of": sharding_of(case), "ranks": case["cp"], "lengths": case["lens"],
              "slots": slots_of(case, case["lens"]), "keys": case["lens_k"], "mask": mask_of(case["mask"]),
              "given": given_of(case)}
    return f"module attributes {{test.shards = {dictionary(fields)}}} {{}}"


cases = load(sys.argv[2])
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
