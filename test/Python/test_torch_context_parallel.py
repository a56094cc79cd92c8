# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc.torch.attention of ranks that share the tokens of sequences, in processes on the CPU, against one rank."""
import functools
import inspect
import itertools
import os
import tempfile
import threading
import time

import pytest

torch = pytest.importorskip("torch")
import attnc  # noqa: E402
import attnc.torch as at  # noqa: E402
import torch.distributed as dist  # noqa: E402
from attnc import Error, ProblemError, TensorError, UnsupportedError  # noqa: E402
from attnc.torch import shims  # noqa: E402
from test_torch import make  # noqa: E402

H, G, D = 4, 2, 16
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
CAUSAL, WINDOW = attnc.causal(), attnc.causal() & attnc.window(6)
SEED = torch.tensor([1, 2, 3, 4], dtype=torch.int32)


def sums(lengths):
    return [0, *itertools.accumulate(lengths)]


def tensors(rows_q, rows_kv, dtype=torch.float32, heads=(H, G)):
    """q, k, v and a gradient of o, the same on all ranks."""
    return [make(*rows, n, D, seed=i, dtype=dtype) for i, (rows, n) in enumerate(
        ((rows_q, heads[0]), (rows_kv, heads[1]), (rows_kv, heads[1]), (rows_q, heads[0])))]


def close(name, found, expected):
    assert found.shape == expected.shape, (name, found.shape, expected.shape)
    assert found.dtype == expected.dtype, (name, found.dtype, expected.dtype)
    tolerance = TOLERANCE[found.dtype]
    if found.numel():
        both = (found == -float("inf")) & (expected == -float("inf"))  # LSE of what sees nothing
        found, expected = (t.detach().double().masked_fill(both, 0) for t in (found, expected))
        error, most = float((found - expected).abs().max()), float(expected.abs().max())
        assert error <= tolerance * max(1.0, most), (name, error, most)


def same(cp, whole, own=None, *, mask, lengths_q=None, lengths_kv=None, **options):
    """Results and gradients of the ranks' rows, and those of one rank.

    whole: q, k, v and do of all tokens. lengths: of packed sequences. options of attention(); own: others of the ranks.
    """
    sides = [{} if lengths is None else dict(cu_seqlens=sums(lengths)) for lengths in (lengths_q, lengths_kv)]
    alone = dict(options)
    if lengths_q is not None:
        own = dict(layout="thd", cu_seqlens_q=sides[0]["cu_seqlens"], cu_seqlens_kv=sides[1]["cu_seqlens"], **own or {})
        alone |= {name: torch.tensor(own[name]) for name in ("cu_seqlens_q", "cu_seqlens_kv")} | dict(layout="thd")
    elif whole[0].shape[1] % cp.ranks or whole[1].shape[1] % cp.ranks:
        own = dict(seqlens=(whole[0].shape[1], whole[1].shape[1]), **own or {})
    inputs = [t.clone().requires_grad_() for t in whole[:3]]
    o, lse = at.attention(*inputs, mask=mask, return_lse=True, **alone)
    dlse = make(*lse.shape, seed=5, dtype=torch.float32) * (lse > -float("inf"))
    torch.autograd.backward([o, lse], [whole[3], dlse])
    keys = (False, True, True)
    parts = [cp.shard(t, keys=of, **sides[of]).detach().requires_grad_() for t, of in zip(whole, keys)]
    found, found_lse = at.attention(*parts, mask=mask, return_lse=True, context_parallel=cp, **options, **own or {})

    def rows_of_lse(t):  # tokens before heads, as shard() has them
        if lengths_q is None:
            return cp.shard(t.mT).mT
        return torch.where(cp.positions(**sides[0]) < 0, -float("inf"), cp.shard(t.T, **sides[0]).T)
    close("o", found, cp.shard(o.detach(), **sides[0]))
    close("lse", found_lse, rows_of_lse(lse.detach()))
    torch.autograd.backward([found, found_lse], [cp.shard(whole[3], **sides[0]), rows_of_lse(dlse)])
    for name, a, b, of in zip(("dq", "dk", "dv"), parts, inputs, keys):
        close(name, a.grad, cp.shard(b.grad, keys=of, **sides[of]))
    with torch.no_grad():
        again = at.attention(*parts, mask=mask, context_parallel=cp, **options, **own or {})
    assert torch.equal(again, found)


# Each check gets the rank. All ranks run the same checks.

STRATEGIES = [dict(strategy="gather"), dict(strategy="cast"), dict(strategy="ring"), dict(strategy="ulysses")]


