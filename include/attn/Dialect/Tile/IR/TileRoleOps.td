// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent blocks and their roles: who brings tiles, who computes, and what they tell each other.
#ifndef TILE_ROLE_OPS
#define TILE_ROLE_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def Tile_PersistentLoopOp
    : Tile_ControlOp<"persistent_loop", [SingleBlock, NoTerminator, AttrSizedOperandSegments,
                                         DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "runs its body for one block number after the other";
  let description = [{
    A launch has as many blocks as the chip holds; each takes the next number
    that nobody has taken yet, in order, until `blocks` are done.

    With roles, only the one that loads asks (`queue`); it tells the others with
    `tile.publish_work`, and their loop's region has an argument for each word sent, the
    block number first.

    ```mlir
    tile.persistent_loop %blocks, %queue {
    ^bb0(%block: i32):
    }
    ```
  }];
  let arguments = (ins I32:$blocks, Optional<Tile_Queue>:$queue, Optional<Tile_Mailbox>:$mailbox);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat =
      [{ $blocks (`,` $queue^)? (`mailbox` `(` $mailbox^ `:` qualified(type($mailbox)) `)`)? $body attr-dict }];
  let hasVerifier = 1;
  let declarations = [{
    /// What a word is called in IR and kernels: its location's name, if it has one.
    static ::llvm::StringRef nameOf(::mlir::BlockArgument word);
  }];
}

def Tile_PublishWorkOp : Tile_ProducerOp<"publish_work"> {
  let summary = "tells the roles that compute what they are to compute next";
  let description = [{
    Constraints:
    - C1: as many words as the feed has.

    ```mlir
    tile.publish_work %mailbox(%block, %b) : !tile.mailbox<2>
    ```
  }];
  let arguments = (ins Out<Tile_Mailbox>:$mailbox, Variadic<I32>:$words);
  let assemblyFormat = "$mailbox `(` $words `)` attr-dict `:` qualified(type($mailbox))";
  let hasVerifier = 1;
}

def Tile_ReloadWorkOp : Tile_ComputeOp<"reload_work"> {
  let summary = "a word of the message in hand, read again";
  let description = [{
    For what is wanted before a loop and behind it: in between it needs no register. The message
    stays in its slot until `tile.release_work`.

    Constraints:
    - C1: word is one of the feed's.

    ```mlir
    %rows = tile.reload_work %feed[1] : !tile.mailbox<2>
    ```
  }];
  let arguments = (ins In<Tile_Mailbox>:$mailbox, I64Attr:$word);
  let results = (outs I32:$result);
  let assemblyFormat = "$mailbox `` `[` $word `]` attr-dict `:` qualified(type($mailbox))";
  let hasVerifier = 1;
}

def Tile_ReleaseWorkOp : Tile_ComputeOp<"release_work"> {
  let summary = "gives the slot of the message in hand back";
  let description = [{
    The last thing in a loop over messages that recalls words. A loop without it gives the slot back as soon as
    it has read all words.

    ```mlir
    tile.release_work %feed : !tile.mailbox<2>
    ```
  }];
  let arguments = (ins Tile_Mailbox:$mailbox);
  let assemblyFormat = "$mailbox attr-dict `:` qualified(type($mailbox))";
}

def Tile_OptimizationBarrierOp : Tile_ControlOp<"optimization_barrier"> {
  let summary = "the same number, from here on";
  let description = [{
    What follows from it is worked out where it stands, for each message, and not ahead of the loop over all of them:
    there it would take registers that roles do not have which bring or add.

    ```mlir
    %rows = tile.optimization_barrier %seqlen_q
    ```
  }];
  let arguments = (ins I32:$number);
  let results = (outs I32:$result);
  let assemblyFormat = "$number attr-dict";
}

