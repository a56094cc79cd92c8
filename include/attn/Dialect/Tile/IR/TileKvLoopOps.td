// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The KV loop, and the terminator of regions.
#ifndef TILE_KV_LOOP_OPS
#define TILE_KV_LOOP_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def Tile_KvLoopOp
    : Tile_ControlOp<"kv_loop", [SingleBlock, AttrSizedOperandSegments,
                                 DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "the loop of a query tile over its KV tiles, run by run and segment by segment";
  let description = [{
    The mask gives a sorted list of runs of KV tiles. Each run is cut into consecutive segments, and each segment has
    the conjuncts of the mask (numbers of what `tile.apply_mask` yields) for which elements of its tiles must be
    tested. `[%a, %b, %c] tests [[0, 1], []]` is the run of tiles a <= j < b, tested for conjuncts 0 and 1, and b <= j
    < c, full tiles. The bounds of a run do not decrease; a run starts where the one before it ended, or later. In a
    backward pass, the loop of a KV tile over query tiles is the same op with rows and keys exchanged.

    The arguments of the body are the tile number `j`, the number of the `next` tile (undefined if there is none),
    whether there are `more` tiles to come, and the carried tokens.

    `one_body`: the loop becomes one loop that tests which tiles need the mask, whatever the schedule says.

    `own [%a, %b, %c]`, of a loop of one run: the bounds for the warpgroup's own rows, as `bounds` are those for the
    whole tile. They lie within these and may differ between warpgroups (`tile.index warpgroup`). Tiles outside them
    contribute nothing to the warpgroup's rows.

    `convert-attn-to-tile` creates this op, and `tile-split-kv-loop` replaces it.

    Constraints:
    - C1: a run has one more bound than it has segments, and at least one segment.
    - C2: carried, yielded and returned tokens have the same types.
    - C3: tests name conjuncts that the body's `tile.apply_mask` yields.
    - C4: there are no own bounds, or as many as a single run has bounds.

    ```mlir
    tile.kv_loop [%begin, %full, %end] tests [[0], []] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      tile.apply_mask %s at(%q0, %k0) : !tile.frag<128x64, 4> {
      ^bb0(%q: i32, %k: i32):
        %below = arith.cmpi sle, %k, %q : i32
        tile.yield %below : i1
      }
      tile.yield
    }
    ```
  }];
  let arguments = (ins Variadic<I32>:$bounds, Variadic<I32>:$own, Variadic<Tile_Token>:$carried, ArrayAttr:$tests,
      UnitAttr:$one_body);
  let results = (outs Variadic<Tile_Token>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let declarations = [{
    /// One run: its bounds, and the tests of the segment between bounds i and i + 1.
    struct Run {
      ::mlir::ValueRange bounds;
      ::llvm::SmallVector<::llvm::ArrayRef<int64_t>> tests;
    };
    ::llvm::SmallVector<Run> getRunList();
    ::mlir::Value getTile() { return getBody().getArgument(0); }
    ::mlir::Value getNext() { return getBody().getArgument(1); }
    ::mlir::Value getMore() { return getBody().getArgument(2); }
  }];
}

def Tile_YieldOp : Tile_ScalarOp<"yield", [Terminator]> {
  let summary = "ends the body of `tile.kv_loop`, `tile.modify`, `tile.apply_mask` or `tile.probabilities`";
  let description = [{
    ```mlir
    tile.yield %below : i1
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let builders = [OpBuilder<(ins), [{ (void)$_builder; (void)$_state; }]>];
  let assemblyFormat = "($values^ `:` qualified(type($values)))? attr-dict";
}

#endif // TILE_KV_LOOP_OPS
