# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libattnc.so from Python by ctypes: views of a packed QKV tensor, as a framework would pass them."""
import numpy as np
from attnc_host import compile_problem, launch, lib
from run import attend


def attention(layout, qkv, o, lse, **arrays):
    """qkv is [batch, rows, 3, heads, dim]; o a view as the layout wants it."""
    move = dict(bshd=(0, 1, 2, 3), sbhd=(1, 0, 2, 3), bhsd=(0, 2, 1, 3))[layout]
    q, k, v = (qkv[:, :, i].transpose(move) for i in range(3))
    return dict(q=q, k=k, v=v, o=o.transpose(move), lse=lse, **arrays)


rng = np.random.default_rng(3)
heads, dim = 3, 24
for layout in ("bshd", "sbhd", "bhsd"):
    # Lengths are given, so that launches of all shapes have one program.
    kernel = compile_problem(f"attn.problem @{layout} mask(#attn.causal<bottom_right>) layout({layout}) "
                             f"heads({heads}) dims({dim}) dtype(f16) expected_seqlen(4096)")
    compiled = lib.attnCompileCount()
    for batch, rows in ((1, 1), (2, 70), (3, 17), (0, 5), (2, 0), (1, 129)):
        qkv = rng.standard_normal((batch, rows, 3, heads, dim)).astype(np.float16)
        wide = np.full((batch, rows, heads, dim + 8), -1, np.float16)  # the result is a view, too
        lse = np.full((batch, heads, rows), np.nan, np.float32)
        failed = launch(kernel, attention(layout, qkv, wide[..., :dim], lse))
        assert failed is None, failed
        assert (wide[..., dim:] == -1).all(), "wrote beside the view"
        visible = np.tril(np.ones((rows, rows), bool))
        for b in range(batch):
            for h in range(heads):
                o, expected = attend(*(qkv[b, :, i, h] for i in range(3)), visible, dim**-0.5)
                assert np.allclose(wide[b, :, h, :dim], o, rtol=4e-3, atol=4e-3), (layout, batch, rows)
                assert np.allclose(lse[b, h], expected, atol=1e-4), (layout, batch, rows)
    assert lib.attnCompileCount() == compiled, "lengths are part of the key"
    # Views that wide loads cannot read.
    qkv, o = np.zeros((2, 9, 3, heads, dim), np.float16), np.zeros((2, 9, heads, dim), np.float16)
    lse = np.zeros((2, heads, 9), np.float32)
    good = attention(layout, qkv, o, lse)
    assert launch(kernel, good) is None
    odd = np.zeros((2, 9, heads, dim + 4), np.float16)[..., :dim].transpose(
        dict(bshd=(0, 1, 2, 3), sbhd=(1, 0, 2, 3), bhsd=(0, 2, 1, 3))[layout])
    assert b"expected strides in multiples of 8 elements (16 bytes) for `k`" in launch(kernel, {**good, "k": odd})
    assert b"expected f16 for `q`, got: f32" in launch(kernel, {**good, "q": good["q"].astype(np.float32)})
    assert b"for `o`" in launch(kernel, {**good, "o": good["o"][:1]})
    assert launch(kernel, good) is None, "a refused launch must not spoil the next"
    lib.attnDestroy(kernel)
print("views of packed QKV agree with numpy")