def check_packed(rank):
    """Documents of any lengths, none too. (Strategies but "ulysses" share kernels.)"""
    lengths = [0, 13, 1, 0, 22, 7]
    packed = dict(lengths_q=lengths, lengths_kv=lengths)
    whole = tensors([sum(lengths)], [sum(lengths)])
    for options in STRATEGIES:
        cp = at.ContextParallel(**options)
        for mask in (CAUSAL, attnc.full(), WINDOW, attnc.window(3, 2))[:4 if options["strategy"] != "ulysses" else 1]:
            same(cp, whole, mask=mask, **packed)
        cp.close()
    for strategy, dtype in (("ring", torch.bfloat16), ("auto", torch.float32)):
        cp = at.ContextParallel(strategy=strategy)
        same(cp, [t.to(dtype) for t in whole], mask=CAUSAL, **packed)
        cp.close()


def check_dense(rank):
    for options, mask, seqlen in zip(STRATEGIES, (attnc.full(), attnc.window(3, 2), CAUSAL, CAUSAL), (16, 24, 19, 7)):
        cp = at.ContextParallel(**options)
        same(cp, tensors([2, seqlen], [2, seqlen]), mask=mask)
        cp.close()


def check_many(rank):
    """More lengths than bound plans are kept, one of them for a backward pass to come."""
    cp = at.ContextParallel()
    q, k, v, do = (cp.shard(t) for t in tensors([1, 4], [1, 4]))
    q.requires_grad_()
    o = at.attention(q, k, v, mask=CAUSAL, context_parallel=cp)
    for seqlen in range(5, 42):
        same(cp, tensors([1, seqlen], [1, seqlen]), mask=CAUSAL)
    o.backward(do)
    again = at.attention(q.detach(), k, v, mask=CAUSAL, context_parallel=cp)
    assert torch.equal(again, o) and q.grad.abs().max() > 0
    cp.close()


def check_cross(rank):
    """Other lengths of keys, aligned to the last ones; rows that see nothing."""
    lengths_q, lengths_kv = [6, 9, 3, 0], [13, 4, 0, 2]
    mask = attnc.causal("end")
    for options in STRATEGIES[1:3]:
        cp = at.ContextParallel(kv_sharding="contiguous", **options)
        same(cp, tensors([sum(lengths_q)], [sum(lengths_kv)]), mask=mask, lengths_q=lengths_q, lengths_kv=lengths_kv)
        cp.close()
    cp = at.ContextParallel()
    same(cp, tensors([2, 8], [2, 14]), mask=mask)
    cp.close()


def check_learned_sinks(rank):
    """Each rank's gradient is of its own rows, and their sum that of one rank. Padding has NaN."""
    lengths, slots = [9, 0, 4], [12, 4, 8]
    packed = dict(mask=CAUSAL, layout="thd padded", cu_seqlens_q=sums(lengths), padded_offsets_q=sums(slots))
    q, k, v, do = tensors([sum(slots)], [sum(slots)])
    sinks = make(H, seed=11, dtype=torch.float32).requires_grad_()
    alone = {name: torch.tensor(value) if name[-1] == "q" else value for name, value in packed.items()}
    o, lse = at.attention(q, k, v, sink=sinks, return_lse=True, **alone)
    tokens = torch.cat([torch.arange(begin, begin + n) for begin, n in zip(sums(slots), lengths)])
    torch.autograd.backward([o[tokens], lse[:, tokens]], [do[tokens], torch.full_like(lse[:, tokens], 0.5)])
    cp = at.ContextParallel(sharding="dual_chunk padded")
    sides = dict(cu_seqlens=sums(lengths), padded_offsets=sums(slots))
    is_token = cp.positions(**sides) >= 0
    parts = [cp.shard(t, **sides).masked_fill(~is_token[:, None, None], float("nan")) for t in (q, k, v, do)]
    own = sinks.detach().clone().requires_grad_()
    found, found_lse = at.attention(*parts[:3], sink=own, return_lse=True, context_parallel=cp, **packed)
    torch.autograd.backward([found, found_lse], [parts[3], torch.full_like(found_lse, 0.5)])
    torch.distributed.all_reduce(own.grad)
    close("gradient of sinks", own.grad, sinks.grad)
    cp.close()


def check_learned_arrays(rank):
    """As of sinks, of arrays that score modifiers read: of all strategies, masks that read arrays, and heads apart."""
    lengths = [9, 0, 21, 4]
    q, k, v, do = tensors([sum(lengths)], [sum(lengths)])
    arrays = {"slopes_of_heads": make(H, seed=12, dtype=torch.float32).abs(),
              "table": make(H, 11, seed=13, dtype=torch.float32)}
    score = [attnc.alibi("slopes_of_heads"), attnc.relative_bias("table", 5)]
    documents = torch.arange(sum(lengths), dtype=torch.int32) // 7
    for mask, options in ((CAUSAL, dict(strategy="ring")), (attnc.full(), dict(strategy="ulysses")),
                          (attnc.document(ids=documents), dict(sharding="contiguous", strategy="gather"))):
        packed = dict(mask=mask, score=score, layout="thd", cu_seqlens_q=torch.tensor(sums(lengths)))

        def gradients(run, tensors, do):
            own = {name: array.clone().requires_grad_() for name, array in arrays.items()}
            inputs = [t.detach().clone().requires_grad_() for t in tensors]
            run(*inputs, arrays=own, **packed).backward(do)
            return [*[array.grad for array in own.values()], *[t.grad for t in inputs]]
        expected = gradients(at.attention, (q, k, v), do)
        cp = at.ContextParallel(**options)
        sharded = [cp.shard(t, cu_seqlens=sums(lengths)) for t in (q, k, v, do)]
        found = gradients(functools.partial(at.attention, context_parallel=cp), sharded[:3], sharded[3])
        for gradient in found[:2]:
            torch.distributed.all_reduce(gradient)
        for name, a, b in zip(arrays, found, expected):
            close(f"gradient of {name}, {options}", a, b)
        for a, b in zip(found[2:], expected[2:]):
            close("gradient", a, cp.shard(b, cu_seqlens=sums(lengths)))
        cp.close()


