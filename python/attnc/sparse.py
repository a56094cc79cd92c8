# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse attention as programs: native sparse attention (Yuan et al. 2025), of compressed keys, selected blocks, a
window and gates, and attention to selected blocks alone, by their mean keys (MoBA) or an index branch (MSA)."""
import operator

from . import _text
from .errors import ProblemError, TensorError
from .problem import _DTYPES, _LAYOUTS, Program, _pair

NAMES = ("compressed", "selected", "window")  # of the branches, in the order of the gates
_ORDER = ("compressed", "window", "selected")  # in which backward passes add to dq


class _SparseAttention(Program):
    """A forward program that is made of options, and `gradient()`, that of its backward pass.

    saved: what the forward program gives beside o with the option `saves`, for the backward pass."""

    __slots__ = ("_options", "saved")

    def __init__(self, text, name, saved, options):
        super().__init__(text, name)
        object.__setattr__(self, "saved", tuple(saved))
        object.__setattr__(self, "_options", options)

    def __reduce__(self):
        return _made_of, (type(self), self._options)

    def replace(self, **options):
        """The same with other options."""
        return type(self)(**{**self._options, **options})


class NativeSparseAttention(_SparseAttention):
    """The forward program of native sparse attention, `nsa`; `gradient()` is that of its backward pass.

    A query attends to means of windows of keys, to the blocks of keys that these means say matter most to its tile of
    queries, and to the keys just before it. o is the sum of the three, each times a gate.

    heads: query heads, or (query heads, kv heads). dims: head dim of q, k and v. layout: "bshd", "sbhd", "bhsd", "thd".
    length, stride: window i of compressed keys has `length` tokens from i * stride on.
    block: keys of a selected block; count: blocks that a tile of queries selects, among them the `first` ones of the
        sequence and the `local` last ones up to its own.
    window: keys of the window, the query's own included.
    rows: queries of a tile, which share the blocks that are selected for the first of them; 1 is the paper's.
    gates: "sigmoid": of logits, an operand `gates` [batch, seqlen, heads, 3] or [tokens, heads, 3]; "uniform": 1/3.
    gates_dtype: of the logits, "f32" or the dtype.
    shared_kv: one k and one v for all branches; else `k_compressed`, `k_selected`, `k_window`, and so on.
    expected_seqlen: a hint, which chooses kernels and changes no result.

    Operands: q, k, v (or three of each), gates, and packed cu_seqlens; results: o, and with `saves` what the backward
    pass reads. Selection is causal, and a constant of the backward pass.
    """

    __slots__ = ()

    def __init__(self, *, heads, dims, layout="bshd", dtype="bf16", length=32, stride=16, block=64, count=16, first=1,
                 local=2, window=512, rows=64, gates="sigmoid", gates_dtype="f32", shared_kv=True, scale=None,
                 saves=False, expected_seqlen=None):
        if gates not in ("sigmoid", "uniform"):
            raise ProblemError(f"expected gates 'sigmoid' or 'uniform', got: {gates!r}")
        if gates_dtype not in _DTYPES:
            raise ProblemError(f"expected gates_dtype 'f32' or the dtype, got: {gates_dtype!r}")
        made = _Ops(heads, _text.integer(dims, "dims"), layout, dtype, scale, expected_seqlen)
        window = _text.integer(window, "window", 1, 2**30)
        packed = layout == "thd"
        stride, length = _text.integer(stride, "stride", 1), _text.integer(length, "length", 1)
        windows = f"length({length}) stride({stride})"
        declared = [
            made.compress("mean " + windows),
            made.problem("compressed", f"#attn.pooled<length = {length}, stride = {stride}>", stride),
            made.select("prob " + windows, block, count, first, local, rows) + made.scaled,
            made.problem("selected", _listed(rows, block)),
            made.problem("window", f"#attn.band<left = {window - 1}, right = 0>"),
            f"attn.combine @combine {gates} branches(3) {made.layout} heads({made.heads[0]}) dim({dims}) {made.dtype}"
            + (f" gates({_DTYPES[gates_dtype]})" if gates == "sigmoid" else ""),
        ]
        saved = ["o_compressed", "lse_compressed", "o_selected", "lse_selected", "o_window", "lse_window", "lists",
                      "compressed_k", "compressed_v"] + ["cu_seqlens_compressed"] * packed
        text = "\n".join(declared) + "\n" + _forward(shared_kv, gates == "sigmoid", packed,
                                                      saved if saves else [])
        super().__init__(text, "nsa", saved, dict(
            heads=heads, dims=dims, layout=layout, dtype=dtype, length=length, stride=stride, block=block, count=count,
            first=first, local=local, window=window, rows=rows, gates=gates, gates_dtype=gates_dtype,
            shared_kv=shared_kv, scale=scale, saves=saves, expected_seqlen=expected_seqlen))

    def gradient(self, *, deterministic=False):
        """The backward program: dq, dk, dv (or three of each) and dgates, from the operands, what `saves` gives, and
        do."""
        options = self._options
        shared, sigmoid = options["shared_kv"], options["gates"] == "sigmoid"
        packed = options["layout"] == "thd"
        clauses = " deterministic" * deterministic
        declared = [f"attn.combine_backward @combine_backward of(@combine)",
                    f"attn.compress_backward @compress_backward of(@compress)" + " add(2)" * shared]
        for name in NAMES:
            wide = " float32_dq" * (name != _ORDER[-1]) + " float32_dkv" * (shared and name != "compressed")
            added = " add_dq" * (name != _ORDER[0])
            declared.append(f"attn.backward @{name}_backward of(@{name}){clauses} delta{wide}{added}")
        return Program(self.text + "\n" + "\n".join(declared) + "\n" + _backward(shared, sigmoid, packed),
                       "nsa_backward")


class _SelectedAttention(_SparseAttention):
    """One attention problem, `selected`, to the blocks on lists that other ops of its program make."""

    __slots__ = ()

    def __init__(self, name, made, lists, calls, operands, declared, options):
        """lists: the problem's mask. operands: names beside q, k and v. calls: lines that make %lists."""
        packed = options["layout"] == "thd"
        kept = ["lse", "lists"]
        names = ["q", "k", "v", *operands] + ["cu_seqlens"] * packed
        lines = [f"attn.program @{name} {{", *_operands(names), *calls]
        lines.append(_call([("o", "o"), ("lse", "lse")], "selected",
                           [("q", "q"), ("k", "k"), ("v", "v"), ("lists", "lists")], _offsets(packed)))
        lines += [f'  attn.result "{x}" = %{x}' for x in ["o"] + kept * bool(options["saves"])] + ["}"]
        super().__init__("\n".join([*declared, made.problem("selected", lists), *lines]), name, kept, options)

    def gradient(self, *, deterministic=False):
        """The backward program: dq, dk and dv from q, k, v, o, what `saves` gives, and do."""
        packed, name = self._options["layout"] == "thd", f"{self.name}_backward"
        names = ["q", "k", "v", "o", "lse", "lists", "do"]
        grads = ["dq", "dk", "dv"]
        lines = [f"attn.backward @selected_backward of(@selected){' deterministic' * deterministic}",
                 f"attn.program @{name} {{", *_operands(names + ["cu_seqlens"] * packed),
                 _call([(x, x) for x in grads], "selected_backward", [(x, x) for x in names], _offsets(packed))]
        lines += [f'  attn.result "{x}" = %{x}' for x in grads] + ["}"]
        return Program(self.text + "\n" + "\n".join(lines), name)


