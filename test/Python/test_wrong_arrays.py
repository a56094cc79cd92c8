# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors about arrays of masks and scores name what the caller wrote, in attnc.torch and attnc.jax."""
import pytest

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import attnc  # noqa: E402
import attnc.jax as aj  # noqa: E402
import attnc.torch as at  # noqa: E402
from attnc import TensorError, UnsupportedError  # noqa: E402

B, S, SK, H, G, D = 2, 12, 16, 4, 2, 16
SHAPES = {"q": (B, S, H, D), "k": (B, SK, G, D), "v": (B, SK, G, D)}


class Torch:
    name, attention = "torch.Tensor", staticmethod(at.attention)
    int32, float32 = "torch.int32 or torch.int64", "torch.float32"

    @staticmethod
    def array(values):
        return torch.from_numpy(np.array(values))

    @staticmethod
    def operand(shape):
        return torch.zeros(shape, dtype=torch.bfloat16)


class Jax:
    name, attention = "array", staticmethod(aj.attention)
    int32, float32 = "int32", "float32"
    array = staticmethod(jnp.asarray)

    @staticmethod
    def operand(shape):
        return jnp.zeros(shape, jnp.bfloat16)


@pytest.fixture(params=[Torch, Jax])
def framework(request):
    return request.param


def ints(*shape):
    return np.ones(shape, np.int32)


def floats(*shape):
    return np.ones(shape, np.float32)


# A mask or score by names, good arrays, and how errors of shapes call each of them.
CASES = {
    "document": (attnc.document("ids"), {"ids": ints(B, S)}, {"ids": "`ids` of queries"}, S),
    "document by default": (attnc.document(), {"segment_ids": ints(B, S)},
                            {"segment_ids": "`segment_ids` of queries"}, S),
    "documents": (attnc.document("a", "b"), {"a": ints(B, S), "b": ints(B, SK)}, {}, SK),
    "prefix": (attnc.prefix("lengths"), {"lengths": ints(B)}, {}, SK),
    "global rows": (attnc.global_rows("counts"), {"counts": ints(B)}, {}, SK),
    "rows": (attnc.rows("low", "high"), {"low": ints(B, S), "high": ints(B, S)}, {}, SK),
    "columns": (attnc.columns(end="last", heads="kv"), {"last": ints(B, G, SK)}, {}, SK),
    "tree": (attnc.tree("node", "first", "end"), {"node": ints(B, S), "first": ints(B, SK), "end": ints(B, SK)}, {},
             SK),
    "ancestors": (attnc.ancestors("up"), {"up": ints(B, S) - 2}, {}, S),
    "block map": (attnc.block_map("offsets", "listed", 8, 8, per_sequence=True, heads="kv"),
                  {"offsets": ints(B, G, 3) - 1, "listed": ints(4) - 1}, {}, SK),
    "block list": (attnc.block_list("listed", 8, 8), {"listed": ints(B, G, 2, 3)}, {}, SK),
    "condition": (attnc.where("k < most[b]"), {"most": ints(B)}, {}, SK),
    "bias": (attnc.bias("pairs", "hqk"), {"pairs": floats(H, S, SK)}, {}, SK),
    "slopes": (attnc.alibi("steep"), {"steep": floats(H)}, {}, SK),
    "relative bias": (attnc.relative_bias("table", 4), {"table": floats(H, 9)}, {}, SK),
}


def error_of(framework, value, arrays, seqlen_kv=SK, **options):
    """The text of the error of a call."""
    shapes = {**SHAPES, "k": (B, seqlen_kv, G, D), "v": (B, seqlen_kv, G, D)}
    of = {"mask": attnc.full(), "score": value} if isinstance(value, attnc.Score) else {"mask": value}
    with pytest.raises(TensorError) as error:
        framework.attention(**{name: framework.operand(shape) for name, shape in shapes.items()}, arrays=arrays, **of,
                            **options)
    return str(error.value)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_named(framework, case):
    value, good, words, seqlen_kv = case
    arrays = {name: framework.array(array) for name, array in good.items()}
    for name, array in good.items():
        def text(changed):
            return error_of(framework, value, {**arrays, name: changed}, seqlen_kv)
        word = words.get(name, f"`{name}`")
        more = framework.array(array[None])
        assert text(more) == f"expected {array.ndim} axes for {word}, got: {list(more.shape)}"
        if array.ndim > 1 or name not in ("listed", "lengths", "counts", "most"):
            longer = framework.array(np.concatenate([array, array[:1]]))
            shape = list(array.shape)
            assert text(longer) == f"expected shape {shape} for {word}, got: {[shape[0] + 1, *shape[1:]]}"
        is_int = array.dtype == np.int32
        other = framework.array(array.astype(np.float32 if is_int else np.int32))
        assert text(other) == (f"expected '{name}' to be {framework.int32 if is_int else framework.float32}, got: "
                               f"{other.dtype}")
        assert text(array.tolist()).endswith(f"{framework.name} as '{name}', got: list")
        missing = error_of(framework, value, {own: x for own, x in arrays.items() if own != name}, seqlen_kv)
        assert missing.endswith(f"got none for: {name}")
        if framework is Torch:
            assert text(arrays[name].to("meta")) == f"expected '{name}' on cpu, got: meta"
            if is_int:
                assert text(arrays[name].long() + 2**40).startswith(f"expected numbers of 32 bits in '{name}', got: ")