def check_shardings(rank):
    lengths = [16, 5, 0, 11]
    whole = tensors([32], [32])
    shards = [(20, [(2, 0, 0, 16)]), (17, [(0, 1, 0, 5), (6, 3, 0, 11)])]  # with rows of padding
    for options in (dict(sharding="contiguous"), dict(sharding="striped"), dict(sharding=("striped", 4)),
                    dict(sharding="documents"), dict(sharding=("documents", 0.5), mask=attnc.full()),
                    dict(sharding="runs", shards=shards), dict(sharding=("runs", "mine"), shards={"mine": shards})):
        cp = at.ContextParallel(**options)
        same(cp, whole, mask=CAUSAL, lengths_q=lengths, lengths_kv=lengths)
        cp.close()
    cp = at.ContextParallel(sharding="contiguous")  # each sequence in parts
    assert cp.positions(seqlen=9, batch=2).tolist() == [[[0, 1, 2, 3], [4, 5, 6, 7, 8]][rank]] * 2
    same(cp, tensors([2, 9], [2, 9]), mask=CAUSAL)
    cp.close()


def check_padded(rank):
    """Slots as TransformerEngine has them, with NaN in padding."""
    lengths, slots = [7, 3], [8, 4]
    cp = at.ContextParallel(sharding="dual_chunk padded")
    of = dict(cu_seqlens=sums(lengths), padded_offsets=sums(slots))
    assert cp.positions(**of).tolist() == [[0, 1, 6, -1, 0, -1], [2, 3, 4, 5, 1, 2]][rank]
    q, k, v, do = tensors([10], [10])
    inputs = [t.clone().requires_grad_() for t in (q, k, v)]
    o = at.attention(*inputs, mask=CAUSAL, layout="thd", cu_seqlens_q=torch.tensor(sums(lengths)))
    o.backward(do)
    is_token = torch.cat([torch.arange(slot) < length for slot, length in zip(slots, lengths)])

    def padded(t, fill):
        made = torch.full((12, *t.shape[1:]), fill)
        made[is_token] = t
        return made
    parts = [cp.shard(padded(t.detach(), float("nan")), **of) for t in (q, k, v)]
    for part in parts:
        part[cp.positions(**of) < 0] = float("nan")
        part.requires_grad_()
    found = at.attention(*parts, mask=CAUSAL, layout="thd padded", context_parallel=cp, cu_seqlens_q=of["cu_seqlens"],
                         padded_offsets_q=torch.tensor(of["padded_offsets"]))
    found.backward(cp.shard(padded(do, float("nan")), **of))
    tokens = cp.positions(**of) >= 0
    close("o", found[tokens], cp.shard(padded(o.detach(), 0.0), **of)[tokens])
    for a, b in zip(parts, inputs):
        close("gradient", a.grad[tokens], cp.shard(padded(b.grad, 0.0), **of)[tokens])
        assert not a.grad[~tokens].any()
    assert not found[~tokens].any()
    cp.close()


def check_options(rank):
    """Score modifiers, arrays, sinks, dropout: as on one rank."""
    lengths = [16, 5, 11]
    whole = tensors([32], [32])
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])
    ids = torch.tensor([1] * 10 + [2] * 6 + [1] * 5 + [3] * 11)
    cp = at.ContextParallel(strategy="ring")
    packed = dict(lengths_q=lengths, lengths_kv=lengths)
    same(cp, whole, mask=CAUSAL, sink=0.5, score=attnc.softcap(2.0), scale=0.3, **packed)
    same(cp, whole, mask=CAUSAL & attnc.document(ids=ids), score=attnc.alibi("slopes"), arrays={"slopes": slopes},
         sink=slopes, dropout=0.3, seed=SEED, **packed)
    ends = torch.tensor([5, 3, 9, 1] * 4)
    same(cp, whole, mask=lambda b, h, q, k: k <= ends[q], **packed)
    # Dense arrays, as they are without ranks.
    of_rows = torch.randint(1, 20, (2, H, 16), generator=torch.Generator().manual_seed(3))
    same(cp, tensors([2, 16], [2, 16]), mask=attnc.rows(end="ends", heads="query"), arrays={"ends": of_rows})
    cp.close()


