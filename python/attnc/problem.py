# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems as values, and the kernels that they are compiled to."""
import ctypes

from . import _library
from ._library import Extents, ask, check, encoded, library
from ._tensors import DTYPES, Pack, Shape, pointer_of, shape_of
from ._text import Value, apart, float_text, identifier, integer, merged, number
from .errors import ProblemError, TensorError
from .explain import Explanation, Support
from .masks import Mask
from .scores import Score

_LAYOUTS = ("bshd", "sbhd", "bhsd", "thd", "thd padded")
_DTYPES = {"bf16": "bf16", "bfloat16": "bf16", "f16": "f16", "float16": "f16", "f32": "f32", "float32": "f32"}


def _pair(value, what):
    """`n` or `(m, n)` as two integers."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(values) != 2:
        raise ProblemError(f"expected one or two integers as {what}, got: {value!r}")
    return tuple(integer(v, what) for v in values)


def _pair_text(value, what):
    first, second = _pair(value, what)
    return f"{first}, {second}" if first != second else f"{first}"


def _layout_text(layout):
    layouts = (layout,) if isinstance(layout, str) else tuple(layout)
    for one in layouts:
        if one not in _LAYOUTS:
            raise ProblemError(f"expected a layout of {', '.join(map(repr, _LAYOUTS))}, got: {one!r}")
    if len(layouts) not in (1, 4):
        raise ProblemError(f"expected one layout, or four for q, k, v and o, got: {len(layouts)}")
    return ", ".join(layouts)


class _Pass(Value):
    """What problems and their gradients have in common: a module's text, and which pass of it is meant."""

    __slots__ = ()

    @property
    def text(self):
        """The module in the dialect's text."""
        return self._text

    def describe(self):
        """Tensors and sizes, for any target, as a dictionary (`attnDescribe` in attn-c/Attn.h). Nothing is compiled."""
        return ask("attnDescribe", self._text, self.name)

    def supported(self, targets=None):
        """Whether targets have kernels for it: a list of `Support`, one for each of `targets` ("cpu", "sm_80",
        "sm_90a"; None: all three). Nothing is compiled."""
        targets = targets if targets is None or isinstance(targets, str) else ",".join(targets)
        return [Support(**answer) for answer in ask("attnSupported", self._text, self.name, targets)]

    def lower(self, target=None):
        """A kernel that can be asked for shapes, workspace bytes, schedule and source, and is not compiled yet. It
        takes milliseconds. `target`: "cpu", "sm_80", "sm_90a", "sm_80:CHIP"; None is the current GPU, or the CPU."""
        handle = ctypes.c_void_p()
        check(library().attnLower(self._text.encode(), encoded(self.name), encoded(target), ctypes.byref(handle)))
        return Kernel(handle, self)

    def compile(self, target=None):
        """A kernel that is ready to launch, compiled or from the cache. A cold compilation takes 1 to 2 seconds."""
        kernel = self.lower(target)
        kernel.build()
        return kernel

    def warm(self, target=None):
        """Compiles its kernels into the cache on disk. A GPU target needs NVRTC and no GPU."""
        check(library().attnWarm(self._text.encode(), encoded(self.name), encoded(target)))


