# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc.torch.attention of DTensors, in two processes on the CPU."""
import os
import tempfile

import pytest

torch = pytest.importorskip("torch")
import attnc  # noqa: E402
import attnc.torch as at  # noqa: E402
from attnc import TensorError, UnsupportedError  # noqa: E402
from test_torch import make  # noqa: E402

B, S, H, G, D = 4, 21, 4, 2, 16


def same(name, sharded, alone, inputs, mesh, placements):
    """Output and gradients of shards, gathered, and those of whole tensors."""
    from torch.distributed.tensor import DTensor, distribute_tensor
    from torch.distributed.tensor.debug import CommDebugMode
    own = [t.clone().requires_grad_() for t in inputs]
    parts = [distribute_tensor(t, mesh, p).detach().requires_grad_() for t, p in zip(inputs, placements)]
    with CommDebugMode() as forward:
        o = sharded(*parts)
    do = distribute_tensor(make(*o.shape, seed=9), mesh, o.placements)
    with CommDebugMode() as backward:
        o.backward(do)
    collectives = forward.get_total_counts() + backward.get_total_counts()
    expected = alone(*own)
    expected.backward(do.full_tensor())
    assert isinstance(o, DTensor) and torch.equal(o.full_tensor(), expected), name
    for a, b, p in zip(parts, own, placements):
        assert tuple(a.grad.placements) == tuple(p), (name, a.grad.placements)
        assert (a.grad.full_tensor() - b.grad).abs().max() <= 1e-5 * (a.dtype == torch.float32), name
    return collectives


def check_shards(mesh):
    from torch.distributed.tensor import Replicate, Shard
    q, k, v = (make(B, S, h, D, seed=i) for i, h in enumerate((H, G, G)))
    mask = attnc.causal() & (attnc.window(8) | attnc.sink(2))
    slopes = make(H, dtype=torch.float32).abs()

    def call(q, k, v):
        return at.attention(q, k, v, mask=mask)

    def with_slopes(q, k, v, slopes):
        return at.attention(q, k, v, mask=attnc.causal(), score=attnc.alibi("slopes"), arrays={"slopes": slopes})
    for placement in (Shard(0), Shard(2), Replicate()):
        assert same(f"{placement}", call, call, (q, k, v), mesh, [[placement]] * 3) == 0
    same("slopes by head", with_slopes, with_slopes, (q, k, v, slopes), mesh, [[Shard(2)]] * 3 + [[Shard(0)]])
    for t in (q, k, v):  # heads ahead of the sequence
        t.transpose_(1, 2)

    def heads_first(q, k, v):
        return at.attention(q, k, v, mask=mask, layout="bhsd")
    same("bhsd", heads_first, heads_first, (q, k, v), mesh, [[Shard(1)]] * 3)


def check_lse_and_sums(mesh):
    """lse is sharded as o is; the gradient of an array that shards share is summed."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    q, k, v = (make(B, S, h, D, seed=i) for i, h in enumerate((H, G, G)))
    sinks = make(H, dtype=torch.float32).requires_grad_()
    parts = [distribute_tensor(t, mesh, [Shard(0)]) for t in (q, k, v)]
    shared = distribute_tensor(sinks.detach(), mesh, [Replicate()]).requires_grad_()
    o, lse = at.attention(*parts, mask=attnc.causal(), sink=shared, return_lse=True)
    whole, whole_lse = at.attention(q, k, v, mask=attnc.causal(), sink=sinks, return_lse=True)
    assert torch.equal(lse.full_tensor(), whole_lse) and lse.placements == (Shard(0),)
    do = make(*whole.shape, seed=9)
    whole.backward(do)
    o.backward(distribute_tensor(do, mesh, [Shard(0)]))
    assert (shared.grad.full_tensor() - sinks.grad).abs().max() < 1e-5


def check_refused(mesh):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    q, k, v = (make(B, S + 1, h, D, seed=i) for i, h in enumerate((H, G, G)))

    def shards(*placements):
        return [distribute_tensor(t, mesh, [p]) for t, p in zip((q, k, v), placements)]

    ids = torch.ones(B, S + 1, dtype=torch.int32)
    one = make(B, S + 1, 1, D)
    for tensors, options, kind, message in (
            (shards(Shard(1), Shard(1), Shard(1)), {}, UnsupportedError,
             "shards of the batch and of heads, got: 'q' with"),
            (shards(Shard(3), Shard(3), Shard(3)), {}, UnsupportedError, "placement S(3) in the layout"),
            (shards(Shard(0), Replicate(), Replicate()), {}, TensorError, "tensor.redistribute() changes them"),
            ([shards(Shard(0), Shard(0), Shard(0))[0], k, v], {}, TensorError, "to be DTensors, got: Tensor as 'k'"),
            ([distribute_tensor(t, mesh, [Shard(2)]) for t in (q, one, one)], {}, TensorError,
             "in multiples of 2 shards, got: 1"),
            (shards(Shard(2), Shard(2), Shard(2)), dict(mask=attnc.heads(*[attnc.causal(), attnc.full()] * 2)),
             UnsupportedError, "reads the number of the head"),
            (shards(Shard(0), Shard(0), Shard(0)), dict(mask=attnc.where("b > q")), UnsupportedError,
             "number of the sequence"),
            (shards(Shard(0), Shard(0), Shard(0)), dict(dropout=0.5), UnsupportedError, "expected `seed`"),
            (shards(Shard(0), Shard(0), Shard(0)), dict(mask=attnc.document("ids"), arrays={"ids": ids}), TensorError,
             "expected 'ids' of queries to be a DTensor with the placements (S")):
        with pytest.raises(kind) as error:
            at.attention(*tensors, **{"mask": attnc.causal(), **options})
        assert message in str(error.value), str(error.value)


def work(rank, checks, rendezvous):
    torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2)
    try:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
        for check in checks:
            globals()[check](mesh)
    finally:
        torch.distributed.destroy_process_group()


def test_shards():
    """All checks in one pair of processes: starting them takes longer than the checks."""
    with tempfile.TemporaryDirectory() as folder:
        checks = ["check_shards", "check_lse_and_sums", "check_refused"]
        torch.multiprocessing.spawn(work, (checks, os.path.join(folder, "rendezvous")), nprocs=2)
