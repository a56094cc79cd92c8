# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels through the package without a framework: shapes, workspaces, launches on NumPy arrays, kinds of errors."""
import attnc
import numpy as np
import pytest
from attnc import CompileError, DriverError, Shape, TensorError, UnsupportedError


def aligned(shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + size].view(dtype).reshape(shape)


@pytest.fixture(scope="module")
def kernel():
    return attnc.Problem(attnc.causal(), heads=(4, 2), dims=16, dtype="f16").compile("cpu")


def tensors(batch=2, seqlen=21):
    rng = np.random.default_rng(0)
    made = {name: aligned((batch, seqlen, heads, 16), np.float16) for name, heads in (("q", 4), ("k", 2), ("v", 2))}
    for tensor in made.values():
        tensor[...] = rng.standard_normal(tensor.shape)
    return made


def test_shapes(kernel):
    assert kernel.names == ("q", "k", "v", "o", "lse") and kernel.results == ("o", "lse")
    given = {"q": Shape((2, 9, 4, 16), "f16"), "k": Shape((2, 7, 2, 16), "f16"), "v": Shape((2, 7, 2, 16), "f16")}
    assert kernel.infer_shapes(given) == {"o": Shape((2, 9, 4, 16), "f16"), "lse": Shape((2, 4, 9), "f32")}
    assert kernel.workspace_size(given) == 0
    grads = attnc.Problem(attnc.causal(), heads=(4, 2), dims=64).gradient().lower("sm_90a")  # no GPU is asked
    q, kv = Shape((1, 1024, 4, 64), "bf16"), Shape((1, 1024, 2, 64), "bf16")
    given = {"q": q, "k": kv, "v": kv, "o": q, "do": q, "lse": Shape((1, 4, 1024), "f32")}
    assert grads.workspace_size(given, multiprocessors=132) >= 8 * 4 * 1024
    assert grads.infer_shapes(given)["dk"] == kv


def test_launch(kernel):
    given = tensors()
    o, lse = aligned((2, 21, 4, 16), np.float16), aligned((2, 4, 21), np.float32)
    kernel.launch({**given, "o": o, "lse": lse})
    q, k, v = (given[n].astype(np.float64).transpose(0, 2, 1, 3) for n in "qkv")
    k, v = k.repeat(2, 1), v.repeat(2, 1)
    s = np.where(np.tri(21, dtype=bool), q @ k.swapaxes(2, 3) / 4, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    assert np.abs(o - (p / p.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3)).max() < 4e-3
    assert np.abs(lse - np.log(np.exp(s).sum(-1))).max() < 1e-3
    special, other = kernel.specialize(given), np.zeros_like(o)
    special.launch({**given, "o": (view := aligned(o.shape, np.float16)), "lse": lse})
    assert np.abs(view - o).max() < 2e-3 and other.shape == o.shape


def test_strided_views(kernel):
    packed = aligned((2, 21, 8, 16), np.float16)
    packed[...] = np.random.default_rng(1).standard_normal(packed.shape)
    views = {"q": packed[:, :, :4], "k": packed[:, :, 4:6], "v": packed[:, :, 6:]}
    whole = {}
    for name, view in views.items():
        whole[name] = aligned(view.shape, np.float16)
        whole[name][...] = view
    results = []
    for given in (views, whole):
        o, lse = aligned((2, 21, 4, 16), np.float16), aligned((2, 4, 21), np.float32)
        kernel.launch({**given, "o": o, "lse": lse})
        results.append(o)
    assert np.array_equal(*results)


def test_tensor_errors(kernel):
    given = tensors()
    for change, message in (
            ({"q": given["q"].astype(np.float32)}, "`q`"),
            ({"q": given["q"].astype(np.float64)}, "expected 'q' to be"),
            ({"k": given["k"][:, :, :1]}, "`k`"),
            ({"q": given["q"][0]}, "`q`"),
            ({"q": "q"}, "expected a tensor as 'q', got: str"),
            ({"bias": given["q"]}, "got also: bias")):
        with pytest.raises(TensorError) as error:
            kernel.infer_shapes({**given, **change})
        assert message in str(error.value), str(error.value)
        assert isinstance(error.value, ValueError)
    with pytest.raises(TensorError, match="byte order"):
        kernel.infer_shapes({**given, "q": given["q"].astype(">f2")})
    o = aligned((2, 21, 4, 16), np.float16)
    o.flags.writeable = False
    with pytest.raises(TensorError, match="'o' in memory that may be written"):
        kernel.launch({**given, "o": o, "lse": aligned((2, 4, 21), np.float32)})
    with pytest.raises(TensorError, match="got none for: v"):
        kernel.infer_shapes({"q": given["q"], "k": given["k"]})
    with pytest.raises(TensorError, match="memory"):
        kernel.launch({**given, "o": Shape((2, 21, 4, 16), "f16"), "lse": Shape((2, 4, 21), "f32")})


def test_kinds_of_errors():
    configured = attnc.Problem(attnc.causal(), heads=4, dims=64).gradient()
    object.__setattr__(configured, "_text", configured.text +
                       " schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 9>)")
    with pytest.raises(UnsupportedError, match="lowering for sm_90a failed"):
        configured.lower("sm_90a")
    with pytest.raises(attnc.Error, match="expected target"):
        attnc.Problem(attnc.causal(), heads=4, dims=16).lower("sm_70")
    if not attnc_has_gpu():
        with pytest.raises(DriverError):
            attnc.Problem(attnc.causal(), heads=4, dims=64).compile("sm_90a")


def attnc_has_gpu():
    import ctypes
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


def test_no_compiler(tmp_path):
    """Without a C++ compiler the CPU target says so, and the process goes on."""
    import os
    import subprocess
    import sys
    code = ("import attnc\n"
            "problem = attnc.Problem(attnc.causal(), heads=3, dims=24)\n"
            "try:\n    problem.compile('cpu')\n"
            "except attnc.CompileError as error:\n    print('CompileError:', error)\n"
            "print(problem.supported('cpu')[0].supported)")
    environment = {**os.environ, "ATTN_CACHE_DIR": str(tmp_path), "ATTN_CXX": "/nowhere/c++",
                   "PYTHONPATH": ":".join(sys.path)}
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                            env=environment).stdout
    assert output.startswith("CompileError: ") and "/nowhere/c++" in output and output.endswith("True\n"), output
    assert issubclass(CompileError, RuntimeError)
