// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_CONVERSION_ATTNTOTILE_H
#define ATTN_CONVERSION_ATTNTOTILE_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Pass/Pass.h"

namespace attn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Conversion/Passes.h.inc"

/// The compute capabilities, times ten, of the chips that a target's kernels are for, its own first; none: no target. And
/// as a message lists them.
llvm::ArrayRef<int64_t> chipsOf(llvm::StringRef target);
std::string textOfChips(llvm::StringRef target);

/// The compute capability times ten that a target's kernels are for: as asked for, or, of 0, its own. A CPU's is 0. Nothing if
/// there is no such target, or no such chip for it.
std::optional<int64_t> archOf(llvm::StringRef target, int64_t asked);

/// Tile sizes for a problem: a measured table, see ChooseConfig.cpp. `target` is
/// the schedule (`cpu`, `sm_80`, `sm_90a`), `arch` the chip's compute capability
/// times ten. The problem's own config, if it has one, is not looked at. `why`, here and below: set to what decided
/// between streaming and tiles, half a sentence for a reader.
tile::ConfigAttr chooseConfig(ProblemOp problem, llvm::StringRef target, int64_t arch, std::string *why = nullptr);

/// Has a program a kernel for short sequences and others for long ones? Where packed sequences are short as is typical,
/// and no bounds say that all are. `chooseConfig` is then about the long ones.
bool hasSizeClasses(ProblemOp problem);
/// What short sequences are streamed with.
tile::ConfigAttr chooseStreamed(ProblemOp problem, std::string *why = nullptr);

/// How key tiles add to a sum of dQ: in any order, to what was cleared; in any order, but behind the first, which writes; or one after the other.
enum class SumOrder { Any, AfterFirst, InTurns };

/// The same for a backward pass. `fallback` 1 and more: what to try where a kernel does not fit its registers,
/// narrower query tiles where these are wide, then no sums, then two bodies.
struct BackwardConfigs {
  tile::ConfigAttr prepare, keys, queries; ///< of `tile.prepare`, and with key or query tiles at rest
  tile::ConfigAttr values;                 ///< of dV, where it has a kernel of its own
  bool together = true;                    ///< are dK and dV added up by one kernel?
  bool sums = false;                       ///< is dQ added up in global memory, by the kernel of dK?
  SumOrder order = SumOrder::Any;          ///< and how?
  const char *whyNoSums = nullptr;         ///< a reader's reason, if it is not
  bool hasFallback = false;                ///< is there something else to try,
  bool isDoubtful = false;                 ///< and may it well be needed?
};
BackwardConfigs chooseBackwardConfigs(BackwardOp backward, llvm::StringRef target, int64_t arch, int64_t fallback);
/// Is dQ of query tiles that one key tile sees written by that, with no sum?
bool writesAlone(ProblemOp problem, const BackwardConfigs &configs);

/// Of a backward pass that is streamed: where the problem's sequences
/// are short, or head dims beyond those of tiles. Null for others.
tile::ConfigAttr chooseStreamedBackward(BackwardOp backward, llvm::StringRef target, int64_t arch,
                                        std::string *why = nullptr);
/// Has its program kernels for long sequences, too? `streamed` is what short ones are streamed with.
bool hasSizeClasses(BackwardOp backward, tile::ConfigAttr streamed);

/// Is so much done for each pair that copies of the walk's body take seconds to compile, or do not fit their registers? Several modifiers
/// are, one that reads an entry for each pair, and an expression whose test has several compares.
bool isCostly(ProblemOp problem);

/// What to try next for a kernel that does not fit its registers: one copy of the
/// walk's body, then narrower key tiles. Null at the end. `columns`: of streamed gradients, what those of both heads are a
/// multiple of, so that sums may be made of some at a time; 0: as the config has it.
tile::ConfigAttr fallbackOf(tile::ConfigAttr config, int64_t columns = 0);
/// Is there more to try for a backward pass that is streamed with this? At the end of fallbacks, one whose tile has all
/// keys of a sequence goes to kernels on tiles.
bool mayFallBackward(tile::ConfigAttr streamed);

/// How many blocks share a row of tokens where there are clusters: as many as there
/// can be, since one block reads memory at a small part of its bandwidth.
int64_t clusterOf(llvm::StringRef target);

/// Bytes of shared memory that one block of a chip may use.
int64_t sharedMemoryLimit(llvm::StringRef target, int64_t arch);
/// What of it barriers and messages between roles leave for tiles.
inline int64_t roomForTiles(llvm::StringRef target, int64_t arch) { return sharedMemoryLimit(target, arch) - 2048; }
} // namespace attn

#endif // ATTN_CONVERSION_ATTNTOTILE_H
