// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The persistent loop, warp roles, and their synchronisation: rings, mailbox, ping-pong.
#ifndef TILE_ROLE_OPS
#define TILE_ROLE_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def Tile_PersistentLoopOp
    : Tile_ControlOp<"persistent_loop", [SingleBlock, NoTerminator, AttrSizedOperandSegments,
                                         DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "runs its body for one work tile after the other";
  let description = [{
    A launch has as many CTAs as the chip holds. Each CTA takes the next number that no CTA has taken yet, in order,
    until `blocks` are done.

    `in_order`: CTAs begin numbers in ascending order even without a tile queue, where each CTA counts by itself: a CTA
    may wait for those with lower numbers (`tile.add_staged` with a semaphore).

    With roles, only the producer draws numbers, from `queue`. It publishes each one with `tile.publish_work`. The
    loops of other roles read them from `mailbox`, and their region has an argument for each word published, the block
    number first.

    ```mlir
    tile.persistent_loop %blocks, %queue {
    ^bb0(%block: i32):
    }
    ```
  }];
  let arguments = (ins I32:$blocks, Optional<Tile_Queue>:$queue, Optional<Tile_Mailbox>:$mailbox, UnitAttr:$in_order);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat =
      [{ $blocks (`,` $queue^)? (`mailbox` `(` $mailbox^ `:` qualified(type($mailbox)) `)`)? (`in_order` $in_order^)?
          $body attr-dict }];
  let hasVerifier = 1;
  let declarations = [{
    /// The name of a word in IR and kernels: its location's name, if it has one.
    static ::llvm::StringRef nameOf(::mlir::BlockArgument word);
  }];
}

def Tile_PublishWorkOp : Tile_ProducerOp<"publish_work"> {
  let summary = "publishes a work tile to the other roles: its number and scalars derived from it";
  let description = [{
    Constraints:
    - C1: as many words as the mailbox has.

    ```mlir
    tile.publish_work %mailbox(%block, %b) : !tile.mailbox<2>
    ```
  }];
  let arguments = (ins Out<Tile_Mailbox>:$mailbox, Variadic<I32>:$words);
  let assemblyFormat = "$mailbox `(` $words `)` attr-dict `:` qualified(type($mailbox))";
  let hasVerifier = 1;
}

def Tile_ReloadWorkOp : Tile_ComputeOp<"reload_work"> {
  let summary = "reads a word of the current message again";
  let description = [{
    A word that is used before and after a loop then needs no register in the loop. The message stays in its slot
    until `tile.release_work`.

    Constraints:
    - C1: word is a word of the mailbox.

    ```mlir
    %rows = tile.reload_work %mailbox[1] : !tile.mailbox<2>
    ```
  }];
  let arguments = (ins In<Tile_Mailbox>:$mailbox, I64Attr:$word);
  let results = (outs I32:$result);
  let assemblyFormat = "$mailbox `` `[` $word `]` attr-dict `:` qualified(type($mailbox))";
  let hasVerifier = 1;
}

def Tile_ReleaseWorkOp : Tile_ComputeOp<"release_work"> {
  let summary = "releases the mailbox slot of the current message";
  let description = [{
    The last op of a loop over messages that reloads words. A loop without it releases the slot as soon as it has read
    all words.

    ```mlir
    tile.release_work %mailbox : !tile.mailbox<2>
    ```
  }];
  let arguments = (ins Tile_Mailbox:$mailbox);
  let assemblyFormat = "$mailbox attr-dict `:` qualified(type($mailbox))";
}

def Tile_OptimizationBarrierOp : Tile_ControlOp<"optimization_barrier"> {
  let summary = "the same number, opaque to the compiler";
  let description = [{
    Values derived from the result are computed inside the loop over messages, and are not hoisted out of it, where
    they would take registers that the producer, dQ MMA and dQ store roles do not have.

    ```mlir
    %rows = tile.optimization_barrier %seqlen_q
    ```
  }];
  let arguments = (ins I32:$number);
  let results = (outs I32:$result);
  let assemblyFormat = "$number attr-dict";
}

