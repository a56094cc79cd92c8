# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems that say nothing of lengths, specialised for short sequences, or few queries: they get what `typical` would
give them."""
import ctypes as C

import numpy as np
from attnc_host import compile_problem, launch, lib, specialize, tensors_of, workspace_of
from run import attend

rng = np.random.default_rng(5)
HEADS, DIM = 4, 32
SHORT = ("one CTA per sequence for short sequences, tiles of packed rows for long ones; "
         "expected_seqlen(4, 4) and heads(4, 4): short sequences")


def packed(lengths):
    """Tensors of both passes; results are NaN."""
    total = sum(lengths)
    arrays = {name: rng.standard_normal((total, HEADS, DIM)).astype(np.float16) for name in ("q", "k", "v", "do")}
    cu = np.array([0, *lengths]).cumsum().astype(np.int32)
    poison(arrays)
    return dict(arrays, lse=np.full((HEADS, total), np.nan, np.float32), cu_seqlens_q=cu, cu_seqlens_kv=cu.copy())


def poison(arrays):
    for name in ("o", "dq", "dk", "dv"):
        arrays[name] = np.full(arrays["q"].shape, np.nan, np.float16)


def schedule(kernel, arrays):
    return lib.attnSchedule(specialize(kernel, arrays)).decode()


def check_rows(arrays, lengths):
    begin = 0
    for rows in lengths:
        own, begin = slice(begin, begin + rows), begin + rows
        for h in range(HEADS):
            o, lse = attend(*(arrays[n][own, h] for n in "qkv"), np.tril(np.ones((rows, rows), bool)), DIM**-0.5)
            assert np.allclose(arrays["o"][own, h], o, rtol=4e-3, atol=4e-3)
            assert np.allclose(arrays["lse"][h, own], lse, atol=1e-4)


PROBLEM = f"attn.problem @p mask(#attn.causal) layout(thd) heads({HEADS}) dims({DIM}) dtype(f16)"
BACKWARD = "\nattn.backward @g of(@p)"
forward, backward = compile_problem(PROBLEM), compile_problem(PROBLEM + BACKWARD)
hinted, hinted_backward = (compile_problem(PROBLEM + " expected_seqlen(4, 4)" + end) for end in ("", BACKWARD))
mixed = [int(n) for n in rng.integers(0, 5, 300)] + [150, 0, 70] + [int(n) for n in rng.integers(1, 5, 200)]
arrays = packed(mixed)

# For such shapes there is the program that `typical` gives: bit for bit, and from its place in the cache. It wants a
# workspace. The general kernel stays as it is, and is right for these shapes, too.
plain = lib.attnSchedule(forward).decode()
assert plain.startswith("tiles of packed rows"), plain
compiled = lib.attnCompileCount()
special = specialize(forward, arrays)
assert b"expected a workspace of" in launch(special, arrays)
workspace = workspace_of(special, arrays)
assert workspace.size > 0 and schedule(forward, arrays).startswith(SHORT), schedule(forward, arrays)
assert lib.attnCompileCount() == compiled, "expected_seqlen(4, 4) had compiled these kernels"
for kernel in forward, compile_problem(PROBLEM):
    poison(arrays)
    assert workspace_of(kernel, arrays).size == 0 and launch(kernel, arrays) is None
    assert lib.attnSchedule(kernel).decode() == plain
    check_rows(arrays, mixed)
poison(arrays)
assert launch(special, arrays, workspace) is None
check_rows(arrays, mixed)
found = arrays["o"].copy()
lib.attnDestroy(special)
for kernel in specialize(forward, arrays), hinted:
    poison(arrays)
    assert launch(kernel, arrays, workspace_of(kernel, arrays)) is None
    assert np.array_equal(found, arrays["o"])

# So do gradients.
special = specialize(backward, arrays)
assert launch(special, arrays, workspace_of(special, arrays)) is None
assert schedule(backward, arrays).startswith("one CTA per sequence for short sequences"), schedule(backward, arrays)
found = [arrays[n].copy() for n in ("dq", "dk", "dv")]
o = arrays["o"]
poison(arrays)
arrays["o"] = o
assert launch(hinted_backward, arrays, workspace_of(hinted_backward, arrays)) is None
assert all(np.array_equal(a, arrays[n]) and np.isfinite(a).all() for a, n in zip(found, ("dq", "dk", "dv")))

# Lengths that are about as long need no other program; few sequences, or long ones, have the plain one, and no list of
# slots. Where the average is no whole number, more are longer than it says.
compiled = lib.attnCompileCount()
for lengths, wants in (([2, 3] * 300, SHORT), ([3] * 100, plain), ([80] * 130, plain), ([30, 57] * 70, plain),
                       ([0] * 600, plain), ([4] * 512, SHORT)):
    arrays = packed(lengths)
    special = specialize(forward, arrays)
    workspace = workspace_of(special, arrays)
    found = schedule(forward, arrays)
    assert found.startswith(wants) and (workspace.size > 0) == (wants == SHORT), (lengths[:2], found)
    assert launch(special, arrays, workspace) is None
    check_rows(arrays, lengths)
assert lib.attnCompileCount() == compiled

# Neither neighbours nor sizes decide what bits of deterministic gradients are.
fixed = compile_problem(PROBLEM + BACKWARD + " deterministic")
assert schedule(fixed, packed([3] * 600)) == lib.attnSchedule(fixed).decode()

# What says how long sequences are is believed.
said = compile_problem(PROBLEM + " expected_seqlen(4096)")
workspace_of(said, arrays)
assert schedule(said, arrays) == lib.attnSchedule(said).decode()

# Dense lengths are known: 21 rows have the program of 24, and 24 the same; of few sequences, where they are rounded
# more, that of 32.
dense = compile_problem(f"attn.problem @p mask(#attn.causal) layout(bshd) heads({HEADS}) dims({DIM}) dtype(f16)")
plain, compiled = lib.attnSchedule(dense).decode(), lib.attnCompileCount()
for batch, rows in (40, 21), (32, 24), (1, 24), (33, 97):
    arrays = {n: rng.standard_normal((batch, rows, HEADS, DIM)).astype(np.float16) for n in "qkv"}
    arrays.update(o=np.full_like(arrays["q"], np.nan), lse=np.full((batch, HEADS, rows), np.nan, np.float32))
    special = specialize(dense, arrays)
    assert launch(special, arrays, workspace_of(special, arrays)) is None
    wants = f"one CTA per sequence; expected_seqlen({24 if batch >= 32 else 32}" if rows <= 24 else plain
    assert schedule(dense, arrays).startswith(wants), schedule(dense, arrays)
    for b in range(0, batch, 7):
        expected, _ = attend(*(arrays[n][b, :, 1] for n in "qkv"), np.tril(np.ones((rows, rows), bool)), DIM**-0.5)
        assert np.allclose(arrays["o"][b, :, 1], expected, rtol=4e-3, atol=4e-3)
assert lib.attnCompileCount() == compiled + 2

# Nor does the number of sequences decide what deterministic gradients are: rows of one length have one program, alone
# or not.
fixed, alone = compile_problem(PROBLEM.replace("thd", "bshd") + BACKWARD + " deterministic"), None
for batch, rows, wants in ((1, 21, "one CTA per sequence; expected_seqlen(24, 24)"),
                           (40, 21, "one CTA per sequence; expected_seqlen(24, 24)"),
                           (40, 257, lib.attnSchedule(fixed).decode())):
    arrays = {n: rng.standard_normal((batch, rows, HEADS, DIM)).astype(np.float16) for n in ("q", "k", "v", "do")}
    arrays.update(lse=np.full((batch, HEADS, rows), np.nan, np.float32))
    poison(arrays)
    if rows == 21:
        for n in ("q", "k", "v", "do"):
            arrays[n][batch - 1] = alone[n][0] if alone else arrays[n][0]
        special = specialize(dense, arrays)
        assert launch(special, arrays, workspace_of(special, arrays)) is None
        alone = alone or arrays
        arrays["lse"][-1] = alone["lse"][0]  # forward passes have programs by the number of sequences, too
        special = specialize(fixed, arrays)
        assert launch(special, arrays, workspace_of(special, arrays)) is None
        assert all(np.isfinite(arrays[n]).all() and np.array_equal(arrays[n][-1], alone[n][0])
                   for n in ("dq", "dk", "dv"))
    assert schedule(fixed, arrays).startswith(wants), schedule(fixed, arrays)

# One query is walked by a warp of its own only where there are many. Else its keys are a tile, or many of them tiles as
# where nothing is known.
OWN = "one CTA per sequence; expected"
for batch, keys, wants in ((10, 60, OWN + "_seqlen(16, 64)"), (100, 60, OWN + "_seqlen(4, 64)"),
                           (16000, 60, OWN + "_seqlen(4, 64)"), (16500, 60, "SIMT rows; expected_seqlen(1, 64)"),
                           (40, 2, "SIMT rows; expected_seqlen(1, 2)"),
                           (100, 250, plain), (16000, 250, "SIMT rows; expected_seqlen(1, 256)"), (16500, 700, plain)):
    # Nobody looks at these numbers.
    arrays = {n: np.empty((batch, 1 if n in "qo" else keys, HEADS, DIM), np.float16) for n in "qkvo"}
    arrays.update(lse=np.empty((batch, HEADS, 1), np.float32))
    assert schedule(dense, arrays).startswith(wants), (batch, keys, schedule(dense, arrays))

# Few queries on many keys: parts of keys, and heads of a group in one tile, whatever the number of keys; many tiles of
# one head each have the plain program.
decode = compile_problem("attn.problem @p mask(#attn.full) layout(bshd) heads(4, 2) dims(32) dtype(f16)")
plain, made = lib.attnSchedule(decode).decode(), None
for batch, rows, keys, wants in ((1, 1, 1500, "tiles, split-KV, 2 query heads packed"), (2, 1, 1030, None),
                                 (1, 1, 900, plain), (33, 70, 1024, plain)):
    arrays = {n: rng.standard_normal((batch, rows if n == "q" else keys, 4 if n == "q" else 2, 32)).astype(np.float16)
              for n in "qkv"}
    arrays.update(o=np.full_like(arrays["q"], np.nan), lse=np.full((batch, 4, rows), np.nan, np.float32))
    special = specialize(decode, arrays)
    workspace = workspace_of(special, arrays)
    found = schedule(decode, arrays)
    assert found == made if wants is None else found.startswith(wants), found
    made = made or found
    assert launch(special, arrays, workspace) is None
    for b, h in ((0, 0), (batch - 1, 3)):
        expected, lse = attend(arrays["q"][b, :, h], arrays["k"][b, :, h // 2], arrays["v"][b, :, h // 2],
                               np.ones((rows, keys), bool), 32**-0.5)
        assert np.allclose(arrays["o"][b, :, h], expected, rtol=4e-3, atol=4e-3)
        assert np.allclose(arrays["lse"][b, h], lse, atol=1e-4)
refused = tensors_of(dense, {**arrays, "q": arrays["q"].astype(np.float32)})
assert lib.attnSpecialize(dense, refused, C.byref(C.c_void_p())) != 0
assert b"expected f16 for `q`, got: f32" in lib.attnLastError()
print("many short sequences have their own program")
