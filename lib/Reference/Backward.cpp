// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The formulas of `attn.backward`, pair by visible pair. Rows add to keys of their own
// sequence and kv head alone, so these are what threads share out. Where only some rows are
// wanted, a pair is evaluated if its query or its key is.
//
#include "Vectors.h"
#include <cmath>

using namespace attn;
using namespace attn::reference;

namespace {
class Backward : Vectors {
public:
  Backward(BackwardOp backward, const Tensors &inputs, const Sizes &sizes, llvm::ArrayRef<llvm::StringRef> only)
      : Vectors(backward.getProblemOp(), inputs, sizes), hasDlse(backward.getDlse()), hasDelta(backward.getDelta()),
        keepsPadding(backward.getProblemOp().getKeepPadding()) {
    auto isWanted = [&](llvm::StringRef name) { return only.empty() || llvm::is_contained(only, name); };
    for (const ProblemTensor &tensor : tensorsOf(backward))
      if (tensor.role == ProblemTensor::Result && isWanted(tensor.name))
        gradients[tensor.name] = Tensor(Dtype::F64, tensor.shape(backward.getProblemOp(), sizes));
    for (const ScoreOperand &array : backward.getDifferentiatedArrays())
      if (isWanted(gradientOf(array))) {
        learned.push_back(array);
        if (auto before = inputs.find(gradientBefore(array)); before != inputs.end())
          before->second.forEachIndex([&](llvm::ArrayRef<int64_t> index) {
            Tensor &gradient = gradientTensor(array);
            gradient.store(gradient.offset(index), before->second(index));
          });
      }
    auto find = [&](llvm::StringRef name) { return isWanted(name) ? &gradients[name] : nullptr; };
    dq = find("dq"), dk = find("dk"), dv = find("dv");
  }

  using Wanted = std::function<bool(const Row &)>;
  /// No function: all rows.
  Gradients run(Wanted wantedQueries = {}, Wanted wantedKeys = {}) {
    if (learned.empty())
      wantsQuery = std::move(wantedQueries), wantsKey = std::move(wantedKeys);
    // Entries of arrays belong to rows of several threads.
    auto forEach = [&](size_t count, llvm::function_ref<void(size_t)> work) {
      if (learned.empty())
        return inParallel(count, 1, work);
      for (size_t i = 0; i < count; ++i)
        work(i);
    };
    forEach(sizes.batch * kvHeads, [&](size_t i) {
      int64_t sequence = i / kvHeads, kvHead = i % kvHeads, group = heads / kvHeads;
      Keys keys{kvHead, {*this, "k", sequence, kvHead}, {*this, "v", sequence, kvHead}, {}};
      for (int64_t key = 0; wantsKey && key < sequences.keysOf(sequence).length; ++key)
        if (wantsKey({sequence, kvHead, key}))
          keys.wanted.push_back(key);
      for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
        for (int64_t row = 0; row < sequences.queriesOf(sequence).length; ++row)
          evaluate({sequence, head, row}, keys);
    });
    return {std::move(gradients), knownRows()};
  }

private:
  /// A sequence's, of one kv head.
  struct Keys {
    int64_t kvHead;
    KeyVectors k, v;
    std::vector<int64_t> wanted; ///< in order; of no meaning where all are
  };
  void evaluate(const Row &row, Keys &keys);
  /// What pairs of a query row have in common.
  struct QueryRow {
    std::vector<double> query, dOut;
    double lse, delta;
    double *dQuery; ///< null: not wanted
  };
  void evaluate(const Row &row, int64_t k, Keys &keys, const QueryRow &of);
  Tensors knownRows() const;
  Tensor &gradientTensor(const ScoreOperand &array) { return gradients.find(gradientOf(array))->second; }

  /// Where a row of the gradient begins.
  double *rowOf(Tensor &gradient, LayoutAttr layout, int64_t sequence, int64_t head, int64_t row) {
    return gradient.data<double>() + offsetOf(gradient, layout, sequence, head, row);
  }

  bool hasDlse, hasDelta;
  bool keepsPadding; ///< rows in no piece are not written
  llvm::SmallVector<ScoreOperand> learned;
  Tensors gradients;
  Tensor *dq, *dk, *dv; ///< among them, or null: not wanted
  Wanted wantsQuery, wantsKey;
};
} // namespace

