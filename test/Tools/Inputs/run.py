# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attn-run from Python: arrays in, arrays out, through .npy files in a folder of its own."""
import os
import subprocess
import tempfile

import numpy as np

folder = tempfile.mkdtemp(prefix="attn-run-")


def path_of(name):
    return os.path.join(folder, name)


def write(name, value):
    """An array as .npy, bytes and text as they are; None: no such file."""
    if isinstance(value, np.ndarray):
        np.save(path_of(name), value)
    elif value is None:
        if os.path.exists(path_of(name)):
            os.remove(path_of(name))
    else:
        with open(path_of(name), "wb") as file:
            file.write(value if isinstance(value, bytes) else value.encode())


def npy_bytes(array):
    write("bytes.npy", array)
    with open(path_of("bytes.npy"), "rb") as file:
        return file.read()


def attn_run(problem, inputs, results=(), target="cpu", flags=(), env=None):
    """The finished process, and the results by name. `inputs` are arrays or bytes by name; `results` are
    names, or a dict of names and files."""
    write("p.mlir", problem)
    results = results if isinstance(results, dict) else {name: name + ".npy" for name in results}
    command = ["attn-run", "p.mlir", f"--target={target}", *flags]
    for name, value in inputs.items():
        write(name + ".npy", value)
        command.append(f"--arg={name}={name}.npy")
    command += [f"--result={name}={file}" for name, file in results.items()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, **(env or {})},
                          check=False)
    arrays = {name: np.load(path_of(file)) for name, file in results.items()} if done.returncode == 0 else {}
    return done, arrays


def must_run(*args, **named):
    done, arrays = attn_run(*args, **named)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return arrays


def round_bf16(x):
    """float32 values rounded to the nearest bfloat16, ties to even; NaN stays."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(x), rounded, x).astype(np.float32)


def attend(q, k, v, visible, scale):
    """One head of one sequence in float64: O, LSE. `visible` is a bool matrix [rows, keys]."""
    scores = np.where(visible, scale * (q.astype(np.float64) @ k.astype(np.float64).T), -np.inf)
    some = visible.any(axis=1)
    top = np.where(some, scores.max(axis=1, initial=-np.inf), 0.0)
    weights = np.exp(scores - top[:, None])
    total = weights.sum(axis=1)
    o = weights @ v.astype(np.float64) / np.where(some, total, 1.0)[:, None]
    with np.errstate(divide="ignore"):
        return o, np.log(total) + top


def differentiate(q, k, v, o, lse, do, visible, scale):
    """Of one head, in float64: dQ, dK, dV, by `attend`'s O and LSE, which may be of more keys than these."""
    Q, K, V, dO = (x.astype(np.float64) for x in (q, k, v, do))
    P = np.where(visible, np.exp(np.where(visible, scale * (Q @ K.T) - lse[:, None], 0)), 0)
    dS = P * (dO @ V.T - (dO * o).sum(axis=1)[:, None])
    return scale * dS @ K, scale * dS.T @ Q, P.T @ dO