def Tile_RolesOp : Tile_ControlOp<"roles", [SingleBlock, NoTerminator]> {
  let summary = "splits a CTA's warps into roles: one loads tiles, the others compute";
  let description = [{
    | region | run by |
    |---|---|
    | `producer` | one warp, whose warpgroup gives most of its registers to the others |
    | `consumer` | all `warps` of the schedule, each for its own 16 rows |
    | `dq_mma` | where the schedule has `dq_columns`: a warpgroup that multiplies the dS tiles that consumers store |
    | `dq_store` | where `tile.add_global` has a staging place: two more warps of the producer's warpgroup |

    The roles communicate through rings, staging places and the mailbox only. `registers` are those of a thread: of
    the producer and dQ store warps, of consumers, of the dQ MMA warpgroup.

    Constraints:
    - C1: a dQ MMA warpgroup has registers, and without one there are none.

    ```mlir
    tile.roles registers(40, 232) producer {
    } consumer {
    }
    tile.roles registers(32, 208, 64) producer {
    } consumer {
    } dq_mma {
    } dq_store {
    }
    ```
  }];
  let arguments = (ins I64Attr:$producer_registers, I64Attr:$consumer_registers,
      OptionalAttr<I64Attr>:$dq_mma_registers);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumer, MaxSizedRegion<1>:$dq_mma,
      MaxSizedRegion<1>:$dq_store);
  let assemblyFormat = [{
    `registers` `(` $producer_registers `,` $consumer_registers (`,` $dq_mma_registers^)? `)` `producer` $producer
        `consumer` $consumer
    (`dq_mma` $dq_mma^)? (`dq_store` $dq_store^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_ProducerLoadOp : Tile_ProducerOp<"producer_load", [AttrSizedOperandSegments]> {
  let summary = "waits for the ring's next slot to be empty and starts copying a box to it";
  let description = [{
    Constraints:
    - C1: the ring's tile has the map's element type and rows, or, with `boxes`, the rows of several boxes, as in
      `tile.copy_tma`.
    - C2: a packed map has `rows`, as in `tile.copy_tma`, another one a batch.
    - C3: `boxes` as in `tile.copy_tma`.

    ```mlir
    tile.producer_load %K, %k_map at(%row, %head, %b) : !tile.ring<2, !tile.shared<128x128xbf16, swizzled>>,
        !tile.tensor_map<128xbf16>
    ```
  }];
  let arguments = (ins Out<Tile_Ring>:$ring, Tile_TensorMap:$map, I32:$row, I32:$head, Optional<I32>:$batch,
      Optional<I32>:$rows, OptionalAttr<I64Attr>:$boxes);
  let assemblyFormat = [{
    $ring `,` $map `at` `(` $row `,` $head (`,` $batch^)? `)` (`rows` `(` $rows^ `)`)? (`boxes` $boxes^)? attr-dict `:`
        qualified(type($ring)) `,` qualified(type($map))
  }];
  let hasVerifier = 1;
}

def Tile_ConsumerWaitOp
    : Tile_ComputeOp<"consumer_wait", [AttrSizedOperandSegments,
                                       DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
                                       TypesMatchWith<"the ring's tile", "ring", "tile",
                                                      "::llvm::cast<::attn::tile::RingType>($_self).getTile()">]> {
  let summary = "waits for the ring's next tile";
  let description = [{
    The tile may be read until `tile.consumer_release` of the same ring, or `tile.consumer_advance`. If the condition
    of `if` is false, the ring has no next tile: this op does not wait, nothing has to be released, and reads get the
    tile of `else`, which the role already has; their results are not used. (In a branch, a product would have to be
    waited for, and addresses would be computed again.)

    Constraints:
    - C1: `if` and `else` go together, and the other tile has columns and an element type like the ring's, and as many
      rows or more.

    ```mlir
    %K_tile = tile.consumer_wait %K : !tile.ring<2, !tile.shared<128x128xbf16, swizzled>>
    %Q_tile = tile.consumer_wait %Q if(%some) else(%K_tile : !tile.shared<128x128xbf16, swizzled>)
        : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring, Optional<I1>:$condition, In<Optional<Tile_Shared>>:$else_tile);
  let results = (outs AnyTypeOf<[Tile_Shared, Tile_RowStatistics]>:$tile);
  let builders = [OpBuilder<(ins "::mlir::Value":$ring), [{
    build($_builder, $_state, ring, /*condition=*/::mlir::Value(), /*else_tile=*/::mlir::Value());
  }]>];
  let assemblyFormat = [{
    $ring (`if` `(` $condition^ `)`)? (`else` `(` $else_tile^ `:` qualified(type($else_tile)) `)`)? attr-dict `:`
        qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def Tile_ConsumerAdvanceOp
    : Tile_ComputeOp<"consumer_advance", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
                                          TypesMatchWith<"the ring's tile", "ring", "tile",
                                                         "::llvm::cast<::attn::tile::RingType>($_self).getTile()">]> {
  let summary = "advances to the ring's next tile without releasing the current one";
  let description = [{
    The current tile may be read under its new name until a `tile.consumer_release` with `passed`. Only one tile at a
    time may be passed.

    Constraints:
    - C1: the ring has two stages or more: otherwise there is no next tile before the passed one is released.

    ```mlir
    %Q_passed = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring);
  let results = (outs AnyTypeOf<[Tile_Shared, Tile_RowStatistics]>:$tile);
  let assemblyFormat = "$ring attr-dict `:` qualified(type($ring))";
  let hasVerifier = 1;
}

def Tile_ConsumerReleaseOp : Tile_ComputeOp<"consumer_release", [AttrSizedOperandSegments]> {
  let summary = "frees the slot of the tile that was waited for, or of the previous one";
  let description = [{
    `passed`: the slot of the tile before `tile.consumer_advance`. `when`: only if the condition holds, which says
    whether the ring was advanced at all.

    `unless`: an early release, in a loop or a branch. In the last step, where its condition (a step follows) is false,
    it frees the slot; otherwise it does nothing. A plain release always follows after the loop or the branches,
    and frees the slot if no early release did.

    Lanes read row statistics with plain loads, which may be under way when the slot is freed, and a bulk copy could
    overtake them: the release has a fence. `fenced`: the fence of the `tile.producer_commit` before it does for both.

    Constraints:
    - C1: `when` goes with `passed`, and `unless` with neither `passed` nor `fenced`.
    - C2: `fenced` is for rings of row statistics, right after a `tile.producer_commit` or another such release.
    - C3: row statistics are not `passed`, and not released early.
    - C4: in a `tile.kv_loop`, the condition of `unless` is the loop's own `more`.

    ```mlir
    tile.consumer_release %K : !tile.ring<2, !tile.shared<128x128xbf16, swizzled>>
    tile.consumer_release %Q passed when(%later) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    tile.consumer_release %Q unless(%more) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    tile.producer_commit %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %stats fenced : !tile.ring<2, !tile.row_statistics<64>>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring, UnitAttr:$passed, Optional<I1>:$when, Optional<I1>:$unless, UnitAttr:$fenced);
  let builders = [OpBuilder<(ins "::mlir::Value":$ring), [{
    build($_builder, $_state, ring, /*passed=*/false, /*when=*/::mlir::Value(), /*unless=*/::mlir::Value(),
          /*fenced=*/false);
  }]>];
  let assemblyFormat = [{
    $ring (`passed` $passed^)? (`when` `(` $when^ `)`)? (`unless` `(` $unless^ `)`)? (`fenced` $fenced^)? attr-dict `:`
        qualified(type($ring))
  }];
  let hasVerifier = 1;
  let declarations = [{
    /// Frees the slot before its release, unless another step follows.
    static ConsumerReleaseOp early(::mlir::OpBuilder &b, ::mlir::Location loc, ::mlir::Value ring,
                                   ::mlir::Value unless);
  }];
}

def Tile_WarpgroupRowsOp
    : Tile_ScalarOp<"warpgroup_rows", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
                                       AllTypesMatch<["tile", "rows"]>]> {
  let summary = "the rows of a tile that a warpgroup reads as a left operand";
  let description = [{
    The same tile, with the address of the warpgroup's own rows: computed once, and uniform in the warpgroup. Only
    `tile.mma_abt` may read it.

    ```mlir
    %K_rows = tile.warpgroup_rows %K_tile : !tile.shared<128x128xbf16, swizzled>
    ```
  }];
  let arguments = (ins Tile_Shared:$tile);
  let results = (outs Tile_Shared:$rows);
  let assemblyFormat = "$tile attr-dict `:` qualified(type($tile))";
}

def Tile_PingPongWaitOp : Tile_ComputeOp<"ping_pong_wait"> {
  let summary = "waits until this warpgroup may start its products";
  let description = [{
    Without ping-pong, warpgroups may run in phase, so that tensor cores and exp2 units wait for each other. All
    warpgroups execute as many `tile.ping_pong_wait` and `tile.ping_pong_arrive`.

    ```mlir
    tile.ping_pong_wait
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_PingPongArriveOp : Tile_ComputeOp<"ping_pong_arrive"> {
  let summary = "lets the next warpgroup begin its products";
  let description = [{
    ```mlir
    tile.ping_pong_arrive
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // TILE_ROLE_OPS
