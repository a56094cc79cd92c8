# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the reference page says of a problem's tensors and of rows that see nothing, against numpy, on the CPU."""
import numpy as np
from attnc_host import compile_problem, launch
from run import attend, attn_run, must_run, round_bf16

HEADS, DIM = 2, 16
PACKED = "attn.problem @p mask({}) layout(thd{}) heads(2) dims(16) dtype({}) {}\n"
rng = np.random.default_rng(11)


def normal(*shape):
    return round_bf16(rng.standard_normal(shape).astype(np.float32))


def i32(*values):
    return np.array(values, np.int32)


def tokens(q, kv):
    return dict(q=normal(q, HEADS, DIM), k=normal(kv, HEADS, DIM), v=normal(kv, HEADS, DIM))


def expect(got, q, k, v, sequences, visible, sink=None):
    """`sequences`: start and length of rows and of keys. All other rows are padding. `visible(row, key)` is asked with
    tokens."""
    o, lse = np.zeros_like(got["o"]), np.full(got["lse"].shape, -np.inf)
    for at, n, first, m in sequences:
        keep = np.array([[visible(at + i, first + j) for j in range(m)] for i in range(n)], bool).reshape(n, m)
        for h in range(q.shape[1]):
            o[at:at + n, h], row = attend(q[at:at + n, h], k[first:first + m, h], v[first:first + m, h], keep,
                                          q.shape[2] ** -0.5)
            lse[h, at:at + n] = row if sink is None else np.logaddexp(row, sink)
            if sink is not None:
                o[at:at + n, h] *= np.exp(row - lse[h, at:at + n])[:, None]
    assert np.allclose(got["o"], o, rtol=0.02, atol=0.02), np.abs(got["o"] - o).max()
    assert np.allclose(got["lse"], lse, rtol=1e-4, atol=1e-4), (got["lse"], lse)


def refuse(message, problem, inputs):
    done, _ = attn_run(problem, inputs, ("o",))
    assert done.returncode == 1 and message in done.stderr, (message, done.stderr)


def arrays():
    """Entries of sequence 1 stand at its tokens; those of padding may be anything."""
    starts, lengths, rows = (3, 10), (4, 6), 19
    inputs = tokens(rows, rows)
    used = np.zeros(rows, bool)
    for at, n in zip(starts, lengths):
        used[at:at + n] = True
    layout = {name + side: values for side in ("q", "kv")
              for name, values in (("cu_seqlens_", i32(0, 4, 10)), ("padded_offsets_", i32(3, 10, 18)))}
    first = np.arange(rows) - np.where(np.arange(rows) < 10, 3, 10)  # positions in sequences
    begin = np.where(used, np.maximum(first - 2, 0), 2**31 - 1).astype(np.int32)
    end = np.where(used, first + 2, -2**31).astype(np.int32)
    of_row = {"begin": begin, "end": end}
    sequences = [(at, n, at, n) for at, n in zip(starts, lengths)]
    for leaf, near in (("row_interval", lambda row, key: begin[row] <= first[key] < end[row]),
                       ("column_interval", lambda row, key: begin[key] <= first[row] < end[key])):
        text = PACKED.format(f'#attn.{leaf}<begin = "begin", end = "end">', " padded", "bf16", "")
        got = must_run(text, {**inputs, **layout, **of_row}, ("o", "lse"))
        expect(got, **inputs, sequences=sequences, visible=near)
    text = PACKED.format('#attn.predicate<"a[q] + b[k] > 0">', "", "bf16", "")
    inputs, a, b = tokens(9, 9), i32(*rng.integers(-3, 4, 9)), i32(*rng.integers(-3, 4, 9))
    got = must_run(text, dict(inputs, cu_seqlens_q=i32(0, 5, 9), cu_seqlens_kv=i32(0, 5, 9), a=a, b=b), ("o", "lse"))
    expect(got, **inputs, sequences=[(0, 5, 0, 5), (5, 4, 5, 4)], visible=lambda row, key: a[row] + b[key] > 0)
    print("arrays of packed layouts are indexed by token")