def check_views(rank):
    """Views of one projection, odd addresses, and a gradient that is expanded."""
    cp = at.ContextParallel()
    whole = make(2, 16, (H + 2 * G) * D, dtype=torch.float32)

    def call(x, **options):
        heads = x.unflatten(-1, (-1, D))
        return at.attention(*heads.split([H, G, G], 2), mask=CAUSAL, **options)
    x, own = whole.clone().requires_grad_(), cp.shard(whole).requires_grad_()
    call(x).sum().backward()
    call(own, context_parallel=cp).sum().backward()
    close("of views", own.grad, cp.shard(x.grad))
    shifted = [torch.empty(t.numel() + 1)[1:].view(t.shape).copy_(t) for t in tensors([16], [16])[:3]]
    o = at.attention(*(t[:8] for t in shifted), mask=CAUSAL, layout="thd", context_parallel=cp, cu_seqlens_q=[0, 16])
    assert o.shape == (8, H, D)
    with torch.autocast("cpu", torch.bfloat16):
        assert call(own, context_parallel=cp).dtype == torch.bfloat16
    module = at.Attention(CAUSAL, context_parallel=cp)
    compiled = torch.compile(lambda q, k, v: module(q, k, v) * 2, backend="eager")
    q, k, v = (cp.shard(t) for t in tensors([2, 16], [2, 16])[:3])
    assert torch.equal(compiled(q, k, v), module(q, k, v) * 2)
    cp.close()


def check_rows(rank):
    """What rank has which rows, and back."""
    lengths = [0, 13, 1, 22]
    x = torch.arange(36 * 3).view(36, 3)
    for sharding in ("dual_chunk", "contiguous", ("striped", 2), "documents"):
        cp = at.ContextParallel(sharding=sharding)
        of = dict(cu_seqlens=torch.tensor(sums(lengths)))
        own, positions = cp.shard(x, **of), cp.positions(**of)
        assert own.shape[0] == cp.rows(**of).rows and torch.equal(cp.unshard(own, **of), x)
        starts = torch.tensor(sums(lengths))
        for row, sequence, position, length in cp.rows(**of).runs:
            assert positions[row:row + length].tolist() == list(range(position, position + length))
            assert torch.equal(own[row:row + length], x[starts[sequence] + position:][:length])
        if sharding != "documents":
            dense = x.view(3, 12, 3)
            assert torch.equal(cp.unshard(cp.shard(dense)), dense)
        cp.close()
    cp = at.ContextParallel()
    assert cp.rows(seqlen=8, rank=0) == (4, ((0, 0, 0, 2), (2, 0, 6, 2)))
    assert cp.positions(seqlen=8, batch=2, rank=1).tolist() == [[2, 3, 4, 5]] * 2
    odd = x[:22].view(2, 11, 3)
    assert torch.equal(cp.unshard(cp.shard(odd), seqlen=11), odd)
    refused(TensorError, "expected all ranks to call unshard with equal lengths, dtypes and axes, got: other ones on",
            cp.unshard, cp.shard(odd))  # each would take its own rows times the number of ranks
    assert cp.shard(odd[:0]).shape == (0, *cp.shard(odd).shape[1:])
    padded = dict(cu_seqlens=[0, 3, 8], padded_offsets=[0, 4, 12])
    whole = cp.unshard(cp.shard(x[:12], **padded) + 1, **padded)
    assert whole[3].tolist() == [0] * 3 and whole[4].tolist() == (x[4] + 1).tolist()
    assert "rank" in repr(cp)
    cp.close()


