// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "VisitLists.h"
#include <numeric>

using namespace attn;

int64_t attn::tilesOfSide(bool keys, const FixedSizes::ListedTiles &tiles, const FixedSizes &fixed, const Sizes &sizes) {
  return keys ? tilesOf(fixed.packedKv, sizes.batch, sizes.rowsKv, tiles.keys)
              : tilesOf(fixed.packedQ, sizes.batch, sizes.rowsQ, tiles.queries);
}

/// Tiles of `tile` positions that a block of `size` positions lies in at most.
static int64_t tilesOfBlock(int64_t size, int64_t tile) {
  return llvm::divideCeil(size - std::gcd(size, tile), tile) + 1;
}

/// Each tile may list all of the other side. Nobody has room for that where sequences are long: there it is as much as the problem asks
/// for, or listed blocks may take, or a few entries a tile. What finds no room is visited without a list.
int64_t attn::entriesOfLists(const ProblemTensor &tensor, const FixedSizes &fixed, const Sizes &sizes) {
  constexpr int64_t each = 10, least = 1 << 15;
  const FixedSizes::ListedTiles &tiles = fixed.listed[tensor.listsOfKeys];
  int64_t across = tensor.listsOfKeys ? llvm::divideCeil(sizes.rowsQ, tiles.queries) : llvm::divideCeil(sizes.rowsKv, tiles.keys);
  ++across; // as packed tiles need
  int64_t lists = tensor.entries * tilesOfSide(tensor.listsOfKeys, tiles, fixed, sizes), room = 0;
  if (tensor.visits) {
    int64_t queryTiles = tensor.entries * tilesOfSide(/*keys=*/false, tiles, fixed, sizes);
    room = queryTiles * int64_t(llvm::divideCeil(std::min(*tensor.visits, sizes.rowsKv), tiles.keys));
  } else if (tensor.boundedBy.empty()) {
    room = std::max(each * lists, least);
  } else {
    for (const MaskOperand &map : tensor.boundedBy) {
      int64_t heads = tensor.entries == 1                      ? 1
                      : map.heads == OperandHeads::per_head    ? 1
                      : map.heads == OperandHeads::per_kv_head ? fixed.group()
                                                               : tensor.entries;
      room += sizes.entries.at(map.lists->columns) * tilesOfBlock(map.lists->q, tiles.queries) *
              tilesOfBlock(map.lists->kv, tiles.keys) * heads * (map.lists->perSequence ? 1 : sizes.batch);
    }
  }
  return std::min<int64_t>(across + std::min(lists * across, room) + 1, INT32_MAX); // one is read ahead
}

const VisitLists &attn::visitLists(bool ofKeys) {
  static const VisitLists lists[] = {{"key_ranges", "visited_tiles", "visits", "visits_taken"},
                                     {"query_ranges", "visited_tiles_kv", "visits_kv", "visits_taken_kv"}};
  return lists[ofKeys];
}

int64_t attn::valuesOfRanges(llvm::ArrayRef<MaskOperand> arrays) {
  int64_t hiding = llvm::count_if(arrays, [](const MaskOperand &array) { return array.hidden.has_value(); });
  return llvm::alignTo(2 * arrays.size() + hiding, 2); // which are read two at a time
}
int64_t attn::linesOfRanges(llvm::ArrayRef<MaskOperand> arrays) {
  return valuesOfRanges(arrays) + llvm::divideCeil(2 * arrays.size(), 32);
}

void attn::addLists(ProblemOp problem, bool ofKeys, std::vector<ProblemTensor> &list) {
  using T = ProblemTensor;
  if (!readsPositions(problem.getMask()))
    return;
  const VisitLists &names = visitLists(ofKeys);
  int64_t heads = dependsOnHead(problem.getMask()) ? int64_t(problem.getHeads()) : 1;
  int64_t lines = linesOfRanges(rangedArrays(problem.getMask(), ofKeys ? OperandShape::PerQuery : OperandShape::PerKey));
  auto add = [&](const char *name, int64_t entries, llvm::ArrayRef<T::Axis> axes) {
    list.emplace_back(name, T::Result, T::Int32, axes);
    list.back().entries = entries, list.back().listsOfKeys = ofKeys;
  };
  add(names.ranges, heads * lines, {T::Table, T::Listable});
  add(names.list, heads, T::Lists);
  if (std::optional<llvm::SmallVector<MaskOperand>> bounds = boundingLists(problem.getMask()))
    list.back().boundedBy.assign(bounds->begin(), bounds->end());
  if (problem.getVisits())
    list.back().visits = *problem.getVisits();
  add(names.visits, heads, {T::Table, T::Listing, T::Eight});
  add(names.taken, 0, T::Four);
}
