// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LAYOUTS
#define ATTN_LAYOUTS

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Attn_LayoutKind : I32EnumAttr<"LayoutKind", "how rows of sequences lie in memory",
                                  [I32EnumAttrCase<"bshd", 0>, I32EnumAttrCase<"sbhd", 1>, I32EnumAttrCase<"bhsd", 2>,
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
    tensors and other views are strides too.

    `thd` packs sequences of different lengths along one token axis; tensors are
    [tokens, heads, dim]. `cu_seqlens_q` and `cu_seqlens_kv` (int32, batch + 1)
    are the prefix sums of the lengths. With `padded`, sequence b starts at token
    `padded_offsets_q[b]` (int32, batch + 1; likewise `_kv`) and its slot ends at
    `padded_offsets_q[b + 1]`: padding may stand between sequences and after the
    last one, and sequences may be empty. Padding rows of outputs are written as
    0 (LSE: -inf). Lengths are run-time values and never part of a compile key.

    `cu_seqlens` begins at 0 and ascends, and its last entry is at most the number of tokens of the
    buffer. Without `padded`, tokens behind the last entry are padding: they get O = 0 and
    LSE = -inf. `padded_offsets_q` ascends, with slots that hold their sequences. Keys and values are
    only read in a forward pass: their sequences may come in any order, and their slots may overlap
    or be the same. A backward pass writes dk and dv, so `padded_offsets_kv` has to ascend for it as
    `padded_offsets_q` does. Other entries are an error on the CPU, and on a GPU with
    `ATTN_CHECK_ARRAYS=1`; a GPU's result is undefined without.

    Arrays of a mask with an entry for each row or key are indexed as q and k are. Of packed layouts they
    have an entry for each token of the buffer, padding included, and entry t is that of token t. Entries
    of padding may be anything.

    Strides are in elements. An axis of at most one entry may have any. The last axis of q, k, v, o and their
    gradients has stride 1; their other strides are multiples of 8, negative ones included. The
    rows of lse and dlse have stride 1; their heads and sequences may have any stride.
    A stride of an input may be 0, that of a result may not. On Hopper, strides of q, k, v and do
    are from 0 to below 2^39. All other arrays are contiguous.

    Inputs may overlap or be the same memory. No result may overlap an input, another result or the
    workspace. A launch refuses a result that begins where another tensor does; other overlaps
    are not looked for, since they may be views of one array, and apart.

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