def first_entry():
    inputs = tokens(9, 9)
    for side in ("q", "kv"):
        for begin in (1, -1):
            good = {"cu_seqlens_q": i32(0, 5, 9), "cu_seqlens_kv": i32(0, 5, 9)}
            bad = {**good, f"cu_seqlens_{side}": i32(begin, 5, 9)}
            message = f"expected `cu_seqlens_{side}` to start at 0, got: {begin}"
            refuse(message, PACKED.format("#attn.full", "", "bf16", ""), {**inputs, **bad})
            kernel = compile_problem(PACKED.format("#attn.full", "", "f16", ""))  # the library, too
            error = launch(kernel, dict(halves(inputs), **results(9), **bad))
            assert error and message in error.decode(), error
    print("cu_seqlens begins at 0")


def halves(inputs):
    return {name: value.astype(np.float16) for name, value in inputs.items()}


def results(rows):
    return dict(o=np.full((rows, HEADS, DIM), np.nan, np.float16), lse=np.full((HEADS, rows), np.nan, np.float32))


def behind():
    inputs = tokens(12, 20)
    for side, count in (("q", 12), ("k", 20), ("v", 20)):
        inputs[side][9:] = np.nan  # nobody reads it
    got = must_run(PACKED.format("#attn.causal", "", "bf16", "sink(1.5)"),
                   dict(inputs, cu_seqlens_q=i32(0, 5, 9), cu_seqlens_kv=i32(0, 5, 9)), ("o", "lse"))
    expect(got, **inputs, sequences=[(0, 5, 0, 5), (5, 4, 5, 4)], visible=lambda row, key: key <= row, sink=1.5)
    assert not got["o"][9:].any() and (got["lse"][:, 9:] == -np.inf).all()
    print("tokens behind the last sequence are padding")


def all_hidden():
    q, k, v = normal(1, 5, 2, 16), normal(1, 7, 2, 16), normal(1, 7, 2, 16)
    bias = np.zeros((5, 7), np.float32)
    bias[2], bias[4, 1:], bias[3, 3] = -np.inf, -np.inf, -np.inf
    for sink in (None, 0.5):
        text = ("attn.problem @p mask(#attn.full) layout(bshd) heads(2) dims(16) dtype(bf16) "
                'score([#attn.bias<"bias", qk>])' + (f" sink({sink})" if sink else "") + "\n")
        got = must_run(text, dict(q=q, k=k, v=v, bias=bias), ("o", "lse"))
        expect(dict(o=got["o"][0], lse=got["lse"][0]), q[0], k[0], v[0], [(0, 5, 0, 7)],
               lambda row, key: bias[row, key] == 0, sink)
        assert not got["o"][0, 2].any() and (got["lse"][0, :, 2] == (-np.inf if sink is None else sink)).all()
        given = dict(q=q, k=k, v=v, bias=bias, do=normal(1, 5, 2, 16), **got)
        grads = must_run(text + "attn.backward @g of(@p)\n", given, ("dq", "dk", "dv"))
        assert not grads["dq"][0, 2].any() and all(np.isfinite(x).all() for x in grads.values())
    print("scores of -inf hide keys")


