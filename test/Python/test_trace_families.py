# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that are families of masks, and their limits."""
import math

import attnc
import pytest
from attnc.trace import array, trace_mask
from trace_reader import SIZES, as_numpy, np, positions, shown
from trace_tables import ARRAYS

IDS_Q, IDS_KV = "traced_ids_q", "traced_ids_kv"
of_q, of_k, of_b, of_h, of_bq, of_bk = (ARRAYS[name] for name in ("of_q", "of_k", "of_b", "of_h", "of_bq", "of_bk"))
FAMILIES = [
    (lambda b, h, q, k: True, attnc.full()),
    (lambda b, h, q, k: (q >= 0) | (k < 4), attnc.full()),
    (lambda b, h, q, k: False, ~attnc.full()),
    (lambda b, h, q, k: q >= k, attnc.causal()),
    (lambda b, h, q, k: k <= q, attnc.causal()),
    (lambda b, h, q, k: ~(q < k), attnc.causal()),
    (lambda b, h, q, k: q - k > -1, attnc.causal()),
    (lambda b, h, q, k: 2 * (k - q) < 1, attnc.causal()),
    (lambda b, h, q, k: q < k, ~attnc.causal()),
    (lambda b, h, q, k: (q >= k) & (q - k < 64), attnc.window(64)),
    (lambda b, h, q, k: (k > q - 64) & (k <= q), attnc.window(64)),
    (lambda b, h, q, k: (q - k <= 3.5) & ((k - q) / 2 <= 1), attnc.band(3, 2)),
    (lambda b, h, q, k: abs(q - k) <= 5, attnc.band(5, 5)),
    (lambda b, h, q, k: np.abs(k - q) < 6, attnc.band(5, 5)),
    (lambda b, h, q, k: ~(abs(q - k) <= 5), ~attnc.band(5, 5)),
    (lambda b, h, q, k: q == k, attnc.band(0, 0)),
    (lambda b, h, q, k: k < 16, attnc.prefix(16)),
    (lambda b, h, q, k: k // 4 < 4, attnc.prefix(16)),
    (lambda b, h, q, k: q < 16, attnc.global_rows(16)),
    (lambda b, h, q, k: q // 8 == k // 8, attnc.chunk(8)),
    (lambda b, h, q, k: q // 2 // 4 == k >> 3, attnc.chunk(8)),
    (lambda b, h, q, k: q // 8 >= k // 8, attnc.chunk(8) | attnc.causal()),
    (lambda b, h, q, k: q // 8 > k // 8, attnc.causal() - attnc.chunk(8)),
    (lambda b, h, q, k: (q // 8 == k // 8) & (q % 8 >= k % 8), attnc.chunk(8) & attnc.causal()),
    (lambda b, h, q, k: (q - k) % 3 == 1, attnc.strided(3, 1)),
    (lambda b, h, q, k: (k - q) % 3 == 1, attnc.strided(3, 2)),
    (lambda b, h, q, k: q % 3 == k % 3, attnc.strided(3)),
    (lambda b, h, q, k: abs(q - k) % 3 == 0, attnc.strided(3)),
    (lambda b, h, q, k: (k < 4) | (q >= k) & (q - k < 8), attnc.sink(4) | attnc.window(8)),
    (lambda b, h, q, k: k < of_b[b], attnc.prefix("traced_prefix")),
    (lambda b, h, q, k: ~(of_b[b] > k), ~attnc.prefix("traced_prefix")),
    (lambda b, h, q, k: q < of_b[b], attnc.global_rows("traced_global_rows")),
    (lambda b, h, q, k: of_bq[b, q] == of_bk[b, k], attnc.document(IDS_Q, IDS_KV)),
    (lambda b, h, q, k: (of_bq[b, q] == of_bk[b, k]) & (of_bq[b, q] != 0) & (q >= k),
     attnc.causal() & attnc.document(IDS_Q, IDS_KV)),
    (lambda b, h, q, k: (of_q[q] == of_k[k]) & (q - of_b[of_q[q] % 2] >= k - of_b[of_k[k] % 2]),
     attnc.causal() & attnc.document(IDS_Q, IDS_KV)),
    (lambda b, h, q, k: (k >= of_q[q]) & (k < of_q[q] + 3), attnc.rows("traced_row_begin", "traced_row_end")),
    (lambda b, h, q, k: q - k < of_h[h], attnc.rows("traced_row_begin", heads="query")),
    (lambda b, h, q, k: q < of_k[k], attnc.columns(end="traced_column_end")),
]


@pytest.mark.parametrize("function, expected", FAMILIES)
def test_families(function, expected):
    mask = trace_mask(function)
    assert str(mask) == str(expected) or attnc.equiv(mask, expected).verdict == "equal", f"{mask}\n{expected}"
    wanted = np.broadcast_to(as_numpy(function)(*positions()), SIZES)
    np.testing.assert_array_equal(shown(mask), wanted, err_msg=str(mask))


def test_zero_is_an_id():
    """0 hides in #attn.document and is an id like others in Python."""
    ids = np.array([0, 0, -1, -1, 5, -2**31, 2**31 - 2, 1, 0, 3, 3])
    mask = trace_mask(lambda b, h, q, k: array(ids)[q] == array(ids)[k])
    np.testing.assert_array_equal(shown(mask, (1, 1, 11, 11))[0, 0], ids[:, None] == ids)
    beyond = array([0, 2**31 - 1])
    with pytest.raises(attnc.TensorError, match="integers of 32 bits in 'traced_ids_q'"):
        shown(trace_mask(lambda b, h, q, k: beyond[q] == beyond[k]), (1, 1, 2, 2))


def test_large_bounds():
    ends = array([2**40, -2**40, 5])
    mask = trace_mask(lambda b, h, q, k: k < ends[q])
    np.testing.assert_array_equal(shown(mask, (1, 1, 3, 9))[0, 0], np.arange(9) < np.array([[9], [0], [5]]))
    assert trace_mask(lambda b, h, q, k: q - k < 2**40) == attnc.full()
    assert trace_mask(lambda b, h, q, k: k < math.inf) == attnc.full()
    assert trace_mask(lambda b, h, q, k: k < math.nan) == ~attnc.full()


def test_long_conditions():
    """What passes 512 instructions takes arrays for less, and what passes them all the same is refused."""
    wide = trace_mask(lambda b, h, q, k: sum(q * i % 7 for i in range(1, 30)) < sum(k * i % 5 for i in range(99)))
    assert len(str(wide)) < 200 and set(wide.arrays) == {"traced_q", "traced_k"}
    many = trace_mask(lambda b, h, q, k: sum((k == 3 * i for i in range(40)), False))  # of more than 64 families
    assert str(many) == '#attn.predicate<"traced_k[k] != 0">'
    assert shown(many)[0, 0, 0].tolist() == [k % 3 == 0 for k in range(SIZES[3])]
    constant = trace_mask(lambda b, h, q, k: np.where(k < math.inf, q, k) < 3)
    assert str(constant) == '#attn.predicate<"(0 == 0 ? q : k) <= 2">'
    np.testing.assert_array_equal(shown(constant), shown(attnc.global_rows(3)))
    with pytest.raises(attnc.TraceError, match="at most 512 instructions"):
        trace_mask(lambda b, h, q, k: sum(((q + i * k) % (7 + i) for i in range(1, 99)), k) < 3)
    with pytest.raises(attnc.TraceError, match="too long|too deeply"):
        trace_mask(lambda b, h, q, k: sum(((q + k) % 7 // (i + 1) for i in range(3000)), k) < 3)
