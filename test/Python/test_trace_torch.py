# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of torch tensors, against torch's vmap as flex_attention has it."""
import attnc
import pytest
from attnc.trace import trace_mask
from trace_kernels import attention, dense, inputs, reference, torch
from trace_reader import np, shown


def torch_functions():
    """Functions of torch tensors, and words of the masks that they become."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.tensor([[0] * 5 + [1] * 8, [3] * 7 + [-1] * 6])
    windows, ends, flags = torch.tensor([2, 5, 9]), torch.tensor([4, 9]), torch.rand(13, generator=generator) < 0.3
    offsets = torch.tensor([0, 4, 9, 13], dtype=torch.int32)
    spans = torch.tensor([[0, 4], [3, 9], [9, 13]], dtype=torch.int16)
    times, ratio = torch.randn(2, 13, generator=generator), torch.tensor([0.25, 0.6])
    limit, document = torch.tensor(5), torch.tensor([0] * 4 + [1] * 5 + [2] * 4)
    packed = torch.nn.attention.flex_attention
    return [
        (lambda b, h, q, k: ids[b, q] == ids[b, k], "document"),
        (lambda b, h, q, k: ids[b][q] == ids[b][k], "document"),
        (lambda b, h, q, k: q - k < windows[h], "per_head"), (lambda b, h, q, k: (q >= k) & (k < ends[b]), "prefix"),
        (lambda b, h, q, k: (torch.abs(q - k) <= 2) | flags[q] | flags[k], "band"),
        (lambda b, h, q, k: torch.logical_or(torch.logical_not(flags[q]), torch.logical_xor(q > k, flags[k])),
         "predicate"),
        (lambda b, h, q, k: torch.where(flags[q], k < 5, torch.ge(q, k)), "prefix"),
        (lambda b, h, q, k: torch.searchsorted(offsets, q, right=True) == torch.searchsorted(offsets, k, right=True),
         "document"),
        (lambda b, h, q, k: (document[q] == document[k]) & (q - offsets[document[q]] >= k - offsets[document[k]]),
         "causal"),
        (lambda b, h, q, k: (spans[document[k]][0] <= q) & (q < spans[document[k]][1]), "column_interval<begin"),
        (lambda b, h, q, k: (lambda low, high: (low <= q) & (q < high))(*spans[document[k]]), "column_interval<begin"),
        (lambda b, h, q, k: k < torch.floor(ends[b] * ratio[b]), "prefix"),
        (lambda b, h, q, k: k <= ends[b] * 0.7, "prefix"),
        (lambda b, h, q, k: times[b, q] >= times[b, k], "predicate"),
        (lambda b, h, q, k: torch.sin(times[b, q]) < torch.cos(times[b, k]), "predicate"),
        (lambda b, h, q, k: q - k < limit, "row_interval"), (lambda b, h, q, k: q - k < torch.tensor(3) * 2, "band"),
        (lambda b, h, q, k: torch.isin(k, torch.tensor([3, 5, 7])) | (q >= k), "causal"),
        (lambda b, h, q, k: (ids[b].max() > k) & (ids[b].max(dim=0).indices >= 0), "prefix"),
        (lambda b, h, q, k: ids[b, :, None][q, 0] == torch.minimum(k, q), "predicate"),
        (lambda b, h, q, k: torch.clamp(torch.maximum(q, k), max=5) > torch.remainder(torch.floor_divide(q, 2), 3),
         "predicate"),
        (lambda b, h, q, k: flags[q] == flags[k], "document"), (lambda b, h, q, k: windows[h] - q > -k, "per_head"),
        (lambda b, h, q, k: torch.stack([q, q + 3])[h % 2] >= k, "per_head"),
        (lambda b, h, q, k: q.ge(k).to(torch.int32) != 0, "causal"),
        (lambda b, h, q, k: torch.bitwise_and(flags[q], ~flags[k]), "predicate"),
        (lambda b, h, q, k: (q ^ 5) < (k | 2), "(q ^ 5) <"),
        (lambda b, h, q, k: ((q ^ k) & windows[h]) > 1, "& traced_h[h])"),
        (lambda b, h, q, k: ((q ^ k) & ids[b, q]) != 0, "((q ^ k) & traced_q[q]) != 0"),
        (lambda b, h, q, k: ids[b, q] + windows[h] < ids[b, k] * 2, "traced_q[q] + traced_h[h] <= traced_k[k]"),
        (lambda b, h, q, k: torch.any(ids[b, q] == torch.tensor([1, 3])) & (k <= q), "causal"),
        (packed.and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 4), "band<left = 3, right = 0>"),
        (packed.or_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: k < 4), "or<#attn.causal, #attn.prefix<4>>"),
    ]


def more_torch_functions():
    """Functions whose operators mean something else in C, and ways to write numbers and conditions."""
    flags, table = torch.tensor([1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1]).bool(), torch.arange(13) - 6
    return [
        lambda b, h, q, k: (flags[q] + flags[k]) == 1, lambda b, h, q, k: flags[q] * flags[k],
        lambda b, h, q, k: torch.maximum(flags[q], flags[k]), lambda b, h, q, k: sum([q > k, q > 3, k < 5]) >= 2,
        lambda b, h, q, k: (q - k) // -3 < 1, lambda b, h, q, k: (q - k) % -3 < -1,
        lambda b, h, q, k: torch.fmod(q - k, 3) == -1,
        lambda b, h, q, k: torch.div(q - k, 3, rounding_mode="trunc") == -1,
        lambda b, h, q, k: torch.div(q - k, -2, rounding_mode="trunc") > 1,
        lambda b, h, q, k: torch.fmod(table[q], table[q] * 2 + 1) == k - 3, lambda b, h, q, k: (q / 3).int() >= k // 2,
        lambda b, h, q, k: torch.ceil(q / 3) > k, lambda b, h, q, k: torch.round(q / 4) > k,
        lambda b, h, q, k: q**2 < k**2,
        lambda b, h, q, k: 2 ** (q % 4) > k, lambda b, h, q, k: ((q >> 1) & 1) == ((k >> 1) & 1),
        lambda b, h, q, k: ~q < -k,
        lambda b, h, q, k: k * 1.0 < q * 1.0, lambda b, h, q, k: (q - k) * 0.5 <= 2.25,
        lambda b, h, q, k: -(q - k) / 4 > -1.2,
        lambda b, h, q, k: abs(q - k) / 2 < 1.5, lambda b, h, q, k: torch.abs(q - k).float() <= 2.5,
        lambda b, h, q, k: q == 2.5,
        lambda b, h, q, k: (q - k) == 2.0, lambda b, h, q, k: torch.logical_and(q, k),
        lambda b, h, q, k: q.bool() & (k > 2),
        lambda b, h, q, k: (q >= k) == True, lambda b, h, q, k: torch.ones_like(q, dtype=torch.bool),  # noqa: E712
        lambda b, h, q, k: torch.full_like(q, 3) > k, lambda b, h, q, k: torch.zeros((), dtype=torch.bool) | (q >= k),
        lambda b, h, q, k: torch.min(q, k) > 2, lambda b, h, q, k: torch.sub(q, k, alpha=2) > 0,
        lambda b, h, q, k: torch.rsub(q, k) > 0, lambda b, h, q, k: table[q - 3] > table[k - 5],
        lambda b, h, q, k: table[-1] - q > k, lambda b, h, q, k: torch.tensor([2, 4, 6])[h] > q - k,
        lambda b, h, q, k: k < torch.tensor([4, 6])[b].clamp(max=5),
        lambda b, h, q, k: torch.eq(q % 3, k % 3).logical_not(),
    ]


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_torch_functions():
    listed = torch_functions() + [(function, "") for function in more_torch_functions()]
    for number, (function, words) in enumerate(listed):
        mask = trace_mask(function)
        assert words in str(mask), f"{number}: {mask}"
        expected = dense(function, (2, 3, 13, 13)).numpy()
        np.testing.assert_array_equal(shown(mask, (2, 3, 13, 13)), expected, err_msg=f"{number}: {mask}")
        assert str(trace_mask(function)) == str(mask)


def test_torch_functions_refused():
    ids, seen = torch.tensor([1, 2, 3]), torch.ones(9, 9, dtype=torch.bool)
    for function, words in (
            (lambda b, h, q, k: seen[q, k], "block_map"), (lambda b, h, q, k: seen[q][k], "block_map"),
            (lambda b, h, q, k: (ids[h] == torch.stack([q, k])).any(), "`(stack|eq)` of q and k together"),
            (lambda b, h, q, k: ids.add_(q) > k, "add_ changes a tensor"), (lambda b, h, q, k: ids > k, "shape"),
            (lambda b, h, q, k: ids.__setitem__(q, 3), "__setitem__ changes"),
            (lambda b, h, q, k: q.item() < 3, "not a number"),
            (lambda b, h, q, k: torch.nonzero(q) > k, "cannot be traced"),
            (lambda b, h, q, k: (q - k).sin() < 0.5, "`sin` of"),
            (lambda b, h, q, k: torch.abs(q, out=ids) < k, "out="),
            (lambda b, h, q, k: bool(torch.ge(q, k)), "truth value")):
        with pytest.raises(attnc.TraceError, match=words) as caught:
            print(trace_mask(function))
        assert str(caught.value).startswith(__file__)
    assert torch.equal(ids, torch.tensor([1, 2, 3]))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("number", [2, 4, 9, 13, 25])
def test_kernels(number):
    function, _ = torch_functions()[number]
    tensors = inputs((2, 2, 13, 13), kv_heads=1)
    got = attention(*tensors, mask=trace_mask(function))
    error = (got - reference(*tensors, mask_function=function)).abs().max().item()
    assert error < 0.01
