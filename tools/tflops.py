# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TFLOP/s of attnc and its peers over head dim, mask and length, from one recorded run: as a table and as a plot."""
import math

DIMS, LENGTHS, MASKS = (64, 128, 256), (1024, 4096, 16384), ("full", "causal")
COLOURS = {"attnc": "#d62728", "attnc deterministic": "#e7969c", "fa3": "#1f77b4", "cudnn": "#2ca02c", "fa2": "#8a8a8a"}


def cell_name(dim, length, mask):
    return f"d{dim} b{16384 // length} h{2048 // dim} s{length} {mask}"


CELLS = [cell_name(d, s, m) for d in DIMS for s in LENGTHS for m in MASKS]


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Run:
    """TFLOP/s by case and peer; `fa3` is cuDNN's of this run times FA3 / cuDNN where both were measured. `key`: of a line's
    TFLOP/s; `names`: of the peers, as tables and plots have them."""

    def __init__(self, lines, fa3, key, names):
        self.key, self.names = key, names
        self.env = next(line for line in lines if line["peer"] == "env")
        self.lines, self.alone, self.tf = lines, fa3["fa3_alone"], {}
        for line in lines:
            if "case" in line and (key in line or "error" in line):
                self.tf.setdefault(line["case"], {})[line["peer"]] = line.get(key)
        for case, both in fa3["both"].items():
            cudnn = self.tf.get(case, {}).get("cudnn")
            if cudnn:
                self.tf[case]["fa3"] = cudnn * both["fa3_tf"] / both["cudnn_tf"]

    def get(self, case, peer):
        return self.tf.get(case, {}).get(peer)

    def ratio(self, case, peers=("cudnn", "fa3", "fa2", "varlen")):
        """attnc over the best of the peers; None if either is not there."""
        ours = self.get(case, "attnc")
        best = max((tf for peer in peers if (tf := self.get(case, peer))), default=None)
        return ours / best if ours and best else None

    def shown(self, case, peer):
        if peer not in self.tf.get(case, {}):
            return ""
        tf = self.get(case, peer)
        return f"{tf:.0f}" if tf else "**error**" if peer == "attnc" else "none"

    def errors(self):
        """Our results' distances from a peer's; what is no number (NaN, infinity) counts as infinite."""
        for line in self.lines:
            if "rel_err_vs_peer" in line:
                error = line["rel_err_vs_peer"]
                yield line["case"], error if isinstance(error, float) and math.isfinite(error) else math.inf

    def fact(self, peer, case, key):
        return next((line[key] for line in self.lines
                     if line["peer"] == peer and line.get("case", "").startswith(case) and key in line), None)


def hundredths(ratio):
    return f"{ratio:.2f}" if ratio else ""


def means(run):
    """Geometric means of attnc over each peer, for the cells that have both."""
    for label, peers in (("the better of cuDNN and FA3", ("cudnn", "fa3")), ("cuDNN", ("cudnn",)), ("FA3", ("fa3",)),
                         ("FA2", ("fa2",))):
        ratios = [r for cell in CELLS if (r := run.ratio(cell, peers))]
        if ratios:
            yield label, mean(ratios), min(ratios), max(ratios), len(ratios)


def dense_table(run, table):
    rows = [[cell, *(run.shown(cell, p) for p in run.names), hundredths(run.ratio(cell, ("cudnn", "fa3")))]
            for cell in CELLS if cell in run.tf]
    return [*table(["case", *run.names.values(), "attnc / better of cuDNN, FA3"], rows), "",
            *table(["attnc over", "geometric mean", "least", "most", "cells"],
                   [[label, *map(hundredths, figures), count] for label, *figures, count in means(run)]), ""]


def behind(run):
    cells = [f"{cell} ({ratio:.2f})" for cell in CELLS if (ratio := run.ratio(cell, ("cudnn", "fa3"))) and ratio < 1]
    return "Behind the better of cuDNN and FA3: " + (", ".join(cells) if cells else "none") + "."


def other_table(run, table, peers):
    """Cases beyond the dense cells, with those peers that the run has."""
    cases = [case for case in run.tf if case not in CELLS and "attnc" in run.tf[case] and "graph" not in run.tf[case]]
    rows = [[case, *(run.shown(case, p) for p in peers), f"{run.alone[case]:.0f}" if case in run.alone else "",
             hundredths(run.ratio(case))] for case in cases]
    names = {"cudnn": "cuDNN", "fa2": "FA2", "varlen": "varlen (FA2)"}
    return [*table(["case", *(names.get(p, p) for p in peers), "FA3, in a run of its own", "attnc / best of this run"], rows), ""]


