// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels, places, copies and products. What is done to fragments in between, the walk over
// keys, where results go, and who does what in a block, have files of their own.
#ifndef TILE_OPS
#define TILE_OPS

include "attn/Dialect/Tile/IR/TileBackwardOps.td"
include "attn/Dialect/Tile/IR/TileAccumulatorOps.td"
include "attn/Dialect/Tile/IR/TileArrayGradOps.td"
include "attn/Dialect/Tile/IR/TileDropoutOps.td"
include "attn/Dialect/Tile/IR/TileFragmentOps.td"
include "attn/Dialect/Tile/IR/TileResultOps.td"
include "attn/Dialect/Tile/IR/TileRoleOps.td"
include "attn/Dialect/Tile/IR/TileSchedules.td"
include "attn/Dialect/Tile/IR/TileSimtRowOps.td"
include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "attn/Dialect/Tile/IR/TileListOps.td"
include "attn/Dialect/Tile/IR/TileKvLoopOps.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

def Tile_KernelOp
    : Tile_ControlOp<"kernel", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator,
                                DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "the program of one thread block";
  let description = [{
    Made by `convert-attn-to-tile` from an `attn.problem`, translated to source
    at the end. The names of its arguments are the contract with the launcher:
    tensors (`q`, `k`, `v`, `o`, `lse`), run-time arrays (`cu_seqlens_q`, ...),
    sizes (`batch`, `seqlen_q`, `total_q`, ...), and strides in elements
    (`q_row`, `k_head`, ...). `grid` says how many blocks a launch has: `dense` and
    `packed`, one for each query tile and head, or, with `keys`, for each key tile and kv
    head (of a backward pass); `rows cluster N`, a cluster of N blocks
    for each row of the batch (made of `attn.segments`). With `tiles N` a sequence has N tiles for
    a head or a group of heads, by its number, and these take turns if its rows need more
    (docs/Schedules/cta_per_sequence.md);
    a tile is a block's, or, with `simt_rows`, a warp's. With `longer M, N` blocks are those that sequences of more than
    M queries or N keys can need: in a packed grid lists say which slots these have (`metadata.list_work_tiles`), in a
    dense one all sequences are so long, or there is nothing to launch. The kernels of a problem are launched one after
    the other, in their order.

    Constraints:
    - C1: as many argument names as arguments.
    - C2: target is "cpu", "sm_80" or "sm_90a".
    - C3: the grid has at least one head, or clusters of 1 to 16 blocks (of 1, but for sm_90a).
    - C4: fragments' rows go to warps: in a grid of key tiles kv_tile is a multiple of 16 * warps, unless the schedule
      is `auxiliary`, whose kernels have no fragments.
    - C5: a kernel has `tiles` if its schedule has a CTA or a warp for each sequence; others may have some in a packed
      grid of query tiles, or with a single-pass schedule. They are positive.
    - C6: `longer` only in grids of sequences without `tiles`; it is two numbers that are not negative.

    ```mlir
    tile.kernel @copy(%q: !tile.ptr<bf16>, %batch: i32) target("cpu") grid(dense heads 4)
        schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
      %b = tile.block_index
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$arg_names, StrAttr:$target, UnitAttr:$packed,
      UnitAttr:$keys, I64Attr:$heads, OptionalAttr<I64Attr>:$tiles, OptionalAttr<I64Attr>:$cluster,
      OptionalAttr<DenseI64ArrayAttr>:$longer, Tile_ScheduleInterface:$schedule, OptionalAttr<I64Attr>:$shared_bytes);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let declarations = [{
    /// The argument of this name, or null.
    ::mlir::Value getArg(::llvm::StringRef name);
    /// Is a launch as wide as the chip, with roles inside, and not as the grid?
    bool isPersistent() { return bool(getRoles()); }
    /// The part of its schedule that speaks of roles; null where all warps do the same.
    ::attn::tile::WarpSpecializedInterface getRoles() { return ::attn::tile::warpSpecializationOf(getSchedule()); }
    /// Is a block or a warp a sequence's, with neither tiles of a grid nor roles?
    bool isPerSequenceWithoutRoles();
    /// Is a cluster for each row of the batch?
    bool hasRows() { return getCluster().has_value(); }
    /// Do query rows stay in registers while K/V tiles are streamed past them? That leaves few registers.
    bool hasStationaryRows();
    /// The scale of its softmax ops, all of which have one; 1 in a kernel without any.
    double getSoftmaxScale();
    /// Rows of a block's tile of results: keys in a grid of key tiles, else rows of queries.
    int64_t getTileRows() { return getKeys() ? getSchedule().getKvTile() : getSchedule().getQTile(); }
    /// Threads of a block: roles that do not compute are warpgroups of their own.
    int64_t getThreads() { return isPersistent() ? getRoles().getThreads() : getSchedule().getWarps() * 32; }
  }];
}

def Tile_BlockIndexOp
    : Tile_ScalarOp<"block_index", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the number of this block in the grid";
  let description = [{
    With `below`, blocks from that number on have nothing to do and end here: a grid is as
    big as it may have to be, and arrays say how much of it there is.

    Constraints:
    - C1: `below` only where it stands in the kernel itself, so that the kernel ends.

    ```mlir
    tile.kernel @k(%listed: i32) target("sm_80") grid(packed heads 1)
        schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
      %block = tile.block_index below(%listed)
    }
    ```
  }];
  let arguments = (ins Optional<I32>:$below);
  let results = (outs I32:$result);
  let assemblyFormat = "(`below` `(` $below^ `)`)? attr-dict";
  let hasVerifier = 1;
}

def Tile_WarpgroupIndexOp
    : Tile_ScalarOp<"warpgroup_index", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the number of this warpgroup among those that compute";
  let description = [{
    It has 64 rows of a fragment, from 64 times its number on.

    ```mlir
    %warpgroup = tile.warpgroup_index
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_FindSequenceOp
    : Tile_ScalarOp<"find_sequence", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "which sequence and rows of a packed layout a slot stands for";
  let description = [{
    Packed sequences have tiles of their own, but nobody counts them on the host.
    Sequence b owns the slots from bound(b) / q_tile + b + 1 on, where bound(b)
    is its first token; that is monotone in b and leaves room for its last,
    partial tile, so a block finds its sequence by a search over `offsets`.
    Slots before the first and behind the last sequence stand for padding.
    There are total / q_tile + batch + 2 slots.

    `first` is the sequence's first token, `q0` the tile's first row within the
    sequence, `rows` how many rows are to be computed (0 for padding, or where a
    slot is not needed), `write_rows` how many are to be written (the rest of
    them, padding, with zeros).

    ```mlir
    %b, %q0, %first, %rows, %write_rows = tile.find_sequence %slot in %cu, %offsets, %batch, %total tile 128
      : !tile.ptr<i32>, !tile.ptr<i32>
    ```
  }];
  let arguments = (ins I32:$slot, Tile_Ptr:$cu_seqlens, Tile_Ptr:$offsets, I32:$batch, I32:$total, I64Attr:$q_tile);
  let results = (outs I32:$b, I32:$q0, I32:$first, I32:$rows, I32:$write_rows);
  let assemblyFormat = [{
    $slot `in` $cu_seqlens `,` $offsets `,` $batch `,` $total `tile` $q_tile attr-dict `:` qualified(type($cu_seqlens))
        `,` qualified(type($offsets))
  }];
  let declarations = [{
    static ::llvm::StringRef nameOf(::mlir::OpResult result);
  }];
}

