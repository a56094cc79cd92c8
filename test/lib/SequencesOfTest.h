// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sequences and shards of test passes, from attributes.
//
#ifndef ATTN_TEST_LIB_SEQUENCESOFTEST_H
#define ATTN_TEST_LIB_SEQUENCESOFTEST_H

#include "attn/Dialect/Plan/Analysis/Tables.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace attn::test {

/// The numbers of an array; none if it is not there.
inline std::vector<int64_t> numbersOf(mlir::Attribute attribute) {
  std::vector<int64_t> numbers;
  if (auto array = mlir::dyn_cast_or_null<mlir::ArrayAttr>(attribute))
    for (auto number : array.getAsRange<mlir::IntegerAttr>())
      numbers.push_back(number.getInt());
  return numbers;
}

/// `[[rows, [row, sequence, position, length], ...], ...]`, an array for each rank.
inline std::vector<plan::Shard> shardsOf(mlir::ArrayAttr list) {
  std::vector<plan::Shard> shards;
  if (!list)
    return shards;
  for (auto rank : list.getAsRange<mlir::ArrayAttr>()) {
    plan::Shard &shard = shards.emplace_back();
    shard.rows = mlir::cast<mlir::IntegerAttr>(rank[0]).getInt();
    for (mlir::Attribute run : rank.getValue().drop_front()) {
      std::vector<int64_t> n = numbersOf(run);
      shard.runs.push_back({n[0], n[1], n[2], n[3]});
    }
  }
  return shards;
}

/// Lengths and slots of `{lengths = ..., keys = ..., slots = ..., key_slots = ...}`; keys are as long as queries if
/// nothing is said.
inline plan::CallSequences callSequencesOf(mlir::DictionaryAttr fields) {
  plan::CallSequences sequences;
  sequences.lengths[0] = numbersOf(fields.get("lengths"));
  sequences.lengths[1] = fields.get("keys") ? numbersOf(fields.get("keys")) : sequences.lengths[0];
  sequences.slots[0] = numbersOf(fields.get("slots")), sequences.slots[1] = numbersOf(fields.get("key_slots"));
  return sequences;
}

} // namespace attn::test

#endif // ATTN_TEST_LIB_SEQUENCESOFTEST_H
