# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pairs dropout drops, by numpy (problems.py) and by kernels for a CPU.

With q of zeros all visible keys weigh the same, so with a V of unit vectors o says which pairs were kept; with such a
dO, dV says the same of a backward pass.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

from problems import dropped, philox2, philox4


def check_philox():
    """The known answers that Random123 is published with."""
    numbers = lambda words: [int(w) for w in words]
    assert numbers(philox2((0, 0), 0)) == [0x257A3673, 0xCD26BE2A]
    assert numbers(philox2((0, 0), 0, rounds=10)) == [0xFF1DAE59, 0x6CD10DF2]
    assert numbers(philox4((0, 0, 0, 0), (0, 0))) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
    assert numbers(philox4(pi, (0xA4093822, 0x299F31D0))) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
    print("Philox as published")


def check_statistics():
    """Means, of all and of rows and columns, and correlations with neighbours: within 5 standard deviations."""
    n, below = 1024, 3277
    p = below / 2**15
    at = np.arange(n)
    mask = lambda seed, b, h, q0=0: dropped(below, seed, b, h, q0 + at[:, None], at[None, :]).astype(float)
    seed = [11, 22, 33, 44]
    x = mask(seed, 3, 5)
    sigma = np.sqrt(p * (1 - p))
    assert abs(x.mean() - p) < 5 * sigma / n, x.mean()
    for means in (x.mean(0), x.mean(1)):
        assert np.abs(means - p).max() < 5 * sigma / np.sqrt(n), np.abs(means - p).max()
        assert 0.8 < means.var() / (p * (1 - p) / n) < 1.2, means.var()  # neither more even than chance nor less
    others = {f"q + {d}": np.roll(x, -d, 0) for d in (1, 2, 7, 8, 9, 16, 64, 512)}
    others.update({f"k + {d}": np.roll(x, -d, 1) for d in (1, 2, 7, 8, 9, 16, 64, 512)})
    others.update({"both + 1": np.roll(x, (-1, -1), (0, 1)), "both + 8": np.roll(x, (-8, -8), (0, 1)),
                   "transposed": x.T})
    others.update({"next head": mask(seed, 3, 6), "next sequence": mask(seed, 4, 5), "swapped": mask(seed, 5, 3),
                   "next offset": mask([11, 22, 34, 44], 3, 5), "next seed": mask([12, 22, 33, 44], 3, 5),
                   "far": mask(seed, 3, 5, 1 << 20)})
    for name, y in others.items():
        correlation = np.mean((x - p) * (y - p)) / (p * (1 - p))
        assert abs(correlation) < 5 / n, (name, correlation)
    print("one in ten pairs is dropped, and neighbours tell nothing of each other")


def run(folder, text, arrays, results):
    path = lambda name: os.path.join(folder, name)
    with open(path("p.mlir"), "w") as f:
        f.write(text)
    command = ["attn-run", path("p.mlir"), "--target=cpu"]
    for name, value in arrays.items():
        np.save(path(name + ".npy"), value)
        command.append(f"--arg={name}={path(name + '.npy')}")
    command += [f"--result={name}={path(name + '.npy')}" for name in results]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(text + ran.stderr)
    return [np.load(path(name + ".npy")) for name in results]


def check_kernels(folder):
    heads, kv_heads, dim, below = 4, 2, 64, 9830
    seed = np.array([7, -9, 1 << 30, -(1 << 31)], np.int32)
    count = 0
    for layout, hints in (("bshd", ("", " expected_seqlen(1, 32768)", " max_seqlen(2, 4)", " max_seqlen(8, 64)")),
                          ("thd padded", ("", " max_seqlen(4, 16)"))):
        lengths = [dim, dim] if layout == "bshd" else [40, dim, 0, 17]
        gaps = [0] * len(lengths) if layout == "bshd" else [3, 0, 5, 1]
        starts = np.cumsum(gaps) + np.r_[0, np.cumsum(lengths)[:-1]]
        rows = int(starts[-1] + lengths[-1])
        arrays = {"seed": seed}
        if layout != "bshd":
            for side in ("q", "kv"):
                arrays["cu_seqlens_" + side] = np.r_[0, np.cumsum(lengths)].astype(np.int32)
                arrays["padded_offsets_" + side] = np.r_[starts, rows].astype(np.int32)

        def tensor(heads, unit):
            x = np.zeros((rows, heads, dim), np.float32)
            for start, length in zip(starts, lengths):
                if unit:
                    x[start + np.arange(length), :, np.arange(length)] = 1
            return x.reshape(len(lengths), dim, heads, dim) if layout == "bshd" else x

        arrays.update(q=tensor(heads, False), k=tensor(kv_heads, False), v=tensor(kv_heads, True))
        want = [[~dropped(below, seed, b, h, np.arange(n)[:, None], np.arange(n)[None, :]) for h in range(heads)]
                for b, n in enumerate(lengths)]
        for hint in hints:
            text = (f"attn.problem @p mask(#attn.full) layout({layout}) heads({heads}, {kv_heads}) dims({dim}) "
                    f'dtype(bf16) dropout(0.3, "seed"){hint}\n')
            o, = run(folder, text, arrays, ["o"])
            dv, = run(folder, text + "attn.backward @grads of(@p)\n", {**arrays, "do": tensor(heads, True)}, ["dv"])
            o, dv = o.reshape(rows, heads, dim), dv.reshape(rows, kv_heads, dim)
            for b, (start, length) in enumerate(zip(starts, lengths)):
                for h in range(heads):
                    assert np.array_equal(o[start:start + length, h, :length] > 0, want[b][h]), (text, b, h)
                # dV of a kv head adds up the query heads that share it.
                kept = np.array(want[b]).reshape(kv_heads, heads // kv_heads, length, length).sum(1)
                for g in range(kv_heads if length else 0):
                    share = dv[start:start + length, g, :length].T * length * (1 - below / 2**15)
                    assert np.allclose(share, kept[g], atol=0.05), (text, b, g)
            count += 2
    print(count, "kernels drop the same pairs")


if __name__ == "__main__":
    check_philox()
    check_statistics()
    with tempfile.TemporaryDirectory() as folder:
        check_kernels(folder)