class Problem(_Pass):
    """One attention computation, forward: o and the logarithms lse of the softmax's sums.

    mask: an `attnc.Mask`.
    heads: query heads, or (query heads, kv heads).
    dims: head dim, or (head dim of q and k, head dim of v and o); multiples of 8 from 8 to 512.
    layout: "bshd", "sbhd", "bhsd", "thd" (packed), "thd padded", or one for each of q, k, v and o.
    dtype: "bf16", "f16", or "f32" (on the CPU alone).
    scale: what products of q and k are multiplied by; None is 1 / sqrt(head dim).
    score: score modifiers, in order.
    sink: a number, or the name of a float32 array [heads]: one key more for each row, without a value.
    dropout: (p, name): pairs are dropped with probability p; the int32 array [4] of that name is the seed.
    outputs: "o, lse" or "o".
    expected_seqlen, max_seqlen: hints for the choice of kernels, (queries, keys) or one for both; any lengths are
        right.
    kv_list_capacity: keys for each query row that KV-tile lists have room for, where the mask reads arrays; a hint.
    segments: sequences are found on the device from ids and positions of tokens, up to so many in a row of tokens.
    name: of the problem in its text, for packs of several.

    Raises ProblemError. Whatever the dialect's verifier refuses is refused by the first use.
    """

    __slots__ = ("_options", "name")

    def __init__(self, mask, *, heads, dims, layout="bshd", dtype="bf16", scale=None, score=(), sink=None, dropout=None,
                 outputs="o, lse", expected_seqlen=None, max_seqlen=None, kv_list_capacity=None, segments=None,
                 name="attention"):
        if not isinstance(mask, Mask):
            raise ProblemError(f"expected an attnc.Mask as the mask, got: {mask!r}")
        score = (score,) if isinstance(score, Score) else tuple(score)
        for modifier in score:
            if not isinstance(modifier, Score):
                raise ProblemError(f"expected score modifiers, such as attnc.softcap(30.0), got: {modifier!r}")
        mask, *score = apart(mask, *score)
        if dtype not in _DTYPES:
            raise ProblemError(f"expected dtype 'bf16', 'f16' or 'f32', got: {dtype!r}")
        if outputs not in ("o", "o, lse"):
            raise ProblemError(f"expected outputs 'o, lse' or 'o', got: {outputs!r}")
        clauses = [f"mask({mask})", f"layout({_layout_text(layout)})", f"heads({_pair_text(heads, 'heads')})",
                   f"dims({_pair_text(dims, 'dims')})", f"dtype({_DTYPES[dtype]})"]
        if scale is not None:
            clauses.append(f"scale({float_text(number(scale, 'scale'))})")
        if score:
            clauses.append(f"score([{', '.join(map(str, score))}])")
        if sink is not None:
            clauses.append(f"sink(\"{identifier(sink, 'sink')}\")" if isinstance(sink, str)
                           else f"sink({float_text(number(sink, 'sink'))})")
        if dropout is not None:
            probability, seed = dropout
            text = float_text(number(probability, "a probability"))
            clauses.append(f"dropout({text}, \"{identifier(seed, 'seed')}\")")
        if outputs == "o":
            clauses.append("outputs(o)")
        for clause, value in (("expected_seqlen", expected_seqlen), ("max_seqlen", max_seqlen)):
            if value is not None:
                clauses.append(f"{clause}({_pair_text(value, clause)})")
        for clause, value in (("kv_list_capacity", kv_list_capacity), ("segments", segments)):
            if value is not None:
                clauses.append(f"{clause}({integer(value, clause)})")
        super().__init__(f"attn.problem @{identifier(name, 'a name')} {' '.join(clauses)}", merged(mask, *score))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_options", dict(
            name=name, mask=mask, heads=heads, dims=dims, layout=layout, dtype=dtype, scale=scale, score=tuple(score),
            sink=sink, dropout=dropout, outputs=outputs, expected_seqlen=expected_seqlen, max_seqlen=max_seqlen,
            kv_list_capacity=kv_list_capacity, segments=segments))

    def __repr__(self):
        return f"attnc.Problem({self._text!r})"

    def __reduce__(self):
        if self._bound:
            super().__reduce__()  # raises
        return _unpickle, (Problem, self._options)

    def replace(self, **options):
        """The same problem with other options."""
        return Problem(**{**self._options, **options})

    def gradient(self, *, deterministic=False, dlse=False, requires_grad=(), partial_kv=False):
        """The backward pass: dq, dk and dv from q, k, v, o, lse and do.

        deterministic: equal inputs give equal bits.
        dlse: lse has a gradient, too, which is one more operand.
        requires_grad: names of float32 arrays of score modifiers or of the sinks whose gradients are results, too.
        partial_kv: o and lse are merged from more keys than the problem has (a step of ring attention).
        """
        return Gradient(self, deterministic=deterministic, dlse=dlse, requires_grad=requires_grad,
                        partial_kv=partial_kv)

    def explain(self, target=None, **options):
        """Which tiles a kernel visits, what that costs, and which schedule it has: an `attnc.Explanation`.

        options: batch, seqlen_q, seqlen_kv of dense layouts; lengths_q, lengths_kv, padding of packed ones; sequence
        and head of the map; tile (rows, keys) in place of the kernel's; seed of the arrays, which are made up; tflops,
        gbps.
        """
        return Explanation.ask(self._text, self.name, target, options)

    def _repr_html_(self):
        return self.explain()._repr_html_()


def gradient_text(text, name, *, deterministic=False, dlse=False, requires_grad=(), partial_kv=False):
    """The text of a problem with that of its backward pass."""
    clauses = [f"of(@{name})"] + [flag for flag, value in (
        ("deterministic", deterministic), ("partial_kv", partial_kv), ("dlse", dlse)) if value]
    if requires_grad:
        listed = ", ".join(f'"{identifier(array, "an array")}"' for array in requires_grad)
        clauses.append(f"requires_grad([{listed}])")
    # One line: torch.compile writes it into programs.
    return f"{text} attn.backward @{name}_gradient {' '.join(clauses)}"


class Gradient(_Pass):
    """The backward pass of a problem; made by `Problem.gradient`."""

    __slots__ = ("problem", "_options", "name")

    def __init__(self, problem, *, deterministic, dlse, requires_grad, partial_kv):
        names = (requires_grad,) if isinstance(requires_grad, str) else tuple(requires_grad)
        super().__init__(gradient_text(problem.text, problem.name, deterministic=deterministic, dlse=dlse,
                                       requires_grad=names, partial_kv=partial_kv), problem._bound)
        object.__setattr__(self, "name", f"{problem.name}_gradient")
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "_options", dict(deterministic=deterministic, dlse=dlse, requires_grad=names,
                                                  partial_kv=partial_kv))

    def __repr__(self):
        return f"attnc.Gradient({self._text!r})"

    def __reduce__(self):
        if self._bound:
            super().__reduce__()  # raises
        return _unpickle_gradient, (self.problem, self._options)

    def explain(self, target=None, **options):
        """That of the problem, with the schedule of this pass among `backward`."""
        return Explanation.ask(self._text, self.problem.name, target, options)