class MobaAttention(_SelectedAttention):
    """The forward program of mixture of block attention (MoBA: Lu et al. 2025), `moba`; `gradient()` is that of its
    backward pass.

    A query attends to its own block of keys up to itself, and to those blocks before it whose mean keys have the
    largest products with it, head by head. One softmax has all of them.

    heads: query heads, or (query heads, kv heads). dims: head dim of q, k and v, or (of q and k, of v).
    layout: "bshd", "sbhd", "bhsd", "thd". block: keys of a block. count: blocks of a query, its own included.
    rows: queries of a tile, which share the blocks that are selected for the first of them, and the own blocks of all;
        1 is the paper's. rows divides block, or block divides rows.
    saves: further results, which the backward pass reads. expected_seqlen: a hint, which changes no result.

    Operands: q, k, v, and packed cu_seqlens; results: o, and with `saves` lse and lists. Selection is causal, and a
    constant of the backward pass.
    """

    __slots__ = ()

    def __init__(self, *, heads, dims, layout="bshd", dtype="bf16", block=512, count=3, rows=64, scale=None,
                 saves=False, expected_seqlen=None):
        options = dict(heads=heads, dims=dims, layout=layout, dtype=dtype, block=block, count=count, rows=rows,
                       scale=scale, saves=saves, expected_seqlen=expected_seqlen)
        made = _Ops(heads, dims, layout, dtype, scale, expected_seqlen)
        packed, block = layout == "thd", _text.integer(block, "block", 1)
        declared = [made.compress(f"mean k_only length({block}) stride({block})", made.dims[0]),
                    made.select("mean_key", block, count, 0, 1, rows, "per_head")]
        results = [("compressed_k", "compressed_k")] + [("cu_seqlens_compressed", "cu_seqlens_compressed")] * packed
        calls = [_call(results, "compress", [("k", "k")], [("cu_seqlens", "cu_seqlens")] * packed),
                 _call([("blocks", "lists")], "select", [("q", "q"), ("compressed_k", "compressed_k")], _both(packed))]
        super().__init__("moba", made, _listed(rows, block, "per_head"), calls, [], declared, options)


