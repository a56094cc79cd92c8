# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes of attnc as functions of JAX: one target of XLA's foreign function interface, with rules for vmap and
sharding. Gradients are in _attention.py, outside of them."""
import ctypes
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .. import _library, errors
from .._axes import Axes, axes_of, is_batch
from .._library import check, library
from .._signature import Signature
from .._tensors import DTYPES as _NUMBERS
from .._tensors import Pack, Shape

TARGET = "attnc_run"
NAME, GRADIENT, SEGMENTS = "attention", "attention_gradient", "rows"
DTYPES = {"bf16": jnp.bfloat16, "f16": jnp.float16, "f32": jnp.float32, "i32": jnp.int32}
_SHORT = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def _register():
    path = _library.path()
    library()
    own = path.with_name("libattnc_jax.so")
    try:
        loaded = ctypes.CDLL(str(own))
    except OSError as error:
        raise errors.Error(f"cannot load {own}: {error}") from None
    for platform, handler in (("cpu", loaded.attncJaxCpu), ("CUDA", loaded.attncJaxCuda)):
        capsule = jax.ffi.pycapsule(handler)
        jax.ffi.register_ffi_target(TARGET, {"instantiate": capsule, "execute": capsule}, platform=platform)


_register()


@functools.lru_cache(maxsize=1024)
def signature(text, name):
    return Signature(text, name)


# ---- The call ----

class _Kernel:
    """A kernel that is asked for its workspace, not compiled."""

    def __init__(self, text, name, target):
        self.handle = ctypes.c_void_p()
        check(library().attnLower(text.encode(), name.encode(), target, ctypes.byref(self.handle)))

    def __del__(self):
        if self.handle:
            library().attnDestroy(self.handle)

    def workspace(self, spec, shapes, dtypes):
        pack, given = Pack(len(spec.tensors)), iter(zip(shapes, dtypes))
        for i, tensor in enumerate(spec.tensors):
            if tensor["role"] != "result":
                pack.put(i, Shape(*next(given)))
        special = ctypes.c_void_p()
        check(library().attnSpecialize(self.handle, pack.array, ctypes.byref(special)))
        size = ctypes.c_size_t()
        try:
            check(library().attnWorkspaceSizeFor(special, pack.array, 0, ctypes.byref(size)))
        finally:
            library().attnDestroy(special)
        return size.value


_lowered = functools.lru_cache(maxsize=256)(_Kernel)


def varying(array):
    """Names of the axes of a shard_map along which an array varies."""
    own = jax.typeof(array)
    axes = own.manual_axis_type.varying if hasattr(own, "manual_axis_type") else getattr(own, "vma", None)
    return frozenset(axes or ())


def typed(shape, dtype, like):
    """A result that varies along the same axes of a shard_map as an operand."""
    if not varying(like):
        return jax.ShapeDtypeStruct(tuple(shape), dtype)
    own = jax.typeof(like)
    more = {"vma": getattr(own, "vma", None)}
    if hasattr(own, "manual_axis_type"):
        more = {"manual_axis_type": own.manual_axis_type, "sharding": NamedSharding(own.sharding.mesh, PartitionSpec())}
    return jax.ShapeDtypeStruct(tuple(shape), dtype, **more)


def _call(text, name, tensors, on_cpu, size=None):
    """The results of a pass on one platform; the last result of the custom call is its workspace."""
    spec = signature(text, name)
    shapes, dtypes = [tuple(t.shape) for t in tensors], [_SHORT[np.dtype(t.dtype)] for t in tensors]
    if size is None:
        size = _lowered(text, name, b"cpu" if on_cpu else None).workspace(spec, shapes, dtypes)
    results = [typed(shape, DTYPES[own["dtype"]], tensors[0])
               for own, shape in zip(spec.results, spec.result_shapes(shapes))]
    known = [n for shape, dtype in zip(shapes, dtypes) for n in (_NUMBERS[dtype], len(shape), *shape)]
    workspace = typed((size,), jnp.uint8, tensors[0])
    call = jax.ffi.ffi_call(TARGET, [*results, workspace])
    return tuple(call(*tensors, problem=text, name=name, shapes=np.array(known, np.int64))[:-1])


def run(text, name, tensors):
    """The results of the pass `name` of a text, without rules for vmap and sharding. Raises attnc's errors while
    tracing; what only a compiler finds fails in XLA's compilation, with the same text."""
    if jax.default_backend() != "gpu" or tensors[0].dtype == jnp.float32:  # of q, which GPUs do not take
        return _call(text, name, tensors, True)

    def on_cpu(*tensors):
        try:
            return _call(text, name, tensors, True)
        except errors.UnsupportedError:  # fails in XLA's compilation, if it is compiled for the CPU
            return _call(text, name, tensors, True, 0)

    return jax.lax.platform_dependent(*tensors, cpu=on_cpu, cuda=lambda *t: _call(text, name, t, False))


