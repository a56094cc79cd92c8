// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Reference/Sequences.h"

using namespace attn;
using namespace attn::reference;

Sequences::Sequences(ProblemOp problem, const Tensors &inputs, const Sizes &sizes)
    : packedQ(problem.getQLayout().isPacked()), packedKv(problem.getKLayout().isPacked()),
      hasPieces(problem.getQLayout().hasPieces()), heads(problem.getHeads()), kvHeads(problem.getKvHeads()) {
  for (const MaskOperand &operand : problem.getMask().operands()) {
    bool hasOffsets = operand.lists && operand.lists->fixedWidth; // these follow from the lists
    const std::string &name = hasOffsets               ? operand.lists->columns
                              : operand.madeOf.empty() ? operand.name
                                                       : operand.madeOf;
    arrays.emplace_back(&inputs.find(name)->second, operand);
    maps.push_back(operand.lists ? mapOf(operand, inputs, sizes.keysOfBlocks()) : BlockMap());
  }
  for (int64_t b = 0; b < sizes.batch; ++b) {
    firstRows.push_back(packedQ ? inputs.find("cu_seqlens_q")->second.data<int32_t>()[b] : 0);
    queries.push_back(spanOf("q", problem.getQLayout(), sizes.rowsQ, b, inputs));
    keys.push_back(spanOf("kv", problem.getKLayout(), sizes.rowsKv, b, inputs));
  }
  if (hasPieces)
    for (bool ofKeys : {false, true})
      rowsOfPieces[ofKeys] = reference::rowsOfPieces(inputs, ofKeys ? "kv" : "q");
  made.resize(arrays.size());
  for (auto [list, array] : llvm::zip(made, arrays))
    for (int64_t b = 0; b < size() && !array.second.madeOf.empty(); ++b)
      list.push_back(numbersOf(array.second, b));
}

/// What `metadata.number_tree` leaves: of each row the number of its key's node, of each key its number or that behind
/// its last descendant's.
std::vector<int64_t> Sequences::numbersOf(const MaskOperand &operand, int64_t sequence) const {
  const int64_t lenQ = queries[sequence].length, lenK = keys[sequence].length;
  auto parents = llvm::find_if(arrays, [&](const auto &array) { return array.second.name == operand.madeOf; });
  auto parentOf = [&](int64_t key) {
    int64_t parent = load(parents - arrays.begin(), key, sequence, /*head=*/0);
    return parent >= 0 && parent < key ? parent : lenK; // as if those without one had one behind all
  };
  std::vector<int64_t> descendants(lenK + 1, 1), next(lenK + 1, 0), first(lenK), end(lenK), node(lenQ, -1);
  for (int64_t key = lenK; key-- > 0;)
    descendants[parentOf(key)] += descendants[key];
  for (int64_t key = 0; key < lenK; ++key) {
    int64_t &number = next[parentOf(key)];
    first[key] = number, end[key] = number += descendants[key];
    next[key] = first[key] + 1;
  }
  for (int64_t q = std::max<int64_t>(lenQ - lenK, 0); q < lenQ; ++q)
    node[q] = first[q + lenK - lenQ];
  llvm::StringRef what = llvm::StringRef(operand.name).rsplit('_').second;
  return what == "node" ? node : what == "first" ? first : end;
}

Span Sequences::spanOf(llvm::StringRef side, LayoutAttr layout, int64_t rows, int64_t sequence,
                       const Tensors &inputs) const {
  auto array = [&](const char *name) { return inputs.find(name + side.str())->second.data<int32_t>(); };
  if (!layout.isPacked())
    return {0, rows};
  const int32_t *cuSeqlens = array("cu_seqlens_");
  int64_t start = cuSeqlens[sequence], length = cuSeqlens[sequence + 1] - start;
  if (layout.getPadded())
    start = array("padded_offsets_")[sequence];
  return {start, length};
}

int64_t Sequences::load(unsigned operand, int64_t position, int64_t sequence, int64_t head) const {
  const auto &[array, spec] = arrays[operand];
  if (!spec.madeOf.empty())
    return made[operand][sequence][position];
  bool perQuery = spec.shape == OperandShape::PerQuery;
  Shape index;
  if (spec.hasPositions() ? !(perQuery ? packedQ : packedKv) : spec.shape == OperandShape::PerSequence)
    index.push_back(sequence);
  if (spec.heads != OperandHeads::shared)
    index.push_back(spec.heads == OperandHeads::per_head ? head : head / (heads / kvHeads));
  if (spec.hasPositions())
    index.push_back(position + (perQuery ? queries : keys)[sequence].start);
  return array->data<int32_t>()[array->offset(index)];
}

