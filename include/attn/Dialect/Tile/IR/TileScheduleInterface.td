// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all schedules have: sizes of a CTA's tile and of the CTA. The attributes are in TileSchedules.td.
#ifndef TILE_SCHEDULE_INTERFACE
#define TILE_SCHEDULE_INTERFACE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Tile_ScheduleInterface : AttrInterface<"ScheduleInterface"> {
  let cppNamespace = "::attn::tile";
  let description = [{
    How a kernel is built: which of its rows and keys a CTA has at a time, and how many warps compute them. An attribute
    has only the parameters that mean something for it.
  }];
  let methods = [InterfaceMethod<"Rows of a query tile.", "int64_t", "getQTile">,
                 InterfaceMethod<"Keys of a KV tile.", "int64_t", "getKvTile">,
                 InterfaceMethod<"Warps of a CTA that compute.", "int64_t", "getWarps">,
                 InterfaceMethod<"CTAs that a multiprocessor should have room for.", "int64_t", "getBlocks">,
                 InterfaceMethod<"Query heads of a kv head whose rows share a query tile (GQA packing).", "int64_t",
                                 "getPackHeads", (ins), "", "return 1;">,
                 InterfaceMethod<"Is the walk over KV tiles one loop that asks which tiles to mask?", "bool",
                                 "getSingleLoop", (ins), "", "return false;">];
  let extraSharedClassDeclaration = [{
    /// Queries of a query tile. With packed heads, its last rows may belong to none.
    int64_t getQueries() const { return $_attr.getQTile() / $_attr.getPackHeads(); }
  }];
}

def Tile_WarpSpecializedInterface : AttrInterface<"WarpSpecializedInterface", [Tile_ScheduleInterface]> {
  let cppNamespace = "::attn::tile";
  let description = [{
    A schedule for Hopper with warps of several roles: a producer warp brings tiles by TMA, consumer warpgroups multiply
    them. Tiles wait in rings of shared memory.
  }];
  let methods = [InterfaceMethod<"Stages of the rings of streamed tiles.", "int64_t", "getStages">,
                 InterfaceMethod<"Stages of the ring of stationary tiles.", "int64_t", "getQStages">,
                 InterfaceMethod<"Do consumer warpgroups begin their products one after the other?", "bool",
                                 "getPingpong", (ins), "", "return false;">,
                 InterfaceMethod<"Columns of dQ that its own MMA warpgroup makes at a time; 0: there is none.",
                                 "int64_t", "getDqColumns", (ins), "", "return 0;">];
  let extraSharedClassDeclaration = [{
    /// Threads of a CTA: the consumers', and a warpgroup each for the producer and the dQ MMA warpgroup.
    int64_t getThreads() const { return 32 * $_attr.getWarps() + ($_attr.getDqColumns() ? 256 : 128); }
    /// Registers that a thread is launched with; they come in eights.
    int64_t getRegistersAtLaunch() const { return 64 * 1024 / $_attr.getBlocks() / getThreads() / 8 * 8; }
  }];
}

#endif // TILE_SCHEDULE_INTERFACE
