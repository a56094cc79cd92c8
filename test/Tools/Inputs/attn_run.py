# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attn-run on the CPU from .npy to .npy, against attention written down once more in numpy."""
import numpy as np
from run import attend, must_run, round_bf16

rng = np.random.default_rng(5)


def normal(*shape):
    return round_bf16(rng.standard_normal(shape).astype(np.float32))


def compare(what, o, lse, expected_o, expected_lse):
    """O is bfloat16, computed from probabilities rounded to it; LSE is float32."""
    assert np.isnan(o).sum() == 0 and np.allclose(o, expected_o, rtol=1 / 64, atol=1 / 64), what
    seen = np.isfinite(expected_lse)
    assert (lse[~seen] == -np.inf).all() and np.allclose(lse[seen], expected_lse[seen], atol=1e-4), what
    unseen = ~seen if seen.ndim == 1 else ~np.swapaxes(seen, -1, -2)  # LSE has heads before rows
    assert (o[unseen] == 0).all(), what


def dense():
    """GQA, d_qk != d_v, more rows than keys, a prefix for each sequence, every dense layout."""
    batch, len_q, len_k, heads, kv_heads, d, e = 2, 83, 70, 4, 2, 24, 16
    q, k, v = normal(batch, len_q, heads, d), normal(batch, len_k, kv_heads, d), normal(batch, len_k, kv_heads, e)
    prefix = np.array([9, 200], np.int32)
    rows, keys = np.arange(len_q)[:, None], np.arange(len_k)[None, :]
    o = np.zeros((batch, len_q, heads, e))
    lse = np.zeros((batch, heads, len_q))
    for b in range(batch):
        for h in range(heads):
            visible = (keys < prefix[b]) | (keys <= rows + len_k - len_q)
            visible &= rows > 2  # the band below: rows 0 to 2 see nothing
            visible &= keys <= rows - 3
            o[b, :, h], lse[b, h] = attend(q[b, :, h], k[b, :, h // 2], v[b, :, h // 2], visible, 0.3)
    mask = '#attn.and<#attn.or<#attn.prefix<"lengths">, #attn.causal<bottom_right>>, #attn.band<right = -3>>'
    axes = dict(bshd=(0, 1, 2, 3), sbhd=(1, 0, 2, 3), bhsd=(0, 2, 1, 3))
    for layout in ("bshd, bshd, bshd, bshd", "sbhd, bhsd, bshd, bhsd", "bhsd, sbhd, bhsd, sbhd"):
        of_q, of_k, of_v, of_o = (axes[name] for name in layout.split(", "))
        problem = (f"attn.problem @p mask({mask}) layout({layout}) heads({heads}, {kv_heads}) dims({d}, {e}) "
                   "dtype(bf16) scale(0.3)\n")
        inputs = dict(q=np.ascontiguousarray(q.transpose(of_q)), k=np.ascontiguousarray(k.transpose(of_k)),
                      v=np.ascontiguousarray(v.transpose(of_v)), lengths=prefix)
        got = must_run(problem, inputs, ("o", "lse"), flags=["--check"])
        compare(layout, got["o"].transpose(np.argsort(of_o)), got["lse"], o, lse)


def packed():
    """Sequences with padding between them, an empty one, other lengths for keys; padding rows become 0 and -inf."""
    len_q, len_k = (70, 0, 5, 1), (70, 3, 0, 66)
    starts_q, starts_k = (2, 75, 80, 90, 95), (0, 70, 75, 77, 150)
    heads, d = 2, 32
    q, k, v = normal(100, heads, d), normal(150, heads, d), normal(150, heads, d)
    o, lse = np.zeros((100, heads, d)), np.full((heads, 100), -np.inf)
    for b, (n, m) in enumerate(zip(len_q, len_k)):
        at, from_key = starts_q[b], starts_k[b]
        rows, keys = np.arange(n)[:, None], np.arange(m)[None, :]
        for h in range(heads):
            o[at:at + n, h], lse[h, at:at + n] = attend(
                q[at:at + n, h], k[from_key:from_key + m, h], v[from_key:from_key + m, h], keys <= rows, d**-0.5)
    for name, array, starts, lengths in (("q", q, starts_q, len_q), ("k", k, starts_k, len_k),
                                         ("v", v, starts_k, len_k)):
        padding = np.ones(len(array), bool)
        for at, n in zip(starts, lengths):
            padding[at:at + n] = False
        array[padding] = np.nan  # nobody may read it
    cu = lambda lengths: np.cumsum((0, *lengths)).astype(np.int32)
    inputs = dict(q=q, k=k, v=v, cu_seqlens_q=cu(len_q), cu_seqlens_kv=cu(len_k),
                  padded_offsets_q=np.array(starts_q, np.int32), padded_offsets_kv=np.array(starts_k, np.int32))
    problem = f"attn.problem @p mask(#attn.causal) layout(thd padded) heads({heads}) dims({d}) dtype(bf16)\n"
    got = must_run(problem, inputs, ("o", "lse"), flags=["--check"])
    compare("packed", got["o"], got["lse"], o, lse)


def documents():
    """Segment ids in any order; 0 is padding. Only o is asked for."""
    length, d = 75, 16
    q, k, v = normal(2, length, 1, d), normal(2, length, 1, d), normal(2, length, 1, d)
    ids = rng.integers(0, 4, (2, length)).astype(np.int32)
    visible = (ids[:, :, None] == ids[:, None, :]) & (ids[:, :, None] != 0)
    problem = f"attn.problem @p mask(#attn.document) layout(bshd) heads(1) dims({d}) dtype(bf16) outputs(o)\n"
    got = must_run(problem, dict(q=q, k=k, v=v, segment_ids_q=ids, segment_ids_kv=ids), ("o",), flags=["--check"])
    for b in range(2):
        o, lse = attend(q[b, :, 0], k[b, :, 0], v[b, :, 0], visible[b], d**-0.5)
        compare("documents", got["o"][b, :, 0], lse, o, lse)


for suite in (dense, packed, documents):
    suite()
print("all agree with numpy")