class BlockMaxAttention(_SelectedAttention):
    """The forward program of attention to blocks that an index branch selects by their largest score, as MiniMax-M3's
    sparse attention (MSA) does, `block_max`; `gradient()` is that of its backward pass.

    The importance of a block of keys for a query is the largest product of an index query with the block's index keys.
    A kv head's queries attend to their own block up to themselves, and to the most important ones before it. One
    softmax has all of them.

    heads: query heads, or (query heads, kv heads). dims: head dim of q, k and v, or (of q and k, of v).
    index_dim: that of index queries and keys; there is an index query head for each kv head, and they share
        `index_heads` heads of index keys.
    layout: "bshd", "sbhd", "bhsd", "thd". block: keys of a block. count: blocks of a query, its own included.
    rows: queries of a tile, which share the blocks that are selected for the first of them, and the own blocks of all;
        1 is the paper's. rows divides block, or block divides rows.
    saves: further results, which the backward pass reads. expected_seqlen: a hint, which changes no result.

    Operands: q, k, v, index_q [batch, seqlen, kv heads, index_dim] or [tokens, kv heads, index_dim] (in the layout),
    index_k with `index_heads` heads, and packed cu_seqlens; results: o, and with `saves` lse and lists. Selection is
    causal, and a constant of the backward pass: index queries and keys have no gradients here.
    """

    __slots__ = ()

    def __init__(self, *, heads, dims, index_heads=1, index_dim=128, layout="bshd", dtype="bf16", block=128, count=16,
                 rows=64, scale=None, saves=False, expected_seqlen=None):
        options = dict(heads=heads, dims=dims, index_heads=index_heads, index_dim=index_dim, layout=layout, dtype=dtype,
                       block=block, count=count, rows=rows, scale=scale, saves=saves, expected_seqlen=expected_seqlen)
        made = _Ops(heads, dims, layout, dtype, scale, expected_seqlen)
        index = _Ops((made.heads[1], index_heads), index_dim, layout, dtype)
        calls = [_call([("blocks", "lists")], "select", [("q", "index_q"), ("k", "index_k")],
                       [("cu_seqlens", "cu_seqlens")] * (layout == "thd"))]
        super().__init__("block_max", made, _listed(rows, block), calls, ["index_q", "index_k"],
                         [index.select("max", block, count, 0, 1, rows, "per_head")], options)


