# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attn.compress, attn.combine, attn.add and their gradients on the CPU, against NumPy in float64."""
import mmap

import numpy as np
import pytest
from attnc import Program, TensorError

UNIT = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}  # of rounding
LEAST = {"f32": 0, "f16": 2.0**-25, "bf16": 0}  # half of the least subnormal number, where tests have such
FROM_BSHD = {"bshd": (0, 1, 2, 3), "sbhd": (1, 0, 2, 3), "bhsd": (0, 2, 1, 3)}


class BFloat16:
    """An array of bfloat16, which NumPy does not have, in one of uint16."""
    dtype = "bfloat16"

    def __init__(self, bits):
        self.bits, self.shape = bits, bits.shape

    def stride(self):
        return [step // 2 for step in self.bits.strides]

    def data_ptr(self):
        return self.bits.ctypes.data


def put(memory, values, dtype):
    if dtype != "bf16":
        memory[...] = values
        return
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16
    memory[...] = np.where(np.isnan(values), bits >> 16 | 0x40, rounded)


def read(tensor):
    """The values of a tensor in float64."""
    if isinstance(tensor, BFloat16):
        return (tensor.bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return tensor.astype(np.float64)


def tensor_of(values, dtype, spare=0):
    """A tensor of these values in memory that begins at a multiple of 64 bytes. `spare`: so many further heads (or
    rows, if the layout has those behind) in memory, which hold NaN: a view with strides."""
    kind = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}[dtype]
    shape = list(np.shape(values))
    whole = list(shape)
    if spare:
        whole[-2] += spare
    size = int(np.prod(whole)) * np.dtype(kind).itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    memory = raw[start:start + size].view(kind).reshape(whole)
    put(memory, np.full(whole, np.nan), dtype)
    memory = memory[..., :shape[-2], :] if spare else memory
    put(memory, values, dtype)
    return BFloat16(memory) if dtype == "bf16" else memory


def integers(values):
    raw = np.zeros(len(values) + 16, np.int32)
    start = -raw.ctypes.data % 64 // 4
    array = raw[start:start + len(values)]
    array[...] = values
    return array


def run(text, name, given, spare=0):
    """The results of a computation, by name, as tensors; `spare` is that of results that may have strides."""
    kernel = Program(text, name).compile("cpu")
    size = kernel.workspace_size(given)
    workspace = np.zeros(size, np.uint8) if size else None
    results = {}
    for result, shape in kernel.infer_shapes(given).items():
        if shape.dtype == "i32":
            results[result] = integers(np.full(shape.shape, -7))
        else:
            strided = 0 if result == "dgates" else spare
            results[result] = tensor_of(np.full(shape.shape, np.nan), shape.dtype, strided)
    kernel.launch({**given, **results}, workspace)
    return results


def check(got, expected, dtype, magnitude=0.0):
    """`magnitude`: of the terms of which the expected numbers are sums."""
    got = read(got)
    assert got.shape == expected.shape
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    finite = ~np.isnan(expected)
    error = np.abs(got - expected)[finite]
    bound = (1.01 * UNIT[dtype] * np.abs(expected) + LEAST[dtype] + 1e-6 * magnitude)[finite]
    assert (error <= bound).all(), (error - bound).max()


def random(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def in_layout(values, layout):
    """[batch, rows, heads, dim] in a layout; packed: of one batch row."""
    return values[0] if layout == "thd" else values.transpose(FROM_BSHD[layout])


#
# attn.compress
#


def windows_of(tokens, length, stride):
    return 0 if tokens < length else (tokens - length) // stride + 1


def pooled(x, length, stride):
    """The means of a sequence's windows: x is [tokens, heads, dim]."""
    count = windows_of(len(x), length, stride)
    return np.stack([x[i * stride:i * stride + length].mean(0) for i in range(count)]) if count else x[:0]


def spread(dy, tokens, length, stride):
    """The gradient of `pooled`."""
    dx = np.zeros((tokens, ) + dy.shape[1:])
    for i in range(windows_of(tokens, length, stride)):
        dx[i * stride:i * stride + length] += dy[i] / length
    return dx


def compress_text(length, stride, layout, dtype, heads=2, dims="64, 32"):
    return (f"attn.compress @pool mean length({length}) stride({stride}) layout({layout}) heads({heads}) "
            f"dims({dims}) dtype({dtype})\n")


def offsets_of(length):
    return integers(np.cumsum([0, 0, 1, length - 1, length, 0, 300, length + 1]))


# `behind`: rows behind the last sequence.
PACKED = [(32, 16, "bf16", 0), (32, 32, "f16", 37), (48, 8, "f32", 100), (1, 1, "f32", 5)]


@pytest.mark.parametrize("length, stride, dtype, behind", PACKED)
@pytest.mark.parametrize("spare", (0, 1))
def test_compress_packed(length, stride, dtype, behind, spare):
    cu = offsets_of(length)
    total, batch = int(cu[-1]) + behind, len(cu) - 1
    given, values = {"cu_seqlens": cu}, {}
    for x, dim in (("k", 64), ("v", 32)):
        values[x] = random(dim, total, 2, dim)
        values[x][cu[-1]:] = np.nan
        given[x] = tensor_of(values[x], dtype, spare)
        values[x] = read(given[x])
    results = run(compress_text(length, stride, "thd", dtype), "pool", given, spare)
    counts = [windows_of(cu[b + 1] - cu[b], length, stride) for b in range(batch)]
    assert results["cu_seqlens_compressed"].tolist() == [0] + np.cumsum(counts).tolist()
    for x in "kv":
        expected = np.zeros((total // stride, ) + values[x].shape[1:])
        expected[:sum(counts)] = np.concatenate([pooled(values[x][cu[b]:cu[b + 1]], length, stride)
                                                 for b in range(batch)])
        check(results["compressed_" + x], expected, dtype, 4)


DENSE = (("bshd", "f32", 32, 16, 0), ("sbhd", "bf16", 32, 32, 1), ("bhsd", "f16", 48, 16, 2))


@pytest.mark.parametrize("layout, dtype, length, stride, spare", DENSE)
@pytest.mark.parametrize("tokens", (0, 5, 31, 48, 100))
def test_compress_dense(layout, dtype, length, stride, spare, tokens):
    given, values = {}, {}
    for x, dim in (("k", 64), ("v", 32)):
        given[x] = tensor_of(in_layout(random(dim, 3, tokens, 2, dim), layout), dtype, spare)
        values[x] = read(given[x]).transpose(np.argsort(FROM_BSHD[layout]))
    results = run(compress_text(length, stride, layout, dtype), "pool", given, spare)
    for x in "kv":
        expected = np.stack([pooled(sequence, length, stride) for sequence in values[x]])
        check(results["compressed_" + x], in_layout(expected, layout), dtype, 4)


@pytest.mark.parametrize("length, stride, dtype, behind", PACKED)
@pytest.mark.parametrize("add", (0, 2))
def test_compress_backward_packed(length, stride, dtype, behind, add):
    cu = offsets_of(length)
    total, batch, spare = int(cu[-1]) + behind, len(cu) - 1, add // 2
    counts = [windows_of(cu[b + 1] - cu[b], length, stride) for b in range(batch)]
    cu_c = integers([0] + np.cumsum(counts).tolist())
    given, expected = {"cu_seqlens": cu, "cu_seqlens_compressed": cu_c}, {}
    for x, dim in (("k", 64), ("v", 32)):
        dy = random(dim, total // stride, 2, dim)
        dy[cu_c[-1]:] = np.nan  # rows of no window
        given["dcompressed_" + x] = tensor_of(dy, dtype, spare)
        dy, dx = read(given["dcompressed_" + x]), np.zeros((total, 2, dim))
        for b in range(batch):
            dx[cu[b]:cu[b + 1]] = spread(dy[cu_c[b]:cu_c[b + 1]], cu[b + 1] - cu[b], length, stride)
        for i in range(add):
            name = f"before_d{x}_{i}"
            given[name] = tensor_of(random(7 + i, total, 2, dim), "f32", spare)
            dx += read(given[name])
        if not add and x == "k":  # says how many tokens there are; its values are not read
            given["k"] = tensor_of(np.full(dx.shape, np.nan), dtype)
        expected["d" + x] = dx
    text = compress_text(length, stride, "thd", dtype) + f"attn.compress_backward @grads of(@pool) add({add})\n"
    results = run(text, "grads", given, spare)
    for name, dx in expected.items():
        check(results[name], dx, dtype, 8)


@pytest.mark.parametrize("layout, dtype, length, stride, add", (("bshd", "f32", 32, 16, 1), ("sbhd", "bf16", 32, 32, 0),
                                                                ("bhsd", "f16", 48, 16, 8)))
@pytest.mark.parametrize("tokens", (0, 5, 31, 48, 100))
def test_compress_backward_dense(layout, dtype, length, stride, add, tokens):
    given, expected = {}, {}
    for x, dim in (("k", 64), ("v", 32)):
        dy = random(dim, 3, windows_of(tokens, length, stride), 2, dim)
        given["dcompressed_" + x] = tensor_of(in_layout(dy, layout), dtype, 1)
        dy = read(given["dcompressed_" + x]).transpose(np.argsort(FROM_BSHD[layout]))
        dx = in_layout(np.stack([spread(sequence, tokens, length, stride) for sequence in dy]), layout)
        for i in range(add):
            name = f"before_d{x}_{i}"
            given[name] = tensor_of(random(7 + i, *dx.shape), "f32", i % 2)
            dx = dx + read(given[name])
        if not add and x == "k":
            given["k"] = tensor_of(np.full(dx.shape, np.nan), dtype)
        expected["d" + x] = dx
    text = compress_text(length, stride, layout, dtype) + "attn.compress_backward @grads of(@pool)"
    results = run(text + (f" add({add})\n" if add else "\n"), "grads", given, 1)
    for name, dx in expected.items():
        check(results[name], dx, dtype, 8 + add)


#
# attn.combine
#

COMBINED = [("sigmoid", 3, "thd", 2, 128, "bf16", "f32"), ("sigmoid", 2, "bshd", 3, 24, "f16", "f16"),
            ("sigmoid", 1, "sbhd", 2, 64, "f32", "f32"), ("sigmoid", 8, "bhsd", 1, 512, "bf16", "bf16"),
            ("uniform", 3, "bhsd", 2, 64, "f16", None), ("uniform", 2, "thd", 3, 40, "f32", None)]


def combine_text(way, branches, layout, heads, dim, dtype, gates):
    return (f"attn.combine @gated {way} branches({branches}) layout({layout}) heads({heads}) dim({dim}) "
            f"dtype({dtype})" + (f" gates({gates})" if gates and gates != "f32" else "") + "\n")


def to_rows(values, layout):
    """[batch, rows, heads, dim] of a tensor in a layout; packed: of one batch row."""
    return values[None] if layout == "thd" else values.transpose(np.argsort(FROM_BSHD[layout]))


def inputs_of(way, branches, layout, heads, dim, dtype, gates, spare, special=()):
    """Tensors of branches and gates, and the gates' sigmoid, [batch, rows, heads, branches]."""
    batch, rows = (1, 33) if layout == "thd" else (2, 17)
    given = {f"o_{i}": tensor_of(in_layout(random(i, batch, rows, heads, dim), layout), dtype, spare)
             for i in range(branches)}
    if way == "uniform":
        return given, np.full((batch, rows, heads, branches), 1 / branches)
    x = 3 * random(99, batch, rows, heads, branches)
    x.reshape(-1)[:len(special)] = special
    given["gates"] = tensor_of(x[0] if layout == "thd" else x, gates)
    x = read(given["gates"]).reshape(x.shape)
    with np.errstate(over="ignore"):
        return given, 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("case", COMBINED)
@pytest.mark.parametrize("spare", (0, 1))
def test_combine(case, spare):
    way, branches, layout, heads, dim, dtype, gates = case
    given, g = inputs_of(*case, spare)
    results = run(combine_text(*case), "gated", given, spare)
    expected = sum(g[..., i:i + 1] * to_rows(read(given[f"o_{i}"]), layout) for i in range(branches))
    check(results["o"], in_layout(expected, layout), dtype, 2 * branches)


def statistic_of(values, layout):
    """[batch, rows, heads] as LSEs have them."""
    return values[0].T if layout == "thd" else values.transpose(0, 2, 1)


def lses_of(g, layout):
    """LSEs of branches, some of them -inf."""
    made = {}
    for i in range(g.shape[-1]):
        lse = 5 * random(55 + i, *g.shape[:3])
        lse[:, ::7] = -np.inf
        made[f"lse_{i}"] = tensor_of(np.ascontiguousarray(statistic_of(lse, layout)), "f32")
    return made


@pytest.mark.parametrize("case", COMBINED)
@pytest.mark.parametrize("spare", (0, 1))
def test_combine_backward(case, spare):
    way, branches, layout, heads, dim, dtype, gates = case
    given, g = inputs_of(*case, spare)
    shape = in_layout(np.zeros(g.shape[:3] + (dim, )), layout).shape
    given["do"] = tensor_of(random(77, *shape), dtype, spare)
    given.update(lses_of(g, layout))
    text = combine_text(*case) + "attn.combine_backward @grads of(@gated)\n"
    results = run(text, "grads", given, spare)
    do = to_rows(read(given["do"]), layout)
    names = {f"{name}_{i}" for i in range(branches) for name in ("delta", "gated_lse")}
    assert set(results) == names | ({"dgates"} if gates else set())
    dots = np.stack([(do * to_rows(read(given[f"o_{i}"]), layout)).sum(-1) for i in range(branches)], -1)
    for i in range(branches):
        check(results[f"delta_{i}"], statistic_of(dots[..., i], layout), "f32", 0.1 * dim)
        wanted = read(given[f"lse_{i}"]) - np.log(statistic_of(g[..., i], layout))
        found = read(results[f"gated_lse_{i}"])
        assert np.allclose(found, wanted, rtol=1e-6, atol=1e-5) and np.isinf(found).any()
    if gates:
        expected = g * (1 - g) * dots
        check(results["dgates"], expected[0] if layout == "thd" else expected, gates, 0.1 * dim)


# Gates of any size: exp(-x) may overflow or vanish.
SPECIAL = (np.inf, -np.inf, np.nan, 0.0, -0.0, 87.0, -87.0, 89.0, -89.0, 1000.0, -1000.0, 3e38, -3e38, 20.0, -20.0,
           1e-40)


def test_special_gates():
    case = ("sigmoid", 2, "thd", 1, 8, "f32", "f32")
    given, g = inputs_of(*case, 0, SPECIAL)
    g = g.reshape(-1, 2)
    for own, other in ((0, 1), (1, 0)):
        given[f"o_{own}"][...], given[f"o_{other}"][...] = 1.0, 0.0
        o = read(run(combine_text(*case), "gated", given)["o"])[:, 0]
        expected = np.where(np.isnan(g[:, other]), np.nan, g[:, own])[:, None]
        assert np.allclose(o, expected, rtol=1e-5, atol=1e-37, equal_nan=True)
        far = np.abs(read(given["gates"])[:, 0, own]) > 100
        assert np.array_equal(o[far, 0], expected[far, 0], equal_nan=True)  # 0 and 1 are exact
    given["do"] = tensor_of(np.ones((33, 1, 8)), "f32")
    given["o_0"][...] = given["o_1"][...] = 1.0
    for i in range(2):
        given[f"lse_{i}"] = tensor_of(np.full((1, 33), 2.0), "f32")
    text = combine_text(*case) + "attn.combine_backward @grads of(@gated)\n"
    results = run(text, "grads", given)
    dgates, x = read(results["dgates"]).reshape(-1), read(given["gates"])[:, 0]
    for i in range(2):
        with np.errstate(over="ignore"):
            minus_log = np.where(x[:, i] < 0, -x[:, i], 0) + np.log1p(np.exp(-np.abs(x[:, i])))
        assert np.allclose(read(results[f"gated_lse_{i}"])[0], 2 + minus_log, rtol=1e-6, equal_nan=True)
    x = np.abs(x.reshape(-1))
    assert np.allclose(dgates, 8 * np.exp(-x) / (1 + np.exp(-x))**2, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_branches_that_are_not_finite():
    """0 times a NaN or an infinity is a NaN, and only their own rows have it."""
    case = ("sigmoid", 2, "thd", 1, 16, "f16", "f32")
    given, _ = inputs_of(*case, 0)
    given["gates"][...] = 0.0
    given["gates"][:, 0, 0] = -np.inf
    given["o_0"][3, 0, 5], given["o_0"][4, 0, 6], given["o_1"][7, 0, 1] = np.nan, np.inf, np.inf
    o = read(run(combine_text(*case), "gated", given)["o"])
    found = np.argwhere(np.isnan(o)).tolist()
    assert found == [[3, 0, 5], [4, 0, 6]] and o[7, 0, 1] == np.inf


#
# attn.add
#


@pytest.mark.parametrize("parts, layout, heads, dim, dtype, source", ((3, "thd", 2, 128, "bf16", "f32"),
                                                                      (8, "bshd", 1, 24, "f16", "f16"),
                                                                      (1, "bhsd", 3, 64, "bf16", "f32"),
                                                                      (2, "sbhd", 2, 512, "f32", "f32")))
@pytest.mark.parametrize("spare", (0, 1))
def test_add(parts, layout, heads, dim, dtype, source, spare):
    batch, rows = (1, 33) if layout == "thd" else (2, 17)
    given = {f"part_{i}": tensor_of(in_layout(random(i, batch, rows, heads, dim), layout), source, spare)
             for i in range(parts)}
    text = f"attn.add @sum parts({parts}) layout({layout}) heads({heads}) dim({dim}) dtype({dtype})"
    results = run(text + (f" from({source})\n" if source != dtype else "\n"), "sum", given, spare)
    check(results["result"], sum(read(part) for part in given.values()), dtype, parts)


def test_wrong_tensors():
    case = COMBINED[0]
    given, _ = inputs_of(*case, 0)
    kernel = Program(combine_text(*case), "gated").lower("cpu")
    for change, message in (({"gates": given["gates"][:, :, :2]}, "`gates`"),
                            ({"gates": given["gates"].astype(np.float16)}, "`gates`"),
                            ({"gates": np.zeros((33, 2, 4), np.float32)[:, :, :3]}, "`gates`"),
                            ({"o_1": BFloat16(given["o_1"].bits[:-1])}, "o_1")):
        with pytest.raises(TensorError, match=message):
            kernel.infer_shapes({**given, **change})


def far(values):
    """The same numbers with rows so far apart that offsets need 64 bits, in memory of which only these pages exist."""
    stride = 2**32 // len(values) // 8 * 8
    no_reserve = 0x4000
    memory = mmap.mmap(-1, len(values) * stride * 4, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)
    view = np.lib.stride_tricks.as_strided(np.frombuffer(memory, np.float32), values.shape,
                                           (4 * stride, ) + values.strides[1:])
    view[...] = values
    return view


@pytest.mark.parametrize("text", (compress_text(32, 16, "thd", "f32", 1, "8"),
                                  compress_text(32, 16, "thd", "f32", 1, "8") +
                                  "attn.compress_backward @grads of(@pool) add(1)\n",
                                  "attn.combine @sum sigmoid branches(2) layout(thd) heads(1) dim(8) dtype(f32)\n",
                                  "attn.combine @g sigmoid branches(2) layout(thd) heads(1) dim(8) dtype(f32)\n"
                                  "attn.combine_backward @grads of(@g)\n",
                                  "attn.add @sum parts(2) layout(thd) heads(1) dim(8) dtype(f32)\n"))
def test_offsets_of_64_bits(text):
    name = "grads" if "@grads" in text else text.partition("@")[2].split()[0]
    kernel = Program(text, name).compile("cpu")
    rows, cu = 100, integers([0, 40, 96])
    shapes = {"gates": (rows, 1, 2), "lse_0": (1, rows), "lse_1": (1, rows), "dcompressed_k": (rows // 16, 1, 8),
              "dcompressed_v": (rows // 16, 1, 8)}
    near = {x: tensor_of(random(i, *shapes.get(x, (rows, 1, 8))), "f32") for i, x in enumerate(kernel.names)
            if x not in kernel.results}
    if "cu_seqlens" in near:
        near["cu_seqlens"] = cu
    if "cu_seqlens_compressed" in near:
        near["cu_seqlens_compressed"] = integers([0, 1, 5])
    expected = run(text, name, near)
    is_wide = lambda x, tensor: tensor.ndim == 3 and not x.endswith("gates") and tensor.dtype == np.float32
    wide = {x: far(tensor) if is_wide(x, tensor) else tensor for x, tensor in near.items()}
    results = {x: far(tensor) if is_wide(x, tensor) else tensor.copy()
               for x, tensor in expected.items()}
    for tensor in results.values():
        tensor[...] = 99
    kernel.launch({**wide, **results})
    for x, tensor in expected.items():
        assert np.array_equal(results[x], tensor)


def test_program():
    """Calls of one program give the bits that their kernels give."""
    case = ("sigmoid", 2, "thd", 2, 64, "f16", "f32")
    given, _ = inputs_of(*case, 0)
    given["do"] = tensor_of(random(5, 33, 2, 64), "f16")
    given.update({f"lse_{i}": tensor_of(random(6 + i, 2, 33), "f32") for i in range(2)})
    text = combine_text(*case) + "attn.combine_backward @grads of(@gated)\n"
    apart = {**run(text, "gated", {name: given[name] for name in ("o_0", "o_1", "gates")}), **run(text, "grads", given)}
    both = text + """attn.add @double parts(2) layout(thd) heads(2) dim(64) dtype(f16)
attn.program @both {
  %a = attn.operand "o_0"
  %b = attn.operand "o_1"
  %g = attn.operand "gates"
  %do = attn.operand "do"
  %la = attn.operand "lse_0"
  %lb = attn.operand "lse_1"
  %o = attn.call @gated(o_0 = %a, o_1 = %b, gates = %g) -> (o)
  %twice = attn.call @double(part_0 = %o, part_1 = %o) -> (result)
  %da, %gb, %dg = attn.call @grads(o_0 = %a, o_1 = %b, lse_0 = %la, lse_1 = %lb, gates = %g, do = %do)
      -> (delta_0, gated_lse_1, dgates)
  attn.result "twice" = %twice
  attn.result "delta_0" = %da
  attn.result "gated_lse_1" = %gb
  attn.result "dgates" = %dg
}
"""
    together = run(both, "both", given)
    assert np.array_equal(together["twice"], 2 * apart["o"])
    for name in ("delta_0", "gated_lse_1", "dgates"):
        assert np.array_equal(together[name], apart[name])
