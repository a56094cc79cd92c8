# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks as values: which keys a query row sees.

A mask is frozen and hashable; `str(mask)` is the dialect's text (docs/Masks.md), and equal texts are equal masks.
`attnc.equiv(a, b)` compares what two masks mean. Masks combine by `&`, `|`, `~` and `-` (and, or, not, difference).
Python's `&` binds before `|`: write `causal() & (window(1024) | sink(4))`.

q and k count from the start of their sequence. With `align="end"` the last query row meets the last key, as in
decoding; with `align="start"`, the default, row q meets key q.

Masks that read arrays name them, and the call gives them (`arrays={"ids": tensor}`); or they are bound, as in
`document(ids=tensor)`. They are int32 (torch and JAX calls convert int64), dense [batch, length], packed [tokens].
Where masks combine, different arrays bound to one name get numbers: segment_ids_q, segment_ids_q_1, ...
"""
from ._text import Value, apart, arrays_of, attribute, diagonal, heads_of, identifier, integer, is_array, merged
from .errors import ProblemError

_FARTHEST, _LONGEST, _BLOCK = 2**30, 2**29, 2**20  # a band or prefix, a chunk or stride, a block of a block map


class Mask(Value):
    """Which keys a query row sees. Made by the functions of this module, not by its constructor."""

    __slots__ = ()

    def __and__(self, other):
        return _combined("and", self, other)

    def __or__(self, other):
        return _combined("or", self, other)

    def __rand__(self, other):
        return _combined("and", mask(other), self) if callable(other) else NotImplemented

    def __ror__(self, other):
        return _combined("or", mask(other), self) if callable(other) else NotImplemented

    def __invert__(self):
        return Mask(f"#attn.not<{self}>", self._bound)

    def __sub__(self, other):
        if not isinstance(other, Mask):
            if not callable(other):
                return NotImplemented
            other = mask(other)
        first, second = apart(self, other)
        return Mask(f"#attn.diff<{first}, {second}>", merged(first, second))

    def __bool__(self):
        raise TypeError("a mask has no truth value: combine masks by `&`, `|`, `~` and `-` in place of and, or and "
                        "not, and compare meanings by attnc.equiv(a, b)")

    def __repr__(self):
        return f"attnc.Mask({self._text!r})"

    def explain(self, **options):
        """A picture of the tiles that a kernel visits with this mask, and their counts: as `Problem.explain`, of 8
        heads of dim 128 in the layout bshd."""
        from .problem import Problem
        return Problem(self, heads=8, dims=128).explain(**options)

    def _repr_html_(self):
        return self.explain()._repr_html_()


def _combined(operation, first, second):
    if not isinstance(second, Mask):
        if not callable(second):
            return NotImplemented
        second = mask(second)
    first, second = apart(first, second)
    parts = []
    for part in (first, second):  # (a & b) & c is one `and` of three
        head = f"#attn.{operation}<"
        parts.append(part._text[len(head):-1] if part._text.startswith(head) else part._text)
    return Mask(f"#attn.{operation}<{', '.join(parts)}>", merged(first, second))


def parse(text):
    """The mask of a text of the dialect, such as `#attn.causal`. The text is checked, and kept as it is."""
    from ._library import ask
    if not isinstance(text, str):
        raise ProblemError(f"expected a mask's text, got: {text!r}")
    ask("attnEquiv", text, "#attn.full")
    return Mask(text.strip())


def full():
    """Every row sees every key."""
    return Mask("#attn.full")


def causal(align="start"):
    """Row q sees keys up to its own: k <= q, or k <= q + len_k - len_q with `align="end"`."""
    return Mask(attribute("causal", diagonal(align, "causal")))


def band(left=None, right=None, align="start"):
    """Row q sees keys from D - left to D + right, both included, D its diagonal; None does not limit that side."""
    if left is None and right is None:
        return full()
    given = {side: integer(value, f"a band's {side}", -_FARTHEST, _FARTHEST)
             for side, value in (("left", left), ("right", right)) if value is not None}
    if len(given) == 2 and sum(given.values()) < 0:
        raise ProblemError("expected left + right of a band to be 0 or more, else no pair is visible, got: "
                           f"{given['left']} and {given['right']}")
    return Mask(attribute("band", *[f"{side} = {value}" for side, value in given.items()], diagonal(align, "band")))


def window(size, right=0, align="start"):
    """Row q sees the last `size` keys up to its own, its own included, and `right` keys behind it.

    `window(1024)` is `band(left=1023, right=0)`: it is causal already.
    """
    size = integer(size, "a window's size", 1, _FARTHEST)
    if right is not None and integer(right, "a window's right", -_FARTHEST, _FARTHEST) <= -size:
        raise ProblemError("expected size + right of a window to be 1 or more, else no pair is visible, got: "
                           f"{size} and {right}")
    return band(size - 1, right, align)


def prefix(length):
    """Every row sees the first `length` keys: an integer, or an int32 array [batch] (or its name) with one for each
    sequence."""
    return _length("prefix", length, "prefix_lengths", "a prefix's length")


def sink(length):
    """Every row sees the first `length` keys (attention sinks as keys): `prefix` under its other name."""
    return _length("prefix", length, "prefix_lengths", "a sink's length")


def global_rows(count):
    """The first `count` rows see every key: an integer, or an int32 array [batch] (or its name)."""
    return _length("global_rows", count, "global_counts", "the count of global rows")


def _length(kind, value, default, what):
    if hasattr(value, "__index__") and not is_array(value):
        return Mask(f"#attn.{kind}<{integer(value, what, 0, _FARTHEST)}>")
    (name,), bound = arrays_of((value, default, what), others="an integer, ")
    return Mask(f'#attn.{kind}<"{name}">', bound)


def chunk(length, align="start"):
    """Row q sees the keys of its own chunk of `length` positions."""
    length = integer(length, "a chunk's length", 1, _LONGEST)
    return Mask(attribute("chunk", str(length), diagonal(align, "chunk")))


def pooled(length, stride, keys=None):
    """Keys are means, or the like, of windows of `length` positions, one every `stride`: row q sees those whose windows
    end at its own position or before (the compressed branch of native sparse attention).

    keys: None: row q has position q. Else the last row is the last of so many positions: an int32 array [batch] (or its
    name) with how many each sequence has.
    """
    length, stride = (integer(value, f"a window's {what}", 1, _BLOCK)
                      for what, value in (("length", length), ("stride", stride)))
    if keys is None:
        return Mask(f"#attn.pooled<length = {length}, stride = {stride}>")
    (name,), bound = arrays_of((keys, "pooled_positions", "keys"))
    return Mask(f'#attn.pooled<length = {length}, stride = {stride}, keys = "{name}">', bound)


def strided(stride, offset=0, align="start"):
    """Row q sees the keys k with (D - k) mod stride == offset, D its diagonal (dilated attention)."""
    stride = integer(stride, "a stride", 1, _LONGEST)
    offset = integer(offset, "the offset of a stride", 0, stride - 1)
    return Mask(attribute("strided", f"stride = {stride}", f"offset = {offset}" if offset else "",
                          diagonal(align, "strided")))


def document(ids="segment_ids", ids_kv=None):
    """Row q sees the keys of its own document: ids are equal and not 0 (0 is padding).

    `ids` are those of query rows, and of keys if `ids_kv` is not given: int32 arrays, or names. A call that gives one
    array of the name `ids` (without a name: `segment_ids`) uses it for rows and keys.
    """
    usual = ["segment_ids_q", "segment_ids_kv"]
    if ids_kv is None and isinstance(ids, str):
        identifier(ids, "ids")
        names, bound = usual if ids == "segment_ids" else [f"{ids}_rows", f"{ids}_keys"], {}
    elif ids_kv is None:
        names, bound = arrays_of(*[(ids, name, "ids") for name in usual])
    else:
        names, bound = arrays_of((ids, usual[0], "ids"), (ids_kv, usual[1], "ids_kv"))
    if names == usual:
        return Mask("#attn.document", bound)
    return Mask(f'#attn.document<"{names[0]}", "{names[1]}">', bound)


def rows(begin=None, end=None, heads=None):
    """Row q sees the keys of begin[q] <= k < end[q]; what is None does not limit.

    Arrays or names, int32, with an entry for each row, [batch, seqlen_q] or [tokens]; with `heads="kv"` or
    `heads="query"` for each head as well, [batch, heads, seqlen_q] or [heads, tokens].
    """
    return _interval("row_interval", begin, end, heads, ("row_begin", "row_end"))


def columns(begin=None, end=None, heads=None):
    """Key k is seen by the rows of begin[k] <= q < end[k]: `rows` with rows and keys swapped (FlashMask's forms)."""
    return _interval("column_interval", begin, end, heads, ("column_begin", "column_end"))


def _interval(kind, begin, end, heads, defaults):
    if begin is None and end is None:
        raise ProblemError(f"expected begin or end of {'rows' if kind == 'row_interval' else 'columns'}, got: neither")
    given = [(value, default, side) for value, default, side in zip((begin, end), defaults, ("begin", "end"))
             if value is not None]
    names, bound = arrays_of(*given)
    parts = [f'{side} = "{name}"' for name, (_, _, side) in zip(names, given)]
    return Mask(attribute(kind, *parts, heads_of(heads, "an interval")), bound)


def tree(node, first, end):
    """Row q sees its ancestors in a tree, and itself: first[k] <= node[q] < end[k], int32 arrays or names.

    Nodes are numbered depth first; `first[k]` is the key's own number and `end[k]` the one behind its last descendant.
    """
    names, bound = arrays_of((node, "node", "node"), (first, "first", "first"), (end, "end", "end"))
    return Mask(attribute("tree", *[f'"{name}"' for name in names]), bound)


def ancestors(parent="parent"):
    """Row q sees its own key, that key's parent, the parent's parent, ...: `parent[k]` is a position before k, or
    -1."""
    (name,), bound = arrays_of((parent, "parent", "parent"))
    return Mask(f'#attn.ancestors<"{name}">', bound)


def block_map(offsets, columns, q=128, kv=128, per_sequence=False, heads=None):
    """Blocks of `q` rows see the blocks of `kv` keys that they list, in compressed sparse rows.

    `offsets` int32 [rows of blocks + 1] (with `per_sequence` and `heads` [batch, heads, rows of blocks + 1]) and
    `columns` int32 [entries]; arrays or names.
    """
    (first, second), bound = arrays_of((offsets, "block_offsets", "offsets"), (columns, "block_columns", "columns"))
    sizes = [f"{side} = {integer(size, f'a block of {side}', 1, _BLOCK)}" for side, size in (("q", q), ("kv", kv))]
    return Mask(attribute("block_map", f'"{first}"', f'"{second}"', *sizes, "per_sequence" if per_sequence else "",
                          heads_of(heads, "a block map")), bound)


def block_list(lists, rows=64, keys=64, heads="kv"):
    """Tiles of `rows` rows see the blocks of `keys` keys on their lists, as `attn.select` makes them.

    `lists` int32 [batch, heads, ceil(seqlen_q / rows), n], packed [heads, total_q // rows + batch, n] (the list of
    tile i of sequence b is line cu_seqlens_q[b] // rows + b + i), an array or a name. Entries have any order; -1 and
    blocks beyond the sequence see nothing. `heads`: "kv" (an axis of kv heads), "query", or None for no such axis.
    """
    (name,), bound = arrays_of((lists, "lists", "lists"))
    sizes = [f"{side} = {integer(size, f'{side} of a block list', 1, _BLOCK)}"
             for side, size in (("rows", rows), ("keys", keys))]
    whose = "shared" if heads is None else heads_of(heads, "a block list")
    return Mask(attribute("block_list", f'"{name}"', *sizes, "" if heads == "kv" else whose), bound)


def heads(*masks):
    """A mask for each head, or for each group of as many heads: mask number floor(h * n / heads) of n."""
    for mask in masks:
        if not isinstance(mask, Mask):
            raise ProblemError(f"expected masks, got: {mask!r}")
    masks = apart(*masks)
    return Mask(f"#attn.heads<{', '.join(map(str, masks))}>", merged(*masks))


def mask(function):
    """The mask of a Python function of (b, h, q, k) that returns whether row q sees key k; called once, with symbols.

    Operators, comparisons, `& | ^ ~ << >>`, torch's and NumPy's functions and `tensor[b, q]` may stand in it. What
    depends on one side only is evaluated ahead, on the tensors' device. Raises TraceError with the line that cannot be
    traced.
    """
    if getattr(function, "__module__", None) == __name__:
        made = "causal" if function is Mask else function.__name__
        raise ProblemError(f"expected a mask or a function of (b, h, q, k), got: attnc.{function.__name__}, which "
                           f"makes masks; call it, as attnc.{made}()")
    from .trace import trace_mask
    return trace_mask(function)


def where(condition):
    """Row q sees the keys for which a condition holds, as `where("q - k < seen[b] && k % 2 == 0")`.

    An expression over q, k, b, h, len_q, len_k, int32 arrays by `name[q]`, `name[k]`, `name[b]`, `name[h]`, `name[h,
    q]` and so on, integers, and C's operators; division rounds down. See `#attn.predicate` in docs/generated/Attn.md.
    """
    if not isinstance(condition, str) or '"' in condition:
        raise ProblemError(f"expected a condition as a string without quotes, got: {condition!r}")
    return Mask(f'#attn.predicate<"{condition}">')
