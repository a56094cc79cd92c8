// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels, places, copies and products. Ops on fragments, the KV loop, results and roles have files of their own.
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
  let summary = "the program of one CTA";
  let description = [{
    `convert-attn-to-tile` makes it from an `attn.problem`; the printer writes it as source. Bodies and dumps refer to
    arguments by name, `program.launch` gives a value for each, in order: tensors (`q`, `k`, `v`, `o`, `lse`), run-time
    arrays (`cu_seqlens_q`, ...), sizes (`batch`, `seqlen_q`, `total_q`, ...), and strides in elements (`q_row`,
    `k_head`, ...). The kernels of a problem are launched one after the other, in their order.

    `grid` says which CTAs a launch has:

    | grid | CTAs |
    |---|---|
    | `dense`, `packed` | one for each query tile and head |
    | `dense`, `packed` with `keys` | one for each KV tile and kv head (backward pass) |
    | `rows cluster N` | a cluster of N CTAs for each row of ids (`attn.segments`), or one for the whole batch |

    With `tiles N`, each sequence has N tiles for each head or group of heads, and a CTA's index gives its sequence.
    If a sequence has rows for more tiles, its CTAs loop over them (docs/Schedules/cta_per_sequence.md). A tile
    belongs to a CTA, or, with `simt_rows`, to a warp.

    With `longer M, N`, a launch has CTAs for the sequences of more than M queries or N keys only. In a packed grid,
    lists name the work tiles of these sequences (`metadata.list_work_tiles`). In a dense grid either all sequences are
    that long, or nothing is launched.

    With `residues N`, the rows of a tile are N positions apart: a tile of M rows spans M * N positions of a sequence,
    and has those of one residue modulo N. Each head has CTAs for each residue, and `heads` counts them all
    (`#tile.by_residue`).

    Constraints:
    - C1: as many argument names as arguments.
    - C2: target is "cpu", "sm_80" or "sm_90a".
    - C3: the grid has at least one head, or clusters of 1 to 16 CTAs (of 1 except for sm_90a).
    - C4: the rows of fragments are divided among warps: in a grid of KV tiles kv_tile is a multiple of 16 * warps,
      unless the schedule is `auxiliary`, whose kernels have no fragments.
    - C5: a kernel has `tiles` if its schedule has a CTA or a warp for each sequence; other kernels may have `tiles`
      in a packed grid of query tiles, or with a single-pass schedule. They are positive.
    - C6: `longer` only in grids of sequences without `tiles`; it is two numbers that are not negative.
    - C7: `residues` is from 2 to 8 and divides the heads, in grids without `tiles`, `longer` and clusters.

    ```mlir
    tile.kernel @copy(%q: !tile.ptr<bf16>, %batch: i32) target("cpu") grid(dense heads 4)
        schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
      %b = tile.index block
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$arg_names, StrAttr:$target, UnitAttr:$packed,
      UnitAttr:$keys, I64Attr:$heads, OptionalAttr<I64Attr>:$tiles, OptionalAttr<I64Attr>:$cluster,
      OptionalAttr<DenseI64ArrayAttr>:$longer, OptionalAttr<I64Attr>:$residues, Tile_ScheduleInterface:$schedule,
      OptionalAttr<I64Attr>:$shared_bytes);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let declarations = [{
    /// The distance of a tile's rows in positions: the number of residues, or 1.
    int64_t getRowStride() { return getResidues().value_or(1); }
    /// The argument of this name, or null.
    ::mlir::Value getArg(::llvm::StringRef name);
    /// Is the kernel persistent, with warp roles?
    bool isPersistent() { return bool(getRoles()); }
    /// The schedule's interface for roles; null where all warps do the same.
    ::attn::tile::WarpSpecializedInterface getRoles() { return ::attn::tile::warpSpecializationOf(getSchedule()); }
    /// Does each sequence have its own CTAs or warps, without roles?
    bool isPerSequenceWithoutRoles();
    /// Does each row of the batch have a cluster?
    bool hasRows() { return getCluster().has_value(); }
    /// Do query rows stay in the CTA while K/V tiles are streamed past them? That leaves few registers.
    bool isStationaryQBackward();
    /// The scale of the kernel's softmax ops; 1 if there are none.
    double getSoftmaxScale();
    /// Rows of a CTA's result tile: keys in a grid of KV tiles, else query rows.
    int64_t getTileRows() { return getKeys() ? getSchedule().getKvTile() : getSchedule().getQTile(); }
    /// Threads of a CTA, including the warpgroups of roles that are not consumers.
    int64_t getThreads() { return isPersistent() ? getRoles().getThreads() : getSchedule().getWarps() * 32; }
  }];
}

def Tile_IndexOp : Tile_ScalarOp<"index", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the number of this CTA, warpgroup, warp or lane group";
  let description = [{
    | kind | number |
    |---|---|
    | `block` | of this CTA in the grid |
    | `warpgroup` | of this warpgroup among the consumers: its 64 rows of a fragment begin at 64 times this number |
    | `warp` | of this warp in its CTA |
    | `global_warp` | of this warp in the launch |
    | `lane_group` | of this group of `lanes` lanes in its warp; a warp has one group on a CPU |

    With `below`, CTAs from that number on exit: the grid is an upper bound, and run-time arrays say how many CTAs
    have work. Values computed from a lane group's number differ within a warp; every other kind is uniform in a warp.

    Constraints:
    - C1: `below` goes with `block`, in the body of the kernel itself, from which the CTA returns.
    - C2: `lanes`, one of 1, 2, 4, 8, 16 and 32, goes with `lane_group`, and only with it.

    ```mlir
    tile.kernel @k(%blocks: i32) target("sm_80") grid(packed heads 1)
        schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
      %block = tile.index block below(%blocks)
      %warpgroup = tile.index warpgroup
      %lane_group = tile.index lane_group lanes 16
    }
    ```
  }];
  let arguments = (ins Tile_IndexKind:$kind, Optional<I32>:$below, OptionalAttr<I64Attr>:$lanes);
  let results = (outs I32:$result);
  let builders = [OpBuilder<(ins "::attn::tile::IndexKind":$kind), [{
    build($_builder, $_state, $_builder.getI32Type(), kind, /*below=*/::mlir::Value(), /*lanes=*/::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = "$kind (`below` `(` $below^ `)`)? (`lanes` $lanes^)? attr-dict";
  let hasVerifier = 1;
  let declarations = [{
    static IndexOp block(::mlir::OpBuilder &b, ::mlir::Location loc, ::mlir::Value below = {});
    static IndexOp laneGroup(::mlir::OpBuilder &b, ::mlir::Location loc, int64_t lanes);
    bool isBlock() { return getKind() == ::attn::tile::IndexKind::block; }
    bool isWarpgroup() { return getKind() == ::attn::tile::IndexKind::warpgroup; }
  }];
}

def Tile_FindSequenceOp
    : Tile_ScalarOp<"find_sequence", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the sequence and rows of a work tile in a packed layout";
  let description = [{
    Packed sequences have query tiles of their own, and the host does not count them. The work tiles of sequence b
    begin at number offsets[b] / q_tile + b + 1, where offsets[b] is the sequence's first token. This number is
    monotone in b and leaves room for a partial last tile, so that a CTA finds its sequence by a search over
    `offsets`. Work tiles before the first sequence and after the last one are padding. There are total / q_tile +
    batch + 2 work tiles.

    | result | meaning |
    |---|---|
    | `b` | the sequence |
    | `q0` | the tile's first row within the sequence |
    | `first` | the sequence's first token |
    | `rows` | rows to compute; 0 for padding, or if the sequence does not need this work tile |
    | `write_rows` | rows to write; those from `rows` on are padding and become zeros |

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
  let summary = "the first row, or the stride, of rows that are pairs of a query and a head";
  let description = [{
    Constraints:
    - C1: query and head are of the type's number type.

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
    A load is pure where no op of the kernel writes the array. `index` is i32 or i64. `uniform`: all threads of the
    CTA load the same element, so that addresses computed from it are computed once a warp.

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

def Tile_StoreEntryOp : Tile_ComputeOp<"store_entry"> {
  let summary = "writes one element of an array in global memory";
  let description = [{
    One thread of the warp writes it, or one thread of each warp. A kernel reads the element only after a barrier.

    ```mlir
    tile.store_entry %counts[%at], %full
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$array, I64:$index, I32:$value);
  let assemblyFormat = "$array `[` $index `]` `,` $value attr-dict";
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
    A place is a tile or a ring of tiles in shared memory, a fragment in registers, the softmax state of query rows,
    and the like. `tile-allocate-shared` sets the `offset` of places in shared memory, in bytes, and the offset of a
    ring's `barriers`. `slots`: the stages of the ring that `tile-assign-roles` makes of this tile, if not as many as
    the schedule says.

    `ring`: the roles on both sides of a ring of tiles, by which its barriers count arrivals. `tile-assign-roles` sets
    it, and `tile-verify-async` checks it against the ring's uses.

    | `ring` | filled by | read by |
    |---|---|---|
    | `loaded`, or none | the producer | consumers |
    | `loaded_for_dq_mma_too` | the producer | consumers and the dQ MMA warpgroup |
    | `stored_for_dq_mma` | consumers | the dQ MMA warpgroup |
    | `exchanged` | consumers | consumers |

    ```mlir
    %Q = tile.alloc "Q" : !tile.shared<128x128xbf16, 136>
    %K = tile.alloc "K" slots 2 : !tile.shared<128x128xbf16, swizzled>
    %s = tile.alloc "s" : !tile.frag<128x64, 4>
    ```
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$barriers,
      OptionalAttr<I64Attr>:$slots, OptionalAttr<Tile_RingUse>:$use);
  let results = (outs Tile_AnyPlace:$result);
  let assemblyFormat = "$name (`at` $offset^)? (`barriers` $barriers^)? (`slots` $slots^)? (`ring` $use^)? attr-dict "
                       "`:` qualified(type($result))";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::StringRef":$name), [{
    build($_builder, $_state, type, $_builder.getStringAttr(name), ::mlir::IntegerAttr(), ::mlir::IntegerAttr(),
        ::mlir::IntegerAttr(), ::attn::tile::RingUseAttr());
  }]>];
  let declarations = [{
    /// The roles on both sides of a ring, as its uses within `tile.roles` have them; nothing of other places.
    ::std::optional<::attn::tile::RingUse> findRingUse();
    ::attn::tile::RingUse getRingUse() { return getUse().value_or(::attn::tile::RingUse::loaded); }
  }];
}

