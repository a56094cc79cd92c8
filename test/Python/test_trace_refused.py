# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What cannot be traced, and the lines that say so."""
import math

import attnc
import pytest
from attnc.trace import array, trace_mask, trace_score
from trace_reader import np
from trace_tables import ARRAYS

numpy_array = np.arange(20)
square, slopes, of_q = array(np.eye(20, dtype=bool)), array([0.5, 0.25, 1.0]), ARRAYS["of_q"]
REFUSED = [
    (lambda b, h, q, k: q >= k and q < 3, "write `&` with parentheses in place of `and`"),
    (lambda b, h, q, k: q >= k or q < 3, "write `|` with parentheses in place of `or`"),
    (lambda b, h, q, k: not q >= k, "write `~` in place of `not`"),
    (lambda b, h, q, k: (q if q > k else k) < 3, r"attnc.select\(condition, a, b\) or torch.where in place of `if`"),
    (lambda b, h, q, k: 0 <= q - k < 5, r"`\(a <= b\) & \(b < c\)` in place of `a <= b < c`"),
    (lambda b, h, q, k: min(q, k) < 3, "a.minimum"),
    (lambda b, h, q, k: q in (1, 2), "in place of `x in"),
    (lambda b, h, q, k: [1, 2, 3][h] < k, r"attnc.array\(values\)\[symbol\]"),
    (lambda b, h, q, k: {0: 1}[h] < k, "no key of a dictionary"),
    (lambda b, h, q, k: numpy_array[q] < k, r"attnc.array\(values\)\[symbol\]"),
    (lambda b, h, q, k: numpy_array < k, "a NumPy array meets a symbol"),
    (lambda b, h, q, k: math.exp(q) < k, "x.exp"),
    (lambda b, h, q, k: q.gamma < k, "no 'gamma'"),
    (lambda b, h, q, k: q - k, "expected a condition as the mask of <lambda>, got: an integer"),
    (lambda b, h, q, k: q / 2, "got: a real number"),
    (lambda b, h, q, k: None, "expected one value for each pair from <lambda>, got: 'NoneType'"),
    (lambda b, h, q, k: square[q], r"got: a value of shape \(20,\)"),
    (lambda b, h, q, k: square[q, k], "block_map.*-inf"),
    (lambda b, h, q, k: (k < 4) | square[q, (k - 4).clamp(min=0, max=19)], "block_map.*-inf"),
    (lambda b, h, q, k: square[q, k, b], "2 dimensions is read at 3 positions"),
    (lambda b, h, q, k: square[q < k], "read at integers"),
    (lambda b, h, q, k: square[q, 20], "position 20 is not in a dimension of 20"),
    (lambda b, h, q, k: q * k < 9, "not by a constant"),
    (lambda b, h, q, k: q % k < 9, "not by a constant"),
    (lambda b, h, q, k: (q << k) < 9, "a shift that is not by a constant; .* from 0 to 62"),
    (lambda b, h, q, k: (q - k) >> 63 < 0, "expected a shift by a number from 0 to 62, got: 63"),
    (lambda b, h, q, k: (q << -1) == k, "expected a shift by a number from 0 to 62, got: -1"),
    (lambda b, h, q, k: (q / 2) & 1 == k, "a bitwise operator of a real number"),
    (lambda b, h, q, k: q / (k + 1) < 0.5, "real numbers that mix q and k are for scores only"),
    (lambda b, h, q, k: q // 0 < k, "integer division by zero"),
    (lambda b, h, q: q >= 0, r"expected a function of \(b, h, q, k\)"),
]
REFUSED_SCORES = [
    (lambda s, b, h, q, k: np.where(q >= k, s, -math.inf), "attnc.mask"),
    (lambda s, b, h, q, k: s > 0, "expected a number as the score"),
    (lambda s, b, h, q, k: s.floor(), "`floor` of a score is not in the language of scores"),
    (lambda s, b, h, q, k: s ** 2.5, "`pow` of a score"),
    (lambda s, b, h, q, k: s * 1e40, "up to 2\\^100"),
    (lambda s, b, h, q, k: s + ((q ^ of_q[q]) & k), "entries of tables are real numbers"),
    (lambda s, b, h, q, k: s + q // (k + 1), "`//` of q and k together .* by constants"),
    (lambda s, b, h, q, k: s + ((q + k) << (k % 4)), "`<<` of q and k together .* by constants"),
    (lambda s, b, h, q, k: s + slopes[(q * k) % 3], "s \\+ bias\\[b, h, q, k\\]"),
    (lambda s, b, h, q, k: s + slopes[q - k + 50], "no entry for q - k = 0"),
    (lambda s, b, h, q, k: s + slopes[q - k + of_q[q]], "s \\+ bias\\[b, h, q, k\\]"),
]


@pytest.mark.parametrize("function, words", REFUSED + REFUSED_SCORES)
def test_refused(function, words):
    trace = trace_mask if (function, words) in REFUSED else trace_score
    with pytest.raises(attnc.TraceError, match=words) as caught:
        trace(function)
    assert isinstance(caught.value, TypeError)
    assert str(caught.value).startswith(f"{__file__}:{function.__code__.co_firstlineno}: ")


def test_the_line_is_named():
    def helper(q, k):
        distance = q - k
        return square[distance, q]

    def mask(b, h, q, k):
        near = q - k < 4
        return near & helper(q, k)

    with pytest.raises(attnc.TraceError) as caught:
        trace_mask(mask)
    message, line = str(caught.value), helper.__code__.co_firstlineno + 2
    assert message.startswith(f"{__file__}:{line}: a table") and "return square[distance, q]" in message


def test_other_errors_are_the_functions_own():
    with pytest.raises(KeyError):
        trace_mask(lambda b, h, q, k: {}["x"] < q)
    with pytest.raises(attnc.TraceError, match="expected a function"):
        trace_mask(7)
    symbols = []
    trace_mask(lambda b, h, q, k: (symbols.append(q), q >= k)[1])
    with pytest.raises(attnc.TraceError, match="after the trace"):
        symbols[0] + 1
