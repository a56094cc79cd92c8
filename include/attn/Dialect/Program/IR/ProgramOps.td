// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PROGRAM_OPS
#define PROGRAM_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"

def Program_Dialect : Dialect {
  let name = "program";
  let cppNamespace = "::attn::program";
  let summary = "which kernels run, over which memory";
  let description = [{
    A forward or backward pass is one or several kernels (`tile.kernel`). The `program` dialect says what lies between
    them and the caller: the caller's tensors, buffers in the workspace, and the steps in their order. A launch has its
    arguments, its grid, and what it reads and writes. An exchange moves rows between the ranks of a context-parallel
    run, which all have the same program. Extents and grids are expressions over named sizes (attn-rt/Extent.h), so
    workspace bytes and result shapes follow from the sizes of a call alone.

    A program becomes plain data (`rt::Program`, attn-rt/Program.h), from which the runtime binds and launches it.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Program_Op<string mnemonic, list<Trait> traits = []> : Op<Program_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

def Program_Value : TypeDef<Program_Dialect, "Value"> {
  let mnemonic = "value";
  let summary = "memory that launches read and write: a tensor of the caller, or a buffer of the workspace";
  let description = [{
    Its element type and extents are those of the op that defines it. A value that a `program.repeat` carries is one of
    several tensors and buffers, all of the same element type and extents.
  }];
}
def Program_TensorValue : Type<Program_Value.predicate, "memory of a program", "::attn::program::ValueType">,
                          BuildableType<"$_builder.getType<::attn::program::ValueType>()">;

def Program_Extent : AttrDef<Program_Dialect, "Extent"> {
  let mnemonic = "extent";
  let summary = "a number that follows from sizes";
  let description = [{
    The canonical text of an `rt::Extent`. In ops it stands without quotes.

    Example: `#program.extent<"16 * ceil_div(total_q, 128)">`.

    Constraints:
    - C1: the text is that of an extent, as `rt::Extent::str` prints it; no divisor is a number below 1.
  }];
  let parameters = (ins StringRefParameter<"canonical text">:$text);
  let assemblyFormat = "`<` $text `>`";
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "const ::attn::rt::Extent &":$extent), [{
    return $_get($_ctxt, ::llvm::StringRef(extent.str()));
  }]>];
  let extraClassDeclaration = "::attn::rt::Extent getExtent() const;";
}

class Program_Enum<string name, list<string> cases>
    : I32Enum<name, "", !foreach(i, !range(!size(cases)), I32EnumCase<cases[i], i>)> {
  let cppNamespace = "::attn::program";
}
def Program_RoleEnum : Program_Enum<"Role", ["operand", "result", "array"]>;
def Program_Role : EnumAttr<Program_Dialect, Program_RoleEnum, "role">;
def Program_LeadEnum : Program_Enum<"Lead", ["none", "all", "last"]>;
def Program_Lead : EnumAttr<Program_Dialect, Program_LeadEnum, "lead">;
def Program_GridUnitEnum : Program_Enum<"GridUnit", ["query_tiles", "kv_tiles", "sequence_tiles", "clusters"]>;
def Program_GridUnit : EnumAttr<Program_Dialect, Program_GridUnitEnum, "grid_unit">;
def Program_ArgumentKind : Program_Enum<"ArgumentKind", ["pointer", "map", "stride", "size", "blocks", "counter"]>;
def Program_Effect : Program_Enum<"Effect", ["none", "read", "write", "update", "scratch", "unused"]>;

def Program_Argument : AttrDef<Program_Dialect, "Argument"> {
  let mnemonic = "argument";
  let summary = "an argument of a launch";
  let description = [{
    - `read %x`, `write %x`, `update %x`, `scratch %x`: a pointer to the tensor, and what the launch does there. `write`
      stores every element (what was there is not read); `update` reads and writes elements that have been written
      (sums that it adds to, semaphores); `scratch` writes and reads what no other launch looks at, and leaves anything
      there. `write %x rows(i of n)` stores class i of n classes of rows, such as those of short sequences: launches
      that write all n classes write the tensor. i is a number, or the variable of a `program.repeat` around the launch
      that runs n times. `or zero`: where the grid of the launch is empty, the tensor is filled with zeros.
    - `unused %x`: a pointer that the kernel does not look at.
    - `read map %x axes(row, head, batch)`: a tensor map (by value) of these axes, the last axis being its columns;
      without a batch axis, `axes(row, head)`, the kernel's map is `packed`.
    - `stride %x axis i`: the stride of an axis in elements, i64.
    - `size E`: an extent, i32 or i64 as the kernel has it.
    - `blocks`: how many blocks of work the grid has, i32.
    - `counter`: a pointer to a counter that is 0 before the launch and after it.

    Constraints:
    - C1: pointers and maps have an effect, others none; maps are read.
    - C2: `rows(i of n)` and `or zero` only with `write`; numbers i are from 0 to n - 1, n then from 2 to 64.
    - C3: a map has 2 or 3 axes, a stride one.
  }];
  let parameters = (ins "::attn::program::ArgumentKind":$kind, "::attn::program::Effect":$effect,
      "::attn::program::ExtentAttr":$part, "::attn::program::ExtentAttr":$parts, "bool":$orZero,
      ArrayRefParameter<"int64_t">:$axes, "::attn::program::ExtentAttr":$extent);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "::attn::program::ArgumentKind":$kind,
                                  CArg<"::attn::program::Effect", "::attn::program::Effect::none">:$effect),
                              [{
    return get($_ctxt, kind, effect, 0, 1, false, {}, ::attn::program::ExtentAttr());
  }]>,
                  AttrBuilder<(ins "::attn::program::ArgumentKind":$kind, "::attn::program::Effect":$effect,
                                  "int64_t":$part, "int64_t":$parts, "bool":$orZero, "::llvm::ArrayRef<int64_t>":$axes,
                                  "::attn::program::ExtentAttr":$extent),
                              [{
    auto number = [&](int64_t n) {
      using ::attn::program::ExtentAttr;
      return parts == 1 ? ExtentAttr() : ExtentAttr::get($_ctxt, ::attn::rt::Extent(n));
    };
    return $_get($_ctxt, kind, effect, number(part), number(parts), orZero, axes, extent);
  }]>];
  let extraClassDeclaration = [{
    /// Does it name a tensor?
    bool hasTensor() const {
      return getKind() == ArgumentKind::pointer || getKind() == ArgumentKind::map || getKind() == ArgumentKind::stride;
    }
    bool reads() const { return getEffect() == Effect::read || getEffect() == Effect::update; }
    bool writes() const {
      return getEffect() == Effect::write || getEffect() == Effect::update || getEffect() == Effect::scratch;
    }
  }];
}
def Program_ArgumentArray : TypedArrayAttrBase<Program_Argument, "arguments of a launch">;
def Program_ExtentArray : TypedArrayAttrBase<Program_Extent, "extents">;

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

