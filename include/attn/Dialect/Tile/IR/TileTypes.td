// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TILE_TYPES
#define TILE_TYPES

include "attn/Dialect/Tile/IR/TileDialect.td"
include "attn/Dialect/Tile/IR/TilePlaceInterface.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Tile_Type<string name, string mnem, list<Trait> traits = []> : TypeDef<Tile_Dialect, name, traits> {
  let mnemonic = mnem;
}
class Tile_Place<string name, string mnem> : Tile_Type<name, mnem, [PlaceTypeInterface]>;

def Tile_Ptr : Tile_Type<"Ptr", "ptr"> {
  let summary = "a pointer to elements in global memory";
  let description = [{
    Constraints:
    - C1: elements are bf16, f16, f32 or i32.

    Example: `!tile.ptr<bf16>`, `!tile.ptr<i32>`.
  }];
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
  let genVerifyDecl = 1;
}

/// To float32, such as LSE.
def Tile_FloatPtr
    : Type<And<[Tile_Ptr.predicate, CPred<"::llvm::cast<::attn::tile::PtrType>($_self).getElement().isF32()">]>,
           "pointer to f32", "::attn::tile::PtrType">,
      BuildableType<"::attn::tile::PtrType::get($_builder.getContext(), $_builder.getF32Type())">;

/// To int32, such as lengths and offsets.
def Tile_IntPtr
    : Type<And<[Tile_Ptr.predicate, CPred<"::llvm::cast<::attn::tile::PtrType>($_self).getElement().isInteger(32)">]>,
           "pointer to i32", "::attn::tile::PtrType">,
      BuildableType<"::attn::tile::PtrType::get($_builder.getContext(), $_builder.getI32Type())">;

def Tile_Shared : Tile_Place<"Shared", "shared"> {
  let summary = "a place: a tile in shared memory";
  let description = [{
    rows x cols elements; `pitch` is the distance of rows in elements, chosen so that the eight rows that ldmatrix
    reads fall into different banks. A `swizzled` tile has the layout that TMA writes and WGMMA reads: chunks of 64
    columns one after the other, a row of a chunk in 128 bytes, its 16-byte units permuted by the row's number (PTX
    ISA, "Swizzling modes", 128B).

    Constraints:
    - C1: rows and cols are positive; cols is a multiple of 16; pitch >= cols; rows of a swizzled tile, which has no
      pitch, are a multiple of 16.
    - C2: elements are bf16, f16 or f32, and not f32 if swizzled.

    Example: `!tile.shared<64x128xbf16, 136>`, `!tile.shared<128x128xbf16, swizzled>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$element, "int64_t":$pitch);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Stands for the pitch of a swizzled tile.
    static constexpr int64_t swizzled = 0;
    bool isSwizzled() const { return getPitch() == swizzled; }
    int64_t getSharedBytes() const { return isSwizzled() ? (getCols() + 63) / 64 * getRows() * 128
        : getRows() * getPitch() * getElement().getIntOrFloatBitWidth() / 8; }
    int64_t getSharedAlignment() const { return isSwizzled() ? 1024 : 128; }
  }];
}

def Tile_TensorMap : Tile_Type<"TensorMap", "tensor_map"> {
  let summary = "a tensor map: the TMA descriptor of a tensor in global memory";
  let description = [{
    The tensor has the dimensions (column, row, head, batch). The launcher makes the map from its address and strides.
    One copy loads a box of `rows` rows and 64 columns of one head, or of `heads` heads whose rows alternate
    (`!tile.pairs`). Elements out of bounds read as 0. A `packed` tensor has no batch; each copy says how many rows of
    a sequence are left, and rows beyond them read as 0, too. With `stride` s, a box has every s-th row of the tensor
    from its first one on, and spans rows * s of them. Only kernel arguments have this type. (CUDA driver API,
    `cuTensorMapEncodeTiled`, where it is an element stride; attn-rt/TensorMap.h)

    Constraints:
    - C1: rows, or rows * heads, is from 16 to 256, elements are bf16 or f16.
    - C2: the stride is from 1 to 8, rows * stride is at most 256, and a map of several heads has stride 1.

    Example: `!tile.tensor_map<128xbf16>`, `!tile.tensor_map<16x4xbf16, packed>`, `!tile.tensor_map<64xbf16, stride 4>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$heads, "::mlir::Type":$element, "bool":$packed,
      DefaultValuedParameter<"int64_t", "1">:$stride);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{ bool isPacked() const { return getPacked(); } }];
}