def check_others(rank):
    """Calls of PyTorch's and of TransformerEngine's context parallelism: their arguments are mapped or refused."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import experimental
    assert list(inspect.signature(shims.context_parallel).parameters) == list(
        inspect.signature(experimental.context_parallel).parameters)
    assert [*inspect.signature(shims.set_context_parallel_group).parameters.values()][-1].default == "p2p"
    assert list(inspect.signature(shims.set_context_parallel_group).parameters) == [
        "cp_group", "cp_global_ranks", "cp_stream", "cp_comm_type"]  # of TransformerEngine 2
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("cp",))
    for seqlen in (16, 19):
        q, k, v, do = (t.transpose(1, 2).contiguous() for t in tensors([2, seqlen], [2, seqlen], heads=(H, H)))
        whole = [t.clone() for t in (q, k, v)]
        one = [t.clone().requires_grad_() for t in whole]
        expected = torch.nn.functional.scaled_dot_product_attention(*one, is_causal=True)
        expected.backward(do)
        cp = at.ContextParallel(mesh.get_group())
        def own(t):
            return cp.shard(t.transpose(1, 2)).transpose(1, 2)
        with shims.context_parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[2] * 3, no_restore_buffers={v}):
            assert q.shape == own(whole[0]).shape and torch.equal(q, own(whole[0]))
            parts = [t.detach().clone().requires_grad_() for t in (q, k, v)]
            o = shims.scaled_dot_product_attention(*parts, is_causal=True)
            close("o", o, own(expected.detach()))
            o.backward(own(do))
            for a, b in zip(parts, one):
                close("gradient", a.grad, own(b.grad))
            refused(UnsupportedError, "no attn_mask in context_parallel()", shims.scaled_dot_product_attention, *parts,
                    attn_mask=torch.ones(8, 8))
            refused(UnsupportedError, "dropout_p = 0.1", shims.scaled_dot_product_attention, *parts, dropout_p=0.1)
            refused(TensorError, f"rows, those of this rank of the buffers' {seqlen}, got: 3",
                    shims.scaled_dot_product_attention, *(t[:, :, :3] for t in parts))
            refused(UnsupportedError, "flash_attn_func outside of context_parallel() only", shims.flash_attn_func, q, k,
                    k)
            with shims.context_parallel(mesh):
                assert torch.equal(shims.scaled_dot_product_attention(*parts, is_causal=True), o)

            def again(*t):  # another thread computes it anew
                return shims.scaled_dot_product_attention(*t, is_causal=True)
            checked = torch.utils.checkpoint.checkpoint(again, *parts, use_reentrant=True)
            threads = [threading.Thread(target=checked.backward, args=(own(do),))]
            threads[0].start()
            threads[0].join()
            close("twice", parts[0].grad, 2 * own(one[0].grad))
        assert torch.equal(q, whole[0]) and torch.equal(k, whole[1]) and v.shape == o.shape
        cp.close()
    of_q, long = dict(buffers=[q], buffer_seq_dims=[2]), torch.ones(2, 9)
    for message, options in (("buffer_seq_dims of 1 buffers, got: 0", dict(buffers=[q])),
                             ("no_restore_buffers among the buffers", dict(no_restore_buffers={q})),
                             ("buffer 0 to be contiguous", dict(of_q, buffers=[q[:, :, 1:]])),
                             ("buffer 1 to be contiguous", dict(buffers=[q, long.t()], buffer_seq_dims=[2, 0])),
                             ("buffers of one length, got: 19 and 9", dict(buffers=[q, long], buffer_seq_dims=[2, 1])),
                             ("buffer_seq_dims.1. to be a dimension", dict(buffers=[q, long], buffer_seq_dims=[2, 5])),
                             ("each buffer once", dict(buffers=[q, q], buffer_seq_dims=[2, 2]))):
        with pytest.raises(TensorError, match=message), shims.context_parallel(mesh, **options):
            pass
        assert q.shape[2] == 19
    with pytest.raises(UnsupportedError, match="one axis of a DeviceMesh"), shims.context_parallel(None):
        pass
    lengths, slots = [7, 3], [8, 4]
    rows = dict(cu_seqlens=sums(lengths), padded_offsets=sums(slots))
    for kind in ("p2p", "all_gather", "a2a"):
        cp = shims.set_context_parallel_group(dist.group.WORLD, [0, 1], None, kind)
        q, k, v, _ = tensors([12], [12])
        found = at.attention(*(cp.shard(t, **rows) for t in (q, k, v)), mask=CAUSAL, layout="thd padded",
                             context_parallel=cp, cu_seqlens_q=rows["cu_seqlens"],
                             padded_offsets_q=rows["padded_offsets"])
        alone = {"cu_seqlens_q": torch.tensor(sums(lengths)), "padded_offsets_q": torch.tensor(sums(slots))}
        close(kind, found, cp.shard(at.attention(q, k, v, mask=CAUSAL, layout="thd padded", **alone), **rows))
        cp.close()
    one = [dist.new_group([0]), dist.new_group([1])][rank]
    shims.set_context_parallel_group((dist.group.WORLD, one), None, None, "a2a+p2p").close()
    assert shims.set_context_parallel_group(None, None, None) is None
    world = dist.group.WORLD
    refused(UnsupportedError, "cp_comm_type = 'ring'", shims.set_context_parallel_group, world, None, None, "ring")
    refused(TensorError, "the ranks of the group, [0, 1], as cp_global_ranks, got: [1, 0]",
            shims.set_context_parallel_group, world, [1, 0], None)
    refused(TensorError, "two process groups as cp_group with 'a2a+p2p'", shims.set_context_parallel_group, world, None,
            None, "a2a+p2p")


def check_training(rank):
    """A layer whose gradients the ranks add are those of one rank."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, 24, 32, generator=generator)
    qkv, out = torch.nn.Linear(32, (H + 2 * G) * D), torch.nn.Linear(H * D, 32)
    parameters = [*qkv.parameters(), *out.parameters()]
    with torch.no_grad():
        for p in parameters:
            p.copy_(torch.randn(p.shape, generator=generator) * 0.2)

    def loss(x, **options):
        heads = qkv(x).unflatten(-1, (-1, D))
        return out(at.attention(*heads.split([H, G, G], 2), mask=CAUSAL, **options).flatten(2)).square().sum()
    expected = torch.autograd.grad(loss(x), parameters)
    cp = at.ContextParallel()
    for _ in range(2):
        found = torch.autograd.grad(loss(cp.shard(x), context_parallel=cp), parameters)
        for a, b in zip(found, expected):
            dist.all_reduce(a)
            close("parameter", a, b)
    cp.close()


