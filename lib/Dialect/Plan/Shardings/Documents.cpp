// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole sequences stay on one rank as far as work stays balanced, so that few keys have to move.
//
#include "attn/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;
using namespace attn::plan;

namespace {
class Distribution {
public:
  Distribution(const Sequences &sequences, double slack)
      : sequences(sequences), load(sequences.ranks, 0), room(sequences.ranks), byLoad(sequences.ranks),
        own(sequences.ranks) {
    std::iota(byLoad.begin(), byLoad.end(), 0);
    double all = 0;
    for (auto [sequence, length] : llvm::enumerate(sequences.lengths))
      all += work(sequence, 0, length);
    balanced = all / sequences.ranks * 1.05;
    int64_t tokens = int64_t(sequences.allTokens() * (1 + slack));
    std::fill(room.begin(), room.end(), (tokens + sequences.ranks - 1) / sequences.ranks + 2);
  }

  void add(int64_t sequence) {
    int64_t length = sequences.lengths[sequence];
    llvm::sort(byLoad, [&](int64_t a, int64_t b) { return std::pair(load[a], a) < std::pair(load[b], b); });
    std::optional<double> best;
    chosen.clear();
    for (int64_t count = 1; count <= sequences.ranks && !(best && *best <= balanced); ++count) {
      tried.clear();
      int64_t needed = 0;
      for (int64_t i = 0; i < count; ++i)
        needed = std::max(needed, tokensOf(partsOf(length, count, i)));
      for (int64_t rank : byLoad)
        if (int64_t(tried.size()) < count && room[rank] >= needed)
          tried.emplace_back(rank, partsOf(length, count, tried.size()));
      if (int64_t(tried.size()) < count)
        continue;
      double top = 0;
      for (const auto &[rank, parts] : tried)
        top = std::max(top, load[rank] + work(sequence, parts[0].first, parts[0].second) +
                                work(sequence, parts[1].first, parts[1].second));
      if (!best || top < *best - balanced * leastGain)
        best = top, chosen = tried;
    }
    for (const auto &[rank, parts] : chosen)
      for (auto [begin, end] : parts)
        give(rank, sequence, begin, end);
    if (best)
      return;
    int64_t begin = 0;
    for (int64_t rank : byLoad) {
      int64_t end = std::min(length, begin + std::max<int64_t>(0, room[rank]));
      give(rank, sequence, begin, end);
      begin = end;
    }
  }

  std::vector<Shard> shards() {
    std::vector<Shard> result(sequences.ranks);
    for (int64_t rank = 0; rank < sequences.ranks; ++rank) {
      llvm::sort(own[rank]);
      for (auto [sequence, begin, end] : own[rank])
        result[rank].addTokens(sequence, begin, end);
    }
    return result;
  }

private:
  using Parts = std::array<std::pair<int64_t, int64_t>, 2>;

  /// The two chunks of number `i` of `count`.
  static Parts partsOf(int64_t length, int64_t count, int64_t i) {
    auto cut = [&](int64_t chunk) { return chunk * length / (2 * count); };
    int64_t mirrored = 2 * count - 1 - i;
    return {{{cut(i), cut(i + 1)}, {cut(mirrored), cut(mirrored + 1)}}};
  }
  static int64_t tokensOf(const Parts &parts) {
    return parts[0].second - parts[0].first + parts[1].second - parts[1].first;
  }

  double work(int64_t sequence, int64_t begin, int64_t end) const {
    return begin >= end ? 0 : double(sequences.pairs ? sequences.pairs(sequence, begin, end) : end - begin);
  }

  void give(int64_t rank, int64_t sequence, int64_t begin, int64_t end) {
    if (begin >= end)
      return;
    own[rank].emplace_back(sequence, begin, end);
    load[rank] += work(sequence, begin, end);
    room[rank] -= end - begin;
  }

  const Sequences &sequences;
  /// Share of `balanced` by which a further cut has to lower the work: more runs are more launches and messages.
  static constexpr double leastGain = 0.01;
  double balanced = 0; ///< work of a rank up to which a sequence is not cut further
  std::vector<double> load;
  std::vector<int64_t> room, byLoad;
  std::vector<std::pair<int64_t, Parts>> tried, chosen; ///< ranks of a sequence
  std::vector<std::vector<std::tuple<int64_t, int64_t, int64_t>>> own;
};
} // namespace

std::optional<std::string> DocumentsAttr::distribute(const Sequences &sequences, std::vector<Shard> &shards) const {
  std::vector<int64_t> order(sequences.lengths.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return sequences.lengths[a] > sequences.lengths[b]; });
  Distribution distribution(sequences, getSlack().convertToDouble());
  for (int64_t sequence : order)
    distribution.add(sequence);
  shards = distribution.shards();
  return std::nullopt;
}

LogicalResult DocumentsAttr::verify(function_ref<InFlightDiagnostic()> emitError, APFloat slack) {
  double value = slack.convertToDouble();
  return value >= 0 && value <= 100 ? success() : emitError() << "expected a slack from 0 to 100, got: " << value;
}

Attribute DocumentsAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  double slack = 0.1;
  if (succeeded(parser.parseOptionalLess()) && (parser.parseFloat(slack) || parser.parseGreater()))
    return {};
  return parser.getChecked<DocumentsAttr>(loc, parser.getContext(), APFloat(slack));
}

void DocumentsAttr::print(AsmPrinter &printer) const {
  if (!getSlack().bitwiseIsEqual(APFloat(0.1))) {
    printer << "<";
    printer.printFloat(getSlack());
    printer << ">";
  }
}
