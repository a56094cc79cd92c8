# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences whose tokens ranks share: which rows each has, and plans of problems. No framework is needed."""
import json
import collections
import itertools
import operator
import typing

from . import _plans
from ._calls import as_mask
from ._plans import Plan, Run, Sequences, Shard
from ._text import float_text, identifier, integer
from .errors import ProblemError, TensorError, UnsupportedError

FORWARD, BACKWARD = "forward", "backward"
_STRATEGIES = ("auto", "gather", "cast", "ring", "ulysses")
_KEPT = 256  # plans, and shards of sequences
SHARDINGS = {"contiguous": "#plan.contiguous", "dual_chunk": "#plan.dual_chunk",
              "dual_chunk padded": "#plan.dual_chunk<padded>", "striped": "#plan.striped",
              "documents": "#plan.documents", "runs": '#plan.runs<"shards">'}
OWN = ("of queries", "of keys")  # names of shards that are made here; those of callers are identifiers


def quoted(names):
    return ", ".join(map(repr, names))


def name_of(text):
    """The name of the caller's shards in a sharding's text."""
    return text.partition('"')[2].partition('"')[0]


def sharding_text(sharding):
    """A sharding in the dialect's syntax."""
    name, *parameter = sharding if isinstance(sharding, (tuple, list)) and sharding else (sharding,)
    if isinstance(name, str) and name in SHARDINGS and not parameter:
        return SHARDINGS[name]
    if len(parameter) == 1 and name == "striped":
        return f"#plan.striped<{integer(parameter[0], 'rows of a stripe', 1)}>"
    if len(parameter) == 1 and name == "documents":
        if not isinstance(parameter[0], (int, float)) or not 0 <= parameter[0] <= 100:
            raise ProblemError(f"expected a slack from 0 to 100, got: {parameter[0]!r}")
        return f"#plan.documents<{float_text(parameter[0])}>"
    if len(parameter) == 1 and name == "runs":
        return f'#plan.runs<"{identifier(parameter[0], "a name of shards")}">'
    raise ProblemError(f"expected a sharding of {quoted(SHARDINGS)}, ('striped', rows), ('documents', slack) or "
                       f"('runs', name), got: {sharding!r}")


class Side(typing.NamedTuple):
    """The whole sequences of queries or of keys. slots: rows that each has in the buffer of all; None: as lengths."""
    lengths: tuple
    slots: tuple
    is_dense: bool

    @property
    def rows(self):
        return sum(self.slots or self.lengths)

    @property
    def starts(self):
        return list(itertools.accumulate(self.slots or self.lengths, initial=0))


def side_of(seqlen, batch, cu_seqlens, padded_offsets):
    if cu_seqlens is None:
        if seqlen is None:
            raise TensorError("expected cu_seqlens or seqlen, got: None")
        if padded_offsets is not None:
            raise TensorError("expected cu_seqlens beside padded_offsets, got: None")
        return Side((integer(seqlen, "seqlen", 0),) * integer(batch, "batch", 0), None, True)
    if seqlen is not None:
        raise TensorError("expected cu_seqlens or seqlen, got: both")
    lengths = _differences("cu_seqlens", cu_seqlens)
    slots = None if padded_offsets is None else _differences("padded_offsets", padded_offsets)
    if slots is not None and len(slots) != len(lengths):
        raise TensorError(f"expected {len(lengths) + 1} padded_offsets, as there are cu_seqlens, got: {len(slots) + 1}")
    return Side(lengths, None if slots == lengths else slots, False)


def _differences(what, sums):
    """Lengths, of prefix sums from 0 on, in a sequence or in a tensor, which is copied to the host."""
    if hasattr(sums, "tolist"):
        if len(sums.shape) != 1 or str(sums.dtype).rpartition(".")[2] not in ("int32", "int64"):
            raise TensorError(f"expected {what} to be int32 or int64 [sequences + 1], got: {sums.dtype} "
                              f"{list(sums.shape)}")
        try:
            sums = sums.tolist()
        except TypeError:  # of an array of JAX
            raise TensorError(f"expected {what} that are known while tracing, such as integers or an array of NumPy, "
                              "got: an array that is traced") from None
    try:
        sums = [operator.index(number) for number in sums]
    except TypeError:
        raise TensorError(f"expected integers or a tensor as {what}, got: {type(sums).__name__}") from None
    lengths = tuple(map(operator.sub, sums[1:], sums))
    if not sums or sums[0] != 0 or min(lengths, default=0) < 0 or sums[-1] >= 1 << 31:
        raise TensorError(f"expected {what} to begin with 0, to descend nowhere and to be below 2^31, got: {sums[:8]}")
    return lengths