def sink_alone():
    """Tokens with an id that see no key see the sink, padding does not; by number and by array, with and without
    positions."""
    rows, count, kv_count = 2, 300, 40
    ids = np.repeat(i32(1, 2, 0, 3, 5), [7, 100, 9, 180, 4])
    ids_q = np.stack([ids, np.repeat(i32(0, 4, 1), [2, 290, 8])])
    ids_kv = np.stack([np.repeat(i32(2, 3, 0), [10, 20, 10]), np.repeat(i32(1, 0), [30, 10])])
    places = lambda of: np.array([[k - np.argmax(row == row[k]) for k in range(len(row))] for row in of], np.int32)
    # The first queries of a segment see no key of a causal mask.
    positions_q, positions_kv = places(ids_q), places(ids_kv) + 3
    positions_q[1, 5] = 2**30  # too far away: padding
    q, k, v = normal(rows * count, HEADS, DIM), normal(rows * kv_count, HEADS, DIM), normal(rows * kv_count, HEADS, DIM)
    good = (ids_q > 0) & (ids_q <= 4)  # 5 is none
    for mask, sink, sinks in (("#attn.causal", "2.5", [2.5, 2.5]), ("#attn.causal", '"sinks"', [-1.0, 0.25]),
                              ("#attn.full", "-3.0", [-3.0, -3.0])):
        causal = "causal" in mask
        inputs = dict(q=q, k=k, v=v, ids_q=ids_q, ids_kv=ids_kv)
        if causal:
            inputs.update(positions_q=positions_q, positions_kv=positions_kv)
        if '"' in sink:
            inputs["sinks"] = np.array(sinks, np.float32)
        got = must_run(PACKED.format(mask, " padded", "bf16", f"segments(4) sink({sink})"), inputs, ("o", "lse"),
                       flags=["--check"])
        for row in range(rows):
            at, first = row * count, row * kv_count
            visible = (ids_q[row][:, None] == ids_kv[row]) & good[row][:, None]
            counts = good[row] & (np.abs(positions_q[row]) <= 2**29) if causal else good[row]
            visible &= (positions_q[row][:, None] >= positions_kv[row]) & counts[:, None] if causal else True
            assert (~visible.any(axis=1) & counts).sum() > 5 and not counts.all()
            for h in range(HEADS):
                o, lse = attend(q[at:at + count, h], k[first:first + kv_count, h], v[first:first + kv_count, h],
                                visible, DIM ** -0.5)
                expected = np.where(counts, np.logaddexp(lse, sinks[h]), -np.inf)
                o *= np.where(visible.any(axis=1), np.exp(lse - np.where(counts, expected, 0)), 0)[:, None]
                assert np.allclose(got["lse"][h, at:at + count], expected, rtol=1e-4, atol=1e-4), (mask, sink, row, h)
                assert np.allclose(got["o"][at:at + count, h], o, rtol=0.02, atol=0.02), (mask, sink, row, h)
    print("tokens that see the sink alone")


def strides():
    """Of q, k, v, o: sequences, rows and heads in multiples of 8, backwards too; of inputs also 0. Of lse: sequences
    and heads."""
    kernel = compile_problem("attn.problem @p mask(#attn.causal) layout(bshd) heads(2) dims(16) dtype(f16)\n")
    shape = (2, 5, 2, 16)

    def made(steps, dtype=np.float16, shape=shape):
        span = [(n - 1) * step for n, step in zip(shape, steps)]
        memory = np.full(sum(map(abs, span)) + 16, np.nan, dtype)
        offset = -memory.ctypes.data % 16 // memory.itemsize
        begin = memory[offset - sum(s for s in span if s < 0):]
        return np.lib.stride_tricks.as_strided(begin, shape, [s * memory.itemsize for s in steps])

    def made_as(name, steps):
        return made(steps, np.float32, (2, 2, 5)) if name == "lse" else made(steps)

    values = {name: rng.standard_normal(shape).astype(np.float16) for name in "qkv"}
    values["k"][...] = values["k"][:, :, :1]  # a stride of 0 says so, too
    plain = dict(values, o=made((160, 32, 16, 1)), lse=np.zeros((2, 2, 5), np.float32))
    assert launch(kernel, plain) is None
    good = {"q": (-160, -32, -16, 1), "k": (160, 32, 0, 1), "v": (24, 48 * 8, 8 * 40, 1),
            "o": (-8 * 60, 16, -8 * 12, 1), "lse": (-16, -5, 1)}
    for one in (*good, "all"):
        arrays = dict(plain, o=np.zeros_like(plain["o"]), lse=np.zeros_like(plain["lse"]))
        for name in good if one == "all" else (one,):
            arrays[name] = made_as(name, good[name])
            if name in values:
                arrays[name][...] = values[name]
        error = launch(kernel, arrays)
        assert error is None, (one, error)
        assert np.array_equal(arrays["o"], plain["o"]) and np.array_equal(arrays["lse"], plain["lse"]), one
    for name, steps, message in (("lse", (20, 10, 2), "expected stride 1 on axis 2 for `lse`"),
                                 ("lse", (20, 10, -1), "expected stride 1 on axis 2 for `lse`"),
                                 ("lse", (0, 5, 1), "expected strides other than 0"),
                                 ("o", (0, 32, 16, 1), "expected strides other than 0"),
                                 ("q", (160, 32, 16, 2), "expected stride 1 on axis 3 for `q`"),
                                 ("v", (160, 36, 16, 1), "multiples of 8 elements")):
        error = launch(kernel, dict(plain, **{name: made_as(name, steps)}))
        assert error and message in error.decode(), (name, steps, error)
    lengths = dict(values, o=plain["o"], lse=plain["lse"], n=np.arange(4, dtype=np.int32)[::2])
    kernel = compile_problem('attn.problem @p mask(#attn.prefix<"n">) layout(bshd) heads(2) dims(16) dtype(f16)\n')
    assert b"expected stride 1 on axis 0 for `n`" in launch(kernel, lengths)
    print("strides")