def refused(kind, message, function, *arguments, **options):
    with pytest.raises(kind) as error:
        function(*arguments, **options)
    assert message in str(error.value), str(error.value)


def check_refused(rank):
    cp = at.ContextParallel()
    q, k, v = (cp.shard(t) for t in tensors([2, 16], [2, 16])[:3])
    slopes = torch.ones(H)

    def call(kind, message, tensors=(q, k, v), mask=CAUSAL, **options):
        refused(kind, message, at.attention, *tensors, **{"mask": mask, "context_parallel": cp, **options})
    call(TensorError, "expected an attnc.torch.ContextParallel as context_parallel, got: int", context_parallel=2)
    call(UnsupportedError, "by cu_seqlens, got: 'ids'", ids=torch.ones(2, 16))
    for layout in ("sbhd", "bhsd", ("bshd",) * 4):
        call(UnsupportedError, f"'thd' and 'thd padded', got: {layout!r}", layout=layout)
    nested = torch.nested.nested_tensor([torch.ones(2, H, D)], layout=torch.jagged)
    call(UnsupportedError, "got: a nested tensor as 'q'", (nested, k, v))
    call(TensorError, "expected a torch.Tensor as 'k', got: int", (q, 1, v))
    call(UnsupportedError, "got: meta", [t.to("meta") for t in (q, k, v)])
    call(TensorError, "expected 'q' to be bfloat16 or float16", [t.double() for t in (q, k, v)])
    call(TensorError, "expected 'k' to be torch.float32", (q, k.bfloat16(), v))
    call(TensorError, f"expected 'v' of shape (2, 8, {G}, 'dim') as 'k'", (q, k, v[:, :7]))
    call(TensorError, "expected 'k' of batch 2 as 'q', got: 1", (q, k[:1], v[:1]))
    call(TensorError, "expected heads of q in multiples of those of k", (q[:, :, :3], k, v))
    call(TensorError, "expected 'k' of head dim 16", (q, k[..., :8], v))
    call(UnsupportedError, "expected `seed`, the same on all of them, got: None", dropout=0.5)
    call(TensorError, "got also: more", arrays={"more": slopes})
    call(TensorError, "expected 'ids' of shape [2, 16], of the whole sequences, got: [2, 8]",
         mask=attnc.document("ids"), arrays={"ids": torch.ones(2, 8, dtype=torch.int32)})
    call(TensorError, "expected 'slopes' of shape [4], got: [3]", score=attnc.alibi("slopes"),
         arrays={"slopes": slopes[:3]})
    call(TensorError, "expected cu_seqlens and padded_offsets in the layouts", cu_seqlens_q=[0, 16])
    own, other = ((9, 8), (8, 9))[rank]
    call(TensorError, f"expected 'q' to have {own} rows of each sequence of 17 tokens, those of rank {rank} by "
         f"`dual_chunk`, got: {other}", [t[:, :1].expand(-1, other, -1, -1) for t in (q, k, v)], seqlens=17)
    rows = [t.flatten(0, 1) for t in (q, k, v)]
    packed = dict(layout="thd", tensors=rows)
    call(TensorError, "expected cu_seqlens_q with the layout 'thd', got: None", **packed)
    call(TensorError, "expected cu_seqlens in the layout 'thd', got: seqlens", seqlens=16, **packed)
    call(TensorError, "expected padded_offsets with the layout 'thd padded'", cu_seqlens_q=[0, 32],
         padded_offsets_q=[0, 32], **packed)
    call(TensorError, "to begin with 0, to descend nowhere and to be below 2^31, got: [1, 32]", cu_seqlens_q=[1, 32],
         **packed)
    call(TensorError, "to be int32 or int64 [sequences + 1], got: torch.float32", cu_seqlens_q=torch.ones(2), **packed)
    call(TensorError, "as many sequences in 'cu_seqlens_kv'", cu_seqlens_q=[0, 32], cu_seqlens_kv=[0, 3, 32], **packed)
    call(TensorError, f"expected 'k' to have 20 rows, those of rank {rank} by `dual_chunk`, got: 16",
         cu_seqlens_q=[0, 32], cu_seqlens_kv=[0, 40], **packed)
    with pytest.raises(UnsupportedError, match="without torch.func's transforms"):
        torch.func.vmap(lambda q: at.attention(q, k, v, mask=CAUSAL, context_parallel=cp))(q[None])
    call(ProblemError, "expected context_parallel beside `seqlens`, got: None", context_parallel=None, seqlens=16)
    # From here on all ranks bind.
    one = q.clone().requires_grad_()
    with pytest.raises(UnsupportedError, match="no forward-mode derivatives"), \
            torch.autograd.forward_ad.dual_level():
        at.attention(torch.autograd.forward_ad.make_dual(q, q), k, v, mask=CAUSAL, context_parallel=cp)
    o = at.attention(one, k, v, mask=CAUSAL, context_parallel=cp)
    grad, = torch.autograd.grad(o.sum(), one, create_graph=True)
    with pytest.raises(UnsupportedError, match="no second derivatives"):
        grad.sum().backward()
    learned, sinks = slopes.clone().requires_grad_(), slopes.clone().requires_grad_()
    o = at.attention(q, k, v, mask=CAUSAL, context_parallel=cp, score=attnc.alibi("slopes"), sink=sinks,
                     arrays={"slopes": learned})
    for grad in torch.autograd.grad(o.sum(), (learned, sinks), create_graph=True):
        with pytest.raises(UnsupportedError, match="no second derivatives"):
            grad.sum().backward(retain_graph=True)
    refused(UnsupportedError, "of problems that packed sequences have, too", at.attention, q, k, v, mask=CAUSAL,
            context_parallel=cp, score=attnc.bias("b", "qk"), arrays={"b": torch.ones(16, 16)})
    o = at.attention(one, k, v, mask=CAUSAL, context_parallel=cp)
    cp.close()
    refused(Error, "expected an open ContextParallel, got: a closed one", o.sum().backward)
    refused(Error, "expected an open ContextParallel, got: a closed one", at.attention, q, k, v, mask=CAUSAL,
            context_parallel=cp)


