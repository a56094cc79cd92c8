# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What attnc.jax checks of arguments: contents of integer arrays, ids, seeds, layouts, masks and scores."""
import pytest
from jax_cases import attention, close, dense, jax, jnp, np, qkv, same, B, CAUSAL, S
import attnc
import attnc.jax as aj
from attnc import ProblemError, TensorError, UnsupportedError

FAR = np.full((B, S), 2**33 + 1)  # 1 in 32 bits
HOLE = jnp.tile(jnp.array([1, 1, 2, 1] * 9 + [0], jnp.int32), (B, 1))


def ids(value, **options):
    return dict(segment_ids=aj.SegmentIds(value, **options))


@pytest.mark.parametrize("change, words", [
    (dict(mask=attnc.document("ids"), arrays={"ids": FAR}), "in 'ids', got: from 8589934593 to 8589934593"),
    (dict(mask=attnc.document(FAR)), "in the bound 'segment_ids', got"),
    (ids(FAR), "in segment_ids.q, got"),
    (ids(np.ones((B, S), np.uint32) * np.uint32(2**31)), "in segment_ids.q, got: from 2147483648"),
    (ids(np.ones((B, S), int), positions_q=FAR), "in segment_ids.positions_q, got"),
])
def test_beyond_32_bits(change, words):
    with pytest.raises(TensorError, match="expected integers of 32 bits " + words):
        attention(*qkv(), **change)


def test_beyond_32_bits_of_lengths():
    q, k, v = (t[0] for t in qkv(1))
    with pytest.raises(TensorError, match="32 bits in 'cu_seqlens_q', got: from 0 to 8589934593"):
        attention(q, k, v, layout="thd", cu_seqlens_q=np.array([0, 2**33 + 1]))
    with pytest.raises(TensorError, match="32 bits in lengths of segments"):
        aj.SegmentIds.from_seqlens(np.array([2**33]))
    least = np.array([-2**31, 2**31 - 1])
    assert np.array_equal(aj.SegmentIds.from_seqlens(least).q[:, 0], least)


@pytest.mark.parametrize("segments, status", [
    (ids(HOLE), 2),
    (ids(np.asarray(HOLE)), 2),
    (ids(jnp.ones((B, S), jnp.int32), positions_q=jnp.arange(S)[::-1]), 4),
    (ids(jnp.ones((B, S), jnp.int32), positions_q=jnp.full(S, 3)), 4),
])
def test_ids_that_cannot_be_said(segments, status):
    """An error where their contents are known: also in jit, if they are captured. `status` says the same elsewhere."""
    q, k, v = qkv()
    def call(q):
        return attention(q, k, v, **segments).astype(jnp.float32).sum()
    for each in (call, jax.jit(call), jax.grad(call), jax.jit(jax.grad(call))):
        with pytest.raises(TensorError, match=f"one run of tokens for each id.*got: status {status}"):
            each(q)
    found = jax.jit(lambda s: aj.lengths_and_offsets(s, mask=attnc.causal()).status)(segments["segment_ids"])
    assert found.tolist() == [status] * B


def test_seeds():
    q, k, v = qkv()
    def call(seed, dropout=0.5):
        return attention(q, k, v, dropout=dropout, seed=seed)
    key, raw = jax.random.key(3), jax.random.PRNGKey(3)
    assert same(call(raw), call(key)) and same(jax.jit(call)(raw), call(key))
    words = np.array([1, 2**31, 2**32 - 1, 0], np.uint32)
    assert same(call(words), call(words.view(np.int32))) and not same(call(words), call(raw))
    for seed in (3, [1, 2, 3, 4], "x"):
        with pytest.raises(TensorError, match=r"as jax.random.key\(0\), as 'seed', got: "):
            call(seed)
    for seed in (key, raw, words):  # a probability that is rounded to none
        close(call(seed, 1e-6), dense(q, k, v)[0])


def test_tiny_dropout_in_torch():
    torch = pytest.importorskip("torch")
    import attnc.torch
    q, k, v = (torch.randn(1, 20, 2, 16, dtype=torch.bfloat16) for _ in "qkv")
    def call(**options):
        return attnc.torch.attention(q, k, v, mask=attnc.causal(), sink=torch.zeros(2), **options)
    for _ in range(2):
        for seed in (None, torch.arange(4, dtype=torch.int32)):
            assert torch.equal(call(dropout=1e-6, seed=seed), call())


def test_scores():
    """A function alone, in a list and among modifiers."""
    q, k, v = qkv()
    distance = np.arange(S)[:, None] - np.arange(S)
    expected = dense(q, k, v, bias=-0.25 * distance)[0]
    def far(s, b, h, q, k):
        return s - 0.25 * (q - k)
    for score in (far, [far], (far,), attnc.score(far)):
        close(attention(q, k, v, score=score), expected)


@pytest.mark.parametrize("change, words", [
    *((dict(layout=layout), "expected a layout of 'bshd', .*, or four for q, k, v and o, got: ")
      for layout in (None, 3, ("bshd",) * 2, ("bshd",) * 5, ["bshd", 3, "bshd", "bshd"], [[]] * 4)),
    *((dict(score=score), "expected score modifiers, as attnc.softcap") for score in (3, "abc", [3])),
    (dict(mask=None), "or a function of .* as mask, got: NoneType"),
    (dict(mask="causal"), r"got: 'causal'; of a text it is attnc.parse\(text\)"),
    (dict(mask=jnp.ones((S, S), bool)), r"got: ArrayImpl of shape \(37, 37\); blocks of pairs are attnc.block_map"),
    (dict(mask=np.ones((S, S), bool)), r"got: ndarray of shape \(37, 37\); blocks"),
])
def test_refused(change, words):
    with pytest.raises(ProblemError, match=words) as error:
        attention(*qkv(), **change)
    assert len(str(error.value)) < 250


def test_vmap_over_lengths():
    """The error names what is mapped."""
    q, k, v = (t[0] for t in qkv(1))
    cu = jnp.array([[0, S], [0, 9]], jnp.int32)
    with pytest.raises(UnsupportedError, match="vmap over `cu_seqlens_q` is not possible in a packed layout"):
        jax.vmap(lambda cu: attention(q, k, v, layout="thd", cu_seqlens_q=cu))(cu)
    with pytest.raises(UnsupportedError, match="vmap over `k` is not possible"):
        jax.vmap(lambda k: attention(q, k, v, layout="thd", cu_seqlens_q=cu[0]))(jnp.stack([k, k]))


def test_bound_numpy_arrays_are_copies():
    q, k, v = qkv()
    own = np.ones((B, S), np.int32)
    mask = attnc.causal() & attnc.document(own)
    assert mask == attnc.causal() & attnc.document(own) and len((mask & attnc.document(own)).arrays) == 2
    own[:, 20:] = 2
    close(aj.attention(q, k, v, mask=mask), dense(q, k, v)[0])
    apart = attnc.causal() & attnc.document(own)
    assert mask != apart and len((apart & mask).arrays) == 4
    shown = CAUSAL & (own[0][:, None] == own[0])
    close(aj.attention(q, k, v, mask=apart), dense(q, k, v, shown)[0])


@pytest.mark.parametrize("make_mask", [attnc.sink, attnc.prefix, attnc.global_rows, attnc.window])
def test_integers_of_libraries(make_mask):
    for number in (np.int64(4), np.int32(4), jnp.int32(4)):
        assert make_mask(number) == make_mask(4)
    for number in (4.0, np.float32(4), jnp.float32(4), True, np.True_):
        with pytest.raises(ProblemError, match="to be an integer"):
            make_mask(number)
