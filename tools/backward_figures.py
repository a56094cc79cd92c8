# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backward figures of the sm_90a target, from one recorded run of test/Device/bench_backward.py, for the performance
page. Text in, text out; performance-page.py reads and writes files."""
from tflops import CELLS, behind, dense_table, goal_rows, means, other_table

NAMES = {"attnc": "attnc", "attnc deterministic": "deterministic", "fa3": "FA3 (from its ratio to cuDNN)", "cudnn": "cuDNN", "fa2": "FA2"}

# What the project set out to reach, at 2.5 times the forward pass's operations.
GOALS = [("d128 b1 h16 s16384 causal window1024", 460), ("d128 h16 docs uneven10 causal", 500),
         ("d128 h16 T32768 docs128 causal", 300),
         ("d128 b1 h16 s16384 causal softcap", (0.85, "d128 b1 h16 s16384 causal")),
         ("d128 b1 h16 s16384 causal alibi", (0.85, "d128 b1 h16 s16384 causal"))]


def goal_table(run, table):
    rows = []
    better = next(means(run), None)
    if better:
        _, mean, least, _, _ = better
        rows.append(["the better of cuDNN and FA3, of 18 cells", "at least 1.05 times each, 1.15 in the geometric mean",
                     f"{least:.3f}, {mean:.3f}", "yes" if least >= 1.05 and mean >= 1.15 else "**no**"])
    shares = {cell: ordered / default for cell in CELLS if (ordered := run.get(cell, "attnc deterministic")) and (default := run.get(cell, "attnc"))}
    if shares:
        least = min(shares, key=shares.get)
        rows.append(["deterministic, of 18 cells", "0.9 of default", f"{sum(s >= 0.9 for s in shares.values())} of {len(shares)}; least {shares[least]:.2f} ({least})",
                     "yes" if shares[least] >= 0.9 else "**no**"])
    return [*table(["figure to reach", "goal (TFLOP/s)", "measured", "reached"], rows + goal_rows(run, GOALS)), ""]


def page(run, file_name, fa3, table):
    env = run.env
    return [
        "## Hopper, backward", "",
        f"{env['gpu']}, torch {env['torch']}, cuDNN {env['cudnn']}, CUDA {env['cuda']}, {env['date']}, commit `{env['commit']}`; raw lines: "
        f"[{file_name}](results/{file_name}). The `sm_90a` target, bf16, the whole pass: what prepares and rounds, too. TFLOP/s at 2.5 times the "
        "forward pass's operations on visible pairs, one run in which the peers of a case take turns. Peers run in no fixed order. FA3 is cuDNN of "
        f"this run times FA3 / cuDNN as measured on {fa3['date']} ([fa3-to-cudnn-backward.json](results/fa3-to-cudnn-backward.json)). "
        "Why rows are where they are: [hopper-backward.md](Schedules/hopper-backward.md).", "",
        "![TFLOP/s over sequence length](plots/hopper-backward.svg)", "",
        *dense_table(run, table), behind(run), "", "Other masks, score modifiers and documents:", "",
        *other_table(run, table, ("attnc", "attnc deterministic", "varlen")), *goal_table(run, table)]
