// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LAYOUTS
#define ATTN_LAYOUTS

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Attn_LayoutKind : I32EnumAttr<"LayoutKind", "how rows of sequences lie in memory", [
    I32EnumAttrCase<"bshd", 0>, I32EnumAttrCase<"sbhd", 1>, I32EnumAttrCase<"bhsd", 2>,
    I32EnumAttrCase<"thd", 3>]> {
  let cppNamespace = "::attn";
}

def Attn_LayoutAttr : AttrDef<Attn_Dialect, "Layout"> {
  let mnemonic = "layout";
  let summary = "where the rows of a tensor's sequences lie";
  let description = [{
    Dense layouts (`bshd`, `sbhd`, `bhsd`) hold `batch` sequences of one length;
    the name is the order of the axes batch, sequence, head, head dim. The three
    differ only in the strides of a launch, never in the kernel, so packed QKV
    tensors and other views are strides too. The last axis has stride 1.

    `thd` packs sequences of different lengths along one token axis; tensors are
    [tokens, heads, dim]. `cu_seqlens_q` and `cu_seqlens_kv` (int32, batch + 1)
    are the prefix sums of the lengths. With `padded`, sequence b starts at token
    `padded_offsets_q[b]` (int32, batch + 1; likewise `_kv`) and its slot ends at
    `padded_offsets_q[b + 1]`: padding may stand between sequences and after the
    last one, and sequences may be empty. Keys and values are only read: their
    sequences may come in any order. Padding rows of outputs are written as
    0 (LSE: -inf). Lengths are run-time values and never part of a compile key.

    Constraints:
    - C1: `padded` goes with `thd` only.

    ```mlir
    #attn.layout<bshd>
    #attn.layout<thd>
    #attn.layout<thd padded>
    ```
  }];
  let parameters = (ins "::attn::LayoutKind":$kind, "bool":$padded);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isPacked() const { return getKind() == LayoutKind::thd; }
  }];
}

#endif // ATTN_LAYOUTS
