// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/DialectImplementation.h"
#include <fmt/format.h>

using namespace mlir;
using namespace attn::plan;

std::optional<std::string> DualChunkAttr::distribute(const Sequences &sequences, std::vector<Shard> &shards) const {
  int64_t chunks = 2 * sequences.ranks;
  shards.assign(sequences.ranks, {});
  for (size_t sequence = 0; sequence < sequences.lengths.size(); ++sequence) {
    int64_t length = sequences.lengths[sequence], rows = getPadded() ? sequences.slot(sequence) : length;
    if (getPadded() && rows % chunks)
      return fmt::format("expected slots of a multiple of {} rows (two chunks for each of {} ranks), got: {} rows of "
                         "sequence {}; `#plan.dual_chunk` without `padded` takes any length",
                         chunks, sequences.ranks, rows, sequence);
    for (int64_t rank = 0; rank < sequences.ranks; ++rank)
      for (int64_t chunk : {rank, chunks - 1 - rank})
        shards[rank].addRows(sequence, length, chunk * rows / chunks, (chunk + 1) * rows / chunks);
  }
  return std::nullopt;
}

Attribute DualChunkAttr::parse(AsmParser &parser, Type) {
  bool padded = succeeded(parser.parseOptionalLess());
  if (padded && (parser.parseKeyword("padded") || parser.parseGreater()))
    return {};
  return get(parser.getContext(), padded);
}

void DualChunkAttr::print(AsmPrinter &printer) const {
  if (getPadded())
    printer << "<padded>";
}
