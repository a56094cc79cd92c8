// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TILE_TYPES
#define TILE_TYPES

include "attn/Dialect/Tile/IR/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Tile_Type<string name, string mnem> : TypeDef<Tile_Dialect, name> { let mnemonic = mnem; }

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

def Tile_Shared : Tile_Type<"Shared", "shared"> {
  let summary = "a place: a tile in shared memory";
  let description = [{
    rows x cols elements; `pitch` is the distance of rows in elements, chosen so
    that the eight rows a matrix load reads fall into different banks.

    Constraints:
    - C1: rows and cols are positive multiples of 16, pitch >= cols.

    Example: `!tile.shared<64x128xbf16, 136>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$element, "int64_t":$pitch);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getBytes() const { return getRows() * getPitch() * 2; }
  }];
}

def Tile_Frag : Tile_Type<"Frag", "frag"> {
  let summary = "a place: a float32 tile in the registers of a block's warps";
  let description = [{
    rows x cols float32 values, rows split over `warps`.

    Constraints:
    - C1: rows is a positive multiple of 16 * warps, cols of 16.

    Example: `!tile.frag<128x64, 4>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "int64_t":$warps);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_Held : Tile_Type<"Held", "held"> {
  let summary = "a place: a tile of operands in the registers of a block's warps";
  let description = [{
    The query tile, rows split over `warps`, as the product with K wants it: read
    from shared memory once and not for every key tile.

    Constraints:
    - C1: rows is a positive multiple of 16 * warps, cols of 16.

    Example: `!tile.held<128x64xbf16, 4>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$element, "int64_t":$warps);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_Rows : Tile_Type<"Rows", "rows"> {
  let summary = "a place: running maximum and sum of each query row";
  let description = [{
    Example: `!tile.rows<128, 4>`: 128 rows, split over 4 warps.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$warps);
  let assemblyFormat = "`<` $rows `,` $warps `>`";
}

def Tile_TokenKind : I32EnumAttr<"TokenKind", "what is in flight", [
    I32EnumAttrCase<"copy", 0>, I32EnumAttrCase<"product", 1>]> {
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

class Tile_TokenOf<string kind> : Type<
    And<[Tile_Token.predicate, CPred<"::llvm::cast<::attn::tile::TokenType>($_self).getKind() == ::attn::tile::TokenKind::" # kind>]>,
    kind # " token", "::attn::tile::TokenType">,
  BuildableType<"::attn::tile::TokenType::get($_builder.getContext(), ::attn::tile::TokenKind::" # kind # ")">;
def Tile_CopyToken : Tile_TokenOf<"copy">;
def Tile_ProductToken : Tile_TokenOf<"product">;

def Tile_AnyPlace : AnyTypeOf<[Tile_Shared, Tile_Held, Tile_Frag, Tile_Rows]>;

#endif // TILE_TYPES
