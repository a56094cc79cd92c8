#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/Performance.md, docs/plots/hopper-*.svg and the README's tables from the recorded runs in
docs/results. `--check` only compares; `--root DIR` takes another folder for the repository's."""
import argparse
import glob
import json
import os
import sys

tools = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [tools, os.path.join(os.path.dirname(tools), "test", "Device")]
sys.dont_write_bytecode = True
import peer_figures  # noqa: E402
import segments_figures  # noqa: E402
import short_figures  # noqa: E402
from limits import WRONG_BEYOND  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--check", action="store_true")
parser.add_argument("--root", default=os.path.dirname(tools))
args = parser.parse_args()
root = args.root
BEGIN, END = "<!-- hopper table -->", "<!-- end of hopper table -->"


def read(path):
    """A record's lines. One with a wrong result is no record: its speed is nobody's."""
    with open(path) as f:
        lines = [json.loads(line) for line in f if line.strip()]
    for line in lines:
        for key, most in WRONG_BEYOND.items():
            if key in line and not (isinstance(line[key], (int, float)) and line[key] <= most):
                sys.exit(f"{os.path.basename(path)}: expected {key} of at most {most}, got: {line[key]} of "
                         f"{line['case']}")
    return lines


def newest(what):
    paths = sorted(glob.glob(os.path.join(root, "docs/results", f"*-{what}.jsonl")))
    return paths[-1] if paths else None


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def gpu_page():
    path = newest("h200-sm80")
    if not path:
        return []
    lines = read(path)
    env = next(line for line in lines if line["peer"] == "env")
    peers = ["attnc", "fa2", "cudnn", "varlen"]
    cases = {}
    for line in lines:
        if "fwd_tf" in line:
            cases.setdefault(line["case"], {})[line["peer"]] = line
    rows = []
    for case, by_peer in cases.items():
        tf = [f'{by_peer[p]["fwd_tf"]:.0f}' if p in by_peer else "" for p in peers]
        best = max((by_peer[p]["fwd_tf"] for p in ("fa2", "varlen") if p in by_peer), default=None)
        ratio = f'{by_peer["attnc"]["fwd_tf"] / best:.2f}' if best and "attnc" in by_peer else ""
        rows.append([case, *tf, ratio])
    ratios = [by["attnc"]["fwd_tf"] / by["fa2"]["fwd_tf"] for by in cases.values() if {"attnc", "fa2"} <= by.keys()]
    mean = 1.0
    for r in ratios:
        mean *= r ** (1 / len(ratios))
    matmul = next((line["tf"] for line in lines if line["peer"] == "cublas"), None)
    return [
        "## GPU, forward", "",
        f"{env['gpu']}, torch {env['torch']}, cuDNN {env['cudnn']}, CUDA {env['cuda']}, {env['date']}, commit "
        f"`{env['commit']}`; raw lines: [{os.path.basename(path)}](results/{os.path.basename(path)}). "
        f"bf16, one run, one timer for all (a bf16 8192^3 matmul ran at {matmul} TFLOP/s in it). TFLOP/s count visible "
        "pairs. fa2 and cudnn are torch SDPA's FlashAttention-2 and cuDNN, varlen is torch's `varlen_attn` "
        "(FlashAttention-2); the last column is attnc over FlashAttention-2. Our kernels here are the `sm_80` schedule "
        "(mma.sync, cp.async), which is FlashAttention-2's class; cuDNN uses what only Hopper has.", "",
        *table(["case", *peers, "attnc / FA2"], rows), "",
        f"Over the {len(ratios)} dense cells the geometric mean is {mean:.2f} times FlashAttention-2, the least "
        f"{min(ratios):.2f}, the most {max(ratios):.2f}.", ""]


def few_queries_page():
    path = newest("h200-few-queries")
    if not path:
        return []
    lines = read(path)
    env = lines[0]
    cases = {}
    for line in lines[1:]:
        cases.setdefault(line["case"], {})[line["peer"]] = line
    peers = ["attnc without a hint", "attnc", "fa2", "cudnn"]
    rows = []
    for case, by_peer in cases.items():
        us = {peer: line["us"] for peer, line in by_peer.items()}
        best = min(us[peer] for peer in ("fa2", "cudnn") if peer in us)
        terabytes = by_peer["attnc"]["kv_bytes"] / us["attnc"] / 1e6
        rows.append([case, *(f"{us[peer]:.1f}" if peer in us else "" for peer in peers), f"{terabytes:.2f}",
                     f"{best / us['attnc']:.2f}"])
    return ["## Hopper, few queries", "",
            f"{env['gpu']}, torch {env['torch']}, cuDNN {env['cudnn']}, CUDA {env['cuda']}, {env['date']}; raw lines: "
            f"[{os.path.basename(path)}](results/{os.path.basename(path)}). bf16, full mask, microseconds, in CUDA "
            "graphs that go through several sets of tensors (150 MB or more); TB/s of K and V, each once. With "
            "`expected_seqlen(queries, keys)` attnc packs heads and shares out keys "
            "([split_kv.md](Schedules/split_kv.md)); without, it did not when this was run (now the sizes of a launch "
            "say it).", "",
            *table(["case", *peers, "TB/s", "faster than the better peer by"], rows), ""]