void Backward::evaluate(const Row &row, Keys &keys) {
  if (sequences.queryRow(row.sequence, row.row) < 0)
    return;
  if (auto before = inputs.find("before_dq"); dq && before != inputs.end()) {
    int64_t at = offsetOf(before->second, qLayout, row.sequence, row.head, sequences.queryRow(row.sequence, row.row));
    addScaled(rowOf(*dq, qLayout, row.sequence, row.head, sequences.queryRow(row.sequence, row.row)), 1,
              vectorAt(before->second, at));
  }
  bool wantsAllKeys = !wantsKey || !wantsQuery || wantsQuery(row);
  if (!wantsAllKeys && keys.wanted.empty())
    return;
  double lse = statistic("lse", row);
  if (lse == -std::numeric_limits<double>::infinity())
    return; // sees nothing
  QueryRow shared = {queryVector("q", row), queryVector("do", row), lse, 0, nullptr};
  shared.delta = hasDelta ? statistic("delta", row)
                          : dot(shared.dOut, queryVector("o", row)) - (hasDlse ? statistic("dlse", row) : 0);
  if (dq)
    shared.dQuery = rowOf(*dq, qLayout, row.sequence, row.head, sequences.queryRow(row.sequence, row.row));
  if (std::optional<double> sink = sinkOf(row.head))
    for (const ScoreOperand &array : learned)
      if (sinkArray && array.name == sinkArray->name)
        addToEntry(gradientTensor(array), array, row, pointOf(row), -std::exp(*sink - lse) * shared.delta);
  if (wantsAllKeys)
    for (int64_t k = 0; k < sequences.keysOf(row.sequence).length; ++k)
      evaluate(row, k, keys, shared);
  else
    for (int64_t k : keys.wanted)
      evaluate(row, k, keys, shared);
}

void Backward::evaluate(const Row &row, int64_t k, Keys &keys, const QueryRow &of) {
  ScorePoint point = pointOf(row);
  point.k = k;
  if (sequences.keyRow(row.sequence, k) < 0 || !mask.keeps(point))
    return;
  const std::vector<double> &key = keys.k[k];
  double score = scale * dot(of.query, key), derivative = 1;
  std::vector<double> byEntry(learned.size(), 0);
  score = modified(point, score, &derivative, learned, byEntry);
  double p = std::exp(score - of.lse), kept = drops.factor(row, k);
  double dWeight = kept == 0 ? 0 : kept * dot(of.dOut, keys.v[k]);
  double dModified = p * (dWeight - of.delta);
  double dScore = dModified * derivative;
  for (size_t i = 0; i < learned.size(); ++i)
    if (byEntry[i] != 0)
      addToEntry(gradientTensor(learned[i]), learned[i], row, point, dModified * byEntry[i]);
  int64_t keyToken = sequences.keyRow(row.sequence, k);
  if (of.dQuery)
    addScaled(of.dQuery, scale * dScore, key);
  if (dk)
    addScaled(rowOf(*dk, kLayout, row.sequence, keys.kvHead, keyToken), scale * dScore, of.query);
  if (dv && kept != 0)
    addScaled(rowOf(*dv, vLayout, row.sequence, keys.kvHead, keyToken), kept * p, of.dOut);
}

Tensors Backward::knownRows() const {
  Tensors known;
  auto add = [&](llvm::StringRef name, const Tensor *gradient, LayoutAttr layout, int64_t heads, const Wanted &wanted,
                 llvm::function_ref<Span(int64_t)> spanOf, llvm::function_ref<int64_t(int64_t, int64_t)> rowOf) {
    if (!gradient)
      return;
    Tensor &rows = known[name];
    rows = Tensor(Dtype::I32, gradient->shape().drop_back());
    rows.fill(keepsPadding ? 0 : 1);
    for (int64_t b = 0; (wanted || keepsPadding) && b < sequences.size(); ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t r = 0; r < spanOf(b).length; ++r)
          if (int64_t at = rowOf(b, r); at >= 0)
            rows.store(offsetOf(rows, layout, b, h, at), !wanted || wanted({b, h, r}));
  };
  auto queriesOf = [&](int64_t b) { return sequences.queriesOf(b); };
  auto keysOf = [&](int64_t b) { return sequences.keysOf(b); };
  auto queryRow = [&](int64_t b, int64_t position) { return sequences.queryRow(b, position); };
  auto keyRow = [&](int64_t b, int64_t position) { return sequences.keyRow(b, position); };
  add("dq", dq, qLayout, heads, wantsQuery, queriesOf, queryRow);
  add("dk", dk, kLayout, kvHeads, wantsKey, keysOf, keyRow);
  add("dv", dv, vLayout, kvHeads, wantsKey, keysOf, keyRow);
  return known;
}

llvm::Expected<Tensors> attn::reference::interpret(BackwardOp backward, const Tensors &inputs,
                                                   llvm::ArrayRef<llvm::StringRef> only) {
  llvm::Expected<Sizes> sizes = checkTensors(backward, inputs);
  if (!sizes)
    return sizes.takeError();
  return Backward(backward, inputs, *sizes, only).run().values;
}

llvm::Expected<Gradients> attn::reference::interpret(BackwardOp backward, const Tensors &inputs,
                                                     std::function<bool(const Row &)> wantedQueries,
                                                     std::function<bool(const Row &)> wantedKeys) {
  llvm::Expected<Sizes> sizes = checkTensors(backward, inputs);
  if (!sizes)
    return sizes.takeError();
  return Backward(backward, inputs, *sizes, {}).run(std::move(wantedQueries), std::move(wantedKeys));
}
