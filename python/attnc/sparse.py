# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native sparse attention (Yuan et al. 2025) as a program: compressed keys, selected blocks, a window, and gates."""
from . import _text
from .errors import ProblemError, TensorError
from .problem import _DTYPES, _LAYOUTS, Program, _pair

NAMES = ("compressed", "selected", "window")  # of the branches, in the order of the gates
_ORDER = ("compressed", "window", "selected")  # in which backward passes add to dq


class NativeSparseAttention(Program):
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

    __slots__ = ("_options", "saved")

    def __init__(self, *, heads, dims, layout="bshd", dtype="bf16", length=32, stride=16, block=64, count=16, first=1,
                 local=2, window=512, rows=64, gates="sigmoid", gates_dtype="f32", shared_kv=True, scale=None,
                 saves=False, expected_seqlen=None):
        if layout not in _LAYOUTS[:4]:
            raise ProblemError(f"expected a layout of {', '.join(map(repr, _LAYOUTS[:4]))}, got: {layout!r}")
        if dtype not in _DTYPES:
            raise ProblemError(f"expected dtype 'bf16', 'f16' or 'f32', got: {dtype!r}")
        if gates not in ("sigmoid", "uniform"):
            raise ProblemError(f"expected gates 'sigmoid' or 'uniform', got: {gates!r}")
        if gates_dtype not in _DTYPES:
            raise ProblemError(f"expected gates_dtype 'f32' or the dtype, got: {gates_dtype!r}")
        q_heads, kv_heads = _pair(heads, "heads")
        dim = _text.integer(dims, "dims")
        window = _text.integer(window, "window", 1, 2**30)
        packed = layout == "thd"
        common = f"layout({layout})"
        dtype_text = f"dtype({_DTYPES[dtype]})"
        stride, length = _text.integer(stride, "stride", 1), _text.integer(length, "length", 1)
        scaled = "" if scale is None else f" scale({_text.float_text(_text.number(scale, 'scale'))})"
        expected = None if expected_seqlen is None else _pair(expected_seqlen, "expected_seqlen")

        def problem(name, mask, keys):
            hinted = "" if expected is None else f" expected_seqlen({expected[0]}, {max(keys, 1)})"
            return (f"attn.problem @{name} mask({mask}) {common} heads({q_heads}, {kv_heads}) dims({dim}) "
                    f"{dtype_text}{scaled}{hinted}")

        all_keys = expected[1] if expected else 0
        tile = _text.integer(rows, "rows", 1)
        declared = [
            f"attn.compress @compress mean length({length}) stride({stride}) {common} heads({kv_heads}) dims({dim}) "
            f"{dtype_text}",
            problem("compressed", f"#attn.pooled<length = {length}, stride = {stride}>", all_keys // stride),
            f"attn.select @select prob length({length}) stride({stride}) "
            f"block({_text.integer(block, 'block', 1)}) count({_text.integer(count, 'count', 1)}) "
            f"first({_text.integer(first, 'first', 0)}) local({_text.integer(local, 'local', 0)}) rows({tile}) "
            f"{common} heads({q_heads}, {kv_heads}) dim({dim}) {dtype_text}{scaled}",
            problem("selected", f"#attn.and<#attn.block_list<\"lists\", rows = {tile}, keys = {block}>, #attn.causal>",
                    all_keys),
            problem("window", f"#attn.band<left = {window - 1}, right = 0>", all_keys),
            f"attn.combine @combine {gates} branches(3) {common} heads({q_heads}) dim({dim}) {dtype_text}"
            + (f" gates({_DTYPES[gates_dtype]})" if gates == "sigmoid" else ""),
        ]
        saved = ["o_compressed", "lse_compressed", "o_selected", "lse_selected", "o_window", "lse_window", "lists",
                      "compressed_k", "compressed_v"] + ["cu_seqlens_compressed"] * packed
        text = "\n".join(declared) + "\n" + _forward(shared_kv, gates == "sigmoid", packed,
                                                      saved if saves else [])
        super().__init__(text, "nsa")
        object.__setattr__(self, "saved", tuple(saved))
        object.__setattr__(self, "_options", dict(
            heads=heads, dims=dims, layout=layout, dtype=dtype, length=length, stride=stride, block=block, count=count,
            first=first, local=local, window=window, rows=rows, gates=gates, gates_dtype=gates_dtype,
            shared_kv=shared_kv, scale=scale, saves=saves, expected_seqlen=expected_seqlen))

    def __reduce__(self):
        return _made_of, (self._options,)

    def replace(self, **options):
        """The same with other options."""
        return NativeSparseAttention(**{**self._options, **options})

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


def call_of(q, ks, vs, gates, short, layout, cu_seqlens, options):
    """What a framework's call compiles to: options of `NativeSparseAttention`, and the program's operands by name.

    short: dtypes of tensors in the dialect's words, by the framework's own.
    """
    if len(ks) not in (1, 3) or len(vs) != len(ks):
        raise TensorError(f"expected one tensor for each of k and v or three, got: {len(ks)} and {len(vs)}")
    if q.dtype not in short:
        raise TensorError(f"expected bfloat16, float16 or float32 for `q`, got: {q.dtype}")
    packed = layout == "thd"
    for name, tensor in (("q", q), *(("k", t) for t in ks), *(("v", t) for t in vs)):
        if tensor.ndim != 4 - packed:
            raise TensorError(f"expected {4 - packed} axes for `{name}` in the layout {layout!r}, "
                              f"got: {list(tensor.shape)}")
    if (cu_seqlens is None) == packed:
        raise TensorError("expected cu_seqlens with the layout 'thd', and only with it, got: "
                          f"{'none' if cu_seqlens is None else 'cu_seqlens'} with {layout!r}")
    axis = 1 if layout in ("bhsd", "thd") else 2
    hint = options.pop("expected_seqlen")
    made = dict(
        heads=(q.shape[axis], ks[0].shape[axis]), dims=q.shape[-1], layout=layout, dtype=short[q.dtype],
        gates="uniform" if gates is None else "sigmoid", shared_kv=len(ks) == 1,
        gates_dtype="f32" if gates is None else short.get(gates.dtype, "f32"),
        expected_seqlen=tuple(hint) if isinstance(hint, (tuple, list)) else hint, **options)
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


def _made_of(options):
    return NativeSparseAttention(**options)


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