def test_ids_of_other_keys(framework):
    """One array for queries and keys that does not fit the keys."""
    ids = framework.array(ints(B, S))
    for mask, name in ((attnc.document("ids"), "ids"), (attnc.document(), "segment_ids")):
        assert error_of(framework, mask, {name: ids}) == f"expected shape [2, 16] for `{name}` of keys, got: [2, 12]"
    both = {"segment_ids_q": ids, "segment_ids_kv": ids}
    assert error_of(framework, attnc.document(), both) == "expected shape [2, 16] for `segment_ids_kv`, got: [2, 12]"
    assert error_of(framework, attnc.document(), {"segment_ids_q": ids}).endswith("got none for: segment_ids_kv")
    assert error_of(framework, attnc.document("ids"), None).endswith("arrays ids of this mask, layout and score, got "
                                                                     "none for: ids")


def test_bound(framework):
    short, real = framework.array(ints(B, S - 1)), framework.array(floats(B, S))
    for make, shown in (
            (attnc.document, "shape [2, 12] for the bound `segment_ids` of queries, got: [2, 11]"),
            (lambda x: attnc.document(x, framework.array(ints(B, S))), "for the bound `segment_ids_q`, got: [2, 11]"),
            (lambda x: attnc.document(framework.array(ints(B, S))) & attnc.document(x), "the bound `segment_ids_q_1`"),
            (lambda x: attnc.rows(end=x), "shape [2, 12] for the bound `row_end`, got: [2, 11]"),
            (attnc.prefix, "1 axes for the bound `prefix_lengths`, got: [2, 11]")):
        assert shown in error_of(framework, make(short), None, S)
    got = f"to be {framework.int32}, got: {real.dtype}"
    assert error_of(framework, attnc.document(real), None, S) == f"expected the bound 'segment_ids' {got}"
    assert error_of(framework, attnc.columns(real), None, S) == f"expected the bound 'column_begin' {got}"
    with pytest.raises(attnc.ProblemError, match="expected ids to be an array or the name of one, got: "):
        attnc.document(ids=[[1] * S] * B)


def test_arguments(framework):
    """Arrays that are arguments of attention()."""
    full = attnc.full()
    assert error_of(framework, full, None, sink=framework.array(floats(3))) == "expected shape [4] for `sink`, got: [3]"
    assert error_of(framework, full, None, dropout=0.5, seed=framework.array(ints(3))) == (
        "expected shape [4] for `seed`, got: [3]")
    assert error_of(framework, full, [framework.array(ints(3))]) == (
        "expected a dictionary of tensors by name as arrays, got: list")
    assert error_of(framework, full, {1: framework.array(ints(3))}) == "expected the arrays none, got also: 1"
    packed = [framework.operand((S, heads, D)) for heads in (H, G, G)]
    for side in ("q", "kv"):  # given for one side, it is that of both
        for values, shown in ((ints(2, 3), "1 axes for `{}`, got: [2, 3]"), (floats(3), "'{}' to be")):
            with pytest.raises(TensorError) as error:
                framework.attention(*packed, mask=full, layout="thd", **{f"cu_seqlens_{side}": framework.array(values)})
            assert shown.format(f"cu_seqlens_{side}") in str(error.value)


def test_transformations():
    q, k, v = (torch.zeros((B, S, heads, D), dtype=torch.bfloat16) for heads in (H, G, G))
    ids = torch.ones(B, S + 1, dtype=torch.int32)
    text = r"expected shape \[2, 12\] for `ids` of queries, got: \[2, 13\]"
    def call(q, ids):
        return at.attention(q, k, v, mask=attnc.document("ids"), arrays={"ids": ids})
    with pytest.raises(TensorError, match=text):
        torch.vmap(call, (0, None))(q[None], ids)
    with pytest.raises(TensorError, match=text):
        call(q.requires_grad_(), ids)
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(TensorError, match=text):
        call(q.float(), ids)
    with pytest.raises(TensorError, match="expected 'ids' to be torch.int32"):
        torch.compile(call, backend="eager")(q, ids.float())
    q, k, v = (jnp.zeros((B, S, heads, D), jnp.bfloat16) for heads in (H, G, G))
    def of_jax(q, ids):
        return aj.attention(q, k, v, mask=attnc.document("ids"), arrays={"ids": ids}).astype(jnp.float32).sum()
    ids = jnp.ones((B, S + 1), jnp.int32)
    for transformed, own in ((jax.jit(of_jax), ids), (jax.grad(of_jax), ids), (jax.vmap(of_jax, (None, 0)), ids[None])):
        with pytest.raises(TensorError, match=text):
            transformed(q, own)
    with pytest.raises(UnsupportedError, match=r"no array `ids` of queries of shape \[total_q\] beside segment ids"):
        aj.attention(q, k, v, mask=attnc.document("ids"), segment_ids=aj.SegmentIds(ids[:, 1:]),
                     arrays={"ids": ids[:, 1:]})