def Tile_ClearOp : Tile_ComputeOp<"clear", [AttrSizedOperandSegments]> {
  let summary = "sets a fragment or numbers in global memory to 0, or softmax states to \"no key seen\"";
  let description = [{
    With `count`, a multiple of 4, numbers of an array: CTA `block` of `blocks` clears those of its grid-stride loop, so
    that all CTAs together clear all. A pointer without `count` is to one number, in a kernel whose CTAs are one warp.

    Constraints:
    - C1: `count` and `block` go together, with a pointer.

    ```mlir
    tile.clear %acc : !tile.frag<128x128, 4>
    tile.clear %sum count(%count) block(%block of %blocks) : !tile.ptr<f32>
    tile.clear %to : !tile.ptr<f32>
    ```
  }];
  let arguments = (ins Out<AnyTypeOf<[Tile_AnyAccumulator, Tile_AnySoftmaxState, Tile_FloatPtr]>>:$place,
      Optional<I64>:$count, Optional<I32>:$block, Optional<I32>:$blocks);
  let builders = [OpBuilder<(ins "::mlir::Value":$place),
                            "build($_builder, $_state, place, ::mlir::Value(), ::mlir::Value(), ::mlir::Value());">];
  let assemblyFormat = "$place (`count` `(` $count^ `)`)? (`block` `(` $block^ `of` $blocks `)`)? attr-dict `:` "
                       "qualified(type($place))";
  let hasVerifier = 1;
}