def Tile_Pairs : Tile_Type<"Pairs", "pairs"> {
  let summary = "a position or a stride of rows that are pairs of a query and a head";
  let description = [{
    Query heads of a kv head may share a tile (`pack_heads` of a schedule). Row r of the tile is then query r / heads
    and head r % heads, counted from the tile's first. An i32 that gives the first row of a tile becomes two i32, of
    the query and the head; an i64 that gives the stride of rows becomes two i64. Ops take either form; in their
    syntax `heads 4` follows an operand that is such a pair.

    Masks and score modifiers get queries and heads, so that only this type depends on the order of rows.

    Constraints:
    - C1: heads is from 2 to 256, the number i32 or i64.

    Example: `!tile.pairs<4, i32>`.
  }];
  let parameters = (ins "int64_t":$heads, "::mlir::Type":$number);
  let assemblyFormat = "`<` $heads `,` $number `>`";
  let genVerifyDecl = 1;
}

class Tile_PairsOf<string width>
    : Type<And<[Tile_Pairs.predicate,
                CPred<"::llvm::cast<::attn::tile::PairsType>($_self).getNumber().isInteger("#width#")">]>,
           "pairs of i"#width, "::attn::tile::PairsType">;
/// The first row of a tile: a query, or a query and a head.
def Tile_Origin : AnyTypeOf<[I32, Tile_PairsOf<"32">]>;
/// The stride of rows: one number, or one for queries and one for heads.
def Tile_Stride : AnyTypeOf<[I64, Tile_PairsOf<"64">]>;

def Tile_Queue : Tile_Type<"Queue", "queue"> {
  let summary = "a counter that all CTAs of a launch share";
  let description = [{
    It is 0 before a launch and after it. The CTAs of a persistent kernel draw work tiles from it; if it is null, each
    CTA takes work tiles in a grid-stride loop. Only kernel arguments have this type.

    Example: `!tile.queue`.
  }];
}

def Tile_Ring : Tile_Place<"Ring", "ring"> {
  let summary = "a place: tiles in shared memory that one role fills and another reads, in order";
  let description = [{
    `stages` swizzled tiles with two barriers each: one completes when a tile has been written, the other when all
    warps that read the tile have released it. CUTLASS calls this a pipeline.

    The producer fills most rings, by TMA. A ring of `!tile.row_statistics` is filled by bulk copies. A ring that
    consumers fill (`tile.producer_store`) is full when all of their warps have committed (`tile.producer_commit`).

    Constraints:
    - C1: stages is from 1 to 8, and the tile is swizzled, or row statistics.

    Example: `!tile.ring<2, !tile.shared<128x128xbf16, swizzled>>`.
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::Type":$tile);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getSharedBytes() const;
    int64_t getSharedAlignment() const { return 1024; }
    int64_t getBarrierBytes() const { return getStages() * 2 * 8; }
  }];
}

def Tile_RowStatistics : Tile_Place<"RowStatistics", "row_statistics"> {
  let summary = "a place: LSE and delta of a tile's query rows, for a backward pass";
  let description = [{
    Two float32 numbers of each row, as `tile.preprocess` computes them, in shared memory: LSE of all rows first, then
    delta of all rows.

    Constraints:
    - C1: rows is a multiple of 16 from 16 to 256.

    Example: `!tile.row_statistics<64>`.
  }];
  let parameters = (ins "int64_t":$rows);
  let assemblyFormat = "`<` $rows `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getSharedBytes() const { return 2 * getRows() * 4; }
    int64_t getSharedAlignment() const { return 128; }
  }];
}