class Program(_Pass):
    """Several computations as one program, or any other computation of a module, by the module's text in the `attn`
    dialect and the name of its op (`attn.program`, `attn.compress`, ...; docs/generated/Attn.md)."""

    __slots__ = ("name",)

    def __init__(self, text, name):
        super().__init__(text, {})
        object.__setattr__(self, "name", identifier(name, "a name"))

    def __repr__(self):
        return f"attnc.Program({self._text!r}, {self.name!r})"

    def __reduce__(self):
        return Program, (self._text, self.name)


def _unpickle(kind, options):
    return kind(**options)


def _unpickle_gradient(problem, options):
    return problem.gradient(**options)


class Kernel:
    """A kernel of a problem or gradient for one target (attn-c/Attn.h). May be used by several threads at once.

    Tensors are given by name, as a dictionary: tensors of PyTorch or NumPy, anything with `shape` and `dtype` where
    only shapes are read, or `attnc.Shape`.
    """

    __slots__ = ("_handle", "made_from", "names", "results", "__weakref__")

    def __init__(self, handle, made_from):
        self._handle, self.made_from = handle, made_from
        c = library()
        count = c.attnTensorCount(handle)
        names = [c.attnTensorName(handle, i).decode() for i in range(count)]
        self.names = tuple(names)
        self.results = tuple(name for i, name in enumerate(names) if c.attnTensorIsResult(handle, i))

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.library().attnDestroy(self._handle)

    def __repr__(self):
        return f"<attnc.Kernel of {self.made_from.name}: {self.schedule}>"

    @property
    def schedule(self):
        """Which kernels it has and why, for a log."""
        return library().attnSchedule(self._handle).decode()

    @property
    def source(self):
        """The sources of all its kernels."""
        return library().attnSource(self._handle).decode()

    @property
    def resources(self):
        """What the GPU compiler said of registers and shared memory; empty before `build` and on the CPU."""
        return library().attnResources(self._handle).decode()

    def build(self):
        """Compiles the kernel, or takes it from the cache, and loads it. Not under stream capture."""
        check(library().attnBuild(self._handle))

    def specialize(self, tensors):
        """The kernel for tensors of these shapes, which may be faster for them; built if this one is."""
        handle = ctypes.c_void_p()
        check(library().attnSpecialize(self._handle, self._inputs(tensors).array, ctypes.byref(handle)))
        return Kernel(handle, self.made_from)

    def infer_shapes(self, tensors):
        """The shapes of results, by name, from those of operands and arrays: `attnc.Shape` each."""
        pack, extents = self._inputs(tensors), (Extents * len(self.names))()
        check(library().attnInferShapes(self._handle, pack.array, extents))
        names = list(DTYPES)
        return {name: Shape(extents[i][:pack.array[i].rank], names[pack.array[i].dtype])
                for i, name in enumerate(self.names) if name in self.results}

    def workspace_size(self, tensors, multiprocessors=0):
        """Bytes of workspace for such tensors on a GPU with so many multiprocessors (0: the GPUs of this process)."""
        size = ctypes.c_size_t()
        check(library().attnWorkspaceSizeFor(self._handle, self._inputs(tensors).array,
                                             integer(multiprocessors, "multiprocessors"), ctypes.byref(size)))
        return size.value

    def launch(self, tensors, workspace=None, stream=None, reuse_metadata=False):
        """Puts the kernel on a stream (an address; None is the default stream; the CPU returns when it is done).

        tensors: all of them, results too. workspace: memory of `workspace_size` bytes, or None for 0 bytes.
        reuse_metadata: KV-tile lists of the last launch with this workspace are taken (`attnLaunchReuseMetadata`).
        """
        pack = Pack(len(self.names))
        self._check_names(tensors, self.names)
        for i, name in enumerate(self.names):
            pack.put(i, shape_of(tensors[name], name), pointer_of(tensors[name], name, written=name in self.results))
        launch = library().attnLaunchReuseMetadata if reuse_metadata else library().attnLaunch
        at = None if workspace is None else pointer_of(workspace, "workspace", written=True)  # which stays alive here
        check(launch(self._handle, pack.array, at, stream))

    def _inputs(self, tensors):
        """The shapes of operands and arrays; results are left as they are."""
        pack = Pack(len(self.names))
        self._check_names(tensors, [name for name in self.names if name not in self.results])
        for i, name in enumerate(self.names):
            if name not in self.results:
                pack.put(i, shape_of(tensors[name], name))
        return pack

    def _check_names(self, tensors, wanted):
        missing = [name for name in wanted if name not in tensors]
        if missing:
            raise TensorError(f"expected tensors {', '.join(wanted)}, got none for: {', '.join(missing)}")
        unknown = [name for name in tensors if name not in self.names]
        if unknown:
            raise TensorError(f"expected tensors {', '.join(self.names)}, got also: {', '.join(unknown)}")