def Tile_PairsOp : Tile_ScalarOp<"pairs", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "where rows begin or how far apart they lie, rows being pairs of a query and a head";
  let description = [{
    Constraints:
    - C1: query and head are the type's numbers.

    ```mlir
    %at = tile.pairs %q0, %h : !tile.pairs<4, i32>
    %stride = tile.pairs %q_row, %q_head : !tile.pairs<4, i64>
    ```
  }];
  let arguments = (ins AnyTypeOf<[I32, I64]>:$query, AnyTypeOf<[I32, I64]>:$head);
  let results = (outs Tile_Pairs:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_ScalarOp<"load", [TypesMatchWith<"the array's element", "array", "result",
                                                        "::llvm::cast<::attn::tile::PtrType>($_self).getElement()">]> {
  let summary = "one element of a run-time array";
  let description = [{
    Arrays are constant while a kernel runs, so a load is pure. `index` is i32 or
    i64. `uniform`: all threads of the block load the same element, so addresses
    made of it are computed once a warp.

    Constraints:
    - C1: the array's elements are i32 or f32; those of a uniform load are i32.

    ```mlir
    %len = tile.load %cu_seqlens_kv[%b] : i32 from !tile.ptr<i32>
    ```
  }];
  let arguments = (ins Tile_Ptr:$array, AnyTypeOf<[I32, I64]>:$index, UnitAttr:$uniform);
  let results = (outs AnyTypeOf<[I32, F32]>:$result);
  let hasVerifier = 1;
  let assemblyFormat =
      "(`uniform` $uniform^)? $array `[` $index `]` attr-dict `:` type($index)  `from` qualified(type($array))";
}

def Tile_AdvanceOp : Tile_ScalarOp<"advance", [AllTypesMatch<["base", "result"]>]> {
  let summary = "a pointer moved by elements";
  let description = [{
    ```mlir
    %row = tile.advance %q, %offset : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Tile_Ptr:$base, I64:$offset);
  let results = (outs Tile_Ptr:$result);
  let assemblyFormat = "$base `,` $offset attr-dict `:` qualified(type($result))";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

def Tile_AllocOp : Tile_ControlOp<"alloc", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "declares a place";
  let description = [{
    A tile in shared memory, a ring of them, a fragment in registers or the state
    of query rows, with its name. `offset` (bytes into the block's shared memory,
    a multiple of 128, of 1024 for rings) is given to places in shared memory by
    `tile-allocate-shared`, and so is that of a ring's `barriers`. `slots`: of a tile for which `tile-assign-roles`
    makes a ring, how many that has, if not as many as the schedule says.

    ```mlir
    %Q = tile.alloc "Q" : !tile.shared<128x128xbf16, 136>
    %K = tile.alloc "K" slots 2 : !tile.shared<128x128xbf16, swizzled>
    %s = tile.alloc "s" : !tile.frag<128x64, 4>
    ```
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$barriers,
      OptionalAttr<I64Attr>:$slots);
  let results = (outs Tile_AnyPlace:$result);
  let assemblyFormat =
      "$name (`at` $offset^)? (`barriers` $barriers^)? (`slots` $slots^)? attr-dict `:` qualified(type($result))";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::StringRef":$name), [{
    build($_builder, $_state, type, $_builder.getStringAttr(name), ::mlir::IntegerAttr(), ::mlir::IntegerAttr(),
        ::mlir::IntegerAttr());
  }]>];
}

def Tile_ClearOp : Tile_ComputeOp<"clear"> {
  let summary = "sets a fragment to 0, or row states to \"nothing seen yet\"";
  let description = [{
    ```mlir
    tile.clear %acc : !tile.frag<128x128, 4>
    ```
  }];
  let arguments = (ins Out<AnyTypeOf<[Tile_AnySum, Tile_AnyRows]>>:$place);
  let assemblyFormat = "$place attr-dict `:` qualified(type($place))";
}

def Tile_LoadOperandOp : Tile_ComputeOp<"load_operand"> {
  let summary = "reads a tile from shared memory into registers";
  let description = [{
    Constraints:
    - C1: both have the same rows, columns and element type.

    ```mlir
    tile.load_operand %held, %Q : !tile.register_operand<128x64xbf16, 4>, !tile.shared<128x64xbf16, 72>
    ```
  }];
  let arguments = (ins Out<Tile_RegisterOperand>:$held, In<Tile_Shared>:$src);
  let assemblyFormat = "$held `,` $src attr-dict `:` qualified(type($held)) `,` qualified(type($src))";
  let hasVerifier = 1;
}

def Tile_NegateOp : Tile_ComputeOp<"negate"> {
  let summary = "changes the sign of a tile in shared memory";
  let description = [{
    A negative scale moves its sign into Q, so that `tile.online_softmax` may take
    the largest product for the largest score. Ends with a barrier of the block.

    ```mlir
    tile.negate %Q : !tile.shared<128x64xbf16, 72>
    ```
  }];
  let arguments = (ins Tile_Shared:$place);
  let assemblyFormat = "$place attr-dict `:` qualified(type($place))";
}

//===----------------------------------------------------------------------===//
// Asynchronous: copies and products
//===----------------------------------------------------------------------===//

def Tile_CopyAsyncOp : Tile_ComputeOp<"copy_async"> {
  let summary = "starts copying rows from global into shared memory";
  let description = [{
    Copies `rows` rows (at most the place's) of `dim` elements, which lie
    `stride` elements apart; everything else in the place becomes 0, so that
    what lies behind a sequence is never read. With `when`, nothing happens
    unless the condition holds; the token counts as landed then. `once`: not from a loop over
    tiles; a thread then steps a pointer of its own, which costs registers and saves instructions.

    Constraints:
    - C1: dim is a multiple of 8 and at most the place's columns; element types agree.

    ```mlir
    %t = tile.copy_async %K, %src stride(%k_row) rows(%n) dim 128 when(%more)
      : !tile.shared<64x128xbf16, 136>, !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Out<Tile_Shared>:$dst, Tile_Ptr:$src, Tile_Stride:$stride, I32:$rows, I64Attr:$dim,
      Optional<I1>:$when, UnitAttr:$once);
  let results = (outs Tile_CopyToken:$token);
  let assemblyFormat = [{
    (`once` $once^)? $dst `,` $src `stride` `(` $stride `` custom<Stride>(type($stride)) `)` `rows` `(` $rows `)` `dim`
        $dim (`when` `(` $when^ `)`)? attr-dict
    `:` qualified(type($dst)) `,` qualified(type($src))
  }];
  let hasVerifier = 1;
}

def Tile_CopyTmaOp : Tile_ComputeOp<"copy_tma", [AttrSizedOperandSegments]> {
  let summary = "starts copying a box of a tensor into shared memory";
  let description = [{
    The place's rows from `row` on, of one head of one sequence, or of the map's heads
    from `head` on, in turns; what lies out of
    the tensor's bounds becomes 0, and of a packed tensor, whose rows count through all sequences,
    what lies behind the next `rows` ones, which are those that are left of a sequence (none, if less than 0).
    A place may have room for several boxes: then `boxes` says how many come, of rows that follow each other.

    Constraints:
    - C1: the place is swizzled and has the map's element type, and its rows, or, with `boxes`, those of several. (Of a
      map with heads, less than one query's rows may be missing: what they hold is nobody's.)
    - C2: a packed map has `rows`, another one a batch.
    - C3: `boxes`, of a packed map without heads, are positive, and no more than the place has room for.

    ```mlir
    %t = tile.copy_tma %K, %k_map at(%row, %head, %b) : !tile.shared<128x128xbf16, swizzled>, !tile.tensor_map<128xbf16>
    %u = tile.copy_tma %V, %v_map at(%row, %head) rows(%left)
        : !tile.shared<128x128xbf16, swizzled>, !tile.tensor_map<128xbf16, packed>
    %w = tile.copy_tma %all, %all_map at(%row, %head) rows(%left) boxes 3
        : !tile.shared<192x128xbf16, swizzled>, !tile.tensor_map<64xbf16, packed>
    ```
  }];
  let arguments = (ins Out<Tile_Shared>:$dst, Tile_TensorMap:$map, I32:$row, I32:$head, Optional<I32>:$batch,
      Optional<I32>:$rows, OptionalAttr<I64Attr>:$boxes);
  let results = (outs Tile_CopyToken:$token);
  let assemblyFormat = [{
    $dst `,` $map `at` `(` $row `,` $head (`,` $batch^)? `)` (`rows` `(` $rows^ `)`)? (`boxes` $boxes^)? attr-dict `:`
        qualified(type($dst)) `,` qualified(type($map))
  }];
  let hasVerifier = 1;
}

def Tile_WaitOp : Tile_ComputeOp<"wait"> {
  let summary = "waits for copies or products";
  let description = [{
    After it, the destinations of the tokens may be read. Waiting for a copy is
    also a barrier of the block: what was read before it may be overwritten
    after it.

    Constraints:
    - C1: all tokens are of one kind, and there is at least one.

    ```mlir
    tile.wait %t : !tile.token<copy>
    ```
  }];
  let arguments = (ins Variadic<Tile_Token>:$tokens);
  let assemblyFormat = "$tokens attr-dict `:` qualified(type($tokens))";
  let hasVerifier = 1;
}

def Tile_NullProductOp : Tile_ScalarOp<"null_product"> {
  let summary = "a token of nothing";
  let description = [{
    What a loop carries into its first step, where each step waits for a product that the step before began. Waiting for
    it is no wait.

    ```mlir
    %none = tile.null_product
    ```
  }];
  let results = (outs Tile_ProductToken:$token);
  let assemblyFormat = "attr-dict";
}

def Tile_WaitFiniteOp : Tile_ComputeOp<"wait_finite"> {
  let summary = "waits for copies, and tells whether a tile is finite";
  let description = [{
    As `tile.wait`; the same answer in the whole block. A product with a tile that has a NaN or
    Inf has to be `guarded` where some rows may not see some keys; one with a finite tile has not.

    Constraints:
    - C1: the tile was brought by one of the copies.

    ```mlir
    %t = tile.copy_async once %V, %src stride(%v_row) rows(%n) dim 128 : !tile.shared<24x128xbf16, 136>, !tile.ptr<bf16>
    %finite = tile.wait_finite %V after %t : !tile.shared<24x128xbf16, 136>
    ```
  }];
  let arguments = (ins In<Tile_Shared>:$place, Variadic<Tile_CopyToken>:$tokens);
  let results = (outs I1:$finite);
  let assemblyFormat = "$place `after` $tokens attr-dict `:` qualified(type($place))";
  let hasVerifier = 1;
}

def Tile_SubtileOp : Tile_ScalarOp<"subtile"> {
  let summary = "some rows and columns of a tile";
  let description = [{
    From the first row on, and from `column` on. It may be filled, and is then no longer the tile's.

    Constraints:
    - C1: neither is swizzled; both have the same pitch and elements, the part at most the tile's rows and columns.

    ```mlir
    %right = tile.subtile %V from(%c) : !tile.shared<24x128xbf16, 136> to !tile.shared<24x64xbf16, 136>
    ```
  }];
  let arguments = (ins Tile_Shared:$tile, Optional<I32>:$column);
  let results = (outs Tile_Shared:$part);
  let assemblyFormat =
      "$tile (`from` `(` $column^ `)`)? attr-dict `:` qualified(type($tile)) `to` qualified(type($part))";
  let hasVerifier = 1;
}

def Tile_BarrierOp : Tile_ComputeOp<"barrier"> {
  let summary = "waits for all warps of the block";
  let description = [{
    What was read before it may be overwritten after it, where no `tile.wait` for a
    copy lies between.

    ```mlir
    tile.barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_IsFiniteOp : Tile_ComputeOp<"is_finite"> {
  let summary = "has a fragment neither NaN nor Inf?";
  let description = [{
    Of what the thread has of it, so threads answer differently (`tile.barrier_and`). A sum of products of finite
    numbers that is beyond float32 counts as Inf.

    ```mlir
    %own = tile.is_finite %s : !tile.frag<16x16, 1>
    ```
  }];
  let arguments = (ins In<Tile_Frag>:$place);
  let results = (outs I1:$finite);
  let assemblyFormat = "$place attr-dict `:` qualified(type($place))";
}

def Tile_BarrierAndOp : Tile_ComputeOp<"barrier_and"> {
  let summary = "a barrier, and whether all threads of the block say yes";
  let description = [{
    As `tile.barrier`; the same answer in the whole block.

    ```mlir
    %own = tile.is_finite %s : !tile.frag<16x16, 1>
    %all = tile.barrier_and %own
    ```
  }];
  let arguments = (ins I1:$own);
  let results = (outs I1:$all);
  let assemblyFormat = "$own attr-dict";
}

def Tile_MmaAbtOp : Tile_ComputeOp<"mma_abt"> {
  let summary = "starts s = Q K^T";
  let description = [{
    Constraints:
    - C1: s has Q's rows, rounded up to 16 of each warp, and as many columns as K has rows, or those of its first rows
      if K is swizzled; Q (in shared memory, or held in registers) and K have equal columns and element types.
    - C2: of SIMT tiles, all have as many lanes, and q has elements of f32.

    `negated`: -Q K^T, where a scale is negative and Q cannot be rewritten. `recomputed`: where Q's
    parts lie is worked out where they are read, and not kept in registers from tile to tile. `first`: of a swizzled Q,
    the rows from there on, as many as s has or as there are.

    ```mlir
    %t = tile.mma_abt %s, %Q, %K : !tile.frag<128x64, 4>, !tile.shared<128x128xbf16, 136>, !tile.shared<64x128xbf16,
        136>
    %u = tile.mma_abt %piece_s, %long_Q first 128, %short_K
        : !tile.frag<128x64, 8>, !tile.shared<208x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
    ```
  }];
  let arguments = (ins Out<Tile_AnyScores>:$s, In<AnyTypeOf<[Tile_Shared, Tile_RegisterOperand, Tile_SimtTile]>>:$q,
      In<AnyTypeOf<[Tile_Shared, Tile_SimtTile]>>:$k, UnitAttr:$negated, UnitAttr:$recomputed,
      OptionalAttr<I64Attr>:$first);
  let builders = [OpBuilder<
      (ins "::mlir::Value":$s, "::mlir::Value":$q, "::mlir::Value":$k, "bool":$negated, "bool":$recomputed), [{
    build($_builder, $_state, s, q, k, negated, recomputed, /*first=*/::mlir::IntegerAttr());
  }]>];
  let results = (outs Tile_ProductToken:$token);
  let assemblyFormat =
      [{ $s `,` $q (`first` $first^)? `,` $k attr-dict `:` qualified(type($s)) `,` qualified(type($q)) `,`
          qualified(type($k)) }];
  let hasVerifier = 1;
}

def Tile_MmaAbOp : Tile_ComputeOp<"mma_ab"> {
  let summary = "starts acc += P V";
  let description = [{
    P is the fragment `p`, rounded to V's element type, or held in registers
    after `tile.convert`. `guarded`: some rows of
    the tile may not see some of its keys, and a NaN or Inf in V must not reach
    them through 0 * NaN. With `when`, that is only so if the condition holds.

    Constraints:
    - C1: acc has p's rows and V's columns; p has as many columns as V has rows, or as many as its first rows if V is
      swizzled.
    - C2: of SIMT tiles, all have as many lanes, and acc has elements of f32.

    ```mlir
    %t = tile.mma_ab %acc, %s, %V {guarded}
        : !tile.frag<128x128, 4>, !tile.frag<128x64, 4>, !tile.shared<64x128xbf16, 136>
    ```
  }];
  let arguments = (ins Tile_AnySum:$acc, In<AnyTypeOf<[Tile_AnyScores, Tile_RegisterOperand]>>:$p,
      In<AnyTypeOf<[Tile_Shared, Tile_SimtTile]>>:$v, UnitAttr:$guarded, Optional<I1>:$when);
  let results = (outs Tile_ProductToken:$token);
  let assemblyFormat =
      [{ $acc `,` $p `,` $v (`when` `(` $when^ `)`)? attr-dict `:` qualified(type($acc)) `,` qualified(type($p)) `,`
          qualified(type($v)) }];
  let hasVerifier = 1;
}

#endif // TILE_OPS