def contiguous(side, ranks):
    """Equal parts of each sequence."""
    made = []
    for rank in range(ranks):
        runs, row = [], 0
        for sequence, length in enumerate(side.lengths):
            begin, end = rank * length // ranks, (rank + 1) * length // ranks
            if end > begin:
                runs.append(Run(row, sequence, begin, end - begin))
            row += end - begin
        made.append(Shard(row, tuple(runs)))
    return tuple(made)


class Recent:
    """The values that were asked for last, up to a number of them."""

    def __init__(self, most):
        self._most, self._values = most, collections.OrderedDict()

    def get(self, key):
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
        return found

    def put(self, key, value):
        self._values[key] = value
        if len(self._values) > self._most:
            self._values.popitem(last=False)

    def clear(self):
        self._values.clear()


class Shared:
    """What a ContextParallel is without a framework: which rows each of `ranks` ranks has of sequences, and plans of
    problems. Arguments are those of the ContextParallel."""

    def __init__(self, ranks, sharding, kv_sharding, strategy, head_group, mask, shards):
        if strategy not in _STRATEGIES:
            raise ProblemError(f"expected a strategy of {quoted(_STRATEGIES)}, got: {strategy!r}")
        head_group = integer(head_group, "head_group", 1)
        if strategy in ("auto", "ulysses") and head_group != 1:
            raise ProblemError(f"expected no head_group with the strategy {strategy!r}, got: {head_group}")
        if ranks % head_group:
            raise ProblemError(f"expected a head_group that divides {ranks} ranks, got: {head_group}")
        self.ranks = ranks
        self._shardings = [sharding_text(sharding)]
        self._shardings.append(self._shardings[0] if kv_sharding is None else sharding_text(kv_sharding))
        self._words = [text.removeprefix("#plan.") for text in self._shardings]
        self._steps = {"auto": "auto", "ulysses": "head-group=0"}.get(strategy) or f"strategy={strategy}" + (
            f" head-group={head_group}" if head_group != 1 else "")
        self._mask = "#attn.causal" if mask is None else as_mask(mask)._text
        self._plans, self._found = Recent(_KEPT), Recent(_KEPT)
        self.shards = shards

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    @property
    def shards(self):
        """The shards of "runs", by name, of each rank."""
        return dict(self._shards)

    @shards.setter
    def shards(self, shards):
        named = shards if isinstance(shards, dict) else {} if shards is None else {"shards": shards}
        made = tuple(sorted([(identifier(name, "a name of shards"), self._checked(of)) for name, of in named.items()]))
        missing = [name_of(text) for text in self._shardings if "runs" in text and name_of(text) not in dict(made)]
        if missing:
            raise ProblemError(f"expected shards of the name {missing[0]!r}, got: {quoted(dict(made)) or None}")
        self._shards = made

    def _checked(self, shards):
        try:
            made = tuple([Shard(operator.index(rows), tuple([Run(*map(operator.index, run)) for run in runs]))
                          for rows, runs in shards])
        except (TypeError, ValueError):
            raise ProblemError("expected of each rank (rows, [(row, sequence, position, length), ...]) as shards, got: "
                               f"{shards!r:.100}") from None
        if len(made) != self.ranks:
            raise ProblemError(f"expected shards of {self.ranks} ranks, got: {len(made)}")
        return made

    def _shard(self, side, keys, rank):
        rank = integer(rank, "rank", 0, self.ranks - 1)
        key = side, keys, rank, self._shards
        found = self._found.get(key)
        if found is None:
            text, shards = self._sharding(side, keys)
            found = dict(shards)[name_of(text)][rank] if name_of(text) in OWN else self._by(text, side, shards, rank)
            if side.is_dense:
                self._check_dense(side, found, keys, rank)
            self._found.put(key, found)
        return found

    def _by(self, text, side, shards, rank):
        """The shard of a rank by a sharding's text."""
        problem = f"attn.problem @attention mask({self._mask}) layout(thd) heads(1) dims(16) dtype(bf16)"
        plan = self._plan(f"{problem} {self._definition(FORWARD, text, text)}", FORWARD, "cpu", "strategy=cast")
        return plan.shard(Sequences(side.lengths, side.slots, shards=shards), rank)

    def _check_rows(self, name, got, side, keys, rank):
        """Has a tensor as many rows as a rank? got: the number of rows, of dense tensors for each sequence."""
        shard = self._shard(side, keys, rank)
        rows, of_each = shard.rows, ""
        if side.is_dense:
            if not side.lengths:
                return
            rows = rows // len(side.lengths)
            of_each = f" of each sequence of {side.lengths[0]} tokens"
        if got != rows:
            raise TensorError(f"expected {name!r} to have {rows} rows{of_each}, those of rank {rank} by "
                              f"`{self._words[keys]}`, got: {got}")

    def _check_dense(self, side, shard, keys, rank):
        """Are a rank's rows [batch, local seqlen]?"""
        batch = len(side.lengths)
        each = shard.rows // batch if batch else 0
        if batch and (shard.rows % batch or any(
                [run.row < run.sequence * each or run.row + run.length > (run.sequence + 1) * each
                 for run in shard.runs])):
            raise UnsupportedError(
                f"attnc has dense tensors where a rank has as many rows of each sequence, got: `{self._words[keys]}` "
                f"of {batch} sequences of {side.lengths[0]} tokens for rank {rank}; pack them (layout 'thd')")

    def _sharding(self, side, keys):
        """The text of a sharding, and the shards that it names. Dense sequences are cut one by one; what depends on a
        mask is the same for all calls."""
        text = self._shardings[keys]
        name = OWN[bool(keys)]
        if text.startswith("#plan.documents"):
            key = side, text
            found = self._found.get(key)
            if found is None:
                found = tuple([self._by(text, side, (), rank) for rank in range(self.ranks)])
                self._found.put(key, found)
        elif text == SHARDINGS["contiguous"] and side.is_dense and len(side.lengths) > 1:
            found = contiguous(side, self.ranks)
        else:
            return text, tuple([own for own in self._shards if own[0] == name_of(text)])
        return f'#plan.runs<"{name}">', ((name, found),)

    def _definition(self, name, sharding_q, sharding_kv):
        shardings = sharding_q if sharding_q == sharding_kv else f"{sharding_q}, {sharding_kv}"
        backward = " backward" if name == BACKWARD else ""
        return f"plan.def @{name} of(@attention) ranks({self.ranks}) sharding({shardings}){backward} {{}}"

    def _plan(self, text, name, target, steps):
        key = text, target, steps
        found = self._plans.get(key)
        if found is None:
            found = Plan(text, name, steps, target)
            self._plans.put(key, found)
        return found

    def _steps_of(self, text, name, sequences):
        return _plans.choose(text, name, sequences) if self._steps == "auto" else self._steps

    def _defined(self, sides):
        """The definition of a plan by its name, and the Sequences, of whole sequences."""
        of_q, of_kv = (self._sharding(side, keys) for keys, side in enumerate(sides))
        shards = tuple(sorted({**dict(of_q[1]), **dict(of_kv[1])}.items()))
        lengths = (sides[0].lengths, sides[0].slots)
        lengths += (None, None) if sides[0][:2] == sides[1][:2] else (sides[1].lengths, sides[1].slots)
        return (lambda name: self._definition(name, of_q[0], of_kv[0])), Sequences(*lengths, shards)


