# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What attention() of PyTorch and that of JAX have in common: layouts, and the run-time arrays of a call by name."""
from .errors import TensorError

AXES = {"bshd": (1, 2), "sbhd": (0, 2), "bhsd": (2, 1), "thd": (0, 1), "thd padded": (0, 1)}  # of sequence and heads
SEED, SINK = "dropout_seed", "sinks"  # arrays that attention() names itself


def hashable(lengths):
    return tuple(lengths) if isinstance(lengths, list) else lengths


def put_both(given, name, first, second, layout):
    """Puts arrays of queries and of keys among those given; of one alone, both sides have it that are packed."""
    if first is None and second is None:
        return
    own = (layout, layout) if isinstance(layout, str) else tuple(layout or ())[:2]
    for side, value, other, axes in zip(("q", "kv"), (first, second), (second, first), own):
        value = other if value is None and str(axes).startswith("thd") else value
        if value is not None:
            given[f"{name}_{side}"] = value


def extents(given, q, k, layout):
    """What arrays of traced functions are made for: batch, heads, kv heads, lengths of q and k, and for each side "q" and "k"
    that is packed its cu_seqlens and its padded_offsets or None."""
    layouts = (layout, layout) if isinstance(layout, str) else layout[:2]
    (seqlen_q, heads), (seqlen_k, kv_heads) = ([t.shape[axis] for axis in AXES[own]]
                                               for t, own in zip((q, k), layouts))
    packed = {side: (_needed(given, f"cu_seqlens_{name}", own),
                     _needed(given, f"padded_offsets_{name}", own) if own == "thd padded" else None)
              for side, name, own in zip("qk", ("q", "kv"), layouts) if own.startswith("thd")}
    if packed:
        batch = next(iter(packed.values()))[0].shape[0] - 1
    else:
        batch = q.shape[1 if layouts[0] == "sbhd" else 0]
    return batch, heads, kv_heads, seqlen_q, seqlen_k, packed


def _needed(given, name, layout):
    if given.get(name) is None:
        raise TensorError(f"expected {name} with the layout {layout!r}, got: None")
    return given[name]


def collect(names, dtypes, given, bound, convert):
    """The arrays of a problem in its order: those given by the call, else those bound to the mask, each through
    convert(name, value, dtype). An array `ids` stands for both arrays of document("ids")."""
    used, found, missing = set(), [], []
    for name, dtype in zip(names, dtypes):
        source = name
        if name not in given and name not in bound:
            source = next((name[:-len(end)] for end in ("_rows", "_keys") if name.endswith(end)), name)
        value = given.get(source, bound.get(name))
        used.add(source)
        if value is None:
            missing.append(name)
        else:
            found.append(convert(name, value, dtype))
    unknown = [name for name in given if name not in used]
    if missing:
        raise TensorError(f"expected the arrays {_listed(names)} of this mask, layout and score, got none for: "
                          f"{_listed(missing)}" + (f", and unknown ones: {', '.join(unknown)}" if unknown else ""))
    if unknown:
        raise TensorError(f"expected the arrays {_listed(names) or 'none'}, got also: {', '.join(unknown)}")
    return found


def _listed(names):
    """Names for a reader: the two arrays of document("ids") as `ids`."""
    pairs = {name[:-5] for name in names if name.endswith("_rows") and name[:-5] + "_keys" in names}
    return ", ".join(dict.fromkeys(name[:-5] if name[:-5] in pairs else name for name in names))