def Tile_Staging : Tile_Place<"Staging", "staging"> {
  let summary = "a place: fragments in shared memory on their way to global memory";
  let description = [{
    `slots` of `bytes` with two barriers each: one completes when all warps that computed a fragment have written
    their part, the other when the dQ store warps have read it. With 0 bytes nothing is staged: the warps that
    computed a fragment add it to global memory themselves. One barrier then completes when they may add, the other
    when they have added; each slot has 8 bytes more, which say whether the sum is stored or added to.

    Constraints:
    - C1: slots is from 1 to 8, bytes a multiple of 128.
    - C2: with 0 bytes there are two slots, one for each dQ store warp.

    Example: `!tile.staging<2, 32768>`.
  }];
  let parameters = (ins "int64_t":$slots, "int64_t":$bytes);
  let assemblyFormat = "`<` $slots `,` $bytes `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getSharedAlignment() const { return 128; }
    int64_t getSharedBytes() const { return getSlots() * (getBytes() + (getBytes() ? 2 : 3) * 8); }
  }];
}

def Tile_Mailbox : Tile_Place<"Mailbox", "mailbox"> {
  let summary = "a place: messages from the producer to the other roles, one for each work tile";
  let description = [{
    Two slots of `words` 32-bit words with two barriers each.

    Constraints:
    - C1: words is from 1 to 32.

    Example: `!tile.mailbox<6>`.
  }];
  let parameters = (ins "int64_t":$words);
  let assemblyFormat = "`<` $words `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getSharedBytes() const { return 2 * (2 * 8 + (getWords() + 3) / 4 * 16); }
  }];
}

