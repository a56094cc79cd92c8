// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a problem's mask is, seen as the kernel sees it: which tiles it visits and tests, how much of that is visible,
// and what it costs at rates that the caller gives. Safe to call from several threads.
//
#ifndef ATTN_INSPECT_EXPLAIN_H
#define ATTN_INSPECT_EXPLAIN_H

#include "attn/API/Compile.h"
#include "attn/Inspect/TileMap.h"
#include "attn/Reference/InputRequest.h"

namespace attn {

struct ExplainRequest {
  struct Tile {
    int64_t rows, keys;
    /// `128x64`, each from 1 to 2^24; otherwise nothing.
    static std::optional<Tile> parse(llvm::StringRef text);
  };

  reference::InputRequest inputs; ///< arrays that the mask reads are made up where they are not given
  std::optional<Tile> tile;       ///< instead of the kernel's
  int64_t sequence = 0, head = 0; ///< which the map shows
  /// What products and reading memory reach, in 10^12 operations and 10^9 bytes a second; as measured on an H200.
  double tflops = 786, gbps = 4584;
  bool svg = false; ///< is a drawing wanted?
};

/// Numbers are in range, whatever the problem.
llvm::Error checkRanges(const ExplainRequest &request);

/// Counts and work are of all sequences and heads; a number above 2^53 is rounded.
struct Explanation {
  struct Pass {
    std::string name;
    std::string schedule;               ///< which kernels, and `; ` why these
    std::optional<std::string> refusal; ///< why the target has no kernel for it; the schedule is what it would be
  };

  std::string target;
  std::string mask, canonicalMask;
  int64_t sequences = 0, heads = 0, kvHeads = 0, dimQk = 0, dimV = 0;
  Pass forward;
  std::vector<Pass> backward; ///< the backward passes of the module that name the problem
  int64_t qTile = 0, kvTile = 0;
  int64_t rowStride = 1; ///< the distance of a tile's rows, and of its keys, in positions
  std::string config;    ///< the kernel's; empty for a tile of the request
  std::string lists;     ///< room of the lists of tiles; empty if there are none
  /// Tiles, map and counts are those of the kernels for long sequences; short ones have another kernel.
  bool describesLongSequences = false;
  int64_t sequence = 0, head = 0, seqlenQ = 0, seqlenKv = 0; ///< of the map
  std::string clause;                                        ///< which says these lengths, or empty
  std::string map;                                           ///< in characters, with what they mean
  TileCounts counts;
  double visibleFlops = 0, visitedFlops = 0; ///< of the forward pass
  double bytes = 0;                          ///< of all tensors of the forward pass, each once
  double tflops = 0, gbps = 0;               ///< as requested
  std::string svg;                           ///< empty if not wanted

  /// How long the forward pass takes at least at the rates of the request.
  double milliseconds() const;
  /// All of it for a reader, as `attn-opt --explain` prints it.
  std::string text() const;
};

/// The problem called `name`, or that of the backward pass called so; without a name the module's only one.
rt::Result<ProblemOp> findExplained(mlir::ModuleOp module, llvm::StringRef name);

/// `module` lives in the context of `compilation`; the mask of `problem` becomes its canonical form.
rt::Result<Explanation> explain(Compilation &compilation, mlir::ModuleOp module, ProblemOp problem,
                                const Target &target, ExplainRequest request);
/// The same, of a module's text.
rt::Result<Explanation> explain(llvm::StringRef text, llvm::StringRef name, const Target &target,
                                ExplainRequest request);

} // namespace attn

#endif // ATTN_INSPECT_EXPLAIN_H
