# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interpreter with rounded weights, beside numpy: exp(s - the largest) rounds, the sum below it does not."""
import os
import subprocess
import sys
import tempfile

import numpy as np

from problems import values


def to_bf16(x):
    """Round to nearest even, of numbers that are neither huge nor tiny."""
    bits = np.float32(x).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


def main():
    rows, keys, dim = 5, 37, 8
    q, k = values((1, rows, 1, dim), 1), values((1, keys, 1, dim), 2)
    v = np.ones((1, keys, 1, dim))
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        with open(path("p.mlir"), "w", encoding="utf-8") as file:
            file.write(f"attn.problem @p mask(#attn.full) layout(bshd) heads(1, 1) dims({dim}) scale(0.5) dtype(bf16)\n")
        command = ["attn-reference-test", path("p.mlir"), f"--result=o={path('o.npy')}"]
        for name, value in (("q", q), ("k", k), ("v", v)):
            np.save(path(name + ".npy"), value.astype(np.float32))
            command.append(f"--arg={name}={path(name + '.npy')}")
        for option, stored in (([], lambda x: x), (["--weights=bf16"], to_bf16), (["--weights=f16"], np.float16)):
            subprocess.run(command + option, check=True)
            scores = 0.5 * q[0, :, 0] @ k[0, :, 0].T
            weights = np.exp(scores - scores.max(1, keepdims=True))
            want = stored(weights).astype(np.float64).sum(1) / weights.sum(1)
            got = np.load(path("o.npy"))[0, :, 0]
            assert np.abs(got - want[:, None]).max() < 3e-7, (option, got, want)  # .npy holds float32
            print(*option, f"moves by {np.abs(want - 1).max():.1e}")


if __name__ == "__main__":
    sys.exit(main())