def Tile_Frag : Tile_Place<"Frag", "frag"> {
  let summary = "a place: a float32 tile in the registers of a CTA's warps";
  let description = [{
    rows x cols float32 values; rows are divided among `warps`.

    Constraints:
    - C1: rows is a positive multiple of 16 * warps, cols of 8.

    Example: `!tile.frag<128x64, 4>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "int64_t":$warps);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_RegisterOperand : Tile_Place<"RegisterOperand", "register_operand"> {
  let summary = "a place: a tile in registers, in the layout of a product's left operand";
  let description = [{
    Rows are divided among `warps`. A query tile in registers is read from shared memory once, and not for every KV
    tile.

    Constraints:
    - C1: rows is a positive multiple of 16 * warps, cols of 8.

    Example: `!tile.register_operand<128x64xbf16, 4>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$element, "int64_t":$warps);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_SoftmaxState : Tile_Place<"SoftmaxState", "softmax_state"> {
  let summary = "a place: running maximum and sum of each query row";
  let description = [{
    In a backward pass LSE and delta, which `tile.load_row_statistics` loads.

    Example: `!tile.softmax_state<128, 4>`: 128 rows, split over 4 warps.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$warps);
  let assemblyFormat = "`<` $rows `,` $warps `>`";
}

def Tile_SimtTile : Tile_Place<"SimtTile", "simt_tile"> {
  let summary = "a place: rows in the registers of a lane group";
  let description = [{
    rows x cols elements; each row is divided among `lanes` lanes in chunks of eight elements. Tiles of bf16 or f16
    have elements as in memory; computation uses tiles of f32. A warp has 32 / lanes lane groups (`tile.index
    lane_group`), each with its own SIMT tile.

    Constraints:
    - C1: rows is positive, cols a positive multiple of 8, elements are bf16, f16 or f32.
    - C2: lanes is 1, 2, 4, 8, 16 or 32.

    Example: `!tile.simt_tile<4x128xbf16, 16>`, `!tile.simt_tile<1x128xf32, 16>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$element, "int64_t":$lanes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_SimtScores : Tile_Place<"SimtScores", "simt_scores"> {
  let summary = "a place: the scores of a SIMT tile of queries and a SIMT tile of keys";
  let description = [{
    rows x cols float32 values, which all `lanes` lanes of a group have.

    Constraints:
    - C1: rows and cols are positive; lanes is 1, 2, 4, 8, 16 or 32.

    Example: `!tile.simt_scores<1x4, 16>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "int64_t":$lanes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_SimtSoftmaxState : Tile_Place<"SimtSoftmaxState", "simt_softmax_state"> {
  let summary = "a place: running maximum and sum of each row of a SIMT tile";
  let description = [{
    Constraints:
    - C1: rows is positive; lanes is 1, 2, 4, 8, 16 or 32.

    Example: `!tile.simt_softmax_state<1, 16>`: one row, known to 16 lanes.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$lanes);
  let assemblyFormat = "`<` $rows `,` $lanes `>`";
  let genVerifyDecl = 1;
}

def Tile_SimtProbabilities : Tile_Place<"SimtProbabilities", "simt_probabilities"> {
  let summary = "a place: probabilities of a SIMT tile's rows, and their products with dP";
  let description = [{
    For `cols` keys, which are divided among the lanes of a group, so that K and V are read only once.

    Constraints:
    - C1: rows and cols are positive; lanes is 1, 2, 4, 8, 16 or 32.

    Example: `!tile.simt_probabilities<1x16, 16>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "int64_t":$lanes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_DropoutState : Tile_Type<"DropoutState", "dropout_state"> {
  let summary = "the state of the random number generator for a sequence";
  let description = [{
    It is for one head, or, where rows are pairs of a query and a head, for all heads. The random bits of a query and
    a key are a function of this state and of their numbers.

    Example: `!tile.dropout_state`.
  }];
}

def Tile_TokenKind
    : I32EnumAttr<"TokenKind", "what is in flight", [I32EnumAttrCase<"copy", 0>, I32EnumAttrCase<"product", 1>]> {
  let cppNamespace = "::attn::tile";
}

def Tile_IndexKind
    : I32EnumAttr<"IndexKind", "what a `tile.index` numbers",
                  [I32EnumAttrCase<"block", 0>, I32EnumAttrCase<"warpgroup", 1>, I32EnumAttrCase<"warp", 2>,
                   I32EnumAttrCase<"global_warp", 3>, I32EnumAttrCase<"lane_group", 4>]> {
  let cppNamespace = "::attn::tile";
}

def Tile_RingUse : I32EnumAttr<"RingUse", "the roles on both sides of a ring",
                               [I32EnumAttrCase<"loaded", 0>, I32EnumAttrCase<"loaded_for_dq_mma_too", 1>,
                                I32EnumAttrCase<"stored_for_dq_mma", 2>, I32EnumAttrCase<"exchanged", 3>]> {
  let cppNamespace = "::attn::tile";
}

def Tile_Token : Tile_Type<"Token", "token"> {
  let summary = "something in flight: a copy into shared memory or a matrix product";
  let description = [{
    Example: `!tile.token<copy>`, `!tile.token<product>`.
  }];
  let parameters = (ins "::attn::tile::TokenKind":$kind);
  let hasCustomAssemblyFormat = 1;
}

class Tile_TokenOf<string kind>
    : Type<And<[Tile_Token.predicate,
                CPred<"::llvm::cast<::attn::tile::TokenType>($_self).getKind() == ::attn::tile::TokenKind::"#kind>]>,
           kind#" token", "::attn::tile::TokenType">,
      BuildableType<"::attn::tile::TokenType::get($_builder.getContext(), ::attn::tile::TokenKind::"#kind#")">;
def Tile_CopyToken : Tile_TokenOf<"copy">;
def Tile_ProductToken : Tile_TokenOf<"product">;

/// Places of tensor-core kernels, and the SIMT places of the same purpose.
def Tile_AnyScores : AnyTypeOf<[Tile_Frag, Tile_SimtScores]>;
def Tile_AnyAccumulator : AnyTypeOf<[Tile_Frag, Tile_SimtTile]>;
def Tile_AnySoftmaxState : AnyTypeOf<[Tile_SoftmaxState, Tile_SimtSoftmaxState]>;
def Tile_AnyPlace : Type<PlaceTypeInterface.predicate, "a place">;

#endif // TILE_TYPES