def Tile_LoadOperandOp : Tile_ComputeOp<"load_operand"> {
  let summary = "loads a tile from shared memory into a register operand";
  let description = [{
    Constraints:
    - C1: both have the same rows, columns and element type.

    ```mlir
    tile.load_operand %Q_operand, %Q : !tile.register_operand<128x64xbf16, 4>, !tile.shared<128x64xbf16, 72>
    ```
  }];
  let arguments = (ins Out<Tile_RegisterOperand>:$operand, In<Tile_Shared>:$src);
  let assemblyFormat = "$operand `,` $src attr-dict `:` qualified(type($operand)) `,` qualified(type($src))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Asynchronous: copies and products
//===----------------------------------------------------------------------===//

def Tile_CopyAsyncOp : Tile_ComputeOp<"copy_async", [AttrSizedOperandSegments]> {
  let summary = "starts copying rows from global to shared memory (cp.async)";
  let description = [{
    Copies `rows` rows (at most the place's) of `dim` elements, which lie `stride` elements apart. Everything else in
    the place becomes 0, so that nothing beyond a sequence is read. With `from`, rows before `first` become 0, too, and
    are not read; `src` is the address that row 0 would have. With `when`, nothing happens unless the condition
    holds, and waiting for the token then returns at once. `once`: the copy is not in a loop over tiles; each thread
    advances its own pointer, which takes registers and saves instructions.

    Constraints:
    - C1: dim is a multiple of 8 and at most the place's columns; element types agree.
    - C2: with `from` there is no `once`, and the stride is a number.

    ```mlir
    %t = tile.copy_async %K, %src stride(%k_row) rows(%n) dim 128 when(%more)
      : !tile.shared<64x128xbf16, 136>, !tile.ptr<bf16>
    %u = tile.copy_async %K, %src stride(%k_row) rows(%n from %first) dim 128
      : !tile.shared<64x128xbf16, 136>, !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Out<Tile_Shared>:$dst, Tile_Ptr:$src, Tile_Stride:$stride, I32:$rows, Optional<I32>:$first,
      I64Attr:$dim, Optional<I1>:$when, UnitAttr:$once);
  let results = (outs Tile_CopyToken:$token);
  let builders = [OpBuilder<(ins "::mlir::Value":$dst, "::mlir::Value":$src, "::mlir::Value":$stride,
                                "::mlir::Value":$rows, "int64_t":$dim, "::mlir::Value":$when,
                                CArg<"bool", "false">:$once),
                            [{
    build($_builder, $_state, dst, src, stride, rows, /*first=*/::mlir::Value(), dim, when, once);
  }]>];
  let assemblyFormat = [{
    (`once` $once^)? $dst `,` $src `stride` `(` $stride `` custom<Stride>(type($stride)) `)`
    `rows` `(` $rows (`from` $first^)? `)` `dim` $dim (`when` `(` $when^ `)`)? attr-dict
    `:` qualified(type($dst)) `,` qualified(type($src))
  }];
  let hasVerifier = 1;
}

def Tile_CopyTmaOp : Tile_ComputeOp<"copy_tma", [AttrSizedOperandSegments]> {
  let summary = "starts copying a box of a tensor to shared memory (TMA)";
  let description = [{
    Copies the tensor's rows from `row` on, of one head of one sequence, or, with a map of several heads, of the map's
    heads from `head` on, whose rows alternate. Elements beyond the tensor's bounds become 0. Rows of a packed tensor
    count through all sequences; `rows` says how many are left of the sequence (none, if less than 0), and rows beyond
    them become 0. A place may have room for several boxes: `boxes` says how many are copied, of consecutive rows.

    With a map of `stride` s, the copied rows are `row`, `row` + s, ..., and the place may have the rows of several
    boxes, which are all copied. `rows` counts all rows of the sequence that are left, not those of one residue.

    Constraints:
    - C1: the place is swizzled and has the map's element type and rows, or the rows of several boxes with `boxes` or
      a map with a stride.
      (With a map of several heads, the last rows of the place, fewer than one query has heads, may be missing in the
      box. They belong to no query.)
    - C2: a packed map has `rows`, another one a batch.
    - C3: `boxes`, of a packed map without heads and stride, are positive, and no more than the place has room for.

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
    Afterwards the destinations of the tokens may be read. Waiting for a copy is also a barrier of the CTA: places
    that were read before it may be overwritten after it.

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
  let summary = "a product token without a product";
  let description = [{
    A loop carries it into the first step, where each step waits for a product that the previous step started. Waiting
    for this token returns at once.

    ```mlir
    %none = tile.null_product
    ```
  }];
  let results = (outs Tile_ProductToken:$token);
  let assemblyFormat = "attr-dict";
}

def Tile_WaitFiniteOp : Tile_ComputeOp<"wait_finite"> {
  let summary = "waits for copies and returns whether a tile is finite";
  let description = [{
    As `tile.wait`; the result is the same in the whole CTA. A product with a tile that has NaN or Inf has to be
    `guarded` where some rows may not see some keys; a product with a finite tile does not.

    Constraints:
    - C1: one of the copies wrote the tile.

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
    The subtile begins at the tile's first row and at `column`. It aliases the tile: a copy into the subtile
    overwrites the tile.

    Constraints:
    - C1: neither is swizzled; both have the same pitch and element type; the subtile has at most the tile's rows and
      columns.

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
  let summary = "waits for all warps of the CTA, or for all lanes of the warp";
  let description = [{
    What was read before it may be overwritten after it, where no `tile.wait` for a copy lies between. `warp`: what
    lanes of the warp wrote to memory before it, other lanes of the warp may read after it.

    ```mlir
    tile.barrier
    tile.barrier warp
    ```
  }];
  let arguments = (ins UnitAttr:$warp);
  let assemblyFormat = "(`warp` $warp^)? attr-dict";
}

def Tile_GridDependencySyncOp : Tile_ComputeOp<"grid_dependency_sync"> {
  let summary = "waits until the preceding kernel is complete";
  let description = [{
    Makes a kernel that launches early (programmatic dependent launch, `griddepcontrol`): its CTAs may start while the
    preceding kernel of the stream still runs, and wait here until that kernel is complete and its writes are visible.
    It comes before all reads and writes of memory, and lets the next kernel launch early. Kernels with warp roles do
    the same where their roles begin. From sm_90 on: programs for `sm_90a` have it, in kernels of the target `sm_80`,
    too, which are compiled for the program's chip.

    ```mlir
    tile.grid_dependency_sync
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_IsFiniteOp : Tile_ComputeOp<"is_finite"> {
  let summary = "whether a fragment has neither NaN nor Inf";
  let description = [{
    Each thread tests its own elements, so the result differs between threads (`tile.barrier_and`). A sum of products
    of finite numbers that overflows float32 counts as Inf.

    ```mlir
    %own = tile.is_finite %s : !tile.frag<16x16, 1>
    ```
  }];
  let arguments = (ins In<Tile_Frag>:$place);
  let results = (outs I1:$finite);
  let assemblyFormat = "$place attr-dict `:` qualified(type($place))";
}

def Tile_BarrierAndOp : Tile_ComputeOp<"barrier_and"> {
  let summary = "a barrier that returns the conjunction of all threads' conditions";
  let description = [{
    As `tile.barrier`; the result is the same in the whole CTA.

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
    - C1: s has Q's rows, rounded up to 16 of each warp, and as many columns as K has rows, or fewer if K is swizzled,
      whose first rows are then read. Q (in shared memory, or a register operand) and K have equal columns and element
      types.
    - C2: SIMT tiles all have as many lanes, and q has elements of f32.

    `negated`: -Q K^T, for a negative scale where Q cannot be rewritten. `recomputed`: descriptors of Q are computed
    where they are used, and not kept in registers across tiles. `first`, a multiple of 64: the rows of a swizzled Q
    from this one on, as many as s has or as there are.

    ```mlir
    %t = tile.mma_abt %s, %Q, %K
        : !tile.frag<128x64, 4>, !tile.shared<128x128xbf16, 136>, !tile.shared<64x128xbf16, 136>
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
    P is the fragment `p`, converted to V's element type, or a register operand, which `tile.convert` wrote.
    `guarded`: some rows of the tile may not see some of its keys, and a NaN or Inf in V must not reach these rows
    through 0 * NaN. With `when`, the product is guarded only if the condition holds.

    Constraints:
    - C1: acc has p's rows and V's columns; p has as many columns as V has rows, or fewer if V is swizzled, whose
      first rows are then read.
    - C2: SIMT tiles all have as many lanes, and acc has elements of f32.

    ```mlir
    %t = tile.mma_ab %acc, %s, %V {guarded}
        : !tile.frag<128x128, 4>, !tile.frag<128x64, 4>, !tile.shared<64x128xbf16, 136>
    ```
  }];
  let arguments = (ins Tile_AnyAccumulator:$acc, In<AnyTypeOf<[Tile_AnyScores, Tile_RegisterOperand]>>:$p,
      In<AnyTypeOf<[Tile_Shared, Tile_SimtTile]>>:$v, UnitAttr:$guarded, Optional<I1>:$when);
  let results = (outs Tile_ProductToken:$token);
  let assemblyFormat =
      [{ $acc `,` $p `,` $v (`when` `(` $when^ `)`)? attr-dict `:` qualified(type($acc)) `,` qualified(type($p)) `,`
          qualified(type($v)) }];
  let hasVerifier = 1;
}

#endif // TILE_OPS