def Program_DefOp : Program_Op<"def", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator,
                                       DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a program: tensors, buffers, and what runs over them";
  let description = [{
    Steps run in their order, each once those before it are done; exchanges run beside the steps up to their `wait`.

    Constraints:
    - C1: it has tensors, tables, sizes, buffers and steps alone, and no block arguments; names are identifiers
      (letters, digits and `_`, a digit not first); those of tensors and buffers are distinct, and so are those of sizes
      (of tensors, or computed), tables and variables of repeats.
    - C2: every size that an extent names is `multiprocessors` (of the GPU; on a CPU, threads), `rank` or `ranks` (0 and
      1 where there is one), an extent of a tensor (`n`, `n + 1` or `max(n, 1)`), a `program.size` before it (a tensor
      that names one has to have that extent), or the variable of a `program.repeat` around it, which extents of buffers
      do not name; every table is a `program.table` before it. Extents and lengths of tables are no numbers below 0.
    - C3: a buffer is written before it is read or updated, all classes of its rows, on every path: a `program.repeat`
      may run no time, unless its count is a number from 1 on, and a `program.when` may not run. Where the iterations of
      a repeat write a class each, every iteration writes its own, the first included.
    - C4: no rows are written twice but by an update. What is received may be written once it has been read, and a
      buffer of a body is new in each iteration. Until all rows have been written and read, they are classes `rows(i of
      n)` of launches or blocks `rows(i of n)` of exchanges, not both, and of one n.
    - C5: results are written, all classes of their rows; operands and arrays are not. A grid is no number below 1. The
      verifier takes for granted that launches of all n classes write all rows, that what a launch writes (without `or
      zero`) has no rows where its grid has no blocks, and that nobody looks at rows of a block beyond those that are
      received.
    - C6: every buffer is read. What a launch writes, updates or has as scratch is one argument of it.
    - C7: kernels of launches exist, with as many arguments, of these types, and the same unit of grid.
    - C8: until the `wait` of an exchange, no step reads or writes its destination, or writes its source.
    - C9: an exchange has a `wait` before the end of the program, and of the body that has one of its buffers; a `wait`
      has an exchange before it.
    - C10: what was received is read before rows are received there again, or written.
    - C11: all ranks run the same exchanges. A size is local if it is `rank`, `multiprocessors`, an entry of a table, or
      follows from one. An exchange is in no `program.when`. Its offset, the counts of repeats around it and all extents
      of its source and destination are not local; the leading extent may be, with `rows(send A, receive B)`. A and B
      are equal if they use no table; `rank` and `multiprocessors` appear in them only as a table's index. (Sizes of
      tensors are taken to be equal on all ranks, and tables to have the rows of a message on both of its ends: both
      come from lengths that all ranks know.)
    - C12: in `rows(i of n)` i is a number, or the variable of a repeat around it whose count is n. Then n is known to
      be 1 or more, as a number and `ranks` are, or an extent of the tensor to be 0 where n is, as `total` is where
      `ceil_div(total, 64)` is, and `(ranks - 1) * rows` where `ranks - 1` is.
    - C13: a repeat has at most 256 different states (which memory each value is, and what is written), and a program is
      checked in at most 2^18 steps.

    ```mlir
    tile.kernel @split(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %partial: !tile.ptr<f32>, %batch: i32, %splits: i32,
                       %q_row: i64)
        target("sm_80") grid(dense heads 16)
        schedule(#tile.split_kv<of = #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>>) {}
    tile.kernel @merge(%partial: !tile.ptr<f32>, %o: !tile.ptr<bf16>, %splits: i32)
        target("sm_80") grid(dense heads 16)
        schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}

    program.def @few_queries {
      %q = program.tensor "q" operand : bf16 [batch, seqlen_q, 16, 128] strided(0, 1, 2)
      %k = program.tensor "k" operand : bf16 [batch, seqlen_kv, 16, 128] strided(0, 1, 2)
      %o = program.tensor "o" result : bf16 [batch, seqlen_q, 16, 128] strided(0, 1, 2)
      program.size "splits" = splits(16 * batch * ceil_div(seqlen_q, 128), seqlen_kv, 2 * multiprocessors)
      %partial = program.buffer "partial_o" : f32 [splits, 16, batch, seqlen_q, 128]
      program.launch @split grid(query_tiles, 16 * batch * ceil_div(seqlen_q, 128) * splits)
          (read %q, read %k, write %partial, size batch, size splits, stride %q axis 1)
      program.launch @merge grid(query_tiles, 16 * batch * ceil_div(seqlen_q, 128)) (read %partial, write %o,
          size splits)
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

class Program_InDef<string mnemonic, list<Trait> traits = []> : Program_Op<mnemonic, [HasParent<"DefOp">]#traits>;
class Program_InBody<string mnemonic, list<Trait> traits = []>
    : Program_Op<mnemonic, [ParentOneOf<["DefOp", "RepeatOp", "WhenOp"]>]#traits>;

def Program_TensorOp : Program_InDef<"tensor", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a tensor that the caller gives";
  let description = [{
    Their order is that of the caller's list. `operand`s and `array`s (of masks and score modifiers) are read, `result`s
    are written. `leading_dims all` stands for any number of dimensions ahead of the extents, the same for all tensors,
    whose product is the size `id_rows`; `leading_dims last` for some of the last of these, or none, with a size of its
    own, `<name>_rows`.

    `strided(i, ...)`: these axes may have any stride; the others are contiguous.

    ```mlir
    program.def @arrays {
      %q = program.tensor "q" operand : bf16 [total_q, 16, 128] strided(0, 1)
      %ids = program.tensor "ids_q" array : i32 leading_dims all [tokens_q]
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Program_Role:$role, TypeAttr:$element,
      DefaultValuedAttr<Program_Lead, "Lead::none">:$lead, Program_ExtentArray:$extents,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strided);
  let results = (outs Program_TensorValue:$tensor);
  let assemblyFormat = [{
    $name custom<Role>($role) `:` $element custom<Shape>($lead, $extents, $strided) attr-dict
  }];
  let hasVerifier = 1;
}

