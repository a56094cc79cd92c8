# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What attention() of PyTorch and that of JAX have in common: layouts, and the run-time arrays of a call by name."""
import re
import reprlib

from . import masks, scores
from .errors import ProblemError, TensorError
from .masks import Mask
from .scores import Score

AXES = {"bshd": (1, 2), "sbhd": (0, 2), "bhsd": (2, 1), "thd": (0, 1), "thd padded": (0, 1)}  # of sequence and heads
SEED, SINK = "dropout_seed", "sinks"  # arrays that attention() names itself
_DOCUMENT = {"segment_ids_q": ("segment_ids", "queries"), "segment_ids_kv": ("segment_ids", "keys")}


def as_mask(mask):
    """The mask that a call says, by a Mask or by a function."""
    if isinstance(mask, Mask):
        return mask
    if not callable(mask):
        got, hint = type(mask).__name__, ""
        if isinstance(mask, str):
            got, hint = reprlib.repr(mask), "; of a text it is attnc.parse(text), of a condition attnc.where(condition)"
        elif getattr(mask, "shape", ()):
            got += f" of shape {tuple(mask.shape)}"
            hint = "; blocks of pairs are attnc.block_map, and an interval of keys for each row attnc.rows"
        raise ProblemError("expected an attnc.Mask, as attnc.full(), or a function of (b, h, q, k) as mask, got: "
                           f"{got}{hint}")
    return masks.mask(mask)


def as_scores(score):
    """The score modifiers that a call says, by Score or functions, one or several."""
    given = (score,) if isinstance(score, Score) or callable(score) else score
    if not isinstance(given, (tuple, list)) or not all([isinstance(one, Score) or callable(one) for one in given]):
        raise ProblemError("expected score modifiers, as attnc.softcap(30.0), or functions of (s, b, h, q, k), got: "
                           f"{reprlib.repr(score)}")
    return [one if isinstance(one, Score) else scores.score(one) for one in given]


def hashable(lengths):
    return tuple(lengths) if isinstance(lengths, list) else lengths


def given_by(arrays):
    """The arrays that a call gives, by name."""
    if arrays is not None and not isinstance(arrays, dict):
        raise TensorError(f"expected a dictionary of tensors by name as arrays, got: {type(arrays).__name__}")
    return dict(arrays) if arrays else {}


def put_both(given, written, name, first, second, layout):
    """Puts arrays of queries and of keys among those given; of one alone, both sides have it that are packed. `written`
    says which argument an array is, if it is not the one of its name."""
    if first is None and second is None:
        return
    own = (layout, layout) if isinstance(layout, str) else tuple(layout or ())[:2]
    for side, value, other, axes in zip(("q", "kv"), (first, second), (second, first), own):
        if value is None and str(axes).startswith("thd"):
            value = other
            written[f"{name}_{side}"] = f"{name}_{'q' if side == 'kv' else 'kv'}"
        if value is not None:
            given[f"{name}_{side}"] = value


def extents(given, q, k, layout):
    """What arrays of traced functions are made for: batch, heads, kv heads, lengths of q and k, and for each side "q"
    and "k" that is packed its cu_seqlens and its padded_offsets or None."""
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


def collect(names, dtypes, given, bound, written, convert):
    """The arrays of a problem in its order: those given by the call, else those bound to the mask, each through
    convert(what, value, dtype). An array `ids` stands for both arrays of document("ids")."""
    used, found, missing = set(), [], []
    for name, dtype in zip(names, dtypes):
        source = name
        if name not in given and name not in bound:
            source = _shared(name)[0]
        value = given.get(source, bound.get(name))
        used.add(source)
        if value is None:
            missing.append(name)
        else:
            front, own, _ = _written(name, given, bound, written)
            found.append(convert(f"{front}'{own}'", value, dtype))
    unknown = [str(name) for name in given if name not in used]
    if missing:
        raise TensorError(f"expected the arrays {_listed(names)} of this mask, layout and score, got none for: "
                          f"{_listed(missing)}" + (f", and unknown ones: {', '.join(unknown)}" if unknown else ""))
    if unknown:
        raise TensorError(f"expected the arrays {_listed(names) or 'none'}, got also: {', '.join(unknown)}")
    return found


def as_written(error, names, given, bound, written):
    """The same error, with arrays of these names as the caller wrote them."""
    return reworded(error, {name: _written(name, given, bound, written) for name in names})


def reworded(error, words):
    """The same error with other words for quoted names: in front of a name, in its place, and behind it."""
    def replaced(found):
        front, own, behind = words.get(found[2], ("", found[2], ""))
        return f"{front}{found[1]}{own}{found[1]}{behind}"
    return type(error)(re.sub(r"([`'])(\w+)\1", replaced, str(error)))


def _written(name, given, bound, written):
    """How the caller wrote the array of a name: words in front of it, its name there, and words behind it."""
    if name in given:
        return "", written.get(name, name), ""
    shared, side = _shared(name)
    if name not in bound:
        return "", shared, f" of {side}" if side else ""
    if name in _DOCUMENT and bound.get("segment_ids_q") is bound.get("segment_ids_kv"):
        return "the bound ", shared, f" of {side}"
    return "the bound ", name, ""


def _shared(name):
    """The name that stands for both arrays of document("ids"), and whose this one is: ("ids", "keys") of `ids_keys`."""
    for end, side in (("_rows", "queries"), ("_keys", "keys")):
        if name.endswith(end):
            return name[:-len(end)], side
    return _DOCUMENT.get(name, (name, ""))


def _listed(names):
    """Names for a reader: the two arrays of document("ids") as `ids`."""
    shared = [_shared(name)[0] for name in names]
    return ", ".join(dict.fromkeys(one if shared.count(one) == 2 else name for one, name in zip(shared, names)))