def slots():
    """Two sequences share keys: one text and two continuations."""
    inputs = tokens(10, 17)  # no fewer than all lengths of keys together
    arrays = dict(cu_seqlens_q=i32(0, 4, 10), padded_offsets_q=i32(0, 4, 10), cu_seqlens_kv=i32(0, 8, 17),
                  padded_offsets_kv=i32(0, 2, 17))
    text = PACKED.format("#attn.full", " padded", "bf16", "")
    got = must_run(text, {**inputs, **arrays}, ("o", "lse"))
    expect(got, **inputs, sequences=[(0, 4, 0, 8), (4, 6, 2, 9)], visible=lambda row, key: True)
    rows = dict(inputs, **arrays, **got, do=normal(10, HEADS, DIM))
    done, _ = attn_run(text + "attn.backward @g of(@p)\n", rows, ("dq", "dk", "dv"))
    assert done.returncode == 1, "a slot that overlaps another one is written to"
    small = "expected a slot of at least 8 tokens for sequence 0 in `padded_offsets_kv`, got: 2"
    assert small in done.stderr, done.stderr
    refuse("expected the last of `cu_seqlens_kv` within the buffer of 16 tokens, got: 17", text,
           {**inputs, **arrays, "k": inputs["k"][:16], "v": inputs["v"][:16]})
    queries = dict(arrays, padded_offsets_q=i32(0, 2, 10))
    refuse("expected a slot of at least 4 tokens for sequence 0 in `padded_offsets_q`, got: 2", text,
           {**inputs, **queries})
    print("slots of keys may overlap in forward passes")


def own_memory():
    kernel = compile_problem("attn.problem @p mask(#attn.causal) layout(bshd) heads(2) dims(16) dtype(f16)\n")
    q, k, v = (rng.standard_normal((2, 5, 2, 16)).astype(np.float16) for _ in "qkv")
    same = launch(kernel, dict(q=q, k=k, v=k, o=np.zeros_like(q), lse=np.zeros((2, 2, 5), np.float32)))
    assert same is None, same  # inputs may be one
    error = launch(kernel, dict(q=q, k=k, v=v, o=q, lse=np.zeros((2, 2, 5), np.float32)))
    assert error and b"expected memory of its own for `o`, got: that of `q`" in error, error
    print("results have memory of their own")


for suite in (arrays, first_entry, behind, all_hidden, sink_alone, strides, slots, own_memory):
    suite()