def gradient_text(dlse, learned=()):
    """learned: names of arrays of score modifiers whose gradients are results, too."""
    clauses = " dlse" if dlse else ""
    if learned:
        clauses += f" requires_grad([{', '.join(json.dumps(name) for name in learned)}])"
    return f" attn.backward @grads of(@attention){clauses}"


def dense_sides(ranks, q, k, seqlens, cu_seqlens, padded_offsets):
    """The sides of q and k [batch, local seqlen, ...]. seqlens: whole lengths; None: the local ones times ranks."""
    if any([given is not None for given in (*cu_seqlens, *padded_offsets)]):
        raise TensorError("expected cu_seqlens and padded_offsets in the layouts 'thd' and 'thd padded', got: 'bshd'")
    pair = tuple(seqlens) if isinstance(seqlens, (tuple, list)) else (seqlens, seqlens)
    if len(pair) != 2:
        raise TensorError(f"expected an integer or a pair for queries and keys as seqlens, got: {seqlens!r:.100}")
    return [side_of(t.shape[1] * ranks if whole is None else whole, t.shape[0], None, None)
            for t, whole in zip((q, k), pair)]


def packed_sides(layout, seqlens, cu_seqlens, padded_offsets):
    """The sides of packed sequences, of pairs for queries and keys."""
    if seqlens is not None:
        raise TensorError(f"expected cu_seqlens in the layout {layout!r}, got: seqlens")
    cu_seqlens, padded_offsets = (_both(pair) for pair in (cu_seqlens, padded_offsets))
    if cu_seqlens[0] is None:
        raise TensorError(f"expected cu_seqlens_q with the layout {layout!r}, got: None")
    if (padded_offsets[0] is None) != (layout == "thd"):
        raise TensorError(f"expected padded_offsets with the layout 'thd padded', and with no other, got: {layout!r} "
                          f"{'with' if layout == 'thd' else 'without'} them")
    of_q = side_of(None, 1, cu_seqlens[0], padded_offsets[0])
    if cu_seqlens[1] is cu_seqlens[0] and padded_offsets[1] is padded_offsets[0]:
        return [of_q, of_q]
    of_kv = side_of(None, 1, cu_seqlens[1], padded_offsets[1])
    if len(of_kv.lengths) != len(of_q.lengths):
        raise TensorError(f"expected as many sequences in 'cu_seqlens_kv' as in 'cu_seqlens_q', got: "
                          f"{len(of_kv.lengths)} and {len(of_q.lengths)}")
    return [of_q, of_kv]


