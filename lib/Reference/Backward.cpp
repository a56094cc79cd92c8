// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The formulas of `attn.backward`, pair by visible pair. Rows add to keys of their own
// sequence and kv head alone, so these are what threads share out.
//
#include "Vectors.h"
#include <cmath>

using namespace attn;
using namespace attn::reference;

namespace {
class Backward : Vectors {
public:
  Backward(BackwardOp backward, const Tensors &inputs, const Sizes &sizes)
      : Vectors(backward.getProblemOp(), inputs, sizes), hasDlse(backward.getDlse()) {
    for (const ProblemTensor &tensor : tensorsOf(backward))
      if (tensor.role == ProblemTensor::Result)
        gradients[tensor.name] = Tensor(Dtype::F64, tensor.shape(backward.getProblemOp(), sizes));
  }

  Tensors run() {
    inParallel(sizes.batch * kvHeads, 1, [&](size_t i) {
      int64_t sequence = i / kvHeads, kvHead = i % kvHeads, group = heads / kvHeads;
      for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
        for (int64_t row = 0; row < sequences.queriesOf(sequence).length; ++row)
          evaluate({sequence, head, row}, kvHead);
    });
    return std::move(gradients);
  }

private:
  void evaluate(const Row &row, int64_t kvHead);

  /// The tensor's row += weight * vector.
  void add(llvm::StringRef name, LayoutAttr layout, int64_t sequence, int64_t head, int64_t row, double weight,
           llvm::ArrayRef<double> vector) {
    Tensor &tensor = gradients.find(name)->second;
    int64_t at = offsetOf(tensor, layout, sequence, head, row);
    for (size_t i = 0; i < vector.size(); ++i)
      tensor.store(at + i, tensor.load(at + i) + weight * vector[i]);
  }

  bool hasDlse;
  Tensors gradients;
};
} // namespace

void Backward::evaluate(const Row &row, int64_t kvHead) {
  double lse = statistic("lse", row);
  if (lse == -std::numeric_limits<double>::infinity())
    return; // sees nothing
  std::vector<double> query = queryVector("q", row), dOut = queryVector("do", row);
  double delta = dot(dOut, queryVector("o", row)) - (hasDlse ? statistic("dlse", row) : 0);
  int64_t token = sequences.queriesOf(row.sequence).start + row.row;
  ScorePoint point = pointOf(row);
  for (point.k = 0; point.k < point.lenK; ++point.k) {
    if (!mask.keeps(point))
      continue;
    std::vector<double> key = keyVector("k", row.sequence, kvHead, point.k);
    double score = scale * dot(query, key), derivative = 1;
    for (ScoreModifierInterface modifier : modifiers) {
      derivative *= modifier.derivative(point, score);
      score = modifier.modify(point, score);
    }
    double p = std::exp(score - lse);
    double dScore = p * (dot(dOut, keyVector("v", row.sequence, kvHead, point.k)) - delta) * derivative;
    int64_t keyToken = sequences.keysOf(row.sequence).start + point.k;
    add("dq", qLayout, row.sequence, row.head, token, scale * dScore, key);
    add("dk", kLayout, row.sequence, kvHead, keyToken, scale * dScore, query);
    add("dv", vLayout, row.sequence, kvHead, keyToken, p, dOut);
  }
}

llvm::Expected<Tensors> attn::reference::interpret(BackwardOp backward, const Tensors &inputs) {
  llvm::Expected<Sizes> sizes = checkTensors(backward, inputs);
  if (!sizes)
    return sizes.takeError();
  return Backward(backward, inputs, *sizes).run();
}
