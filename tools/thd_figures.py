#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the figures of docs/Thd.md into docs/plots: thd-layout.svg, thd-masks.svg and thd-diagonal.svg. Masks are
computed from the ids and positions in test/Segments/golden.json. `--check` only compares."""
import argparse
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Colours and a grey that can be read on white and on black; the figures have no background.
INK, LINE, COLOURS, NONE = "#7d8590", "#8a8a8a", ("#1f77b4", "#d2691e", "#2a9d4a", "#9467bd"), "none"
CELL = 26


def text(x, y, what, size=12, anchor="middle", fill=INK, weight="normal"):
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
            f'font-weight="{weight}">{what}</text>')


def box(x, y, fill, size=CELL, stroke=LINE, width=1):
    return (f'<rect x="{x:g}" y="{y:g}" width="{size}" height="{size}" fill="{fill}" stroke="{stroke}" '
            f'stroke-width="{width}"/>')


def svg(width, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" font-family="sans-serif">\n' + "\n".join(parts) + "\n</svg>\n")


def colour(segment):
    return COLOURS[(segment - 1) % len(COLOURS)] if segment else NONE


def cells(x, y, values, segments, label):
    """A row of boxes with values in them; segment 0 is empty."""
    parts = [text(x - 8, y + 17, label, anchor="end")]
    for i, (value, segment) in enumerate(zip(values, segments)):
        parts.append(box(x + i * CELL, y, colour(segment)))
        parts.append(text(x + i * CELL + CELL / 2, y + 17, value, fill="#ffffff" if segment else INK))
    return parts


def marks(x, y, begins, label):
    """Numbers below the left edges of boxes."""
    parts = [text(x - 8, y + 12, label, anchor="end")]
    for at, value in begins:
        parts.append(f'<path d="M{x + at * CELL:g} {y - 3:g} v4" stroke="{LINE}"/>')
        parts.append(text(x + at * CELL, y + 12, value))
    return parts


def layout():
    left = 150
    parts = [text(12, 20, "Packed: one buffer, each sequence at the front of its slot", 13, "start", weight="bold")]
    segments = [1, 0, 2, 2, 3, 0, 0, 4, 4]
    parts += cells(left, 32, ["a", "", "b", "b", "c", "", "", "d", "d"], segments, "tokens")
    parts += marks(left, 62, [(at, at) for at in (0, 2, 4, 7, 9)], "padded_offsets")
    parts.append(text(left - 8, 94, "cu_seqlens", anchor="end"))
    parts.append(text(left, 94, "0, 1, 3, 4, 6: lengths 1, 2, 1, 2", anchor="start"))
    parts.append(text(12, 132, "Rows: ids and positions say the same, and are an input", 13, "start", weight="bold"))
    ids, positions = [1, 1, 1, 0, 2, 2, 0, 0, 3, 3, 3, 3], [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]
    parts += cells(left, 144, ids, ids, "ids")
    parts += cells(left, 176, positions, ids, "positions")
    parts += marks(left, 206, [(at, at) for at in (0, 4, 8)], "offsets")
    parts.append(text(left - 8, 238, "seqlens", anchor="end"))
    parts.append(text(left, 238, "3, 2, 4: by id; a fourth segment that is not there has 0", anchor="start"))
    return svg(left + 13 * CELL, 252, parts)


def of(case, what, side):
    return case.get(what, case.get(f"{what}_{side}"))


def visible(case, t, u):
    ids_q, ids_kv, p, c = (of(case, what, side) for what in ("ids", "positions") for side in ("q", "kv"))
    if ids_q[t] != ids_kv[u] or not ids_q[t]:
        return False
    if "bottom_right" in case["mask"]:
        return ids_q.count(ids_q[t]) - p[t] <= ids_kv.count(ids_kv[u]) - c[u]
    return "causal" not in case["mask"] or p[t] >= c[u]


def mask(x, y, case, title):
    ids_q, ids_kv = of(case, "ids", "q"), of(case, "ids", "kv")
    size, top, left, parts, pairs = 15, y + 52, x + 44, [text(x, y + 14, title, 13, "start", weight="bold")], 0
    for what, dx, dy in (("ids", 22, -22), ("positions", 4, -6)):
        for side, ids in (("q", ids_q), ("kv", ids_kv)):
            for i, (value, segment) in enumerate(zip(of(case, what, side), ids)):
                at = ((left - 36 + dx + 8, top + i * size + 11) if side == "q" else
                      (left + i * size + size / 2, top + dy))
                parts.append(text(*at, value, 10, fill=COLOURS[segment - 1] if segment else INK,
                                  weight="bold" if what == "ids" else "normal"))
    for t, own in enumerate(ids_q):
        for u in range(len(ids_kv)):
            seen = visible(case, t, u)
            pairs += seen
            parts.append(box(left + u * size, top + t * size, colour(own) if seen else NONE, size))
    if pairs != case["pairs"]:
        sys.exit(f"{case['name']}: expected {case['pairs']} pairs, got: {pairs}")
    y = top + len(ids_q) * size + 16
    for what in ("seqlens", "offsets"):
        sides = [", ".join(map(str, of(case, what, side))) for side in ("q", "kv")]
        parts.append(text(x, y, f"{what} q: {sides[0]}; kv: {sides[1]}", 11, "start"))
        y += 15
    return parts


def masks():
    with open(os.path.join(ROOT, "test/Segments/golden.json")) as f:
        cases = {case["name"]: case for case in json.load(f)}
    parts = []
    for name, x, y, title in (("E07", 12, 0, "Cross attention, causal (E07)"),
                              ("E06", 330, 0, "Cross attention, bottom-right (E06)"),
                              ("E15", 12, 230, "Ring of 2, q of rank 0, kv of rank 1 (E15)"),
                              ("E18", 330, 230, "The same, odd lengths and padding (E18)")):
        parts += mask(x, y, cases[name], title)
    return svg(650, 420, parts)


def diagonal():
    """Which pairs are looked at for the claim that key k is before query q + d: 8 queries, 10 keys, d = 1."""
    n, m, d, left, top, size = 8, 10, 1, 70, 40, 24
    parts = [text(left + m * size / 2, 16, "keys", 12), text(left - 34, top + n * size / 2, "queries", 12)]
    for q in range(n):
        for k in range(m):
            parts.append(box(left + k * size, top + q * size, COLOURS[0] if k <= q + d else NONE, size))
    asked = {(q, k) for q in range(n) for k in (min(q + d, m - 1), q + d + 1) if 0 <= k < m}
    asked |= {(q, k) for k in range(m) for q in (max(k - d, 0), min(k - d - 1, n - 1)) if 0 <= q < n}
    for q, k in sorted(asked):
        parts.append(f'<circle cx="{left + k * size + size / 2:g}" cy="{top + q * size + size / 2:g}" r="6" '
                     f'fill="{"#ffffff" if k <= q + d else COLOURS[1]}" stroke="{INK}"/>')
    x = left + m * size + 24
    legend = ((COLOURS[0], "position(k) at or before position(q) + shift: claimed of all of these"),
              (NONE, "behind it: claimed of all of these"))
    for i, (fill, what) in enumerate(legend):
        parts += [box(x, top + 30 * i, fill, 18), text(x + 28, top + 30 * i + 14, what, 12, "start")]
    parts += [f'<circle cx="{x + 9}" cy="{top + 69}" r="6" fill="{COLOURS[1]}" stroke="{INK}"/>',
              text(x + 28, top + 73, "looked at: neighbours of the diagonal", 12, "start")]
    return svg(x + 430, top + n * size + 12, parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", default=ROOT)
    args = parser.parse_args()
    for name, drawn in (("layout", layout()), ("masks", masks()), ("diagonal", diagonal())):
        path = os.path.join(args.root, f"docs/plots/thd-{name}.svg")
        held = open(path).read() if os.path.exists(path) else None
        if held == drawn:
            continue
        if args.check:
            sys.exit(f"docs/plots/thd-{name}.svg is stale: run tools/thd_figures.py")
        with open(path, "w") as f:
            f.write(drawn)


if __name__ == "__main__":
    main()