def device_page():
    page = []
    for path in filter(None, (newest("h200-" + what) for what in ("device-checks", "lists", "streaming-checks"))):
        rows = []
        for line in read(path):
            facts = {k: v for k, v in line.items() if k not in ("check", "ok", "all_ms", "message") and v != ""}
            rows.append([line["check"], "yes" if line["ok"] else "**no**",
                         ", ".join(f"{k} {v}" for k, v in facts.items())])
        page += [f"[{os.path.basename(path)}](results/{os.path.basename(path)})", "",
                 *table(["check", "ok", ""], rows), ""]
    return ["## Checks that need a GPU", "", *page] if page else []


def fuzz_page():
    rows = []
    for path in sorted(glob.glob(os.path.join(root, "docs/results/*-fuzz-*.jsonl"))):
        for line in read(path):
            rows.append([f"[{os.path.basename(path)}](results/{os.path.basename(path)})"] +
                        [line.get(k, "") for k in ("target", "gpu", "problems", "kernels", "failures")])
    if not rows:
        return []
    return ["## Fuzzing", "", "Random masks, layouts, head counts, dims and lengths against the reference in double "
            "precision ([FuzzLedger.md](FuzzLedger.md)).", "",
            *table(["run", "target", "GPU", "problems", "distinct kernels", "failures"], rows), ""]


def cpu_page():
    path = newest("cpu")
    if not path:
        return []
    lines = read(path)
    env = lines[0]
    ours = {line["case"]: line for line in lines if line["peer"] == "attnc"}
    rows = [[line["case"], f'{ours[line["case"]]["fwd_ms"]:.1f}', f'{line["fwd_ms"]:.1f}',
             f'{line["fwd_ms"] / ours[line["case"]]["fwd_ms"]:.1f}']
            for line in lines if line["peer"].startswith("plain")]
    return ["## CPU, forward", "",
            f"{env['cpu']}, {env['threads']} threads, {env['date']}, commit `{env['commit']}`; raw lines: "
            f"[{os.path.basename(path)}](results/{os.path.basename(path)}). Milliseconds; the plain loop is float, "
            "compiled with -O2, on all threads.", "",
            *table(["case", "attnc", "plain loop", "faster by"], rows), ""]


def segments_page():
    path = newest("segments")
    if not path:
        return []
    with open(os.path.join(root, "docs/results/te-segments.json")) as f:
        te = json.load(f)
    return segments_figures.page(segments_figures.Run(read(path)), os.path.basename(path), te, table)


def masks_page():
    path = newest("h200-masks")
    if not path:
        return []
    lines = read(path)
    env, file = lines[0], os.path.basename(path)
    # A run may have been cut in two.
    commits = " and ".join(f"`{line['commit']}`" for line in lines if line["peer"] == "env")
    rates = {(line["peer"], line["case"]): line for line in lines if "fwd_tf" in line}
    rows = []
    for (peer, case), ours in rates.items():
        if peer != "attnc" or ("flex", case) not in rates:
            continue
        flex = rates["flex", case]
        rows.append([case, f'{ours["fwd_tf"]:.0f}', f'{flex["fwd_tf"]:.0f}', f'{ours["fwd_tf"] / flex["fwd_tf"]:.2f}',
                     f'{ours["fwd_ms"]:.3f}', f'{flex["fwd_ms"]:.3f}', f'{flex["block_mask_ms"]:.1f}'])
    metadata = max(path, newest("h200-metadata") or path, key=os.path.basename)  # a run of its own, if that is newer
    made = [line for line in read(metadata) if line["peer"] == "env"][-1]
    ahead = [[line["case"].removeprefix("metadata, "),
              *(f'{next((us for name, us in line["kernels_us"].items() if name.endswith(end)), 0):.1f}'
                for end in ("_blocks", "_tree", "_ranges", ("_visits", "_kv_tile_lists"))),
              f'{line["ahead_us"]:.1f}', f'{line["visited_tiles"] / line["query_tiles"]:.0f}',
              f'{line["workspace_bytes"] / 1e6:.2f}',
              f'{(64 * line["query_tiles"] + 8 * line["visited_tiles"]) / 1e6:.2f}']
             for line in read(metadata) if "kernels_us" in line]
    return ["## Masks and score modifiers, beside FlexAttention", "",
            f"{env['gpu']}, torch {env['torch']}, {env['date']}, commit {commits}; raw lines: "
            f"[{file}](results/{file}); `test/Device/bench_masks.py`. The `sm_90a` target, bf16, d 128, 16 heads, "
            "16384 tokens (documents 32768; the tree's rows are 4096 drafts), forward, TFLOP/s on visible pairs; the "
            "two take turns. A launch of attnc has its kernels that look at ids, bounds and trees in it; "
            "FlexAttention's block mask, made before, stands apart (the first one is the first thing that torch "
            "compiles), and is made anew when ids change. Results differ by at most "
            f"{max(line.get('rel_err_vs_flex', 0) for line in lines):.4f} (relative, 2-norm).", "",
            *table(["case", "attnc", "FlexAttention", "ratio", "attnc, ms", "FlexAttention, ms", "block mask, ms"],
                   rows), "",
            f"The kernels ahead of attention at a million tokens ({made['date']}, commit `{made['commit']}`; raw "
            f"lines: [{os.path.basename(metadata)}](results/{os.path.basename(metadata)})), causal too, d 64, one "
            "head: microseconds (goal: 50 together), visited tiles of a query tile, and the workspace, MB (goal: 64 "
            "bytes for each query tile and 8 for each visited tile):", "",
            *table(["", "block map", "numbers of a tree", "ranges of key tiles", "lists", "together", "tiles",
                    "workspace", "goal"], ahead), ""]


