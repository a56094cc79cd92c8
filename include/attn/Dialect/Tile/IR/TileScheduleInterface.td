// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interfaces of schedules: sizes of a CTA's tile and of the CTA. The attributes are in TileSchedules.td.
#ifndef TILE_SCHEDULE_INTERFACE
#define TILE_SCHEDULE_INTERFACE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Tile_ScheduleInterface : AttrInterface<"ScheduleInterface"> {
  let cppNamespace = "::attn::tile";
  let description = [{
    How a kernel is built: how many rows and keys a CTA has at a time, and how many warps compute them. An attribute has
    only the parameters that apply to it.
  }];
  let methods = [InterfaceMethod<"Rows of a query tile.", "int64_t", "getQTile">,
                 InterfaceMethod<"Keys of a KV tile.", "int64_t", "getKvTile">,
                 InterfaceMethod<"Consumer warps of a CTA; without roles, all warps.", "int64_t", "getWarps">,
                 InterfaceMethod<"CTAs that a multiprocessor should have room for.", "int64_t", "getCtasPerSm">,
                 InterfaceMethod<"Heads whose rows share a query tile (GQA packing).", "int64_t", "getPackHeads", (ins),
                                 "", "return 1;">,
                 InterfaceMethod<"Is the KV loop one loop that tests which tiles need the mask?", "bool",
                                 "getSingleLoop", (ins), "", "return false;">,
                 InterfaceMethod<"What a CTA or a warp computes.", "::attn::tile::WorkUnit", "getUnit", (ins), "",
                                 "return ::attn::tile::WorkUnit::tile;">,
                 InterfaceMethod<"Does a CTA loop over all query tiles of its sequence?", "bool", "hasWholeSequence",
                                 (ins), "", "return false;">,
                 InterfaceMethod<
                     "CTAs that share the keys of a query tile (split-KV), 0 if each launch decides; none if "
                     "one CTA has all keys.",
                     "std::optional<int64_t>", "getKvSplits", (ins), "", "return std::nullopt;">,
                 InterfaceMethod<"The least number of KV tiles of a CTA where several CTAs share long loops over keys; "
                                 "0: none do.",
                                 "int64_t", "getLeastKvTiles", (ins), "", "return 0;">];
  let extraSharedClassDeclaration = [{
    /// Queries of a query tile. With packed heads, its last rows may belong to no query.
    int64_t getQueries() const { return $_attr.getQTile() / $_attr.getPackHeads(); }
    /// Does each sequence have CTAs or warps of its own, forward or backward?
    bool isPerSequence() const { return $_attr.getUnit() != ::attn::tile::WorkUnit::tile; }
    bool splitsKv() const { return $_attr.getKvSplits().has_value(); }
  }];
}

def Tile_WarpSpecializedInterface : AttrInterface<"WarpSpecializedInterface", [Tile_ScheduleInterface]> {
  let cppNamespace = "::attn::tile";
  let description = [{
    A schedule for Hopper with warp roles: a producer warp loads tiles by TMA to rings in shared memory, and consumer
    warpgroups multiply them.
  }];
  let methods = [InterfaceMethod<"Stages of the rings of streamed tiles.", "int64_t", "getStages">,
                 InterfaceMethod<"Stages of the ring of stationary tiles.", "int64_t", "getQStages">,
                 InterfaceMethod<"Do consumer warpgroups start their products one after the other?", "bool",
                                 "getPingpong", (ins), "", "return false;">,
                 InterfaceMethod<"Columns of dQ that the dQ MMA warpgroup computes at a time; 0: there is none.",
                                 "int64_t", "getDqColumns", (ins), "", "return 0;">];
  let extraSharedClassDeclaration = [{
    /// Threads of a CTA: those of consumers, the producer's warpgroup, and the dQ MMA warpgroup if there is one.
    int64_t getThreads() const { return 32 * $_attr.getWarps() + ($_attr.getDqColumns() ? 256 : 128); }
    /// Registers of a thread at launch, a multiple of eight.
    int64_t getRegistersAtLaunch() const { return 64 * 1024 / $_attr.getCtasPerSm() / getThreads() / 8 * 8; }
  }];
}

#endif // TILE_SCHEDULE_INTERFACE
