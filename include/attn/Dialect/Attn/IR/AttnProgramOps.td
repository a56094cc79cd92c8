// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several computations over shared tensors as one program.
#ifndef ATTN_PROGRAM_OPS
#define ATTN_PROGRAM_OPS

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Attn_Tensor : TypeDef<Attn_Dialect, "ProgramTensor"> {
  let mnemonic = "tensor";
  let summary = "a tensor of a program";
  let description = "Its dtype and extents are those of the calls that read and write it.";
}

def Attn_ProgramOp
    : Op<Attn_Dialect, "program",
         [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "several computations over shared tensors";
  let description = [{
    Calls run in their order, as one program: one launch of the C API, one workspace in which tensors between calls lie
    over each other where their lives do not meet, one compilation, and one graph where a caller captures it.

    A tensor of the caller has the dtype and the extents that the first call that reads it gives it. What other calls
    say of it has to agree: sizes of different names become one.

    Native Sparse Attention (Yuan et al. 2025) with lists for tiles of 64 queries:

    ```mlir
    attn.compress @pool mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)
    attn.problem @compressed mask(#attn.pooled<length = 32, stride = 16>) layout(thd) heads(64, 4) dims(128)
      dtype(bf16)
    attn.problem @window mask(#attn.band<left = 511, right = 0>) layout(thd) heads(64, 4) dims(128) dtype(bf16)
      outputs(o)
    attn.combine @gated sigmoid branches(2) layout(thd) heads(64) dim(128) dtype(bf16)

    attn.program @two_branches {
      %q = attn.operand "q"
      %k = attn.operand "k"
      %v = attn.operand "v"
      %gates = attn.operand "gates"
      %cu = attn.operand "cu_seqlens"
      %ck, %cv, %cu_c = attn.call @pool(k = %k, v = %v, cu_seqlens = %cu)
          -> (compressed_k, compressed_v, cu_seqlens_compressed)
      %o_c, %lse_c = attn.call @compressed(q = %q, k = %ck, v = %cv, cu_seqlens_q = %cu, cu_seqlens_kv = %cu_c)
          -> (o, lse)
      %o_w = attn.call @window(q = %q, k = %k, v = %v, cu_seqlens_q = %cu, cu_seqlens_kv = %cu) -> (o)
      %o = attn.call @gated(o_0 = %o_c, o_1 = %o_w, gates = %gates) -> (o)
      attn.result "o" = %o
    }
    ```

    Constraints:
    - C1: it has operands, calls and results alone, no block arguments, and at least one result.
    - C2: its name is an identifier; those of operands and results are identifiers and distinct.
    - C3: a result is what a call gave, and is given once.
    - C4: the tensors that a call reads have the dtypes and extents that its callee expects. (Said when the program is
      compiled.)
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Attn_OperandOp
    : Op<Attn_Dialect,
         "operand", [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a tensor that the caller of a program gives";
  let description = "An example is that of `attn.program`.";
  let arguments = (ins StrAttr:$name);
  let results = (outs Attn_Tensor:$tensor);
  let assemblyFormat = "$name attr-dict";
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name), [{
    build($_builder, $_state, $_builder.getType<::attn::ProgramTensorType>(), name);
  }]>];
}

def Attn_CallOp
    : Op<Attn_Dialect,
         "call", [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a computation as a step of a program";
  let description = [{
    The callee is an `attn.problem`, `attn.backward`, `attn.gather_rows`, `attn.compress`, `attn.select`,
    `attn.combine`, `attn.add`, or the backward op of one of these, of the same module. Each of its operands and arrays
    is given by name, and results that are wanted are named.

    Constraints:
    - C1: as many names as operands and results.
    - C2: the callee is an op of this kind, and has tensors of these names; each operand is given, once.

    An example is that of `attn.program`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Attn_Tensor>:$tensors, StrArrayAttr:$operand_names,
      StrArrayAttr:$result_names);
  let results = (outs Variadic<Attn_Tensor>:$results);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Attn_ResultOp : Op<Attn_Dialect, "result", [HasParent<"ProgramOp">]> {
  let summary = "a result of a program";
  let description = "An example is that of `attn.program`.";
  let arguments = (ins StrAttr:$name, Attn_Tensor:$tensor);
  let assemblyFormat = "$name `=` $tensor attr-dict";
}

#endif // ATTN_PROGRAM_OPS