def goal_rows(run, goals):
    """Of cases that are to reach so many TFLOP/s, or a share of another case's."""
    rows = []
    for case, goal in goals:
        tf = run.get(case, "attnc")
        share, other = goal if isinstance(goal, tuple) else (None, None)
        if share:
            tf = tf and run.get(other, "attnc") and tf / run.get(other, "attnc")
        rows.append([case, f"{share} of plain causal" if share else goal,
                     "" if not tf else f"{tf:.2f}" if share else f"{tf:.0f}",
                     "yes" if tf and tf >= (share or goal) else "**no**"])
    return rows


# The plot: a panel per head dim and mask, lengths in powers of two on x.

WIDTH, HEIGHT, GAP, LEFT, TOP = 230, 170, 26, 62, 64


def panel(run, dim, mask, x0, y0, top, outer_left, bottom):
    def x(length):
        return x0 + 22 + (WIDTH - 44) * (math.log2(length) - 10) / 4

    def y(tf):
        return y0 + HEIGHT * (1 - tf / top)
    parts = [f'<text x="{x0 + WIDTH / 2:.0f}" y="{y0 - 7}" text-anchor="middle" font-weight="600">'
             f"d {dim}, {mask}</text>"]
    for tf in range(0, top + 1, 200):
        parts.append(f'<line x1="{x0}" y1="{y(tf):.1f}" x2="{x0 + WIDTH}" y2="{y(tf):.1f}" stroke="#e3e3e3"/>')
        if outer_left:
            parts.append(f'<text x="{x0 - 7}" y="{y(tf) + 4:.1f}" text-anchor="end" fill="#555">{tf}</text>')
    if bottom:
        parts += [f'<text x="{x(s):.1f}" y="{y0 + HEIGHT + 17}" text-anchor="middle" fill="#555">{s}</text>'
                  for s in LENGTHS]
    for peer in reversed(run.names):  # attnc on top
        points = [(x(s), y(tf), s, tf) for s in LENGTHS if (tf := run.get(cell_name(dim, s, mask), peer))]
        if not points:
            continue
        style = f'stroke="{COLOURS[peer]}" stroke-width="{2.4 if peer == "attnc" else 1.6}"'
        dash = ' stroke-dasharray="5 3"' if peer == "fa3" else ""
        parts.append(f'<polyline fill="none" {style}{dash} points="' +
                     " ".join(f"{px:.1f},{py:.1f}" for px, py, _, _ in points) + '"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{3 if peer == "attnc" else 2.3}" fill="{COLOURS[peer]}">'
                  f"<title>{run.names[peer]}, s {s}: {tf:.0f}</title></circle>" for px, py, s, tf in points]
    return parts


def plot(run):
    drawn = [tf for cell in CELLS for peer in run.names if (tf := run.get(cell, peer))]
    top = 100 * math.ceil(max(drawn, default=200) / 100)
    width, height = LEFT + 3 * WIDTH + 2 * GAP + 14, TOP + 2 * HEIGHT + GAP + 48
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="#222">',
             f'<rect width="{width}" height="{height}" fill="#fff"/>']
    at = LEFT
    for peer, name in run.names.items():
        dash = ' stroke-dasharray="5 3"' if peer == "fa3" else ""
        parts.append(f'<line x1="{at}" y1="20" x2="{at + 24}" y2="20" stroke="{COLOURS[peer]}" '
                     f'stroke-width="{2.4 if peer == "attnc" else 1.6}"{dash}/>')
        parts.append(f'<text x="{at + 30}" y="24">{name}</text>')
        at += 60 + 7 * len(name)
    for row, mask in enumerate(MASKS):
        for column, dim in enumerate(DIMS):
            parts += panel(run, dim, mask, LEFT + column * (WIDTH + GAP), TOP + row * (HEIGHT + GAP), top, column == 0,
                           row == len(MASKS) - 1)
    middle = TOP + HEIGHT + GAP / 2
    parts.append(f'<text x="16" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 16 {middle:.0f})">'
                 f"TFLOP/s on visible pairs</text>")
    parts.append(f'<text x="{(LEFT + width - 14) / 2:.0f}" y="{height - 10}" text-anchor="middle">sequence length '
                 f"(16384 tokens, {run.env['gpu']}, {run.env['date']}, commit {run.env['commit']})</text>")
    return "\n".join([*parts, "</svg>"]) + "\n"
