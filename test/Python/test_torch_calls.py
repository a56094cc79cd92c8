# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ways into attnc.torch.attention on the CPU: the direct call and PyTorch's dispatcher, sequences by ids."""
import threading

import pytest

torch = pytest.importorskip("torch")
import attnc  # noqa: E402
import attnc.torch as at  # noqa: E402
from attnc import ProblemError, TensorError, UnsupportedError  # noqa: E402
from attnc.torch import _ops  # noqa: E402
from test_torch import check_gradients, dense, make, qkv, B, D, G, H, S  # noqa: E402
from torch.testing._internal.two_tensor import TwoTensor  # noqa: E402  (a subclass: each operator on two tensors)
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402


class Seen(TorchDispatchMode):
    """Counts calls of the operator."""
    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += function is torch.ops.attnc.run.default
        return function(*args, **(kwargs or {}))


def test_direct_call_and_operator_agree():
    assert _ops._direct is not None
    tensors = qkv()
    direct = at.attention(*tensors, mask=attnc.causal())
    with Seen() as seen:
        assert torch.equal(at.attention(*tensors, mask=attnc.causal()), direct)
    assert seen.count == 1
    both = at.attention(*(TwoTensor(t, 2 * t) for t in tensors), mask=attnc.causal())
    assert torch.equal(both.a, direct) and not torch.equal(both.b, direct)
    with torch.autograd.profiler.profile() as profile:
        at.attention(*tensors, mask=attnc.causal())
    assert any(event.name == "attnc::run" for event in profile.function_events)


def test_direct_call_keeps_nothing():
    """A result of the direct call is held by its caller alone, as are inputs."""
    q, k, v = qkv()
    o = at.attention(q, k, v, mask=attnc.causal())
    assert [t._use_count() for t in (q, k, v, o)] == [1] * 4
    with pytest.raises(RuntimeError, match="expected tensors"):
        _ops._direct([], "", "")
    with pytest.raises(TypeError):
        _ops._direct(1, "", "")
    with pytest.raises(TypeError):
        _ops._direct([q], 1, "")
    assert q._use_count() == 1


def test_errors_are_the_same_again():
    """A call like an earlier valid one is not checked again, unless it fails."""
    q, k, v = qkv()
    changes = [dict(v=v.half()), dict(k=k.to("meta")), dict(arrays={"x": q}), dict(cu_seqlens_q=torch.zeros(2))]
    texts = []
    for _ in range(2):
        for change in changes:
            with pytest.raises(TensorError) as error:
                at.attention(**{"q": q, "k": k, "v": v, "mask": attnc.causal(), **change})
            texts.append(str(error.value))
        at.attention(q, k, v, mask=attnc.causal())
    assert texts[:4] == texts[4:]


def test_bound_and_named_arrays_of_one_text():
    """Masks of the same text, with the array bound and with it given by the call."""
    q, k, v = qkv()
    named, ids = attnc.document("ids"), torch.arange(S, dtype=torch.int32).expand(B, S) // 5 + 1
    given = at.attention(q, k, v, mask=named, arrays={"ids": ids})
    bound = attnc.document(ids=ids)
    for _ in range(2):
        assert torch.equal(at.attention(q, k, v, mask=named, arrays={"ids": ids}), given)
        assert torch.equal(at.attention(q, k, v, mask=bound), given)
    with pytest.raises(TensorError, match="got none for"):
        at.attention(q, k, v, mask=named)


def test_many_shapes():
    """More shapes than are kept, twice, and from several threads."""
    before = attnc.compile_count()
    expected = {n: at.attention(*qkv(seqlen=n), mask=attnc.causal()) for n in range(1, 45)}
    wrong = []

    def check():
        for n, o in expected.items():
            if not torch.equal(at.attention(*qkv(seqlen=n), mask=attnc.causal()), o):
                wrong.append(n)
    threads = [threading.Thread(target=check) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and attnc.compile_count() - before <= 8


def test_forward_mode_is_refused():
    q, k, v = qkv()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, torch.ones_like(q))
        with pytest.raises(UnsupportedError, match="forward-mode"):
            at.attention(dual, k, v, mask=attnc.causal())
        assert at.attention(q, k, v, mask=attnc.causal()).shape == q.shape


