# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The section on short sequences of docs/Performance.md, from runs of test/Device/bench_short.py."""
import os


def by_case(lines):
    cases = {}
    for line in lines:
        if "case" in line:
            cases.setdefault(line["case"], {})[line["peer"]] = line
    return cases


def cell(line, key="of_copy"):
    return "" if line is None else f"{line[key]:.2f}" if key in line else "none" if "error" in line else ""


def run(lines, path, what, title, peers, table):
    env, rows = lines[0], []
    for case, of in by_case(lines).items():
        ours = of.get("attnc", {})
        flushed = " (L2 flushed)" if ours.get("flushed") else ""
        rows.append([case + flushed, f"{ours[what]:.4f}" if what in ours else "", ours.get("gb_s", ""),
                     cell(of.get("attnc")), *(cell(of.get(peer)) for peer in peers), ours.get("error_of_2", "")])
    direction = "backward" if what == "bwd_ms" else "forward"
    return [
        title, "",
        f"{env['gpu']}, torch {env['torch']}, cuDNN {env['cudnn']}, CUDA {env['cuda']}, {env['date']}, commit "
        f"`{env['commit']}`; raw lines: [{os.path.basename(path)}](results/{os.path.basename(path)}). bf16, THD, "
        f"{direction}, milliseconds, and the bytes that have to move over time, beside a copy of 2 GB in the same run "
        f"({env['copy_gb_s']} GB/s, read and written). Peers get padded tensors; none: the peer has no kernel. The "
        "last column is the error over that of rounding the exact result once (2 is what we allow).", "",
        *table(["case", "ms", "GB/s", "attnc, of a copy", *peers, "error"], rows), ""]


def page(forward, backward, crossover, table):
    """Each run as (lines, path), or None."""
    result = []
    if forward:
        result += run(*forward, "fwd_ms", "## Hopper, short sequences",
                      ["attnc graph", "cudnn", "fa2", "torch.compile"], table)
    if backward:
        result += run(*backward, "bwd_ms", "## Hopper, gradients of short sequences",
                      ["attnc graph", "cudnn", "torch.compile"], table)
    if crossover:
        crossover, crossover_path = crossover
        rows = [[case, *(cell(of.get(peer)) for peer in ("attnc", "strips 1x4", "strips 2x4", "strips 4x4", "tiles"))]
                for case, of in by_case(crossover).items()]
        result += [
            "Where each schedule ends ([trials](Schedules/trials/short-sequences.md)); raw lines: "
            f"[{os.path.basename(crossover_path)}](results/{os.path.basename(crossover_path)}). Of a copy: what is "
            "chosen by itself, SIMT rows of so many rows and keys, and tiles.", "",
            *table(["case", "chosen", "strips 1x4", "2x4", "4x4", "tiles"], rows), ""]
    return result
