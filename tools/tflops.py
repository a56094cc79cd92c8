# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TFLOP/s of attnc and its peers over head dim, mask and length, as a plot."""
import math

DIMS, LENGTHS, MASKS = (64, 128, 256), (1024, 4096, 16384), ("full", "causal")
COLOURS = {"attnc": "#d62728", "attnc deterministic": "#e7969c", "fa3": "#1f77b4", "fa4": "#9467bd", "cudnn": "#2ca02c"}


def cell_name(dim, length, mask):
    return f"d{dim} b{16384 // length} h{2048 // dim} s{length} {mask}"


CELLS = [cell_name(d, s, m) for d in DIMS for s in LENGTHS for m in MASKS]


# A panel for each head dim and mask, lengths in powers of two on x.

WIDTH, HEIGHT, GAP, LEFT, TOP = 230, 170, 26, 62, 64


def panel(rates, names, dim, mask, x0, y0, top, outer_left, bottom):
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
    for peer in reversed(names):  # attnc on top
        points = [(x(s), y(tf), s, tf) for s in LENGTHS if (tf := rates.get((cell_name(dim, s, mask), peer)))]
        if not points:
            continue
        style = f'stroke="{COLOURS[peer]}" stroke-width="{2.4 if peer == "attnc" else 1.6}"'
        parts.append(f'<polyline fill="none" {style} points="' +
                     " ".join(f"{px:.1f},{py:.1f}" for px, py, _, _ in points) + '"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{3 if peer == "attnc" else 2.3}" fill="{COLOURS[peer]}">'
                  f"<title>{names[peer]}, s {s}: {tf:.0f}</title></circle>" for px, py, s, tf in points]
    return parts


def plot(rates, names, caption):
    """`rates`: TFLOP/s by case and peer; `names`: of the peers that are drawn."""
    drawn = [tf for cell in CELLS for peer in names if (tf := rates.get((cell, peer)))]
    top = 100 * math.ceil(max(drawn, default=200) / 100)
    width, height = LEFT + 3 * WIDTH + 2 * GAP + 14, TOP + 2 * HEIGHT + GAP + 48
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="#222">',
             f'<rect width="{width}" height="{height}" fill="#fff"/>']
    at = LEFT
    for peer, name in names.items():
        parts.append(f'<line x1="{at}" y1="20" x2="{at + 24}" y2="20" stroke="{COLOURS[peer]}" '
                     f'stroke-width="{2.4 if peer == "attnc" else 1.6}"/>')
        parts.append(f'<text x="{at + 30}" y="24">{name}</text>')
        at += 60 + 7 * len(name)
    for row, mask in enumerate(MASKS):
        for column, dim in enumerate(DIMS):
            parts += panel(rates, names, dim, mask, LEFT + column * (WIDTH + GAP), TOP + row * (HEIGHT + GAP), top,
                           column == 0, row == len(MASKS) - 1)
    middle = TOP + HEIGHT + GAP / 2
    parts.append(f'<text x="16" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 16 {middle:.0f})">'
                 f"TFLOP/s on visible pairs</text>")
    parts.append(f'<text x="{(LEFT + width - 14) / 2:.0f}" y="{height - 10}" text-anchor="middle">sequence length '
                 f"(16384 tokens, {caption})</text>")
    return "\n".join([*parts, "</svg>"]) + "\n"