def test_traced_programs_record_the_operator():
    q, k, v = qkv()
    with pytest.warns(DeprecationWarning):
        traced = torch.jit.trace(lambda q, k, v: at.attention(q, k, v, mask=attnc.causal()) + q, (q, k, v),
                                 check_trace=False)
    other = qkv(batch=B)[0] * 2
    assert torch.equal(traced(other, k, v), at.attention(other, k, v, mask=attnc.causal()) + other)


def test_vmap_entry_by_entry():
    """Dropout, numbers of sequences and arrays without a batch axis do not fold into the batch."""
    q, k, v = (torch.stack([t, 2 * t]) for t in qkv())
    seed, slopes = torch.tensor([1, 2, 3, 4], dtype=torch.int32), torch.rand(2, H)
    for call, extra in ((lambda q, k, v: at.attention(q, k, v, mask=attnc.causal(), dropout=0.5, seed=seed), ()),
                        (lambda q, k, v: at.attention(q, k, v, mask=attnc.where("k <= q + b")), ()),
                        (lambda q, k, v, s: at.attention(q, k, v, mask=attnc.causal(), score=attnc.alibi("s"),
                                                         arrays={"s": s}), (slopes,))):
        found = torch.vmap(call)(q, k, v, *extra)
        for i in range(2):
            assert torch.equal(found[i], call(q[i], k[i], v[i], *(t[i] for t in extra)))
    ids = torch.randint(1, 4, (2, B, S))
    with_ids = lambda q, k, v, ids: at.attention(q, k, v, mask=attnc.document("ids"), arrays={"ids": ids})  # noqa: E731
    assert torch.equal(torch.vmap(with_ids)(q, k, v, ids)[1], with_ids(q[1], k[1], v[1], ids[1]))


def test_batched_gradients_are_refused():
    tensors = qkv(requires_grad=True)
    o = at.attention(*tensors, mask=attnc.causal())
    with pytest.raises(UnsupportedError, match="torch.func.jacrev"):
        torch.autograd.grad(o, tensors, torch.stack([torch.ones_like(o)] * 2), is_grads_batched=True)


@pytest.mark.parametrize("change, kind, message", [
    (dict(mask=attnc.causal), ProblemError, "call it, as attnc.causal()"),
    (dict(mask=attnc.Mask), ProblemError, "attnc.causal()"),
    (dict(mask=None), ProblemError, "as attnc.full()"),
    (dict(q=torch.zeros(1, 2).to_sparse()), TensorError, "strided tensor, got: torch.sparse"),
])
def test_more_errors(change, kind, message):
    with pytest.raises(kind) as error:
        at.attention(**{**dict(zip("qkv", qkv())), "mask": attnc.causal(), **change})
    assert message in str(error.value), str(error.value)


# ---- sequences by ids ----

IDS = torch.tensor([[1] * 9 + [2] * 5 + [0] * 6, [1] * 3 + [0] * 2 + [3] * 15])
POSITIONS = torch.cat([torch.arange(9), torch.arange(5), torch.zeros(6), torch.arange(3), torch.zeros(2),
                       torch.arange(15)]).view(2, 20)
FLAT = (IDS + torch.tensor([[0], [10]]) * (IDS > 0)).flatten()
VISIBLE = (FLAT[:, None] == FLAT) & (FLAT != 0)[:, None] & torch.ones(40, 40, dtype=torch.bool).tril()


def by_dense(q, k, v):
    o = dense(*(t.reshape(1, 40, -1, D) for t in (q, k, v)), VISIBLE)[0].nan_to_num()
    return o.reshape(q.shape)


@pytest.mark.parametrize("layout", ["bshd", "thd padded"])
@pytest.mark.parametrize("positions", [None, torch.int32, torch.int64])
def test_gradients_with_ids(layout, positions):
    inputs = [make(2, 20, h, D, seed=i) for i, h in enumerate((H, G, G))]
    if layout == "thd padded":
        inputs = [t.flatten(0, 1) for t in inputs]
    check_gradients(lambda q, k, v: at.attention(q, k, v, mask=attnc.causal(), layout=layout, ids=IDS.int(), segments=4,
                                                 positions=None if positions is None else POSITIONS.to(positions)),
                    by_dense, inputs)