class _Ops:
    """Text of ops with heads, dims and so on in common."""

    def __init__(self, heads, dims, layout, dtype, scale=None, expected_seqlen=None):
        if layout not in _LAYOUTS[:4]:
            raise ProblemError(f"expected a layout of {', '.join(map(repr, _LAYOUTS[:4]))}, got: {layout!r}")
        if dtype not in _DTYPES:
            raise ProblemError(f"expected dtype 'bf16', 'f16' or 'f32', got: {dtype!r}")
        self.heads, self.dims = _pair(heads, "heads"), _pair(dims, "dims")
        self.both_dims = f"dims({self.dims[0]})" if self.dims[0] == self.dims[1] else f"dims{self.dims}"
        self.layout, self.dtype = f"layout({layout})", f"dtype({_DTYPES[dtype]})"
        self.scaled = "" if scale is None else f" scale({_text.float_text(_text.number(scale, 'scale'))})"
        self.expected = None if expected_seqlen is None else _pair(expected_seqlen, "expected_seqlen")

    def problem(self, name, mask, tokens_of_key=1):
        hint = "" if self.expected is None else (
            f" expected_seqlen({self.expected[0]}, {max(self.expected[1] // tokens_of_key, 1)})")
        return (f"attn.problem @{name} mask({mask}) {self.layout} heads{self.heads} {self.both_dims} {self.dtype}"
                f"{self.scaled}{hint}")

    def compress(self, what, dim=None):
        dims = self.both_dims if dim is None else f"dims({dim})"
        return f"attn.compress @compress {what} {self.layout} heads({self.heads[1]}) {dims} {self.dtype}"

    def select(self, scorer, block, count, first, local, rows, lists=""):
        numbers = " ".join(f"{name}({_text.integer(number, name, least)})" for name, number, least in (
            ("block", block, 1), ("count", count, 1), ("first", first, 0), ("local", local, 0), ("rows", rows, 1)))
        return (f"attn.select @select {scorer} {numbers} {lists}{' ' * bool(lists)}{self.layout} heads{self.heads} "
                f"dim({self.dims[0]}) {self.dtype}")


def _listed(rows, block, heads=""):
    """The causal mask of lists that `attn.select` makes."""
    return (f'#attn.and<#attn.block_list<"lists", rows = {rows}, keys = {block}{", " * bool(heads)}{heads}>, '
            "#attn.causal>")


def _common_of(named, short, layout, cu_seqlens, options):
    """Options that all programs have, from a framework's tensors, which are checked; q is the first of them.

    named: tensors by name. short: dtypes of tensors in the dialect's words, by the framework's own.
    """
    (_, q), packed = named[0], layout == "thd"
    if q.dtype not in short:
        raise TensorError(f"expected bfloat16, float16 or float32 for `q`, got: {q.dtype}")
    for name, tensor in named:
        if tensor.ndim != 4 - packed:
            raise TensorError(f"expected {4 - packed} axes for `{name}` in the layout {layout!r}, "
                              f"got: {list(tensor.shape)}")
    if (cu_seqlens is None) == packed:
        raise TensorError("expected cu_seqlens with the layout 'thd', and only with it, got: "
                          f"{'none' if cu_seqlens is None else 'cu_seqlens'} with {layout!r}")
    hint = options.pop("expected_seqlen")
    return dict(layout=layout, dtype=short[q.dtype], **options,
                expected_seqlen=tuple(hint) if isinstance(hint, (tuple, list)) else hint)


_constant = operator.index  # of an extent, which torch.compile may have as a symbol


def axis_of_heads(layout):
    """In q, k, v and o; layouts that do not exist are refused later."""
    return 1 if layout in ("bhsd", "thd") else 2


def _heads_of(tensor, layout):
    return _constant(tensor.shape[axis_of_heads(layout)])