def zoo_page():
    path = newest("h200-zoo")
    if not path:
        return []
    lines = read(path)
    env, file = lines[0], os.path.basename(path)
    rows, refused = [], [line["check"] for line in lines if "refused" in line]
    for line in lines:
        if "fwd_ratio" in line and "text" in line:
            prepared = [f'{line[key]:.1f}' if key in line else "" for key in ("prep_ms", "flex_prep_ms")]
            first = line.get("flex_prep_first_s")
            rows.append([f'`{line["check"]}`',
                         f'{line["fwd_ms"]:.3f}', f'{line["flex_fwd_ms"]:.3f}', f'{line["fwd_ratio"]:.2f}',
                         f'{line["bwd_ms"]:.3f}', f'{line["flex_bwd_ms"]:.3f}', f'{line["bwd_ratio"]:.2f}',
                         *prepared, f'{first:.1f}' if first else ""])
    means = [f'{line["check"].split(", ")[1]}: forward {line["fwd_ratio"]:.2f}, backward {line["bwd_ratio"]:.2f}'
             for line in lines if line["check"].startswith("geometric")]
    failed = [line["check"] for line in lines if "flex_error" in line]
    return ["## attention-gym's functions, beside compiled flex_attention", "",
            f"{env['gpu']}, torch {env['torch']}, {env['date']}, commit `{env['commit']}`; raw lines: "
            f"[{file}](results/{file}); `test/Python/gpu_zoo.py`. Through PyTorch: Python functions as masks and score "
            "modifiers, bf16, d 128, 16 heads, 8192 positions, batch 1 (2 where a function reads the batch); kernels "
            "alone, in ms, forward and backward. Preparation: what a new function costs before its first launch "
            "without compilation, in ms (tracing and arrays; the block mask); what FlexAttention's first block mask of "
            "a function takes to compile, beside that of others, stands apart, in s. Geometric means of ratios: "
            f"{'; '.join(means)}. Refused, with the reason: {', '.join(f'`{name}`' for name in refused)}"
            + (f". FlexAttention fails: {', '.join(f'`{name}`' for name in failed)}" if failed else "") + ".", "",
            *table(["function", "attnc", "flex", "ratio", "attnc, backward", "flex, backward", "ratio",
                    "attnc prepares", "flex prepares", "flex, first, s"], rows), ""]


def short_page():
    runs = [newest(name) for name in ("h200-short", "h200-short-backward", "h200-short-crossover")]
    return short_figures.page(*((read(path), path) if path else None for path in runs), table)


def contents():
    """Path in the repository -> what it should hold; None: it should not be there."""
    path = newest("peers")
    peers = peer_figures.Run(read(path)) if path else None
    page = ["# Performance", "",
            "Written by `tools/performance-page.py` from the recorded runs in [results/](results); do not edit.", "",
            *(peer_figures.page(peers, os.path.basename(path), table) if peers else []),
            *masks_page(), *zoo_page(), *few_queries_page(), *short_page(), *segments_page(), *gpu_page(),
            *device_page(), *fuzz_page(), *cpu_page()]
    yield "docs/Performance.md", "\n".join(page).rstrip() + "\n"
    for name, plot in peer_figures.plots(peers) if peers else ((which, None) for which in peer_figures.PASSES):
        yield f"docs/plots/hopper-{name}.svg", plot
    with open(os.path.join(root, "README.md")) as f:
        before, begin, rest = f.read().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"expected `{BEGIN}` and `{END}` in README.md, got: {'one' if begin else 'none'} of them")
    short = "\n".join(peer_figures.readme(peers, table)) if peers else ""
    yield "README.md", f"{before}{BEGIN}\n{short}{END}{after}"


for name, text in contents():
    path = os.path.join(root, name)
    held = open(path).read() if os.path.exists(path) else None
    if held == text:
        continue
    if args.check:
        sys.exit(f"{name} is stale: run tools/performance-page.py")
    if text is None:
        os.remove(path)
        continue
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