# ---- Sharding ----

def _rule(axes):
    """The rule of Shardy for a pass, as its arguments: heads of q are the factors (g r)."""
    groups, kv_heads = axes.heads[0] // axes.heads[1], axes.heads[1]
    of_heads = [name for name, size in (("g", kv_heads), ("r", groups)) if size > 1] or ["g"]  # no factor (g r) of 1
    unique, order = iter(range(10**6)), []

    def factor(name):
        listed = of_heads if name == "h" else [name or f"x{next(unique)}"]
        order.extend(f for f in listed if f not in order)
        return f"({' '.join(listed)})" if len(listed) > 1 else listed[0]

    sides = [", ".join(" ".join(factor(name) for name in tensor) for tensor in side)
             for side in (axes.inputs, axes.results)]
    local = set(filter(is_batch, order)) if axes.by_batch else set()
    if axes.by_head:
        local |= {"g", "r"}
    sizes = {"r": groups, "g": kv_heads} if "r" in order and len(of_heads) > 1 else {}
    if any("g" in tensor for tensor in axes.inputs + axes.results):
        sizes.pop("g", None)  # known by an axis of its own
    return dict(sharding_rule=f"{sides[0]} -> {sides[1]}",
                need_replication_factors=tuple(f for f in order if f not in local), **sizes)


