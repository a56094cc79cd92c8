// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk over keys, and what regions end with.
#ifndef TILE_KV_LOOP_OPS
#define TILE_KV_LOOP_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def Tile_KvLoopOp
    : Tile_ControlOp<"kv_loop", [SingleBlock, AttrSizedOperandSegments,
                                 DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "visits the key tiles of a query tile, segment by segment";
  let description = [{
    The mask gives a sorted list of runs of key tiles; each run is cut into
    consecutive segments, and each segment says which conjuncts of the mask
    (numbers of what `tile.apply_mask` yields) an element of its tiles must be tested
    for. `[%a, %b, %c] tests [[0, 1], []]` is the run of tiles a <= j < b, tested
    for conjuncts 0 and 1, and b <= j < c, full tiles. Bounds of a run never
    step back; a run starts where the one before it ended, or later. A key tile's
    walk over query tiles (of a backward pass) is the same with rows and keys exchanged.

    The body gets the tile number `j`, whether there are `more` tiles to come,
    the number of the `next` one (undefined if not), and the carried tokens.

    `one_body`: to be split into one loop that asks which tiles need a test,
    whatever the schedule says.

    `own [%a, %b, %c]`, of a walk of one run: that of the warpgroup's own rows, as `bounds` are that of the tile's. It
    lies within that, and may differ from one warpgroup to the next (`tile.index warpgroup`). Tiles outside it add
    nothing to those rows.

    Made by `convert-attn-to-tile`, gone after `tile-split-kv-loop`.

    Constraints:
    - C1: a run has one more bound than it has segments, and at least one segment.
    - C2: what is carried, yielded and returned has the same types.
    - C3: tests name conjuncts that the body's `tile.apply_mask` yields.
    - C4: own bounds are none, or as many as those of a single run.

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
  let arguments = (ins Variadic<I32>:$bounds, Variadic<I32>:$own, Variadic<Tile_Token>:$carried, ArrayAttr:$runs,
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