def check_refused_options(rank):
    make = at.ContextParallel
    for message, options in (
            ("expected a strategy of 'auto', 'gather', 'cast', 'ring', 'ulysses', got: 'all'", dict(strategy="all")),
            ("'dual_chunk'", dict(sharding="zigzag")), ("('striped', rows)", dict(sharding=("striped", 1, 2))),
            ("rows of a stripe to be 1 or more", dict(sharding=("striped", 0))),
            ("a slack from 0 to 100, got: -1", dict(sharding=("documents", -1))),
            ("expected shards of the name 'shards', got: None", dict(sharding="runs")),
            ("expected shards of 2 ranks, got: 1", dict(sharding="runs", shards=[(4, [])])),
            ("expected of each rank (rows, [(row, sequence,", dict(sharding="runs", shards=[3, 4])),
            ("expected None, 'peer' or 'nccl' as transport", dict(transport="mpi")),
            ("expected a timeout of more than 0 seconds, got: 0", dict(timeout=0)),
            ("a head_group that divides 2 ranks, got: 3", dict(head_group=3)),
            ("no head_group with the strategy 'ulysses'", dict(strategy="ulysses", head_group=2)),
            ("no head_group with the strategy 'auto'", dict(strategy="auto", head_group=2))):
        refused(ProblemError, message, make, **options)
    cp = make(sharding="documents")
    refused(UnsupportedError, "as many rows of each sequence, got: `documents` of 3 sequences of 8 tokens for rank",
            cp.rows, seqlen=8, batch=3)
    refused(TensorError, "expected cu_seqlens or seqlen, got: None", cp.rows)
    refused(TensorError, "expected cu_seqlens or seqlen, got: both", cp.rows, seqlen=3, cu_seqlens=[0, 3])
    refused(ProblemError, "expected rank within [0, 1], got: 2", cp.rows, seqlen=3, rank=2)
    refused(TensorError, "expected 3 rows of all sequences, got: (4,)", cp.shard, torch.ones(4), cu_seqlens=[0, 3])
    q, k, v = (make().shard(t) for t in tensors([1, 8], [1, 8])[:3])
    refused(UnsupportedError, "with the transport 'nccl', got: the CPU's", at.attention, q, k, v, mask=CAUSAL,
            context_parallel=make(transport="nccl"))
    overlapping = make(sharding="runs", shards=[(4, [(0, 0, 0, 4)]), (4, [(0, 0, 3, 4)])])
    with pytest.raises(Error):
        overlapping.rows(cu_seqlens=[0, 7])


