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
    them and the caller: the caller's tensors, buffers in the workspace, and the launches in their order, each with its
    arguments, its grid, and what it reads and writes. Extents and grids are expressions over named sizes
    (attn-rt/Extent.h), so workspace bytes and result shapes follow from the sizes of a call alone.

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
  let description = "Its element type and extents are those of the op that defines it.";
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
    - C1: the text is that of an extent, as `rt::Extent::str` prints it.
  }];
  let parameters = (ins StringRefParameter<"canonical text">:$text);
  let assemblyFormat = "`<` $text `>`";
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "const ::attn::rt::Extent &":$extent), [{
    return $_get($_ctxt, ::llvm::StringRef(extent.str()));
  }]>];
  let extraClassDeclaration = "::attn::rt::Extent getExtent() const;";
}

class Program_Enum<string name, list<string> cases> : I32Enum<name, "",
    !foreach(i, !range(!size(cases)), I32EnumCase<cases[i], i>)> {
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
      (sums that it adds to, semaphores); `scratch` writes and reads what no other launch looks at, and leaves anything there.
      `write %x rows(i of n)` stores class i of n classes of rows, such as those of short sequences: launches that write
      all n classes write the tensor. `or zero`: where the grid of the launch is empty, the tensor is filled with zeros.
    - `unused %x`: a pointer that the kernel does not look at.
    - `read map %x axes(row, head, batch)`: a tensor map (by value) of these axes, the last axis being its columns; without a
      batch axis, `axes(row, head)`, the kernel's map is `packed`.
    - `stride %x axis i`: the stride of an axis in elements, i64.
    - `size E`: an extent, i32 or i64 as the kernel has it.
    - `blocks`: how many blocks of work the grid has, i32.
    - `counter`: a pointer to a counter that is 0 before the launch and after it.

    Constraints:
    - C1: pointers and maps have an effect, others none; maps are read.
    - C2: `rows(i of n)` and `or zero` only with `write`; i is from 0 to n - 1, n from 2 to 64.
    - C3: a map has 2 or 3 axes, a stride one.
  }];
  let parameters = (ins "::attn::program::ArgumentKind":$kind, "::attn::program::Effect":$effect, "int64_t":$part,
    "int64_t":$parts, "bool":$orZero, ArrayRefParameter<"int64_t">:$axes, "::attn::program::ExtentAttr":$extent);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "::attn::program::ArgumentKind":$kind,
      CArg<"::attn::program::Effect", "::attn::program::Effect::none">:$effect), [{
    return $_get($_ctxt, kind, effect, 0, 1, false, ::llvm::ArrayRef<int64_t>(), ::attn::program::ExtentAttr());
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
    Steps run in their order, each once those before it are done.

    Constraints:
    - C1: it has tensors, sizes, buffers and steps alone, and no block arguments; names of tensors and buffers are distinct.
    - C2: every size that an extent names is `multiprocessors` (of the GPU; on a CPU, threads), an extent of a tensor (`n`, or
      `n + 1`), or a `program.size` before it.
    - C3: a buffer is written before it is read or updated, all classes of its rows.
    - C4: no rows are written twice but by an update.
    - C5: results are written, all classes of their rows; operands and arrays are not.
    - C6: every buffer is read. What a launch writes, updates or has as scratch is one argument of it.
    - C7: kernels of launches exist, with as many arguments, of these types, and the same unit of grid.

    ```mlir
    tile.kernel @split(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %partial: !tile.ptr<f32>, %batch: i32, %splits: i32,
                       %q_row: i64)
        target("sm_80") grid(dense heads 16) config(<q_tile = 128, kv_tile = 64, warps = 4, blocks = 2, splits = 0>) {}
    tile.kernel @merge(%partial: !tile.ptr<f32>, %o: !tile.ptr<bf16>, %splits: i32)
        target("sm_80") grid(dense heads 16) config(<q_tile = 128, kv_tile = 64, warps = 4, blocks = 2>) {}

    program.def @few_queries {
      %q = program.tensor "q" operand : bf16 [batch, seqlen_q, 16, 128] strided(0, 1, 2)
      %k = program.tensor "k" operand : bf16 [batch, seqlen_kv, 16, 128] strided(0, 1, 2)
      %o = program.tensor "o" result : bf16 [batch, seqlen_q, 16, 128] strided(0, 1, 2)
      program.size "splits" = splits(16 * batch * ceil_div(seqlen_q, 128), seqlen_kv, 2 * multiprocessors)
      %partial = program.buffer "partial_o" : f32 [splits, 16, batch, seqlen_q, 128]
      program.launch @split grid(query_tiles, 16 * batch * ceil_div(seqlen_q, 128) * splits)
          (read %q, read %k, write %partial, size batch, size splits, stride %q axis 1)
      program.launch @merge grid(query_tiles, 16 * batch * ceil_div(seqlen_q, 128)) (read %partial, write %o, size splits)
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

class Program_InDef<string mnemonic, list<Trait> traits = []>
    : Program_Op<mnemonic, [HasParent<"DefOp">] # traits>;

def Program_TensorOp : Program_InDef<"tensor", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a tensor that the caller gives";
  let description = [{
    Their order is that of the caller's list. `operand`s and `array`s (of masks and score modifiers) are read, `result`s
    are written. `lead all` stands for any number of dimensions ahead of the extents, the same for all tensors, whose
    product is the size `id_rows`; `lead last` for some of the last of these, or none, with a size of its own, `<name>_rows`.

    `strided(i, ...)`: these axes may have any stride; the others are contiguous.

    ```mlir
    program.def @arrays {
      %q = program.tensor "q" operand : bf16 [total_q, 16, 128] strided(0, 1)
      %ids = program.tensor "ids_q" array : i32 lead all [tokens_q]
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Program_Role:$role, TypeAttr:$element,
    DefaultValuedAttr<Program_Lead, "Lead::none">:$lead,
    Program_ExtentArray:$extents, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strided);
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
      %ids = program.tensor "ids_q" array : i32 lead all [tokens_q]
      program.size "batch" = 64 * id_rows
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Program_Extent:$value);
  let assemblyFormat = "$name `=` custom<Extent>($value) attr-dict";
  let hasVerifier = 1;
}

def Program_BufferOp : Program_InDef<"buffer", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "memory of the workspace";
  let description = [{
    Contiguous, and aligned to 16 bytes. Before the first launch that writes it, it holds anything. `place` (set by
    `program-place-buffers`, which looks at no earlier one; else it is not checked): buffers of one place lie over each other.

    An example is that of `program.def`.
  }];
  let arguments = (ins StrAttr:$name, TypeAttr:$element, Program_ExtentArray:$extents, OptionalAttr<I64Attr>:$place);
  let results = (outs Program_TensorValue:$tensor);
  let assemblyFormat = "$name `:` $element custom<Extents>($extents) (`place` $place^)? attr-dict";
  let hasVerifier = 1;
}

def Program_LaunchOp : Program_InDef<"launch"> {
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

def Program_ClearOp : Program_InDef<"clear"> {
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

#endif // PROGRAM_OPS
