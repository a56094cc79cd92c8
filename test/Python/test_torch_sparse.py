# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""native_sparse_attention(), moba_attention() and block_max_attention() on the CPU: against float64, with gradients,
torch.compile, and what is refused."""
import attnc
import pytest
import torch
import torch.utils.checkpoint
from attnc.torch import block_max_attention, moba_attention, native_sparse_attention

OPTIONS = dict(length=8, stride=4, block=8, count=4, first=1, local=2, window=7, rows=8)


def of_branch(q, k, v, visible):
    """[heads, rows, dim], with 0 where nothing is visible."""
    s = (q @ k.transpose(1, 2)) * q.shape[-1]**-0.5
    none = ~visible.any(-1, keepdim=True)
    p = torch.softmax(s.masked_fill(~visible & ~none, float("-inf")), -1).masked_fill(none, 0)
    return p @ v


def expected(q, kv, gates, o):
    """One sequence [tokens, heads, dim] in float64; kv: (k, v) of each branch. Rows of a tile share what its first one
    selects."""
    n, heads = q.shape[:2]
    group, t = heads // kv[0][0].shape[1], torch.arange(n)
    by_head = lambda x: x.transpose(0, 1).repeat_interleave(group, 0)
    windows = 0 if n < o["length"] else (n - o["length"]) // o["stride"] + 1
    blocks = -(-n // o["block"])
    rows = q.transpose(0, 1)
    chosen = torch.zeros(heads // group, n, blocks, dtype=torch.bool)
    compressed, p = torch.zeros_like(rows), torch.zeros(heads, n, windows, dtype=torch.float64)
    if windows:
        k, v = (by_head(torch.stack([x[i * o["stride"]:i * o["stride"] + o["length"]].mean(0)
                                     for i in range(windows)])) for x in kv[0])
        seen = (torch.arange(windows) * o["stride"] + o["length"] - 1 <= t[:, None])[None]
        compressed = of_branch(rows, k, v, seen)
        s = (rows @ k.transpose(1, 2) * q.shape[-1]**-0.5).masked_fill(~seen, float("-inf"))
        p = torch.softmax(s, -1).nan_to_num(0).detach()
    cover = torch.zeros(windows, blocks, dtype=torch.float64)
    for i in range(windows):
        for part in range(o["length"] // o["stride"]):
            block = (i + part) * o["stride"] // o["block"]
            if block < blocks:
                cover[i, block] += 1
    importance = (p @ cover).unflatten(0, (-1, group)).sum(1)
    for first in range(0, n, o["rows"]):
        own, end = first // o["block"], min(first + o["rows"], n)
        for g in range(chosen.shape[0]):
            rank = importance[g, first, :own + 1].clone()
            rank[:o["first"]] = rank[max(0, own - o["local"] + 1):] = float("inf")
            best = torch.sort(rank, descending=True, stable=True).indices[:o["count"]]
            chosen[g, first:end, best] = True
            chosen[g, first:end, own + 1:(end - 1) // o["block"] + 1] = True
    causal = t[None] <= t[:, None]
    selected = chosen.repeat_interleave(o["block"], 2)[..., :n].repeat_interleave(group, 0) & causal
    window = (causal & (t[None] > t[:, None] - o["window"]))[None]
    branches = [compressed, of_branch(rows, by_head(kv[1][0]), by_head(kv[1][1]), selected),
                of_branch(rows, by_head(kv[2][0]), by_head(kv[2][1]), window)]
    g = torch.full((*q.shape[:2], 3), 1 / 3, dtype=torch.float64) if gates is None else torch.sigmoid(gates)
    return sum(g[..., i:i + 1] * branch.transpose(0, 1) for i, branch in enumerate(branches))


def listed(q, k, v, importance, block, count, rows):
    """Causal attention of one sequence to selected blocks in float64; importance [heads, tokens, blocks] of the blocks
    before each query. Rows of a tile share what its first one selects."""
    n, (heads, group) = len(q), (importance.shape[0], q.shape[1] // k.shape[1])
    chosen = torch.zeros(heads, n, -(-n // block), dtype=torch.bool)
    for first in range(0, n, rows):
        own, end = first // block, min(first + rows, n)
        best = torch.sort(importance[:, first, :own], descending=True, stable=True).indices[:, :count - 1]
        for h in range(heads):
            chosen[h, first:end, best[h]] = True
            chosen[h, first:end, own:(end - 1) // block + 1] = True
    t, by_head = torch.arange(n), lambda x: x.transpose(0, 1).repeat_interleave(group, 0)
    seen = chosen.repeat_interleave(block, 2)[..., :n].repeat_interleave(q.shape[1] // heads, 0)
    seen = seen & (t[None] <= t[:, None])
    return of_branch(q.transpose(0, 1), by_head(k), by_head(v), seen).transpose(0, 1)


def moba(q, k, v, block, count, rows):
    """One sequence in float64: lists of query heads, by means of keys."""
    if not len(q):
        return q.new_zeros(0, q.shape[1], v.shape[2])
    means = torch.stack([part.mean(0) for part in k.split(block)]).repeat_interleave(q.shape[1] // k.shape[1], 1)
    return listed(q, k, v, torch.einsum("thd,jhd->htj", q, means).detach(), block, count, rows)


def block_max(q, k, v, index_q, index_k, block, count, rows):
    """One sequence in float64: lists of kv heads, by the largest products of an index branch."""
    if not len(q):
        return q.new_zeros(0, q.shape[1], v.shape[2])
    scores = torch.einsum("thd,shd->hts", index_q, index_k.repeat_interleave(k.shape[1] // index_k.shape[1], 1))
    largest = torch.stack([part.amax(2) for part in scores.split(block, 2)], 2)
    return listed(q, k, v, largest, block, count, rows)


def made(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def agree(found, wanted, leaves):
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=2e-5)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(9))
    for x, y in zip(torch.autograd.grad((found * weights).sum(), leaves),
                    torch.autograd.grad((wanted * weights.double()).sum(), leaves, retain_graph=True)):
        torch.testing.assert_close(x.double(), y.double(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 8, 16])
@pytest.mark.parametrize("gated", [True, False])
def test_packed(rows, gated):
    o, lengths = dict(OPTIONS, rows=rows), [0, 1, 7, 8, 61]
    q, k, v = made(77, 4, 16), made(77, 2, 16, seed=1), made(77, 2, 16, seed=2)
    gates = made(77, 4, 3, seed=3) if gated else None
    ends = torch.tensor([0, *lengths]).cumsum(0)
    found = native_sparse_attention(q, k, v, gates, layout="thd", cu_seqlens=ends, **o)
    parts = [expected(q[a:b].double(), [(k[a:b].double(), v[a:b].double())] * 3,
                      None if gates is None else gates[a:b].double(), o) for a, b in zip(ends[:-1], ends[1:]) if b > a]
    agree(found, torch.cat(parts), [x for x in (q, k, v, gates) if x is not None])


@pytest.mark.parametrize("layout", ["bshd", "bhsd", "sbhd"])
def test_dense_and_keys_of_their_own(layout):
    place = {"bshd": lambda x: x, "sbhd": lambda x: x.transpose(0, 1), "bhsd": lambda x: x.transpose(1, 2)}[layout]
    q, gates = made(2, 40, 6, 8), made(2, 40, 6, 3, seed=3)
    ks, vs = [made(2, 40, 2, 8, seed=4 + i) for i in range(3)], [made(2, 40, 2, 8, seed=7 + i) for i in range(3)]
    found = place(native_sparse_attention(place(q), [place(k) for k in ks], [place(v) for v in vs], gates,
                                          layout=layout, **OPTIONS))
    wanted = torch.stack([expected(q[b].double(), [(k[b].double(), v[b].double()) for k, v in zip(ks, vs)],
                                   gates[b].double(), OPTIONS) for b in range(2)])
    agree(found, wanted, [q, *ks, *vs, gates])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("layout", ["thd", "bshd"])
def test_narrow_gates(dtype, layout):
    """Gates of q's dtype give the bits of the same gates in float32, and gradients rounded to that dtype. Rows of 3
    heads and 3 gates have no multiple of 16 bytes, and need not begin at one."""
    lead = (50, ) if layout == "thd" else (2, 25)
    offsets = dict(cu_seqlens=torch.tensor([0, 1, 20, 50])) if layout == "thd" else {}
    q, k, v = (made(*lead, heads, 16, seed=i).detach().to(dtype).requires_grad_() for i, heads in enumerate((3, 1, 1)))
    many = made(50 * 9 + 1, seed=3).detach().to(dtype)
    weights = made(*lead, 3, 16, seed=9).detach()

    def call(gates):
        o = native_sparse_attention(q, k, v, gates, layout=layout, **offsets, **OPTIONS)
        return o, *torch.autograd.grad((o.float() * weights).sum(), (q, k, v, gates))

    for start in (0, 1):
        narrow = many[start:start + 50 * 9].view(*lead, 3, 3).requires_grad_()
        *found, dgates = call(narrow)
        *wanted, wide_dgates = call(narrow.detach().float().requires_grad_())
        assert all(map(torch.equal, found, wanted))
        assert dgates.dtype == dtype and torch.equal(dgates, wide_dgates.to(dtype)) and dgates.any()


@pytest.mark.parametrize("heads, kv_heads", [(2, 2), (3, 1), (20, 1), (40, 2)])
def test_groups_of_any_size(heads, kv_heads):
    q, gates = made(45, heads, 8), made(45, heads, 3, seed=3)
    k, v = made(45, kv_heads, 8, seed=1), made(45, kv_heads, 8, seed=2)
    found = native_sparse_attention(q[None], k[None], v[None], gates[None], **OPTIONS)[0]
    agree(found, expected(q.double(), [(k.double(), v.double())] * 3, gates.double(), OPTIONS), [q, k, v, gates])


@pytest.mark.parametrize("tokens", [0, 1, OPTIONS["length"] - 1])
def test_below_one_window(tokens):
    """Dense sequences, and packed ones of all such lengths, that have no compressed key."""
    shapes = [(tokens, 4, 16), (tokens, 2, 16), (tokens, 2, 16), (tokens, 4, 3)]
    q, k, v, gates = leaves = [made(*shape, seed=i) for i, shape in enumerate(shapes)]
    wanted = expected(q.double(), [(k.double(), v.double())] * 3, gates.double(), OPTIONS) if tokens else (
        q.double() + 0 * (k.sum() + v.sum() + gates.sum()))
    for layout, place in [("bshd", lambda x: x[None]), ("sbhd", lambda x: x[:, None]),
                          ("bhsd", lambda x: x.transpose(0, 1)[None])]:
        own = [place(x) for x in (q, k, v)] + [gates[None]]
        found = native_sparse_attention(*own, layout=layout, **OPTIONS)
        agree({"bshd": lambda: found[0], "sbhd": lambda: found[:, 0],
               "bhsd": lambda: found[0].transpose(0, 1)}[layout](), wanted, leaves)
    ends = torch.tensor([0, 0, tokens, tokens])
    agree(native_sparse_attention(*leaves, layout="thd", cu_seqlens=ends, **OPTIONS), wanted, leaves)


@pytest.mark.parametrize("rows", [1, 8, 16])
def test_nan_key(rows):
    """A NaN in one key stays in its sequence and the heads of its kv head, also in gradients. Rows before it, and their
    gates, do not see it."""
    o, ends, bad = dict(OPTIONS, rows=rows), torch.tensor([0, 30, 64, 90]), 40
    leaves = [made(90, 4, 16), made(90, 2, 16, seed=1), made(90, 2, 16, seed=2), made(90, 4, 3, seed=3)]
    weights = made(90, 4, 16, seed=9).detach()

    def call(q, k, v, gates):
        found = native_sparse_attention(q, k, v, gates, layout="thd", cu_seqlens=ends, **o)
        return found, *torch.autograd.grad((found * weights).sum(), (q, k, v, gates))

    whole = call(*leaves)
    leaves[1] = leaves[1].detach().clone()
    leaves[1][bad, 1, 5] = float("nan")
    leaves[1].requires_grad_()
    found = call(*leaves)
    for number, (x, y) in enumerate(zip(whole, found)):
        apart = torch.zeros(x.shape, dtype=torch.bool)
        apart[30:64, x.shape[1] // 2:] = True
        if number in (0, 4):  # o and dgates
            apart[30:bad] = False
        assert torch.equal(x[~apart], y[~apart]), number
        assert x.isfinite().all() and y[bad].isnan().any(), number


SELECTED = {  # the function, the same in float64, and heads of its index queries and keys
    "moba": (moba_attention, moba, ()),
    "block_max": (block_max_attention, block_max, (2, 1)),
    "block_max of two": (block_max_attention, block_max, (2, 2)),
}


def selected_inputs(lead, index):
    """q, k and v, which have gradients, and index queries and keys."""
    leaves = [made(*lead, 4, 16), made(*lead, 2, 16, seed=1), made(*lead, 2, 24, seed=2)]
    return leaves, [made(*lead, h, 8, seed=4 + i).detach() for i, h in enumerate(index)]


@pytest.mark.parametrize("rows", [1, 4, 16])
@pytest.mark.parametrize("name", SELECTED)
def test_selected_packed(name, rows):
    call, wanted_of, index = SELECTED[name]
    lengths, o = [0, 1, 7, 8, 61], dict(block=8, count=3, rows=rows)
    leaves, given = selected_inputs((77,), index)
    ends = torch.tensor([0, *lengths]).cumsum(0)
    found = call(*leaves, *given, layout="thd", cu_seqlens=ends, **o)
    parts = [wanted_of(*(x[a:b].double() for x in leaves + given), **o) for a, b in zip(ends[:-1], ends[1:])]
    agree(found, torch.cat(parts), leaves)


@pytest.mark.parametrize("layout", ["bshd", "bhsd", "sbhd"])
@pytest.mark.parametrize("name", SELECTED)
def test_selected_dense(name, layout):
    call, wanted_of, index = SELECTED[name]
    place = {"bshd": lambda x: x, "sbhd": lambda x: x.transpose(0, 1), "bhsd": lambda x: x.transpose(1, 2)}[layout]
    leaves, given = selected_inputs((2, 45), index)
    found = place(call(*(place(x) for x in leaves + given), layout=layout, block=8, count=4, rows=8))
    wanted = torch.stack([wanted_of(*(x[b].double() for x in leaves + given), 8, 4, 8) for b in range(2)])
    agree(found, wanted, leaves)


@pytest.mark.parametrize("name", SELECTED)
def test_selected_causal_and_compiled(name):
    call, _, index = SELECTED[name]
    leaves, given = selected_inputs((1, 64), index)
    arrays = [x.detach() for x in leaves + given]
    for rows in (1, 4, 16):
        whole = call(*arrays, block=8, count=3, rows=rows)[0]
        for t in (1, 7, 8, 15, 16, 33, 63):
            for fill in (5.0, float("nan")):
                others = [x.clone() for x in arrays]
                for x in others:
                    x[:, t:] = fill
                assert torch.equal(call(*others, block=8, count=3, rows=rows)[0, :t], whole[:t])
    loss = lambda *x: call(*x, *given, block=8, count=3, rows=8).square().sum()
    eager = torch.autograd.grad(loss(*leaves), leaves)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    for x, y in zip(eager, torch.autograd.grad(compiled(*leaves), leaves)):
        assert torch.equal(x, y)


def test_selected_refused():
    (q, k, v), (index_q, index_k) = selected_inputs((1, 40), (2, 1))
    for options, message in [(dict(count=0), "count"), (dict(rows=12), "that divide a block"), (dict(block=0), "block"),
                             (dict(layout="thd"), "expected 3 axes"), (dict(count=2000), "up to 1024")]:
        with pytest.raises((attnc.ProblemError, attnc.TensorError), match=message):
            moba_attention(q, k, v, **dict(dict(block=8), **options))
        with pytest.raises((attnc.ProblemError, attnc.TensorError), match=message):
            block_max_attention(q, k, v, index_q, index_k, **dict(dict(block=8), **options))
    with pytest.raises(attnc.TensorError, match="as many heads for `index_q` as for `k`, 2, got: 1"):
        block_max_attention(q, k, v, index_q[:, :, :1], index_k)
    with pytest.raises(attnc.TensorError, match="index_k"):
        block_max_attention(q, k, v, index_q, index_k[:, :-1])
    with pytest.raises(attnc.TensorError, match="index_k"):
        block_max_attention(q, k, v, index_q, index_k.half())
    # Lists are constants: index queries get no gradient.
    index_q.requires_grad_()
    grads = torch.autograd.grad(block_max_attention(q, k, v, index_q, index_k, block=8, count=2).sum(), (q, index_q),
                                allow_unused=True)
    assert grads[0] is not None and grads[1] is None


def test_causal():
    q, k, v, gates = made(64, 4, 16), made(64, 2, 16, seed=1), made(64, 2, 16, seed=2), made(64, 4, 3, seed=3)
    for rows in (1, 4, 16):
        call = lambda *x: native_sparse_attention(*(y.detach()[None] for y in x), **dict(OPTIONS, rows=rows))[0]
        whole = call(q, k, v, gates)
        for t in (1, 7, 8, 15, 16, 33, 63):
            for fill in (5.0, float("nan")):
                others = [x.detach().clone() for x in (q, k, v, gates)]
                for x in others:
                    x[t:] = fill
                assert torch.equal(call(*others)[:t], whole[:t])


@pytest.mark.parametrize("options", [{}, dict(recompute=True, kv_heads_at_once=1)])
def test_compiled(options):
    q, k, v = made(1, 40, 4, 16), made(1, 40, 2, 16, seed=1), made(1, 40, 2, 16, seed=2)
    call = lambda q, k, v: native_sparse_attention(q * 2, k, v, **OPTIONS, **options).square().sum()
    eager = torch.autograd.grad(call(q, k, v), (q, k, v))
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    for x, y in zip(eager, torch.autograd.grad(compiled(q, k, v), (q, k, v))):
        assert torch.equal(x, y)


@pytest.mark.parametrize("layout", ["bshd", "bhsd", "sbhd", "thd"])
@pytest.mark.parametrize("gated", [True, False])
def test_heads_in_turn_and_recompute(layout, gated):
    """The bits of one launch that keeps what it computes."""
    ends = torch.tensor([0, 0, 11, 40], dtype=torch.int32) if layout == "thd" else None
    lead = {"bshd": (2, 40), "sbhd": (40, 2), "bhsd": (2,), "thd": (40,)}[layout]
    heads = lambda h, seed: made(*lead, h, *((40,) if layout == "bhsd" else ()), 8, seed=seed)
    q, k, v = heads(6, 0), heads(3, 1), heads(3, 2)
    gates = (made(40, 6, 3, seed=3) if layout == "thd" else made(2, 40, 6, 3, seed=3)) if gated else None
    leaves = [x for x in (q, k, v, gates) if x is not None]

    def both(**options):
        o = native_sparse_attention(q, k, v, gates, layout=layout, cu_seqlens=ends, deterministic=True, **OPTIONS,
                                    **options)
        return o, *torch.autograd.grad((o * o).sum(), leaves)

    whole = both()
    for options in (dict(kv_heads_at_once=1), dict(recompute=True), dict(kv_heads_at_once=1, recompute=True)):
        for x, y in zip(both(**options), whole):
            assert torch.equal(x, y)
    with torch.no_grad():
        assert torch.equal(native_sparse_attention(q, k, v, gates, layout=layout, cu_seqlens=ends, kv_heads_at_once=1,
                                                   **OPTIONS), whole[0])
    for wrong in (0, 2, 6):
        with pytest.raises(attnc.TensorError, match="kv_heads_at_once to divide the 3 kv heads"):
            both(kv_heads_at_once=wrong)


def test_checkpoint():
    """Saved tensors are unpacked once."""
    q, k, v = made(1, 40, 4, 16), made(1, 40, 2, 16, seed=1), made(1, 40, 2, 16, seed=2)
    call = lambda q: native_sparse_attention(q, k, v, **OPTIONS)
    plain, = torch.autograd.grad(call(q).sum(), q)
    kept = torch.utils.checkpoint.checkpoint(call, q, use_reentrant=False)
    assert torch.equal(torch.autograd.grad(kept.sum(), q)[0], plain)


def test_extreme_gates():
    """Gates of 0 and 1, and finite logits far from 0: gradients are finite and those of float64."""
    q, k, v = made(1, 40, 4, 16), made(1, 40, 2, 16, seed=1), made(1, 40, 2, 16, seed=2)
    logits = torch.randn(1, 40, 4, 3, generator=torch.Generator().manual_seed(5)) * 60
    logits[0, ::5] = float("inf")
    logits[0, 1::5] = float("-inf")
    logits[0, 2::5] = 3e38
    logits[0, 3::5] = -3e38
    gates = logits.requires_grad_()
    found = native_sparse_attention(q, k, v, gates, **OPTIONS)
    wanted = expected(q[0].double(), [(k[0].double(), v[0].double())] * 3, gates[0].double(), OPTIONS)[None]
    agree(found, wanted, [q, k, v, gates])


def test_training_step():
    torch.manual_seed(0)
    x, wanted = torch.randn(1, 64, 32), torch.randn(1, 64, 32)
    project = torch.nn.Linear(32, 4 * 8 + 2 * 2 * 8 + 4 * 3)
    optimizer = torch.optim.SGD(project.parameters(), lr=1.0)
    losses = []
    for _ in range(20):
        q, k, v, gates = project(x).split([32, 16, 16, 12], -1)
        shaped = lambda y, h: y.unflatten(-1, (h, -1)).contiguous()
        o = native_sparse_attention(shaped(q, 4), shaped(k, 2), shaped(v, 2), shaped(gates, 4), **OPTIONS).flatten(2)
        loss = (o - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < 0.9 * losses[0]


def test_refused():
    q, k, v = made(1, 40, 4, 16), made(1, 40, 2, 16), made(1, 40, 2, 16)
    call = lambda *x, **options: native_sparse_attention(*x, **dict(OPTIONS, **options))
    for options, error, message in [
            (dict(count=2), attnc.ProblemError, "with room for both"),
            (dict(local=0), attnc.ProblemError, "local\\(1\\) or more"),
            (dict(block=6), attnc.ProblemError, "that the stride divides"),
            (dict(stride=3), attnc.ProblemError, "positive stride divides"),
            (dict(rows=12), attnc.ProblemError, "that divide a block"),
            (dict(window=0), attnc.ProblemError, "window"),
            (dict(layout="thd"), attnc.TensorError, "expected 3 axes"),
            (dict(layout="bsdh"), attnc.TensorError, "expected 4 axes|layout"),
            (dict(cu_seqlens=torch.tensor([0, 40])), attnc.TensorError, "cu_seqlens with the layout 'thd'")]:
        with pytest.raises((error, attnc.ProblemError), match=message):
            call(q, k, v, **options)
    with pytest.raises(attnc.TensorError, match="one tensor for each of k and v or three"):
        call(q, [k, k], [v, v])
    with pytest.raises(attnc.TensorError, match="gates"):
        call(q, k, v, made(1, 40, 4, 2))
    with pytest.raises(attnc.TensorError, match="kv|`v`"):
        call(q, k, made(1, 41, 2, 16))
    with pytest.raises(attnc.UnsupportedError, match="second derivatives"):
        grad, = torch.autograd.grad(call(q, k, v).sum(), q, create_graph=True)
        grad.sum().backward()
