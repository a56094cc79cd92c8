# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.utils.flop_counter counts attnc's operators as it counts PyTorch's own attention."""
import subprocess
import sys

import pytest
from test_torch import make, D, G, H

torch = pytest.importorskip("torch")
import attnc  # noqa: E402
import attnc.torch as at  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode, flop_registry  # noqa: E402

B, S, SK, E = 2, 37, 40, 8
LENGTHS_Q, LENGTHS_K = torch.tensor([9, 0, 28]), torch.tensor([5, 7, 28])


def counted(call):
    with FlopCounterMode(display=False) as mode:
        result = call()
    assert set(mode.get_flop_counts()["Global"]) <= {torch.ops.attnc.run, torch.ops.aten.mm}
    return result, mode.get_total_flops()


def of_pairs(pairs, heads=H, dim=D, dim_v=E):
    """Forward: products of q and k, of weights and v. Backward: these of q and k again, dP, dV, dQ and dK."""
    return 2 * heads * pairs * (dim + dim_v), 2 * heads * pairs * (3 * dim + 2 * dim_v)


def inputs(*lead_q, k=None):
    lead_k = k or lead_q
    return [make(*lead, heads, dim, seed=i).requires_grad_() for i, (lead, heads, dim) in enumerate(
        ((lead_q, H, D), (lead_k, G, D), (lead_k, G, E)))]


def both(call, tensors):
    """FLOPs of the forward and the backward pass."""
    o, forward = counted(lambda: call(*tensors))
    return forward, counted(lambda: torch.autograd.grad(o, tensors, torch.ones_like(o)))[1]


@pytest.mark.parametrize("layout, order", [("bshd", (0, 1, 2, 3)), ("sbhd", (1, 0, 2, 3)), ("bhsd", (0, 2, 1, 3))])
@pytest.mark.parametrize("mask", [attnc.full(), attnc.causal() & attnc.window(5)])
def test_dense(layout, order, mask):
    """Masks do not count, nor do arrays."""
    call = lambda *t: at.attention(*(x.permute(order) for x in t), mask=mask, layout=layout,  # noqa: E731
                                   score=attnc.alibi("slopes"), arrays={"slopes": torch.ones(H)})
    assert both(call, inputs(B, S, k=(B, SK))) == of_pairs(B * S * SK)


def test_as_pytorch_counts():
    """Formulas of flash attention in PyTorch, which have as many heads of k as of q, on the same shapes."""
    q, k, v = (torch.empty(B, H, n, dim) for n, dim in ((S, D), (SK, D), (SK, E)))
    do, aten = torch.empty(B, H, S, E), torch.ops.aten
    assert of_pairs(B * S * SK) == (flop_registry[aten._scaled_dot_product_flash_attention](q, k, v),
                                    flop_registry[aten._scaled_dot_product_flash_attention_backward](do, q, k, v))
    cu_q, cu_k = (torch.nn.functional.pad(n.cumsum(0), (1, 0)) for n in (LENGTHS_Q, LENGTHS_K))
    q, k, v = torch.empty(37, H, D), torch.empty(40, H, D), torch.empty(40, H, D)
    pairs = int((LENGTHS_Q * LENGTHS_K).sum())
    assert of_pairs(pairs, dim_v=D) == (
        flop_registry[aten._flash_attention_forward](q, k, v, cu_q, cu_k, 28, 28),
        flop_registry[aten._flash_attention_backward](q, q, k, v, q, None, cu_q, cu_k, 28, 28))


def test_packed():
    """Each sequence by its length, as in PyTorch; padding does not count."""
    cu_q, cu_k = (torch.nn.functional.pad(n.cumsum(0), (1, 0)) for n in (LENGTHS_Q, LENGTHS_K))
    tensors, pairs = inputs(50, k=(60,)), int((LENGTHS_Q * LENGTHS_K).sum())
    call = lambda *t: at.attention(*t, mask=attnc.causal(), layout="thd", cu_seqlens_q=cu_q,  # noqa: E731
                                   cu_seqlens_kv=cu_k)
    assert both(call, tensors) == of_pairs(pairs)
    starts = torch.tensor([2, 20, 20, 50])
    padded = lambda *t: at.attention(*t, mask=attnc.causal(), layout="thd padded", cu_seqlens_q=cu_q,  # noqa: E731
                                     padded_offsets_q=starts)
    assert both(padded, inputs(50)) == of_pairs(int((LENGTHS_Q**2).sum()))
    mixed = lambda *t: at.attention(*t, mask=attnc.full(), layout=("bshd", "thd", "thd", "bshd"),  # noqa: E731
                                    cu_seqlens_kv=cu_k)
    assert both(mixed, inputs(3, S, k=(60,))) == of_pairs(S * int(LENGTHS_K.sum()))


def test_ids_and_empty():
    """What finds sequences of ids counts nothing."""
    ids = torch.tensor([[1] * 9 + [2] * 11, [1] * 3 + [0] * 17])
    call = lambda *t: at.attention(*t, mask=attnc.causal(), ids=ids, segments=2)  # noqa: E731
    assert both(call, inputs(2, 20)) == of_pairs(81 + 121 + 9)
    assert both(lambda *t: at.attention(*t, mask=attnc.full()), inputs(0, S)) == (0, 0)


def test_unknown_lengths():
    """Without contents packed tokens count as one sequence."""
    with FakeTensorMode() as mode:
        q, k, v = (mode.from_tensor(t.detach()) for t in inputs(50, k=(60,)))
        cu = torch.zeros(4, dtype=torch.int32)
        call = lambda: at.attention(q, k, v, mask=attnc.causal(), layout="thd", cu_seqlens_q=cu)  # noqa: E731
        assert counted(call)[1] == of_pairs(50 * 60)[0]
        mixed = lambda: at.attention(q.expand(3, 50, H, D), k, v, mask=attnc.causal(), cu_seqlens_kv=cu,  # noqa: E731
                                     layout=("bshd", "thd", "thd", "bshd"))
        assert counted(mixed)[1] == of_pairs(3 * 50 * 60)[0]


def test_compiled_and_modules():
    """The operator is counted in graphs of torch.compile, and for the module that calls it."""
    attention = at.Attention(attnc.causal())
    tensors = inputs(B, S)
    step = torch.compile(lambda *t: attention(*t), fullgraph=True, backend="aot_eager", dynamic=True)
    assert both(step, tensors) == of_pairs(B * S * S)
    with FlopCounterMode(display=False) as mode:
        attention(*tensors)
    assert mode.get_flop_counts()["Attention"] == {torch.ops.attnc.run: of_pairs(B * S * S)[0]}


def test_import_says_nothing():
    """PyTorch's counter warns where Triton is missing; that is of no concern to attnc."""
    done = subprocess.run([sys.executable, "-c", "import attnc.torch"], capture_output=True, text=True, check=True)
    assert "flop" not in done.stdout + done.stderr
