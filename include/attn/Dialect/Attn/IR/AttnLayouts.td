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

def Attn_Packing
    : I32EnumAttr<"Packing", "what lies between the rows of packed sequences",
                  [I32EnumAttrCase<"contiguous", 0>, I32EnumAttrCase<"padded", 1>, I32EnumAttrCase<"pieces", 2>]> {
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

    With `pieces`, tensors hold parts of sequences, as a rank of context parallelism does. A *piece* is rows that are
    consecutive in the tensor and have consecutive positions of one sequence. `cu_seqlens_q` are still the prefix sums
    of the lengths of whole sequences, and masks, score modifiers and dropout are those of positions in whole sequences.
    A query attends to the keys of its sequence that some piece has. Arrays (int32; likewise `_kv`), for P pieces:

    - `pieces_q` [5, P + 1]. Line 0: the first row of each piece; it ascends, with room for each piece, and its last
      entry is where the last piece's room ends. Line 1: the prefix sums of the numbers of rows of pieces. Line 2: the
      position of the first row. Line 3: the sequence. Line 4: the numbers of all pieces, those of sequence 0 first, and
      so on. The last entries of lines 2 to 4 are 0.
    - `first_pieces_q` [batch + 1]: where line 4 has the first piece of each sequence.
    - `positions_kv` [keys of all whole sequences], with block maps only: the positions of these keys.

    Each position is in at most one piece. Rows in no piece are padding. The order of a sequence's pieces on line 4 is
    the order in which kernels visit them, and changes results by rounding only.

    Arrays of a mask with an entry for each row or key are indexed as q and k are. Of packed layouts they
    have an entry for each token of the buffer, padding included, and entry t is that of token t. Entries
    of padding may be anything. With `pieces` they have an entry for each position of the whole sequences,
    those of sequence b from `cu_seqlens[b]` on.

    Strides are in elements. An axis of at most one entry may have any. The last axis of q, k, v, o and their
    gradients, and of what these continue (`before_o`, `before_dq`), has stride 1; their other strides are multiples of
    8, negative ones included. The rows of lse, dlse and of softmax states have stride 1; their heads and sequences may
    have any stride.
    A stride of an input may be 0, that of a result may not. On Hopper, strides of q, k, v and do
    are from 0 to below 2^39. All other arrays are contiguous.

    Inputs may overlap or be the same memory. No result may overlap an input, another result or the
    workspace. A launch refuses a result that begins where another tensor does; other overlaps
    are not looked for, since they may be views of one array, and apart.

    Constraints:
    - C1: `padded` and `pieces` go with `thd` only.

    ```mlir
    #attn.layout<bshd>
    #attn.layout<thd>
    #attn.layout<thd padded>
    #attn.layout<thd pieces>
    ```
  }];
  let parameters = (ins "::attn::LayoutKind":$kind, "::attn::Packing":$packing);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isPacked() const { return getKind() == LayoutKind::thd; }
    bool getPadded() const { return getPacking() == Packing::padded; }
    bool hasPieces() const { return getPacking() == Packing::pieces; }
    /// The keywords: `thd padded`.
    std::string getKeywords() const;
    /// The layout of keywords. Emits an error if there is none, which begins with `expected`.
    static ::mlir::FailureOr<LayoutAttr> parseKeywords(::mlir::AsmParser &parser);
  }];
}

#endif // ATTN_LAYOUTS
