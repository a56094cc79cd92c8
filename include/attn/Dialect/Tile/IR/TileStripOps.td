// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Short rows: a warp has a few query rows, and a group of its lanes one head of them. What
// is read goes from memory to registers, what is computed is the tile ops' on places of
// other types (`!tile.strip`): products, tests, modifiers and softmax are the same ops.
#ifndef TILE_STRIP_OPS
#define TILE_STRIP_OPS

include "attn/Dialect/Tile/IR/TileTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_UnitIndexOp : Tile_Op<"unit_index", [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the number of this warp in the launch";
  let description = [{
    ```mlir
    %unit = tile.unit_index
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_SlotIndexOp : Tile_Op<"slot_index", [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the number of this group of lanes in its warp";
  let description = [{
    Everything that follows from it differs from group to group; what does not follow from
    it is the same in a warp, loops over keys above all. On a CPU a warp has one group.

    Constraints:
    - C1: lanes is 1, 2, 4, 8, 16 or 32.

    ```mlir
    %slot = tile.slot_index lanes 16
    ```
  }];
  let arguments = (ins I64Attr:$lanes);
  let results = (outs I32:$result);
  let assemblyFormat = "`lanes` $lanes attr-dict";
  let hasVerifier = 1;
}

def Tile_FetchOp : Tile_Op<"fetch"> {
  let summary = "reads rows from global memory into a strip";
  let description = [{
    Rows below `rows`, which lie `stride` elements apart; all others become 0 and are
    not read. A strip of f32 gets them converted. What is fetched is under way until it is
    first used, and so may be any number of strips.

    Constraints:
    - C1: the pointer's elements are bf16 or f16, and those of the strip the same or f32.

    ```mlir
    tile.fetch %K, %src stride(%k_row) rows(%n) : !tile.strip<4x128xbf16, 16>, !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Tile_Strip:$dst, Tile_Ptr:$src, Tile_Stride:$stride, I32:$rows);
  let assemblyFormat = [{
    $dst `,` $src `stride` `(` $stride `` custom<Stride>(type($stride)) `)` `rows` `(` $rows `)` attr-dict
    `:` qualified(type($dst)) `,` qualified(type($src))
  }];
  let hasVerifier = 1;
}

def Tile_PadRowsOp : Tile_Op<"pad_rows"> {
  let summary = "writes rows that belong to no sequence: 0 (float32: -inf)";
  let description = [{
    The queries begin, begin + step, ... below `end`, and of pairs all heads of each; `dim`
    columns, written by `lanes` lanes. `dst` points at query 0. So padding before the first
    and behind the last sequence, which may be long, is shared out among all warps.

    Constraints:
    - C1: dim is a multiple of 8 and elements are bf16 or f16, or dim is 1 and elements are f32.
    - C2: lanes is 1, 2, 4, 8, 16 or 32.

    ```mlir
    tile.pad_rows %dst stride(%o_row) from(%begin) to(%end) step(%step) dim 128 lanes 16 : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Tile_Ptr:$dst, Tile_Stride:$stride, I32:$begin, I32:$end, I32:$step, I64Attr:$dim, I64Attr:$lanes);
  let assemblyFormat = [{
    $dst `stride` `(` $stride `` custom<Stride>(type($stride)) `)` `from` `(` $begin `)` `to` `(` $end `)`
    `step` `(` $step `)` `dim` $dim `lanes` $lanes attr-dict `:` qualified(type($dst))
  }];
  let hasVerifier = 1;
}

#endif // TILE_STRIP_OPS
