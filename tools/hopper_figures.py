# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forward figures of the sm_90a target, from one recorded run of test/Device/bench_peers.py: for the
performance page and for the README. Text in, text out; performance-page.py reads and writes files."""
from tflops import CELLS, DIMS, LENGTHS, MASKS, behind, cell_name, dense_table, goal_rows, means, other_table

NAMES = {"attnc": "attnc", "fa3": "FA3 (from its ratio to cuDNN)", "cudnn": "cuDNN", "fa2": "FA2"}

# What the project set out to reach: the case, TFLOP/s at least, or a share of another case.
GOALS = [("d128 b1 h16 s16384 causal window1024", 530), ("d128 h16 docs uneven10 causal", 560),
         ("d128 h16 T32768 docs128 causal", 350), ("d128 b16 h16 s1024 causal", 480),
         ("d128 b1 h16 s16384 causal softcap", (0.9, "d128 b1 h16 s16384 causal")),
         ("d128 b1 h16 s16384 causal alibi", (0.9, "d128 b1 h16 s16384 causal"))]


def goal_table(run, table):
    rows = goal_rows(run, GOALS)
    us = run.fact("attnc", "host time of a launch", "us")
    if us is not None:
        rows.append(["host time of a launch", "at most 10 us", f"{us} us", "yes" if us <= 10 else "**no**"])
    cold = {line["case"].removeprefix("cold compile, "): line["compile_ms"] for line in run.lines
            if line.get("case", "").startswith("cold compile")}
    if cold:
        longest = max(cold, key=cold.get)
        rows.append(["cold compile, one at a time ([Compile time](Schedules/hopper-forward.md#6-which-configuration))", "at most 1200 ms",
                     f"{sum(ms <= 1200 for ms in cold.values())} of {len(cold)}; longest {cold[longest]:.0f} ms ({longest})",
                     "yes" if cold[longest] <= 1200 else "**no**"])
    same = run.fact("graph", "", "same_bits")
    if same is not None:
        rows.append(["replay from a CUDA graph", "the same bits", "same" if same else "different",
                     "yes" if same else "**no**"])
    return [*table(["figure to reach", "goal (TFLOP/s)", "measured", "reached"], rows), ""]


def page(run, file_name, fa3, table):
    matmul, env = run.fact("cublas", "matmul8192", "tf"), run.env
    errors = list(run.errors())
    wrong = [f"**{case} differs by {error}**" for case, error in errors if error > 0.01]
    return [
        "## Hopper, forward", "",
        f"{env['gpu']}, torch {env['torch']}, cuDNN {env['cudnn']}, CUDA {env['cuda']}, {env['date']}, commit "
        f"`{env['commit']}`; raw lines: [{file_name}](results/{file_name}). The `sm_90a` target, bf16, TFLOP/s on "
        "visible pairs, one run in which the peers of a case take turns"
        + (f"; a bf16 8192^3 matmul ran at {matmul} TFLOP/s in it" if matmul else "") + ". FA3 is cuDNN of this run "
        f"times FA3 / cuDNN as measured on {fa3['date']} ([fa3-to-cudnn.json](results/fa3-to-cudnn.json)); `none`: the "
        "peer has no kernel." + (f" Results of {len(errors)} cases were compared with a peer's: they differ by at most "
                            f"{max(e for _, e in errors):.4f} (relative, 2-norm)." if errors else ""), "",
        *([", ".join(wrong) + ".", ""] if wrong else []),
        "![TFLOP/s over sequence length](plots/hopper-forward.svg)", "",
        *dense_table(run, table),
        behind(run), "",
        "Other masks, documents, score modifiers, heads and dims:", "",
        *other_table(run, table, ("attnc", "fa2", "cudnn", "varlen")), *goal_table(run, table)]


def readme(run, table):
    """Few enough rows to be read."""
    def cell(name):
        tf, ratio = run.get(name, "attnc"), run.ratio(name, ("cudnn", "fa3"))
        return f"{tf:.0f} ({ratio:.2f})" if ratio else f"{tf:.0f}" if tf else ""
    rows = [[f"d {d}, {m}", *(cell(cell_name(d, s, m)) for s in LENGTHS)] for d in DIMS for m in MASKS]
    overall = next(means(run), None)
    return ["", f"On an {run.env['gpu'].removeprefix('NVIDIA ')}, bf16 forward, TFLOP/s, and in brackets how many "
            "times the better of cuDNN and FlashAttention-3"
            + (f" (geometric mean {overall[1]:.2f})" if overall else "") + ":", "",
            *table(["", *(f"s {s}" for s in LENGTHS)], rows), "",
            f"Measured {run.env['date']} at `{run.env['commit']}`, written by `tools/performance-page.py`; every row, "
            "and how: [docs/Performance.md](docs/Performance.md).", ""]


