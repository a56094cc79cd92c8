// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TileLists.h"

using namespace attn;

const TileLists &attn::tileLists(bool ofKeys) {
  static const TileLists lists[] = {{"key_ranges", "visited_tiles", "visits", "visits_taken"},
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
  if (!leavesTilesOut(problem.getMask()))
    return;
  const TileLists &names = tileLists(ofKeys);
  int64_t heads = dependsOnHead(problem.getMask()) ? int64_t(problem.getHeads()) : 1;
  int64_t lines =
      linesOfRanges(rangedArrays(problem.getMask(), ofKeys ? OperandShape::PerQuery : OperandShape::PerKey));
  auto add = [&](const char *name, int64_t entries, llvm::ArrayRef<T::Axis> axes) {
    list.emplace_back(name, T::Result, T::Int32, axes);
    list.back().entries = entries, list.back().listsOfKeys = ofKeys;
  };
  add(names.ranges, heads * lines, {T::Table, T::Listable});
  add(names.list, heads, T::Lists);
  if (std::optional<llvm::SmallVector<MaskOperand>> bounds = boundingLists(problem.getMask()))
    list.back().boundedBy.assign(bounds->begin(), bounds->end());
  if (problem.getKvListCapacity())
    list.back().visits = *problem.getKvListCapacity();
  add(names.visits, heads, {T::Table, T::Listing, T::Eight});
  add(names.taken, 0, T::Four);
}
