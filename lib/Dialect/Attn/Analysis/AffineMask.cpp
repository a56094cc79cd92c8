// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equality of masks. Under affine masks, (q, k, D) falls into cells whose pairs are
// all alike: within some remainders, those between neighbouring bounds of each term.
// All terms are differences of two of (0, q, k, D), so a cell that has a pair
// at all has one where three terms, a spanning tree of these four, are next to a bound:
// it is enough to look at those. Any q >= 0, k >= 0 and D have lengths that they occur with.
//
#include "attn/Dialect/Attn/IR/Attn.h"
#include "llvm/ADT/Hashing.h"
#include <numeric>
#include <random>

using namespace mlir;
using namespace attn;

void AffineTerms::remainder(int64_t modulus) {
  constexpr int64_t largest = int64_t(1) << 30; // by then, nobody looks at all of them
  period = std::min(period / std::gcd(period, modulus) * modulus, largest);
}

namespace {

constexpr int64_t longest = int64_t(1) << 30;

class Comparer {
public:
  Comparer(MaskInterface first, MaskInterface second) : masks{first, second} {
    heads = std::min<int64_t>(std::lcm(headsOf(first), headsOf(second)), 1024);
  }

  MaskComparison compare(int64_t budget) {
    if (masks[0] == masks[1])
      return {MaskComparison::Equal, {}, true, {}};
    lookAtSmallShapes();
    if (result.verdict != MaskComparison::Unknown)
      return result;
    AffineTerms terms;
    if (masks[0].affine(terms) && masks[1].affine(terms))
      lookAtCells(terms, budget);
    return result;
  }

private:
  /// False once the masks differ.
  bool look(const MaskPoint &point) {
    bool shown = masks[0].keeps(point);
    if (shown == masks[1].keeps(point))
      return true;
    result = {MaskComparison::Different, point, shown, {}};
    return false;
  }

  /// Pairs that one would think of, which make better examples; arrays have random entries,
  /// of one name the same ones.
  void lookAtSmallShapes() {
    std::mt19937 rng(1);
    bool arrays = !masks[0].operands().empty() || !masks[1].operands().empty();
    for (int64_t size = 1; size <= 7; ++size)
      for (int turn = 0; turn < (arrays ? 8 : 1); ++turn) {
        uint64_t salt = rng();
        for (int64_t lenQ = 1; lenQ <= size; ++lenQ)
          for (int64_t lenK = lenQ == size ? 1 : size; lenK <= size; ++lenK)
            for (int64_t head = 0; head < heads; ++head)
              for (int64_t q = 0; q < lenQ; ++q)
                for (int64_t k = 0; k < lenK; ++k)
                  if (!lookWithArrays(lenQ, lenK, head, q, k, salt))
                    return;
      }
  }

  bool lookWithArrays(int64_t lenQ, int64_t lenK, int64_t head, int64_t q, int64_t k, uint64_t salt) {
    bool shown[2];
    SmallVector<std::tuple<std::string, int64_t, int64_t>> entries;
    MaskPoint point;
    point.q = q, point.k = k, point.lenQ = lenQ, point.lenK = lenK, point.head = head, point.heads = heads;
    for (auto [i, mask] : llvm::enumerate(masks)) {
      MaskPoint own = point;
      own.load = [&, operands = mask.operands()](unsigned operand, int64_t position) -> int64_t {
        const MaskOperand &array = operands[operand];
        if (array.isOne())
          position = array.heads == OperandHeads::per_head ? head : 0;
        int64_t ofHead = array.heads == OperandHeads::shared ? 0 : head;
        uint64_t bits = llvm::hash_combine(salt, array.name, position, ofHead);
        std::tuple<std::string, int64_t, int64_t> entry = {array.name, position, int64_t(bits % 9) - 1};
        if (!llvm::is_contained(entries, entry))
          entries.push_back(entry);
        return std::get<2>(entry);
      };
      // Some lists: of their entries, those that say so are not shown.
      own.listed = [&, operands = mask.operands()](unsigned operand, int64_t row, int64_t column) {
        const MaskOperand &array = operands[operand];
        int64_t ofHead = array.heads == OperandHeads::shared ? 0 : head;
        uint64_t bits = llvm::hash_combine(salt, array.name, array.lists->columns, row, column, ofHead);
        return bits % 2 == 1;
      };
      shown[i] = mask.keeps(own);
    }
    if (shown[0] == shown[1])
      return true;
    result = {MaskComparison::Different, point, shown[0], std::move(entries)};
    return false;
  }

  //===------------------------------------------------------------------===//
  // Affine masks
  //===------------------------------------------------------------------===//