Sequences::BlockMap Sequences::mapOf(const MaskOperand &operand, const Tensors &inputs, int64_t rowsKv) {
  const Tensor &columns = inputs.find(operand.lists->columns)->second;
  BlockMap map;
  map.columns = llvm::divideCeil(rowsKv, operand.lists->kv);
  if (operand.lists->fixedWidth) {
    llvm::ArrayRef<int64_t> shape = columns.shape();
    map.rows = shape[shape.size() - 2];
    const int64_t width = shape.back(), lists = width ? columns.numElements() / width : 0;
    map.listed.resize(lists * map.columns, false);
    for (int64_t i = 0; i < lists * width; ++i)
      if (int64_t block = columns.data<int32_t>()[i]; block >= 0 && block < map.columns)
        map.listed[i / width * map.columns + block] = true;
    return map;
  }
  const Tensor &offsets = inputs.find(operand.name)->second;
  const int64_t entries = offsets.shape().back();
  map.rows = entries - 1;
  map.listed.resize(offsets.numElements() / entries * map.rows * map.columns, false);
  for (int64_t row = 0, rows = offsets.numElements() / entries * map.rows; row < rows; ++row) {
    int64_t at = row / map.rows * entries + row % map.rows;
    for (int32_t i = offsets.data<int32_t>()[at]; i < offsets.data<int32_t>()[at + 1]; ++i)
      map.listed[row * map.columns + columns.data<int32_t>()[i]] = true;
  }
  return map;
}

bool Sequences::listed(unsigned operand, int64_t row, int64_t column, int64_t sequence, int64_t head) const {
  const MaskOperand &spec = arrays[operand].second;
  const BlockMap &map = maps[operand];
  const bool packs = spec.lists->fixedWidth && packedQ;
  if (packs)
    row += firstRows[sequence] / spec.lists->q + sequence;
  if (row >= map.rows || map.listed.empty())
    return false;
  int64_t line = spec.lists->perSequence && !packs ? sequence : 0;
  if (spec.heads != OperandHeads::shared)
    line = spec.heads == OperandHeads::per_head ? line * heads + head : line * kvHeads + head / (heads / kvHeads);
  return map.listed[(line * map.rows + row) * map.columns + column];
}

MaskPoint Sequences::point(int64_t sequence, int64_t head) const {
  MaskPoint point;
  point.lenQ = queries[sequence].length;
  point.lenK = keys[sequence].length;
  point.batch = sequence;
  point.head = head;
  point.heads = heads;
  point.load = [this, sequence, head](unsigned operand, int64_t position) {
    return load(operand, position, sequence, head);
  };
  point.listed = [this, sequence, head](unsigned operand, int64_t row, int64_t column) {
    return listed(operand, row, column, sequence, head);
  };
  return point;
}

MaskScope Sequences::scope(int64_t sequence, int64_t head) const {
  MaskScope scope;
  scope.lenQ = Index::position(queries[sequence].length);
  scope.lenK = Index::position(keys[sequence].length);
  scope.batch = Index::runtime(sequence);
  scope.head = Index::runtime(head);
  scope.heads = heads;
  scope.load = [this, sequence, head](unsigned operand, Index position) {
    return Index::runtime(load(operand, position.getNumber(), sequence, head));
  };
  scope.extremes = [this, sequence, head](unsigned operand, Interval positions) -> std::optional<EntryRange> {
    std::optional<int32_t> hidden = arrays[operand].second.hidden;
    int64_t least = INT32_MAX, largest = INT32_MIN;
    bool whole = true;
    for (int64_t i = positions.lo.getNumber(); i < positions.hi.getNumber(); ++i) {
      int64_t entry = load(operand, i, sequence, head);
      if (entry == hidden)
        whole = false;
      else
        least = std::min(least, entry), largest = std::max(largest, entry);
    }
    return EntryRange{Index::runtime(least), Index::runtime(largest), Cond::runtime(whole)};
  };
  scope.listed = [this, sequence, head](unsigned operand, Index row, Index column) {
    return Cond::runtime(listed(operand, row.getNumber(), column.getNumber(), sequence, head));
  };
  scope.listedIn = [this, sequence, head](unsigned operand, Interval rows, Interval columns) {
    bool some = false, all = true;
    for (int64_t row = rows.lo.getNumber(); row < rows.hi.getNumber(); ++row)
      for (int64_t column = columns.lo.getNumber(); column < columns.hi.getNumber(); ++column)
        if (listed(operand, row, column, sequence, head))
          some = true;
        else
          all = false;
    return TileTruth{Cond::runtime(some), Cond::runtime(all)};
  };
  return scope;
}
