# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The performance page's section on attn.segments, from one recorded run of `attn-bench --suite=segments` and
TransformerEngine's helpers as measured before. Text in, text out; performance-page.py reads and writes files."""
import re

MASKS = {"full": "padding", "causal": "causal", "causal<bottom_right>": "bottom-right"}  # ours: the page's word
TE_MASKS = {"full": "padding", "causal": "causal", "causal<bottom_right>": "bottom_right"}
KINDS = {"self": "Self attention", "cross": "Cross attention, twice as many keys as queries",
         "ring 1-3 of 4": "A ring step of 4 ranks: queries of rank 1, keys of rank 3 (a rank has a fourth of T)",
         "ring 3-1 of 4": "The same, queries of rank 3 and keys of rank 1"}
# At most so many microseconds: rows of the batch, tokens of each.
TARGETS = [(1, 65536, 8), (1, 131072, 8), (8, 131072, 25), (1, 1048576, 40)]


class Run:
    """`cells`: by kind and (B, T, S) the line of each mask; `rest`: the other cases."""

    def __init__(self, lines):
        self.env = next((line for line in lines if line.get("peer") == "env"), {})
        self.cells, self.rest, self.errors = {}, [], []
        for line in lines:
            case = re.fullmatch(r"(self|cross|ring \d-\d of \d) (\S+) B(\d+) T(\d+) S(\d+)", line.get("case", ""))
            if "error" in line:
                self.errors.append(line)
            elif case and case.group(1) in KINDS and case.group(2) in MASKS:
                key = tuple(int(x) for x in case.group(3, 4, 5))
                self.cells.setdefault(case.group(1), {}).setdefault(key, {})[case.group(2)] = line
            elif line.get("case", "").startswith("lead "):
                self.rest.append(line)

    def most(self, kind, batch, tokens):
        found = [line["us"] for (b, t, _), by_mask in self.cells.get(kind, {}).items() for line in by_mask.values()
                 if (b, t) == (batch, tokens)]
        return max(found, default=None)


def shown(line):
    return f"{line['us']:.1f} ({line['us_p10']:.1f} to {line['us_p90']:.1f})" if line else ""


def against_te(run, te, table):
    by_case = {(line["T"], line["S"], line["mask"], line["peer"]): line for line in te["lines"]}
    rows = []
    for (b, t, s), by_mask in run.cells.get("self", {}).items():
        for mask, line in by_mask.items():
            peers = [by_case.get((t, s, TE_MASKS[mask], peer)) for peer in te["peers"]]
            if b == 1 and any(peers):
                rows.append([t, s, MASKS[mask], f"{line['us']:.1f}",
                             *(f"{p['us_pipelined']:.0f}" if p else "" for p in peers),
                             f"{line['call_us']:.0f}", *(f"{p['us']:.0f}" if p else "" for p in peers)])
    if not rows:
        return []
    names = [f"TE {what}" for what in ("exact", "fast")]
    all_us = [line["us_pipelined"] for line in te["lines"]]
    return ["Beside TransformerEngine's JAX helpers, one row of self attention. Ours is GPU time in a CUDA graph; "
            f"theirs is a call of many in a row, {min(all_us):.0f} to {max(all_us):.0f} us, launches included (an "
            f"empty call takes {te['empty_call_us']['us_pipelined']} us so). The columns of one call have the wait for "
            f"it in both. {te['gpu']}, {te['date']}, another run than ours: "
            "[te-segments.json](results/te-segments.json).", "",
            *table(["T", "S", "mask", "us", *(f"{name}, us" for name in names), "one call, us",
                    *(f"{name}, one call" for name in names)], rows), ""]


def page(run, name, te, table):
    env = ", ".join(str(run.env[k]) for k in ("gpu", "date") if k in run.env)
    env += f", commit `{run.env['commit']}`" if "commit" in run.env else ""
    lines = [line for cells in run.cells.values() for by_mask in cells.values() for line in by_mask.values()] + run.rest
    kernels, workspace = (sorted({line[key] for line in lines}) for key in ("kernels", "workspace_bytes"))
    out = ["## Segment metadata", "",
           "`attn.segments` ([Thd.md](Thd.md)): lengths and offsets from ids and positions. "
           f"{env + '; raw' if env else 'Raw'} lines: [{name}](results/{name}). T tokens in each of B rows, S "
           "segments; medians of GPU time a launch in a CUDA graph, in microseconds, in brackets the 10th and 90th "
           f"percentile. Kernels a launch: {', '.join(map(str, kernels))}; bytes of workspace: "
           f"{', '.join(map(str, workspace))}.", ""]
    rows = []
    for batch, tokens, target in TARGETS:
        row = [f"B {batch}, T {tokens}", target]
        for kind in ("self", "cross"):
            most = run.most(kind, batch, tokens)
            row += ["" if most is None else f"{most:.1f}",
                    "" if most is None else "yes" if most <= target else "**no**"]
        rows.append(row)
    out += ["The slowest of all masks and S, beside what the project set out to reach:", "",
            *table(["rows", "at most, us", "self", "met", "cross", "met"], rows), ""]
    out += against_te(run, te, table)
    for kind, title in KINDS.items():
        cells = run.cells.get(kind, {})
        masks = [mask for mask in MASKS if any(mask in by_mask for by_mask in cells.values())]
        if cells:
            rows = [[t, b, s, *(shown(by_mask.get(mask)) for mask in masks)]
                    for (b, t, s), by_mask in sorted(cells.items(), key=lambda x: (x[0][1], x[0]))]
            out += [f"{title}:", "", *table(["T", "B", "S", *(f"{MASKS[mask]}, us" for mask in masks)], rows), ""]
    if run.rest:
        rest = [[line["case"], shown(line), line["workspace_bytes"]] for line in run.rest]
        one = run.cells.get("self", {}).get((1, 8192, 16), {}).get("causal")
        if one:
            rest.append(["8 calls of one row each: 8 times what the self case takes", f"{8 * one['us']:.1f}",
                         one["workspace_bytes"]])
        out += ["Leading dimensions, with positions for each row or one row of them for all, which is not copied:", "",
                *table(["case", "us", "bytes of workspace"], rest), ""]
    if run.errors:
        out += ["Cases that failed:", "",
                *table(["case", "error"], [[line["case"], line["error"]] for line in run.errors]), ""]
    return out