def check_differences(rank):
    """What differs among ranks is an error on all of them."""
    for name, options in (("another mask", dict(mask=[CAUSAL, attnc.full()][rank])),
                          ("another dtype", dict(dtype=[torch.float32, torch.bfloat16][rank])),
                          ("other lengths", dict(lengths=[[8, 8], [4, 12]][rank])),
                          ("another strategy", dict(strategy=["ring", "gather"][rank]))):
        cp = at.ContextParallel(strategy=options.get("strategy", "cast"))
        lengths = options.get("lengths", [8, 8])
        q, k, v = (cp.shard(t, cu_seqlens=sums(lengths))
                   for t in tensors([16], [16], options.get("dtype", torch.float32))[:3])
        with pytest.raises(Error) as error:
            at.attention(q, k, v, layout="thd", mask=options.get("mask", CAUSAL), cu_seqlens_q=sums(lengths),
                         context_parallel=cp)
        assert "rank 1" in str(error.value), (name, str(error.value))
        cp.close()
    cp = at.ContextParallel()
    q, k, v = (cp.shard(t).requires_grad_() for t in tensors([1, 8], [1, 8])[:3])
    with pytest.raises(Error, match="the same arrays that require grad, got: other ones on rank 1 than on rank 0 "
                       r"\(slopes there, none on rank 0\)"):
        at.attention(q, k, v, mask=CAUSAL, score=attnc.alibi("slopes"), context_parallel=cp,
                     arrays={"slopes": torch.ones(H).requires_grad_(rank == 1)})
    cp.close()


def check_absent(rank):
    """A rank that does not come, to bind a plan or to run it: the others say so in time, and can go on."""
    last = dist.get_world_size() - 1
    for timeout, mask, message in ((2, attnc.full(), f"expected rank {last} to bind the same plan within 2 s"),
                                   (0.5, CAUSAL, f"expected rank {last} to ")):  # send or receive
        cp = at.ContextParallel(dist.new_group(backend="gloo"), timeout=timeout)
        q, k, v = (cp.shard(t) for t in tensors([1, 8 * cp.ranks], [1, 8 * cp.ranks])[:3])
        at.attention(q, k, v, mask=CAUSAL, context_parallel=cp)
        if rank != last:
            started = time.monotonic()
            with pytest.raises(Error) as error:
                at.attention(q, k, v, mask=mask, context_parallel=cp)
            assert message in str(error.value) and "got: nothing" in str(error.value), str(error.value)
            assert 0.8 * timeout < time.monotonic() - started < timeout + 3
            refused(Error, f"rank {last}", at.attention, q, k, v, mask=CAUSAL, context_parallel=cp)
            refused(Error, f"rank {last}", cp.check)
        dist.barrier()
        cp.close()
    cp = at.ContextParallel(dist.new_group(backend="gloo"))
    same(cp, tensors([1, 16], [1, 16]), mask=CAUSAL)
    cp.close()


def check_order(rank):
    """Bound plans that ranks run in different orders: messages of one are not taken for those of another."""
    cp = at.ContextParallel(dist.new_group(backend="gloo"), timeout=1)
    q, k, v = (cp.shard(t) for t in tensors([1, 16], [1, 16])[:3])
    masks = [CAUSAL, CAUSAL & attnc.window(15)]
    for mask in masks:
        at.attention(q, k, v, mask=mask, context_parallel=cp)
    with pytest.raises(Error) as error:
        for mask in masks[::-1] if rank else masks:
            at.attention(q, k, v, mask=mask, context_parallel=cp)
    assert f"exchange 0 of bound plan {rank} within 1 s, got: nothing" in str(error.value), str(error.value)
    dist.barrier()
    cp.close()


def check_three(rank):
    """Three ranks: head groups that do not divide heads, more ranks than tokens, and groups of some ranks."""
    lengths = [1, 0, 17, 2]
    for options in STRATEGIES:
        cp = at.ContextParallel(**options)
        same(cp, tensors([20], [20]), mask=CAUSAL, lengths_q=lengths, lengths_kv=lengths)
        cp.close()
    cp = at.ContextParallel(head_group=3)
    same(cp, tensors([2], [2]), mask=CAUSAL, lengths_q=[2], lengths_kv=[2])
    cp.close()
    pair = dist.new_group([0, 2])
    if rank == 1:
        refused(Error, "of which this process is a rank", at.ContextParallel, pair)
    else:
        cp = at.ContextParallel(pair)
        assert (cp.rank, cp.ranks) == (rank // 2, 2)
        same(cp, tensors([2, 9], [2, 9]), mask=CAUSAL)
        cp.close()


OF_TWO = ("packed", "dense", "many", "cross", "shardings", "padded", "options", "learned_sinks", "learned_arrays",
          "views", "rows", "others", "training", "refused", "refused_options", "differences", "order", "absent")
OF_THREE = ("three", "absent")


def work(rank, folder):
    torch.set_num_threads(1)
    for count, checks in ((2, OF_TWO), (3, OF_THREE)):
        if rank >= count:
            continue
        rendezvous = os.path.join(folder, f"rendezvous-{count}")
        dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=count)
        try:
            for check in checks:
                started = time.monotonic()
                globals()[f"check_{check}"](rank)
                if rank == 0:
                    print(f"{count} ranks, {check}: {time.monotonic() - started:.1f} s", flush=True)
        finally:
            dist.destroy_process_group()


def test_ranks():
    """All checks in one set of processes: starting them takes longer than most checks."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (folder,), nprocs=3)


def test_without_group():
    refused(Error, "expected torch.distributed.init_process_group before a ContextParallel", at.ContextParallel)