def call_of(q, ks, vs, gates, short, layout, cu_seqlens, options):
    """What a framework's call compiles to: options of `NativeSparseAttention`, and the program's operands by name.

    short: dtypes of tensors in the dialect's words, by the framework's own.
    """
    if len(ks) not in (1, 3) or len(vs) != len(ks):
        raise TensorError(f"expected one tensor for each of k and v or three, got: {len(ks)} and {len(vs)}")
    named = [("q", q), *(("k", t) for t in ks), *(("v", t) for t in vs)]
    made = dict(
        _common_of(named, short, layout, cu_seqlens, options), heads=(_heads_of(q, layout), _heads_of(ks[0], layout)),
        dims=_constant(q.shape[-1]), gates="uniform" if gates is None else "sigmoid", shared_kv=len(ks) == 1,
        gates_dtype="f32" if gates is None else short.get(gates.dtype, "f32"))
    operands = {"q": q}
    if len(ks) == 1:
        operands.update(k=ks[0], v=vs[0])
    else:
        for name, k, v in zip(NAMES, ks, vs):
            operands.update({f"k_{name}": k, f"v_{name}": v})
    if gates is not None:
        operands["gates"] = gates
    if cu_seqlens is not None:
        operands["cu_seqlens"] = cu_seqlens
    return tuple(made.items()), operands


def selected_call_of(operands, short, layout, cu_seqlens, options):
    """The same for `MobaAttention` and, with operands `index_q` and `index_k`, for `BlockMaxAttention`."""
    made = _common_of(list(operands.items()), short, layout, cu_seqlens, options)
    q, k, v = (operands[name] for name in "qkv")
    kv_heads = _heads_of(k, layout)
    made.update(heads=(_heads_of(q, layout), kv_heads), dims=(_constant(q.shape[-1]), _constant(v.shape[-1])))
    if "index_q" in operands:
        found = _heads_of(operands["index_q"], layout)
        if found != kv_heads:
            raise TensorError(f"expected as many heads for `index_q` as for `k`, {kv_heads}, got: {found}")
        made.update(index_heads=_heads_of(operands["index_k"], layout),
                    index_dim=_constant(operands["index_q"].shape[-1]))
    if cu_seqlens is not None:
        operands = {**operands, "cu_seqlens": cu_seqlens}
    return tuple(made.items()), operands


def _made_of(kind, options):
    return kind(**options)


def _operands(names):
    return [f'  %{name} = attn.operand "{name}"' for name in names]


def _kv_names(shared):
    return ["k", "v"] if shared else [f"{side}_{name}" for name in NAMES for side in "kv"]


def _call(results, callee, operands, given):
    """`%a, %b = attn.call @callee(x = %y, ...) -> (names)`; `operands` and `results`: (name there, value here)."""
    listed = ", ".join(f"{name} = %{value}" for name, value in operands + given)
    values = ", ".join(f"%{value}" for _, value in results)
    return f"  {values} = attn.call @{callee}({listed}) -> ({', '.join(name for name, _ in results)})"


def _offsets(packed, keys="cu_seqlens"):
    return [("cu_seqlens_q", "cu_seqlens"), ("cu_seqlens_kv", keys)] * packed


def _both(packed):
    return [("cu_seqlens", "cu_seqlens"), ("cu_seqlens_compressed", "cu_seqlens_compressed")] * packed


def _sides(shared, name):
    return [("k", "k"), ("v", "v")] if shared else [("k", f"k_{name}"), ("v", f"v_{name}")]