def test_padding_by_ids_is_zero():
    inputs = [make(2, 20, h, D, seed=i) for i, h in enumerate((H, G, G))]
    for t in inputs:
        t[IDS == 0] = torch.nan
    o, lse = at.attention(*inputs, mask=attnc.causal(), ids=IDS, segments=4, return_lse=True)
    assert not o[IDS == 0].any() and not o.isnan().any() and lse.shape == (2, H, 20)
    assert (lse.movedim(1, 2)[IDS == 0] == -torch.inf).all()


def test_ids_compiled():
    step = torch.compile(lambda q, k, v, ids: at.attention(q, k, v, mask=attnc.causal(), ids=ids, segments=4),
                         fullgraph=True, backend="aot_eager")
    inputs = [make(2, 20, h, D, seed=i) for i, h in enumerate((H, G, G))]
    assert torch.equal(step(*inputs, IDS), at.attention(*inputs, mask=attnc.causal(), ids=IDS, segments=4))


def test_lengths_of_ids():
    """They are found once and serve several calls."""
    found = at.lengths_and_offsets(IDS, mask=attnc.causal(), segments=4)
    q, k, v = (make(40, h, D, seed=i) for i, h in enumerate((H, G, G)))
    lengths = found.cu_seqlens_q.diff()
    assert sorted(lengths[lengths > 0].tolist()) == [3, 5, 9, 15] and not found.status.any()
    again = at.attention(q, k, v, mask=attnc.causal(), layout="thd padded", cu_seqlens_q=found.cu_seqlens_q,
                         cu_seqlens_kv=found.cu_seqlens_kv, padded_offsets_q=found.padded_offsets_q,
                         padded_offsets_kv=found.padded_offsets_kv)
    assert torch.equal(again, at.attention(q, k, v, mask=attnc.causal(), layout="thd padded", ids=IDS, segments=4))


@pytest.mark.parametrize("change, kind, message", [
    (dict(segments=None), ProblemError, "`segments`"),
    (dict(ids=None, positions=POSITIONS), ProblemError, "ids beside"),
    (dict(ids=IDS[:, :-1]), TensorError, "for 40 tokens, got: (2, 19)"),
    (dict(ids=IDS.float()), TensorError, "torch.int32 or torch.int64"),
    (dict(ids=IDS + 2**32), TensorError, "numbers of 32 bits in 'ids' of queries"),
    (dict(ids=IDS.roll(2, 1)[:, :].where(IDS > 0, 1)), TensorError, "one run of tokens for each id"),
    (dict(ids=[IDS]), TensorError, "or a pair of them as 'ids', got: list of 1: Tensor"),
    (dict(ids=[1] * 20), TensorError, "as 'ids', got: list of 20: int, int, int"),
    (dict(ids=1), TensorError, "as 'ids', got: int"),
    (dict(ids=IDS.to("meta")), TensorError, "expected 'ids' of 'q' on cpu, got: meta"),
    (dict(positions=(POSITIONS.int(), None)), TensorError, "as 'positions', got: tuple of 2: Tensor, NoneType"),
    (dict(positions=POSITIONS.to("meta")), TensorError, "expected 'positions' of queries on cpu, got: meta"),
    (dict(positions=POSITIONS[:, :-1].int()), TensorError, "`positions` of queries"),
    (dict(cu_seqlens_q=torch.zeros(2, dtype=torch.int32)), TensorError, "got: both"),
    (dict(layout="bhsd"), UnsupportedError, "'bshd' and 'thd padded'"),
    (dict(mask=attnc.prefix(3), positions=POSITIONS.int()), UnsupportedError, "by positions"),
    (dict(q=torch.zeros(3)), TensorError, "of 4 dimensions"),
])
def test_errors_of_ids(change, kind, message):
    q, k, v = (make(2, 20, h, D, seed=i) for i, h in enumerate((H, G, G)))
    with pytest.raises(kind) as error:
        at.attention(**{"q": q, "k": k, "v": v, "mask": attnc.causal(), "ids": IDS, "segments": 4, **change})
    assert message in str(error.value), str(error.value)