def Program_SizeOp : Program_InDef<"size"> {
  let summary = "a size that follows from others";
  let description = [{
    ```mlir
    program.def @by_ids {
      %ids = program.tensor "ids_q" array : i32 leading_dims all [tokens_q]
      program.size "batch" = 64 * id_rows
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Program_Extent:$value);
  let assemblyFormat = "$name `=` custom<Extent>($value) attr-dict";
  let hasVerifier = 1;
}

def Program_TableOp : Program_InDef<"table"> {
  let summary = "a list of numbers on the host, which the caller gives";
  let description = [{
    Such as how many rows each rank has, made from lengths that all ranks know. Extents have its numbers by `name[E]`,
    and 0 where E is out of range.

    ```mlir
    program.def @uneven {
      program.table "rows" [ranks]
      program.size "most" = max(rows[0], rows[rank])
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Program_Extent:$length);
  let assemblyFormat = "$name ` ` `[` custom<Extent>($length) `]` attr-dict";
  let hasVerifier = 1;
}

def Program_BufferOp : Program_InBody<"buffer", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "memory of the workspace";
  let description = [{
    Contiguous, and aligned to 16 bytes. Before the first launch that writes it, it holds anything; one of a body is new
    in each iteration. `place` (set by `program-place-buffers`, which looks at no earlier one; else it is not checked):
    buffers of one place lie over each other.

    An example is that of `program.def`.
  }];
  let arguments = (ins StrAttr:$name, TypeAttr:$element, Program_ExtentArray:$extents, OptionalAttr<I64Attr>:$place);
  let results = (outs Program_TensorValue:$tensor);
  let assemblyFormat = "$name `:` $element custom<Extents>($extents) (`place` $place^)? attr-dict";
  let hasVerifier = 1;
}

def Program_LaunchOp : Program_InBody<"launch"> {
  let summary = "a launch of a kernel";
  let description = [{
    `grid(unit, E)`: E blocks of work, each a tile of queries and a head, a tile of keys and a kv head, a tile of a
    sequence by its number, or a cluster. A persistent kernel starts fewer CTAs, which share them. A grid without
    blocks is not launched.

    An example is that of `program.def`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Program_GridUnit:$unit, Program_Extent:$blocks,
      Variadic<Program_TensorValue>:$tensors, Program_ArgumentArray:$arguments);
  let assemblyFormat = [{
    $kernel custom<Grid>($unit, $blocks) custom<Arguments>($tensors, $arguments) attr-dict
  }];
  let hasVerifier = 1;
}

def Program_ClearOp : Program_InBody<"clear"> {
  let summary = "fills a buffer or result with zeros";
  let description = [{
    ```mlir
    program.def @nothing {
      %o = program.tensor "o" result : bf16 [total_q, 16, 128] strided(0, 1)
      program.clear %o
    }
    ```
  }];
  let arguments = (ins Program_TensorValue:$tensor);
  let assemblyFormat = "$tensor attr-dict";
}

def Program_ExchangeOp : Program_InBody<"exchange"> {
  let summary = "sends rows to one rank and receives rows from another";
  let description = [{
    Every rank sends `source` to rank `(rank + offset) mod ranks` and receives from rank `(rank - offset) mod ranks`
    into `destination`: sends and receives match, so none waits for ever. It starts once the steps before it that write
    its source or touch its destination are done, and runs beside the steps up to the `program.wait` of its destination.

    `rows(i of n)` of the destination: block i of n equal blocks of its leading axis receives. `rows(send A, receive
    B)`: only the first A rows are sent, and the first B received, which is what the other ranks send here.

    An example is that of `program.repeat`.

    Constraints:
    - C1: element types are equal, and extents: the leading one of the destination is n times that of the source.
      Neither has leading dimensions, and the destination has no strided axes. (Those of a source have the strides of
      contiguous memory in each call: `rt::ProgramCode::bind` refuses others.)
    - C2: the offset is not the number 0, and source and destination differ.
    - C3: rows that are sent and rows that are received are said together, no number of them is below 1, and none
      differs from the rows of a block by a number (`rows + 1`).
  }];
  let arguments = (ins Program_TensorValue:$destination, Program_TensorValue:$source, Program_Extent:$offset,
      OptionalAttr<Program_Extent>:$part, OptionalAttr<Program_Extent>:$parts, OptionalAttr<Program_Extent>:$sent,
      OptionalAttr<Program_Extent>:$received);
  let assemblyFormat = [{
    custom<Exchange>($destination, $part, $parts, $source, $offset, $sent, $received) attr-dict
  }];
  let hasVerifier = 1;
}

def Program_WaitOp : Program_InBody<"wait"> {
  let summary = "waits for all exchanges into a buffer or result";
  let description = "An example is that of `program.repeat`.";
  let arguments = (ins Program_TensorValue:$destination);
  let assemblyFormat = "$destination attr-dict";
}

def Program_RepeatOp
    : Program_InBody<"repeat", [SingleBlockImplicitTerminator<"YieldOp">,
                                DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "runs steps several times";
  let description = [{
    The size of this name is 0, 1, ... in its steps, which run max(count, 0) times. A carried value is the initial one
    in the first iteration, and then what the one before yielded; results are what the last iteration yielded.

    In a ring each rank attends to its own keys, passes them on, and attends to those that it receives. Two buffers take
    turns; the caller's keys are never written.

    ```mlir
    tile.kernel @attend(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %acc: !tile.ptr<f32>)
        target("sm_80") grid(dense heads 16)
        schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
    tile.kernel @store(%acc: !tile.ptr<f32>, %o: !tile.ptr<bf16>)
        target("sm_80") grid(dense heads 16)
        schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}

    program.def @ring {
      %q = program.tensor "q" operand : bf16 [rows, 16, 128]
      %k = program.tensor "k" operand : bf16 [rows, 16, 128]
      %o = program.tensor "o" result : bf16 [rows, 16, 128]
      program.table "visits" [ranks]
      %acc = program.buffer "acc" : f32 [rows, 16, 128]
      %slot0 = program.buffer "slot0" : bf16 [rows, 16, 128]
      %slot1 = program.buffer "slot1" : bf16 [rows, 16, 128]
      program.launch @attend grid(query_tiles, 16 * ceil_div(rows, 128)) (read %q, read %k, write %acc)
      %last:3 = program.repeat "step" = ranks - 1 carry(%cur = %k, %next = %slot0, %spare = %slot1) {
        program.exchange %next, %cur offset 1
        program.wait %next
        program.when visits[step + 1] {
          program.launch @attend grid(query_tiles, 16 * ceil_div(rows, 128)) (read %q, read %next, update %acc)
        }
        program.yield %next, %spare, %next
      }
      program.launch @store grid(query_tiles, 16 * ceil_div(rows, 128)) (read %acc, write %o)
    }
    ```

    Constraints:
    - C1: as many values are carried as the body has arguments and names for them, yields, and the op has results.
    - C2: a carried value, and what is yielded for it, have the same element type and extents, and no leading
      dimensions.
    - C3: what is yielded is defined outside of the body, or carried; no buffer of the body comes there through a
      repeat.
  }];
  let arguments = (ins StrAttr:$name, Program_Extent:$count, Variadic<Program_TensorValue>:$initial,
      StrArrayAttr:$names);
  let results = (outs Variadic<Program_TensorValue>:$last);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Program_YieldOp : Program_Op<"yield", [Terminator, HasParent<"RepeatOp">]> {
  let summary = "what an iteration gives to the next";
  let description = "An example is that of `program.repeat`.";
  let arguments = (ins Variadic<Program_TensorValue>:$next);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "$next attr-dict";
}

def Program_WhenOp : Program_InBody<"when", [SingleBlock, NoTerminator]> {
  let summary = "runs steps where an extent is not 0";
  let description = [{
    An example is that of `program.repeat`.

    Constraints:
    - C1: it has no block arguments.
  }];
  let arguments = (ins Program_Extent:$condition);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "custom<Extent>($condition) $body attr-dict";
  let hasVerifier = 1;
}

#endif // PROGRAM_OPS