def _places(info, mesh):
    """The axes of the mesh that each axis of an array is split over; none if that is not a partition by whole axes, as
    where Shardy splits an axis of the mesh."""
    whole = ((),) * len(info.shape)
    if info.sharding is None or info.sharding.is_fully_replicated:
        return whole
    try:
        local = info.sharding.shard_shape(tuple(info.shape))
    except ValueError:  # uneven
        return whole
    counts = [extent // part if part else 1 for extent, part in zip(info.shape, local)]
    names = [name for name in mesh.axis_names if mesh.shape[name] > 1]
    for places in itertools.product(range(-1, len(counts)), repeat=len(names)):
        split = [[axis for axis, at in zip(names, places) if at == i] for i in range(len(counts))]
        if any(math.prod(mesh.shape[axis] for axis in own) != count for own, count in zip(split, counts)):
            continue
        for found in itertools.product(*map(itertools.permutations, split)):
            spec = PartitionSpec(*(own or None for own in found))
            if info.sharding.is_equivalent_to(NamedSharding(mesh, spec), len(counts)):
                return found
    return whole


def _partition(axes, local, mesh, arguments, results):
    """The shardings that a pass has: those of batch and of whole groups of heads, as operands come; nothing else."""
    if mesh.empty:
        devices = sorted(arguments[0].sharding.device_set, key=lambda device: device.id)
        mesh = Mesh(np.array(devices), ("devices",))
    found, taken = {}, set()
    for tensor, info in zip(axes.inputs, arguments):
        for name, extent, place in zip(tensor, info.shape, _places(info, mesh)):
            if name == "h":
                name = "g"
            splits = axes.by_batch if is_batch(name) else name == "g" and axes.by_head
            if not place or name in found or not splits:
                continue
            if name == "g":
                extent = axes.heads[1]
            parts, chosen = 1, []
            for axis in place:
                if axis in taken or extent % (parts * mesh.shape[axis]):
                    break
                parts *= mesh.shape[axis]
                chosen.append(axis)
            if chosen:
                found[name] = tuple(chosen)
                taken.update(chosen)

    def sharding(tensor):
        return NamedSharding(mesh, PartitionSpec(*(found.get("g" if name == "h" else name) for name in tensor)))

    shards = math.prod(mesh.shape[axis] for axis in found.get("g", ()))
    heads = (axes.heads[0] // shards, axes.heads[1] // shards)

    def on_a_shard(*tensors):
        summed = []
        for result, own in zip(local(heads)(*tensors), axes.results):
            over = [axis for name, places in found.items() for axis in places
                    if name not in ("g" if other == "h" else other for other in own)]
            summed.append(jax.lax.psum(result, tuple(over)) if over else result)
        return tuple(summed)

    return (mesh, on_a_shard, tuple(sharding(tensor) for tensor in axes.results),
            tuple(sharding(tensor) for tensor in axes.inputs))


def sharded(axes, local):
    """local(heads), a function of tensors, with its rule for sharding."""
    whole = custom_partitioning(lambda *tensors: local(axes.heads)(*tensors))
    partition = functools.partial(_partition, axes, local)
    whole.def_partition(partition=partition, infer_sharding_from_operands=lambda *a: partition(*a)[2],
                        decode_shardings=False, **_rule(axes))  # decoding fails where Shardy splits an axis of the mesh
    return lambda *tensors: whole(*tensors)


# ---- vmap ----

def sequential(function, size, batched, tensors):
    """The function for each of the mapped entries, one behind another."""
    mapped = [t for t, b in zip(tensors, batched) if b]

    def one(mapped):
        entries = iter(mapped)
        return function(*(next(entries) if b else t for t, b in zip(tensors, batched)))

    return jax.lax.map(one, mapped)


def _folded(tensor, axis, mapped):
    """The first `mapped` axes as a part of the axis that they are folded into, `axis` of the rest."""
    tensor, end = jnp.moveaxis(tensor, range(mapped), range(axis, axis + mapped)), axis + mapped + 1
    return tensor.reshape(*tensor.shape[:axis], math.prod(tensor.shape[axis:end]), *tensor.shape[end:])


def _unfolded(tensor, axis, sizes):
    """The axes in front again; `sizes` are theirs, and what remains."""
    tensor = tensor.reshape(*tensor.shape[:axis], *sizes, *tensor.shape[axis + 1:])
    mapped = len(sizes) - 1
    return jnp.moveaxis(tensor, range(axis, axis + mapped), range(mapped))


class Dense:
    """A pass of a problem as a function of tensors, of which those with a batch have `mapped` more axes in front: these
    are folded into the batch, in each shard. Packed layouts refuse vmap."""

    def __init__(self, text_of, name, heads, mapped=0):
        spec, plain = signature(text_of(heads), name), axes_of(text_of, name, heads, signature)
        more = tuple(f"b{i}" for i in reversed(range(mapped)))
        inputs, results = ([(*more, *own) if "b" in own else own for own in side]
                           for side in (plain.inputs, plain.results))
        axes = Axes(inputs, results, heads, plain.by_batch, plain.by_head)

        def local(heads):
            def function(*tensors):
                if not mapped:
                    return run(text_of(heads), name, tensors)
                batch = plain.inputs[0].index("b")
                sizes = (*tensors[0].shape[:mapped], tensors[0].shape[mapped + batch])
                folded = [_folded(t, own.index("b"), mapped) if "b" in own else t
                          for t, own in zip(tensors, plain.inputs)]
                return tuple(_unfolded(r, own.index("b"), sizes)
                             for r, own in zip(run(text_of(heads), name, folded), plain.results))
            return function

        function = custom_vmap(jax.jit(sharded(axes, local)))
        self._function = function

        @function.def_vmap
        def rule(size, batched, *tensors):
            if any(own["role"] == "operand" and "b" not in axis for own, axis in zip(spec.inputs, plain.inputs)):
                mapped_one = next(own["name"] for own, b in zip(spec.inputs, batched) if b)
                raise errors.UnsupportedError(
                    f"vmap over `{mapped_one}` is not possible in a packed layout, whose arrays have no batch: pack "
                    "the sequences (layout thd, cu_seqlens) in place of vmap")
            if not plain.by_batch or any("b" not in axis for axis in plain.results) or any(
                    b and "b" not in axis for b, axis in zip(batched, plain.inputs)):
                results = sequential(function, size, batched, tensors)  # has no batch axis, or is summed over it
            else:
                results = dense_of(text_of, name, heads, mapped + 1)(*(
                    t if b or "b" not in axis else jnp.broadcast_to(t, (size, *t.shape))
                    for t, b, axis in zip(tensors, batched, plain.inputs)))
            return results, (True,) * len(plain.results)

    def __call__(self, *tensors):
        return self._function(*tensors)


dense_of = functools.lru_cache(maxsize=1024)(Dense)


# ---- Rows of ids ----

def _with_ids(size, batched, names, tensors, shared):
    """The tensors of one more leading dimension. Positions that are not mapped stay as they are: kernels take positions
    with the last of the leading dimensions of ids."""
    rank = {name: t.ndim - b for name, t, b in zip(names, tensors, batched)}
    result = []
    for name, tensor, mapped in zip(names, tensors, batched):
        if name in shared:
            pass
        elif not name.startswith("positions"):
            tensor = tensor if mapped else jnp.broadcast_to(tensor, (size, *tensor.shape))
        elif mapped and (missing := rank["ids" + name[9:]] - rank[name]):
            ids = tensors[names.index("ids" + name[9:])]
            leading = ids.shape[ids.ndim - rank["ids" + name[9:]]:][:missing]
            tensor = jnp.broadcast_to(tensor.reshape(size, *(1,) * missing, *tensor.shape[1:]),
                                      (size, *leading, *tensor.shape[1:]))
        result.append(tensor)
    return result


class Segments:
    """Lengths and offsets of segments as a function of ids and positions, [..., tokens] each (attn.segments)."""

    RESULTS = 5  # those with the leading dimensions of ids; the others are of all rows together

    def __init__(self, text, ranks):
        self.names = [t["name"] for t in signature(text, SEGMENTS).inputs]
        leading = [tuple(f"b{i}" for i in reversed(range(rank - 1))) for rank in ranks]
        rows = leading[0]
        axes = Axes([(*own, f"n_{name}") for own, name in zip(leading, self.names)],
                    [(*rows, "")] * 4 + [rows], (1, 1), True, False)
        function = custom_vmap(jax.jit(sharded(axes, lambda _: lambda *t: run(text, SEGMENTS, t)[:self.RESULTS])))
        self._function = function

        @function.def_vmap
        def rule(size, batched, *tensors):
            more = _with_ids(size, batched, self.names, tensors, ())
            return segments(text, tuple(t.ndim for t in more))(*more), (True,) * self.RESULTS

    def __call__(self, *tensors):
        return self._function(*tensors)


segments = functools.lru_cache(maxsize=256)(Segments)


class Rows:
    """A pass of a "thd padded" problem whose sequences are runs of ids: tensors are [..., tokens, heads, dim], ids
    [..., tokens], lse [..., heads, tokens].

    text_of(heads): of the pass `name`. segments_text: finds the sequences.
    ranks: of ids and positions, in the order of their names.
    """

    OFFSETS = ("cu_seqlens_q", "padded_offsets_q", "cu_seqlens_kv", "padded_offsets_kv")

    def __init__(self, text_of, name, heads, segments_text, ranks):
        self._key = text_of, name, heads, segments_text
        spec, plain = signature(text_of(heads), name), axes_of(text_of, name, heads, signature)
        found = signature(segments_text, SEGMENTS)
        ids = [t["name"] for t in found.inputs]
        kept = [i for i, t in enumerate(spec.inputs) if t["name"] not in self.OFFSETS]
        self.names = [*ids, *(spec.inputs[i]["name"] for i in kept)]
        shared = {t["name"] for t in spec.inputs if t["role"] == "array"}
        for i in kept:
            if spec.inputs[i]["role"] == "array" and any(e.size for e in spec.inputs[i]["extents"]):
                raise errors.UnsupportedError(
                    f"attnc has no array `{spec.inputs[i]['name']}` of shape [{', '.join(spec.inputs[i]['shape'])}] "
                    "beside segment ids: pack the sequences (layout thd, cu_seqlens), or take attnc.document(ids) in a "
                    "dense layout")
        leading = [tuple(f"b{i}" for i in reversed(range(rank - 1))) for rank in ranks]

        def with_rows(tensor, own):
            if tensor["role"] == "array" or tensor["name"][1:] in shared:
                return own
            return (*leading[0], *own)

        inputs = [(*own, f"n_{name}") for own, name in zip(leading, ids)]
        inputs += [with_rows(spec.inputs[i], plain.inputs[i]) for i in kept]
        results = [with_rows(t, own) for t, own in zip(spec.results, plain.results)]
        axes = Axes(inputs, results, heads, plain.by_batch, plain.by_head)

        def local(heads):
            def function(*tensors):
                made = dict(zip([t["name"] for t in found.results], run(segments_text, SEGMENTS, tensors[:len(ids)])))
                given = {**dict(zip(self.names, tensors)), **made}
                packed = [t if own["role"] == "array" else _packed(own["name"], t)
                          for own, t in ((own, given[own["name"]]) for own in spec.inputs)]
                results = run(text_of(heads), name, packed)
                return tuple(r if own["name"][1:] in shared else _unpacked(own["name"], r, given)
                             for own, r in zip(spec.results, results))
            return function

        function = custom_vmap(jax.jit(sharded(axes, local)))
        self._function = function

        @function.def_vmap
        def rule(size, batched, *tensors):
            summed = any(t["name"][1:] in shared for t in spec.results)
            if not axes.by_batch or summed or any(b and n in shared for b, n in zip(batched, self.names)):
                return sequential(function, size, batched, tensors), (True,) * len(spec.results)
            more = _with_ids(size, batched, self.names, tensors, shared)
            return (rows_of(*self._key, tuple(t.ndim for t in more[:len(ids)]))(*more)), (True,) * len(spec.results)

    def __call__(self, *tensors):
        return self._function(*tensors)


rows_of = functools.lru_cache(maxsize=1024)(Rows)


def _packed(name, tensor):
    """[..., tokens, heads, dim] as [all tokens, heads, dim]; logarithms [..., heads, tokens] as [heads, all tokens]."""
    if name in ("lse", "dlse"):
        return jnp.moveaxis(tensor, -2, 0).reshape(tensor.shape[-2], math.prod(tensor.shape[:-2]) * tensor.shape[-1])
    return tensor.reshape(math.prod(tensor.shape[:-2]), *tensor.shape[-2:])


def _unpacked(name, tensor, given):
    if name == "lse":
        return jnp.moveaxis(tensor.reshape(tensor.shape[0], *given["q"].shape[:-2]), 0, -2)
    like = given[{"o": "q", "dq": "q", "dk": "k", "dv": "v"}[name]]
    return tensor.reshape(*like.shape[:-2], *tensor.shape[-2:])
