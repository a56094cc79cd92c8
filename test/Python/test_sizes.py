# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of masks and score modifiers: what is taken, and what is refused where it is written. Nothing is compiled."""
import reprlib

import attnc
import numpy as np
import pytest
from attnc import ProblemError

FAR, LONG, BLOCK = 2**30, 2**29, 2**20
# A function of one size, what errors call it, the least and the largest one, and their texts.
SIZES = {
    "window": (attnc.window, "a window's size", 1, FAR, "[1, 2^30]"),
    "window, right": (lambda n: attnc.window(FAR, right=n), "a window's right", 1 - FAR, FAR, "[-2^30, 2^30]"),
    "band, left": (lambda n: attnc.band(left=n), "a band's left", -FAR, FAR, "[-2^30, 2^30]"),
    "band, right": (lambda n: attnc.band(right=n), "a band's right", -FAR, FAR, "[-2^30, 2^30]"),
    "chunk": (attnc.chunk, "a chunk's length", 1, LONG, "[1, 2^29]"),
    "strided": (attnc.strided, "a stride", 1, LONG, "[1, 2^29]"),
    "strided, offset": (lambda n: attnc.strided(7, n), "the offset of a stride", 0, 6, "[0, 6]"),
    "prefix": (attnc.prefix, "a prefix's length", 0, FAR, "[0, 2^30]"),
    "sink": (attnc.sink, "a sink's length", 0, FAR, "[0, 2^30]"),
    "global_rows": (attnc.global_rows, "the count of global rows", 0, FAR, "[0, 2^30]"),
    "block_map, q": (lambda n: attnc.block_map("a", "b", q=n), "a block of q", 1, BLOCK, "[1, 2^20]"),
    "block_map, kv": (lambda n: attnc.block_map("a", "b", kv=n), "a block of kv", 1, BLOCK, "[1, 2^20]"),
    "block_list, rows": (lambda n: attnc.block_list("a", rows=n), "rows of a block list", 1, BLOCK, "[1, 2^20]"),
    "block_list, keys": (lambda n: attnc.block_list("a", keys=n), "keys of a block list", 1, BLOCK, "[1, 2^20]"),
    "relative_bias": (lambda n: attnc.relative_bias("t", n), "the reach of a relative bias", 1, BLOCK, "[1, 2^20]"),
}


@pytest.fixture(params=SIZES.values(), ids=SIZES)
def sized(request):
    return request.param


def test_taken(sized):
    """Both ends, and integers of NumPy; the dialect's verifier takes them, too."""
    make, _, least, largest, _ = sized
    for size in {least, largest, min(largest, 5)}:
        made = make(size)
        options = {"score": made} if isinstance(made, attnc.Score) else {}
        attnc.Problem(attnc.full() if options else made, heads=1, dims=16, **options).describe()
        for kind in (np.int64, np.array):
            assert make(kind(size)) == made
    assert make(np.uint8(5)) == make(5)


@pytest.mark.parametrize("beyond", [1, 2**31, 2**40, 2**63, 10**30])
def test_beyond(sized, beyond):
    make, name, least, largest, text = sized
    for size in (largest + beyond, least - beyond):
        if name == "a window's right" and -FAR <= size < least:
            continue  # within its range, but nothing is visible: see below
        with pytest.raises(ProblemError) as error:
            make(size)
        assert str(error.value) == f"expected {name} within {text}, got: {size}"


@pytest.mark.parametrize("size", [2.0, 2.5, float("nan"), float("inf"), True, None, [3], np.float32(2), np.bool_(True),
                                  np.array(True), list(range(1000))])
def test_no_integer(sized, size):
    make, name, *_ = sized
    if size is None and name in ("a window's right", "a band's left", "a band's right"):
        return  # no limit
    with pytest.raises(ProblemError) as error:
        make(size)
    text, got = str(error.value).split(", got: ")
    assert text.startswith(f"expected {name} to be an integer") and got == reprlib.repr(size)


def test_nothing_visible():
    with pytest.raises(ProblemError, match=r"size \+ right of a window to be 1 or more, .* got: 4 and -5"):
        attnc.window(4, right=-5)
    with pytest.raises(ProblemError, match=r"left \+ right of a band to be 0 or more, .* got: 3 and -4"):
        attnc.band(3, -4)
    assert str(attnc.window(4, right=-3)) == "#attn.band<left = 3, right = -3>"


@pytest.mark.parametrize("kind", ["prefix", "sink", "global_rows"])
def test_arrays_are_no_sizes(kind):
    """An array of one dimension has a length for each sequence; one of none is a number."""
    make, lengths = getattr(attnc, kind), np.array([3], np.int32)
    assert list(make(lengths).arrays.values()) == [lengths] and not make(lengths[0]).arrays


@pytest.mark.parametrize("make", [
    attnc.document, attnc.ancestors, lambda x: attnc.rows(end=x), lambda x: attnc.columns(begin=x),
    lambda x: attnc.tree(x, "b", "c"), lambda x: attnc.block_map(x, "b"), attnc.block_list,
    lambda x: attnc.bias(x, "qk"),
    lambda x: attnc.relative_bias(x, 4), attnc.head_scale, lambda x: attnc.document("a", x)])
def test_no_array(make):
    for value in (3, 2.5, [1, 2], np.int32(3), np.array(3)):
        with pytest.raises(ProblemError, match="to be an array or the name of one, got: "):
            make(value)
