// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Properties of a target's chips. Schedules should query a property and not a name; passes know the kernel's target
// name.
//
#ifndef ATTN_DIALECT_TILE_IR_TARGETINFO_H
#define ATTN_DIALECT_TILE_IR_TARGETINFO_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace attn {

struct TargetInfo {
  llvm::StringRef name;  ///< `cpu`, `sm_80` or `sm_90a`
  int64_t chip;          ///< its compute capability times ten; 0 of a CPU
  int64_t sharedMemory;  ///< bytes that a CTA may use
  int64_t cluster;       ///< CTAs of the largest cluster; 1: there are no clusters
  bool specializesWarps; ///< TMA, WGMMA and registers that warpgroups reallocate

  bool isHost() const { return chip == 0; }
  /// Bytes of shared memory for tiles, beside barriers and the work-tile mailbox.
  int64_t roomForTiles() const { return sharedMemory - 2048; }
  /// The target of kernels without roles, which are the same on all GPUs.
  llvm::StringRef generic() const { return specializesWarps ? "sm_80" : name; }

  /// A target's chip of this compute capability times ten; 0: its default. nullopt if there is no such target, or it
  /// has no such chip.
  static std::optional<TargetInfo> get(llvm::StringRef name, int64_t chip = 0);
  /// Compute capabilities, times ten, of a target's chips, its default first; empty for an unknown target.
  static llvm::ArrayRef<int64_t> chipsOf(llvm::StringRef name);
  /// The same as a message lists them: `80, 86 or 87`.
  static std::string textOfChips(llvm::StringRef name);
};

} // namespace attn

#endif // ATTN_DIALECT_TILE_IR_TARGETINFO_H
