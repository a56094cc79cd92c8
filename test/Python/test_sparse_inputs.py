# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bad inputs of sparse attention on the CPU, without a framework: lists of any numbers, programs that contradict
themselves, options out of range."""
import attnc
import numpy as np
import pytest

ROWS, KEYS, HEADS, KV_HEADS, DIM = 8, 4, 6, 2, 16
CU = np.array([0, 21, 21, 22, 60], np.int32)
WILD = (-1, -2, -2**31, 2**31 - 1, 2**29, 2**30, 100)  # 2**30 blocks of 4 keys: 0 in 32 bits


def aligned(values):
    raw = np.zeros(values.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start:start + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


def lists_of(seed):
    """Lists of every line [kv heads, lines, entries], those with any numbers and the same sets in order."""
    rng = np.random.default_rng(seed)
    lines = CU[-1] // ROWS + len(CU) - 1
    wild = np.full((KV_HEADS, lines, 9), 77, np.int32)  # lines of no tile have blocks that are not there
    clean = np.full(wild.shape, -1, np.int32)
    for b in range(len(CU) - 1):
        blocks = -(-(CU[b + 1] - CU[b]) // KEYS)
        for tile in range(-(-(CU[b + 1] - CU[b]) // ROWS)):
            for g in range(KV_HEADS):
                line = wild[g, CU[b] // ROWS + b + tile]
                chosen = rng.integers(0, blocks, 4)
                beyond = rng.integers(blocks, blocks + 3, 1)  # those of the next sequence, as if it went on
                line[:] = rng.permutation([*chosen, chosen[0], *beyond, *rng.choice(WILD, 3)])
                inside = sorted(set(int(j) for j in line if 0 <= j < blocks))
                clean[g, CU[b] // ROWS + b + tile, :len(inside)] = inside
    return aligned(wild), aligned(clean)


def attention_by_numpy(q, k, v, clean, causal):
    o = np.zeros(q.shape)
    for b in range(len(CU) - 1):
        for t in range(CU[b + 1] - CU[b]):
            keys = np.arange(CU[b + 1] - CU[b])
            for h in range(HEADS):
                g = h // (HEADS // KV_HEADS)
                seen = np.isin(keys // KEYS, clean[g, CU[b] // ROWS + b + t // ROWS])
                if causal:
                    seen &= keys <= t
                if seen.any():
                    rows = CU[b] + keys[seen]
                    s = k[rows, g].astype(np.float64) @ q[CU[b] + t, h] * DIM**-0.5
                    p = np.exp(s - s.max())
                    o[CU[b] + t, h] = p / p.sum() @ v[rows, g]
    return o


@pytest.mark.parametrize("causal", (True, False))
def test_lists_of_any_numbers(causal):
    """Entries may repeat and have any order. -1, other negative numbers, and blocks beyond the sequence are nothing."""
    mask = attnc.block_list("lists", ROWS, KEYS)
    mask = mask & attnc.causal() if causal else mask
    problem = attnc.Problem(mask, heads=(HEADS, KV_HEADS), dims=DIM, layout="thd", dtype="f32")
    rng = np.random.default_rng(3)
    q, do = (aligned(rng.standard_normal((CU[-1], HEADS, DIM)).astype(np.float32)) for _ in range(2))
    k, v = (aligned(rng.standard_normal((CU[-1], KV_HEADS, DIM)).astype(np.float32)) for _ in range(2))
    wild, clean = lists_of(4)
    assert not np.array_equal(np.sort(wild), np.sort(clean))
    given = dict(q=q, k=k, v=v, cu_seqlens_q=CU, cu_seqlens_kv=CU)
    found = {}
    for lists in (wild, clean):
        results = {}
        for kernel in (problem.compile("cpu"), problem.gradient(deterministic=True).compile("cpu")):
            inputs = {name: {**given, **results, "do": do, "lists": lists}[name] for name in kernel.names
                      if name not in kernel.results}
            shapes, size = kernel.infer_shapes(inputs), kernel.workspace_size(inputs)
            results |= {name: aligned(np.full(shape.shape, np.nan, np.float32)) for name, shape in shapes.items()}
            kernel.launch({name: {**inputs, **results}[name] for name in kernel.names},
                          aligned(np.zeros(size, np.uint8)) if size else None)
        for name, result in results.items():
            assert np.isfinite(result).all() or name == "lse"
            assert np.array_equal(result, found.setdefault(name, result)), name
    assert np.abs(found["o"] - attention_by_numpy(q, k, v, clean, causal)).max() < 1e-5


ADD = "attn.add @add parts(1) layout(thd) heads(4) dim(8) dtype(f32)\n"
BODY = '  %x = attn.operand "x"\n  %y = attn.call @add(part_0 = %x) -> (result)\n  attn.result "y" = %y\n'


def in_program(body, name="p"):
    return ADD + f"attn.program @{name} {{\n{body}}}\n"


@pytest.mark.parametrize("text, name, message", (
    (in_program('  %z = attn.operand "z"\n' + BODY), "p", "@p: .*expected a call that reads `z`, got: none"),
    (in_program(BODY.replace("part_0", "x")), "p", "@p: .*expected the operand `part_0` of @add, got: none"),
    (in_program(BODY.replace("= %x", "= %x, part_1 = %x")), "p", "expected operands `part_0` of @add, got: `part_1`"),
    (in_program(BODY.replace("(result)", "(o)")), "p", "expected results `result` of @add, got: `o`"),
    (in_program(BODY.replace('"y"', '"x"')), "p", 'expected distinct names of operands and results, got: "x" twice'),
    (in_program(BODY.replace("@add", "@p")), "p", "expected the name of a computation in the module, got: @p"),
    (in_program(BODY.replace("= %x", "= %y")), "p", "does not dominate this use"),
    (in_program(BODY, "add"), "add", "redefinition of symbol named 'add'"),
    (ADD.replace("@add", "@half").replace("f32", "f16") + in_program(
        BODY + '  %z = attn.call @half(part_0 = %x) -> (result)\n  attn.result "z" = %z\n'), "p",
     "expected f16 for `part_0` of @half, got: f32, as `x` is"),
))
def test_refused_programs(text, name, message):
    program = attnc.Program(text, name)
    for ask in (lambda: program.lower("cpu"), program.describe):
        with pytest.raises(attnc.ProblemError, match=message):
            ask()


@pytest.mark.parametrize("options, message", (
    (dict(count=2), "count up to 1024 with room for both, got: count\\(2\\) first\\(1\\) local\\(2\\)"),
    (dict(first=16), "with room for both"),
    (dict(local=0), "local\\(1\\) or more"),
    (dict(first=-1), "first"),
    (dict(length=0), "length"),
    (dict(stride=0), "stride"),
    (dict(length=24), "a length from 1 to 65536 that a positive stride divides, got: length\\(24\\) stride\\(16\\)"),
    (dict(block=0), "block"),
    (dict(block=24), "blocks of 1 to 65536 keys that the stride divides, got: block\\(24\\) stride\\(16\\)"),
    (dict(rows=0), "rows"),
    (dict(rows=2**17), "1 to 65536 rows"),
    (dict(heads=(4, 3)), "got: heads = 4, kv_heads = 3"),
    (dict(heads=(4, 0)), "heads, got: 0"),
    (dict(dims=0), "a multiple of 8 from 8 to 512, got: 0"),
    (dict(window=0), "window"),
))
def test_refused_options(options, message):
    with pytest.raises(attnc.ProblemError, match=message):
        attnc.NativeSparseAttention(**{**dict(heads=(4, 2), dims=16, layout="thd"), **options}).lower("cpu")
