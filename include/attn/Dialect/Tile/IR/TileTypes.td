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

/// Of float32, as LSE is.
def Tile_FloatPtr
    : Type<And<[Tile_Ptr.predicate, CPred<"::llvm::cast<::attn::tile::PtrType>($_self).getElement().isF32()">]>,
           "pointer to f32", "::attn::tile::PtrType">,
      BuildableType<"::attn::tile::PtrType::get($_builder.getContext(), $_builder.getF32Type())">;

/// Of int32, as lengths and offsets are.
def Tile_IntPtr
    : Type<And<[Tile_Ptr.predicate, CPred<"::llvm::cast<::attn::tile::PtrType>($_self).getElement().isInteger(32)">]>,
           "pointer to i32", "::attn::tile::PtrType">,
      BuildableType<"::attn::tile::PtrType::get($_builder.getContext(), $_builder.getI32Type())">;

def Tile_Shared : Tile_Place<"Shared", "shared"> {
  let summary = "a place: a tile in shared memory";
  let description = [{
    rows x cols elements; `pitch` is the distance of rows in elements, chosen so
    that the eight rows a matrix load reads fall into different banks. A
    `swizzled` tile is as TMA writes it and wgmma reads it: chunks of 64 columns
    one after the other, a row of a chunk in 128 bytes, their 16-byte units
    exchanged by the row's number. (PTX ISA, "Swizzling modes", 128B.)

    Constraints:
    - C1: rows and cols are positive, cols and, if swizzled, rows multiples of 16, pitch >= cols unless swizzled.
    - C2: elements are bf16, f16 or f32, and not f32 if swizzled.

    Example: `!tile.shared<64x128xbf16, 136>`, `!tile.shared<128x128xbf16, swizzled>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$element, "int64_t":$pitch);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The pitch that stands for a swizzled tile, which has none.
    static constexpr int64_t swizzled = 0;
    bool isSwizzled() const { return getPitch() == swizzled; }
    int64_t getSharedBytes() const { return isSwizzled() ? (getCols() + 63) / 64 * getRows() * 128
        : getRows() * getPitch() * getElement().getIntOrFloatBitWidth() / 8; }
    int64_t getSharedAlignment() const { return isSwizzled() ? 1024 : 128; }
  }];
}

def Tile_TensorMap : Tile_Type<"TensorMap", "tensor_map"> {
  let summary = "a tensor map: what the TMA unit has to know of a tensor in global memory";
  let description = [{
    Of a tensor with the dimensions (column, row, head, batch), made by the
    launcher from its address and strides; one copy brings a box of `rows` rows
    and 64 columns of one head, or of `heads` heads, the rows of which then take turns
    (`!tile.pairs`). What lies out of bounds reads as 0. A `packed` tensor has no batch; how many rows of a sequence
    are left is said by who copies, and those behind them read as 0, too. An argument
    of kernels only. (CUDA driver API, `cuTensorMapEncodeTiled`; attn-rt/TensorMap.h says how.)

    Constraints:
    - C1: rows, or rows * heads, is from 16 to 256, elements are bf16 or f16.

    Example: `!tile.tensor_map<128xbf16>`, `!tile.tensor_map<16x4xbf16, packed>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$heads, "::mlir::Type":$element, "bool":$packed);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{ bool isPacked() const { return getPacked(); } }];
}