def _forward(shared, sigmoid, packed, saved):
    """The text of the program `nsa`."""
    names = ["q", *_kv_names(shared)] + ["gates"] * sigmoid + ["cu_seqlens"] * packed
    lines = ["attn.program @nsa {", *_operands(names)]
    compressed = [("compressed_k", "compressed_k"), ("compressed_v", "compressed_v")]
    lines.append(_call(compressed + [("cu_seqlens_compressed", "cu_seqlens_compressed")] * packed, "compress",
                       _sides(shared, "compressed"), [("cu_seqlens", "cu_seqlens")] * packed))
    results = lambda name: [("o", f"o_{name}"), ("lse", f"lse_{name}")]
    lines.append(_call(results("compressed"), "compressed",
                       [("q", "q"), ("k", "compressed_k"), ("v", "compressed_v")],
                       _offsets(packed, "cu_seqlens_compressed")))
    lines.append(_call([("blocks", "lists")], "select",
                       [("q", "q"), ("compressed_k", "compressed_k"), ("lse", "lse_compressed")], _both(packed)))
    lines.append(_call(results("selected"), "selected", [("q", "q"), *_sides(shared, "selected"), ("lists", "lists")],
                       _offsets(packed)))
    lines.append(_call(results("window"), "window", [("q", "q"), *_sides(shared, "window")], _offsets(packed)))
    lines.append(_call([("o", "o")], "combine", [(f"o_{i}", f"o_{name}") for i, name in enumerate(NAMES)],
                       [("gates", "gates")] * sigmoid))
    lines += [f'  attn.result "{name}" = %{name}' for name in ["o", *saved]]
    return "\n".join(lines + ["}"])


def _backward(shared, sigmoid, packed):
    """The text of the program `nsa_backward`."""
    names = ["q", *(["k", "v"] if shared else ["k_compressed", *_kv_names(shared)[2:]]), "compressed_k", "compressed_v"]
    names += [f"{what}_{name}" for name in NAMES for what in ("o", "lse")]
    names += ["lists"] + ["gates"] * sigmoid + ["do"] + ["cu_seqlens", "cu_seqlens_compressed"] * packed
    lines = ["attn.program @nsa_backward {", *_operands(names)]
    of_branches = lambda *words: [(f"{word}_{i}", f"{word}_{name}") for word in words for i, name in enumerate(NAMES)]
    lines.append(_call(of_branches("delta", "gated_lse") + [("dgates", "dgates")] * sigmoid, "combine_backward",
                       of_branches("o", "lse"), [("gates", "gates")] * sigmoid + [("do", "do")]))
    for before, name in zip((None, *_ORDER), _ORDER):
        of_means = name == "compressed"
        kv = [("k", "compressed_k"), ("v", "compressed_v")] if of_means else _sides(shared, name)
        lines.append(_call(
            [("dq", "dq" if name == _ORDER[-1] else f"dq_{name}"), ("dk", f"dk_{name}"), ("dv", f"dv_{name}")],
            f"{name}_backward",
            [("q", "q"), *kv, ("lse", f"gated_lse_{name}"), ("delta", f"delta_{name}"), ("do", "do")],
            [("before_dq", f"dq_{before}")] * (before is not None) + [("lists", "lists")] * (name == "selected") +
            _offsets(packed, "cu_seqlens_compressed" if of_means else "cu_seqlens")))
    added = [(f"before_d{side}_{i}", f"d{side}_{name}") for i, name in enumerate(NAMES[1:]) for side in "kv"]
    own = [("dk", "dk"), ("dv", "dv")] if shared else [("dk", "dk_of_compressed"), ("dv", "dv_of_compressed")]
    lines.append(_call(own, "compress_backward",
                       [("dcompressed_k", "dk_compressed"), ("dcompressed_v", "dv_compressed")] +
                       (added if shared else [("k", "k_compressed")]), _both(packed)))
    results = [("dq", "dq")]
    if shared:
        results += [("dk", "dk"), ("dv", "dv")]
    else:
        results += [("dk_compressed", "dk_of_compressed"), ("dv_compressed", "dv_of_compressed")]
        results += [(f"d{side}_{name}", f"d{side}_{name}") for name in NAMES[1:] for side in "kv"]
    results += [("dgates", "dgates")] * sigmoid
    lines += [f'  attn.result "{name}" = %{value}' for name, value in results]
    return "\n".join(lines + ["}"])