def check_kv(q, k, v, layout):
    """k and v [..., heads, dim] have the dims, rows and batch that q asks for."""
    if k.shape[-1] != q.shape[-1]:
        raise TensorError(f"expected 'k' of head dim {q.shape[-1]} as 'q', got: {k.shape[-1]}")
    if v.shape[:-1] != k.shape[:-1]:
        raise TensorError(f"expected 'v' of shape {(*k.shape[:-1], 'dim')} as 'k', got: {tuple(v.shape)}")
    if layout == "bshd" and k.shape[0] != q.shape[0]:
        raise TensorError(f"expected 'k' of batch {q.shape[0]} as 'q', got: {k.shape[0]}")


def axes_of_rows(inputs):
    """The axes (batch, rows) by the name of each array of a dense problem that has both."""
    axes = {}
    for tensor in inputs:
        sizes = [extent.size for extent in tensor["extents"]]
        rows = [axis for axis, size in enumerate(sizes) if size in ("seqlen_q", "seqlen_kv")]
        if tensor["role"] == "array" and "batch" in sizes and rows:
            axes[tensor["name"]] = sizes.index("batch"), rows[0]
    return axes


def packed(what, value, extents, axes, sides, pack):
    """An array of packed sequences, where that of dense ones is [batch, ..., seqlen]. axes: (batch, rows) of the dense
    array, or None. pack(value, batch, rows): moves the axis of batch before that of rows, and makes one of both."""
    sizes = {"batch": len(sides[0].lengths), "total_q": sum(sides[0].lengths), "total_kv": sum(sides[1].lengths)}
    expected = []
    for axis, extent in enumerate(extents):
        own = int(extent.text) if extent.text.isdigit() else sizes.get(extent.text)
        expected.append(value.shape[axis] if own is None and axis < value.ndim else own)
    wanted = list(expected)
    if axes is not None:
        batch, rows = axes  # of the dense array, which has one axis more
        side = sides[extents[rows - 1].text == "total_kv"]
        wanted[rows - 1] = side.lengths[0] if side.lengths else 0
        wanted.insert(batch, sizes["batch"])
        if list(value.shape) == wanted:
            value = pack(value, batch, rows)
    if list(value.shape) != expected:
        whole = ", of the whole sequences" if any([extent.text in sizes for extent in extents]) else ""
        raise TensorError(f"expected {what} of shape {wanted}{whole}, got: {list(value.shape)}")
    return value


def _both(pair):
    """A pair; what is given for one side alone holds for both."""
    return [given if given is not None else other for given, other in zip(pair, reversed(pair))]