def Tile_Pairs : Tile_Type<"Pairs", "pairs"> {
  let summary = "what counts the rows of a tile that are pairs of a query and a head";
  let description = [{
    Heads that share keys may share a tile (`pack_heads` of a schedule): its row r is
    then query r / heads and head r % heads, from the tile's first on. An i32 that
    says where the rows of a tile begin becomes an i32 for each, query and head; an i64
    that says how far apart they lie in memory becomes an i64 for each. Ops take
    either; `heads 4` behind an operand says that it is such a pair.

    This is the only place where rows are taken apart: masks and score modifiers
    know queries and heads.

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
/// Where rows begin: a query, or a query and a head.
def Tile_Origin : AnyTypeOf<[I32, Tile_PairsOf<"32">]>;
/// How far apart rows lie: one distance, or those of queries and heads.
def Tile_Stride : AnyTypeOf<[I64, Tile_PairsOf<"64">]>;

def Tile_Queue : Tile_Type<"Queue", "queue"> {
  let summary = "a counter that all blocks of a launch share";
  let description = [{
    An argument of kernels only; 0 before a launch and after it. A persistent kernel's
    blocks draw tiles by it; there it may be null, then tiles are dealt out in turn.

    Example: `!tile.queue`.
  }];
}

def Tile_Ring : Tile_Place<"Ring", "ring"> {
  let summary = "a place: tiles in shared memory that one role fills and another takes, in order";
  let description = [{
    `stages` swizzled tiles with two barriers each: one completes when a tile has
    landed, the other when all warps that take it have released it.

    A ring of `!tile.row_statistics` is the same, filled by bulk copies; one of what those that compute put there
    (`tile.producer_store`) is filled when all of their warps have said so.

    Constraints:
    - C1: stages is from 1 to 8, and the tile is swizzled, or statistics.

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
  let summary = "a place: what a backward pass knows of a tile's query rows";
  let description = [{
    Two float32 numbers of each row, as `tile.preprocess` makes them; in shared memory, first all
    of one kind.

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
    Like a ring the other way around: `slots` of `bytes` with two barriers each, of which one completes when all warps
    that multiply have written their part, the other when the role that adds has read it. Of 0 bytes nothing is staged:
    who has a fragment adds it for itself, and the barriers complete when it has and when it may. Then a slot has 8
    bytes more, in which it says whether a sum is begun or added to.

    Constraints:
    - C1: slots is from 1 to 8, bytes a multiple of 128.
    - C2: of 0 bytes there are two slots, one for each warp that adds.

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
  let summary = "a place: messages of the role that loads to those that compute, one a query tile";
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
  let summary = "a place: a float32 tile in the registers of a block's warps";
  let description = [{
    rows x cols float32 values, rows split over `warps`.

    Constraints:
    - C1: rows is a positive multiple of 16 * warps, cols of 8.

    Example: `!tile.frag<128x64, 4>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "int64_t":$warps);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_RegisterOperand : Tile_Place<"RegisterOperand", "register_operand"> {
  let summary = "a place: a tile of operands in the registers of a block's warps";
  let description = [{
    The query tile, rows split over `warps`, as the product with K wants it: read
    from shared memory once and not for every key tile.

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
    Or what a backward pass knows of it, as `tile.load_row_statistics` puts it there.

    Example: `!tile.softmax_state<128, 4>`: 128 rows, split over 4 warps.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$warps);
  let assemblyFormat = "`<` $rows `,` $warps `>`";
}

def Tile_SimtTile : Tile_Place<"SimtTile", "simt_tile"> {
  let summary = "a place: rows in the registers of a group of lanes";
  let description = [{
    rows x cols elements, each row dealt to `lanes` lanes in chunks of eight. Of bf16 or
    f16: as they were in memory; of f32: to compute with. A warp has 32 / lanes such
    groups (`tile.lane_group_index`), each with a SIMT tile of its own.

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
  let summary = "a place: the scores of a SIMT tile of queries and one of keys";
  let description = [{
    rows x cols float32 values, known to all `lanes` lanes of a group.

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
  let summary = "a place: what the rows of a SIMT tile weigh their keys by, and the gradients of that";
  let description = [{
    For `cols` keys, which are dealt to the lanes of a group: what was read once need not
    be read again.

    Constraints:
    - C1: rows and cols are positive; lanes is 1, 2, 4, 8, 16 or 32.

    Example: `!tile.simt_probabilities<1x16, 16>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "int64_t":$lanes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_DropoutState : Tile_Type<"DropoutState", "dropout_state"> {
  let summary = "the random numbers of a sequence's pairs";
  let description = [{
    Those of a head, or, where rows are pairs of a query and a head, of all heads: what is drawn for a pair of a
    query and a key follows from it and from their numbers.

    Example: `!tile.dropout_state`.
  }];
}

def Tile_TokenKind
    : I32EnumAttr<"TokenKind", "what is in flight", [I32EnumAttrCase<"copy", 0>, I32EnumAttrCase<"product", 1>]> {
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

/// The places of a kernel on tiles, or those of a kernel on SIMT tiles.
def Tile_AnyScores : AnyTypeOf<[Tile_Frag, Tile_SimtScores]>;
def Tile_AnySum : AnyTypeOf<[Tile_Frag, Tile_SimtTile]>;
def Tile_AnyRows : AnyTypeOf<[Tile_SoftmaxState, Tile_SimtSoftmaxState]>;
def Tile_AnyPlace : Type<PlaceTypeInterface.predicate, "a place">;

#endif // TILE_TYPES