def Tile_RolesOp : Tile_ControlOp<"roles", [SingleBlock, NoTerminator]> {
  let summary = "splits a block's warps: one part brings tiles, the rest computes";
  let description = [{
    The `producer` is one warp (of a warpgroup that gives most of its registers
    away); the `consumer` region is run by all warps of the schedule, each on its
    16 rows; the `dq_mma`, where the schedule has `dq_columns`, is a warpgroup that multiplies what consumers
    share; the `dq_store`, if there is something to add up in memory, is two more warps of the producer's
    warpgroup. They meet in rings, in staging places and in the feed only. `registers` are a thread's:
    of producer and adder, of consumers, of the reducer.

    Constraints:
    - C1: a reducer has registers, and without one there are none.

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
  let summary = "waits for the ring's next slot to be empty and starts copying a box into it";
  let description = [{
    Constraints:
    - C1: the ring's tile has the map's element type, and its rows or, with `boxes`, those of several, as in
      `tile.copy_tma`.
    - C2: a packed map has `rows`, as there, another one a batch.
    - C3: `boxes` as there.

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
    The tile may be read until `tile.consumer_release`, of the same ring, or `tile.consumer_advance`. `if` there is
    none, nothing is waited for and nothing has to be released; what is read then, to no end, is the tile behind `else`,
    which the role has. (A product in a branch of its own would be waited for there, and addresses that loops keep be
    worked out anew.)

    Constraints:
    - C1: `if` and `else` go together, and the other tile has columns and an element type like the ring's, and as many
      rows or more.

    ```mlir
    %K_tile = tile.consumer_wait %K : !tile.ring<2, !tile.shared<128x128xbf16, swizzled>>
    %Q_tile = tile.consumer_wait %Q if(%some) else(%K_tile : !tile.shared<128x128xbf16, swizzled>)
        : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring, Optional<I1>:$more, In<Optional<Tile_Shared>>:$otherwise);
  let results = (outs AnyTypeOf<[Tile_Shared, Tile_RowStatistics]>:$tile);
  let builders = [OpBuilder<(ins "::mlir::Value":$ring), [{
    build($_builder, $_state, ring, /*more=*/::mlir::Value(), /*otherwise=*/::mlir::Value());
  }]>];
  let assemblyFormat = [{
    $ring (`if` `(` $more^ `)`)? (`else` `(` $otherwise^ `:` qualified(type($otherwise)) `)`)? attr-dict `:`
        qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def Tile_ConsumerAdvanceOp
    : Tile_ComputeOp<"consumer_advance", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
                                          TypesMatchWith<"the ring's tile", "ring", "tile",
                                                         "::llvm::cast<::attn::tile::RingType>($_self).getTile()">]> {
  let summary = "goes on to the next tile and keeps the one taken last";
  let description = [{
    It may be read under its new name until `tile.consumer_release` of the passed one. One tile at a time is passed.

    Constraints:
    - C1: the ring has two stages or more: else there is no next tile before the passed one is released.

    ```mlir
    %Q_held = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
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

    `unless`: the slot is freed early if there are no `more` steps, in the last step of a loop or in a branch; nothing
    reads the tile behind this op then. A release without `unless` still follows behind the loop or the branches, and
    frees what was not freed here (by a loop without steps, or in the other branch).

    Lanes read row statistics with plain loads, which may be under way when the slot is freed, and a bulk copy could
    overtake them: the release has a fence. `fenced`: the fence of the `tile.producer_commit` ahead of it does for both.

    Constraints:
    - C1: `when` goes with `passed`, and `unless` with neither `passed` nor `fenced`.
    - C2: `fenced` is for rings of row statistics, right behind a `tile.producer_commit` or another such release.
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
  let arguments = (ins Tile_Ring:$ring, UnitAttr:$passed, Optional<I1>:$when, Optional<I1>:$more, UnitAttr:$fenced);
  let builders = [OpBuilder<(ins "::mlir::Value":$ring), [{
    build($_builder, $_state, ring, /*passed=*/false, /*when=*/::mlir::Value(), /*more=*/::mlir::Value(),
          /*fenced=*/false);
  }]>];
  let assemblyFormat = [{
    $ring (`passed` $passed^)? (`when` `(` $when^ `)`)? (`unless` `(` $more^ `)`)? (`fenced` $fenced^)? attr-dict `:`
        qualified(type($ring))
  }];
  let hasVerifier = 1;
  let declarations = [{
    /// Frees the slot ahead of its release, where there are no `more` steps.
    static ConsumerReleaseOp early(::mlir::OpBuilder &b, ::mlir::Location loc, ::mlir::Value ring, ::mlir::Value more);
  }];
}

def Tile_WarpgroupRowsOp
    : Tile_ScalarOp<"warpgroup_rows", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
                                       AllTypesMatch<["tile", "rows"]>]> {
  let summary = "the rows of a tile that a warpgroup reads as a left operand";
  let description = [{
    The same tile, where it is known to begin at the warpgroup's own rows: worked out once, and the same for all of its
    lanes. Only `tile.mma_abt` may read it.

    ```mlir
    %K_rows = tile.warpgroup_rows %K_tile : !tile.shared<128x128xbf16, swizzled>
    ```
  }];
  let arguments = (ins Tile_Shared:$tile);
  let results = (outs Tile_Shared:$rows);
  let assemblyFormat = "$tile attr-dict `:` qualified(type($tile))";
}

def Tile_PingPongWaitOp : Tile_ComputeOp<"ping_pong_wait"> {
  let summary = "waits until it is this warpgroup's turn to begin products";
  let description = [{
    Left to themselves, warpgroups may fall into step, and tensor cores and exp2
    units wait for each other. Every warpgroup has to take and pass as many turns
    as the others.

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