  enum Node { Zero, Q, K, D, nodes };
  struct Edge {
    Node from, to;
    SmallVector<int64_t> values; ///< of to - from, next to a bound
  };

  /// The values on both sides of each bound, of every remainder.
  static SmallVector<int64_t> besides(SmallVector<int64_t> bounds, bool quotient, int64_t period) {
    if (quotient)
      bounds.append({-period, 0, period});
    SmallVector<int64_t> values;
    for (int64_t bound : bounds)
      for (int64_t value = bound - period; value < bound + period; ++value)
        values.push_back(value);
    llvm::sort(values);
    values.erase(llvm::unique(values), values.end());
    return values;
  }

  void lookAtCells(AffineTerms terms, int64_t budget) {
    bool usesD = !terms.bounds[AffineTerms::Diagonal].empty() || !terms.bounds[AffineTerms::KeyMinusDiagonal].empty() ||
                 terms.quotients[AffineTerms::KeyMinusDiagonal];
    // Every cell has an end in all directions, and none lies beyond the longest sequence.
    for (AffineTerms::Term term : {AffineTerms::Row, AffineTerms::Key, AffineTerms::Diagonal})
      terms.compare(term, 0);
    for (const auto &bounds : terms.bounds)
      if (llvm::any_of(bounds, [](int64_t bound) { return std::abs(bound) >= longest / 4; })) {
        for (AffineTerms::Term term : {AffineTerms::Row, AffineTerms::Key, AffineTerms::Diagonal})
          terms.compare(term, longest - 1);
        break;
      }
    if (terms.period > budget)
      return;
    const std::pair<Node, Node> ends[] = {{Zero, Q}, {Zero, K}, {Zero, D}, {Q, K}, {D, K}};
    SmallVector<Edge> edges;
    for (int term = 0; term < AffineTerms::count; ++term) {
      auto [from, to] = ends[term];
      if ((from != D && to != D) || usesD)
        edges.push_back({from, to, besides(terms.bounds[term], terms.quotients[term], terms.period)});
    }
    // Spanning trees of so many edges.
    int size = usesD ? 3 : 2;
    double pairs = 0;
    SmallVector<unsigned> trees;
    for (unsigned tree = 0; tree < 1u << edges.size(); ++tree) {
      if (llvm::popcount(tree) != size || !spans(edges, tree, usesD))
        continue;
      trees.push_back(tree);
      double product = 1;
      for (auto [i, edge] : llvm::enumerate(edges))
        if (tree >> i & 1)
          product *= edge.values.size();
      pairs += product;
    }
    if (pairs > double(budget))
      return;
    for (unsigned tree : trees)
      if (!lookAtTree(edges, tree, usesD, {0, -1, -1, -1}, 1u << Zero))
        return;
    result.verdict = MaskComparison::Equal;
  }

  static bool spans(ArrayRef<Edge> edges, unsigned tree, bool usesD) {
    unsigned reached = 1u << Zero;
    for (int pass = 0; pass < nodes; ++pass)
      for (auto [i, edge] : llvm::enumerate(edges))
        if (tree >> i & 1 && (reached >> edge.from & 1 || reached >> edge.to & 1))
          reached |= 1u << edge.from | 1u << edge.to;
    return reached == (usesD ? 0b1111u : 0b0111u);
  }

  /// Gives values to what the tree's edges lead to, one edge after the other.
  bool lookAtTree(ArrayRef<Edge> edges, unsigned tree, bool usesD, std::array<int64_t, nodes> at, unsigned reached) {
    for (auto [i, edge] : llvm::enumerate(edges)) {
      bool from = reached >> edge.from & 1, to = reached >> edge.to & 1;
      if (!(tree >> i & 1) || from == to)
        continue;
      for (int64_t value : edge.values) {
        if (from)
          at[edge.to] = at[edge.from] + value;
        else
          at[edge.from] = at[edge.to] - value;
        if (!lookAtTree(edges, tree, usesD, at, reached | 1u << edge.from | 1u << edge.to))
          return false;
      }
      return true;
    }
    int64_t q = at[Q], k = at[K], d = usesD ? at[D] : q;
    MaskPoint point;
    point.q = q, point.k = k;
    point.lenK = std::max({k, d, d - q}) + 1;
    point.lenQ = point.lenK - (d - q);
    if (q < 0 || k < 0 || point.lenK > longest || point.lenQ > longest)
      return true;
    return look(point);
  }

  MaskInterface masks[2];
  int64_t heads;
  MaskComparison result;
};

} // namespace

MaskComparison attn::compareMasks(MaskInterface first, MaskInterface second, int64_t budget) {
  return Comparer(first, second).compare(budget);
}
