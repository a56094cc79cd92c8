// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For each row: collect the keys that the mask keeps, then the formula of
// `attn.problem`, literally. Only visible keys and values are ever read.
//
#include "Vectors.h"
#include "attn/Reference/Segments.h"
#include <cmath>

using namespace attn;
using namespace attn::reference;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

namespace {
class Interpreter : Vectors {
public:
  Interpreter(ProblemOp problem, const Tensors &inputs, const Sizes &sizes);

  Outputs run(llvm::function_ref<bool(const Row &)> wanted);

private:
  int64_t kvHeadOf(const Row &row) const { return row.head / (heads / kvHeads); }
  /// Rows of one sequence whose heads share keys.
  void evaluate(llvm::ArrayRef<Row> rows, Outputs &outputs) const;
  void evaluate(const Row &row, KeyVectors &keys, KeyVectors &values, Outputs &outputs) const;

  Shape oShape, lseShape;
  bool keepsPadding; ///< rows in no piece are not written
};
} // namespace

Interpreter::Interpreter(ProblemOp problem, const Tensors &inputs, const Sizes &sizes)
    : Vectors(problem, inputs, sizes), keepsPadding(problem.getKeepPadding()) {
  for (const ProblemTensor &tensor : tensorsOf(problem))
    if (tensor.name == "o")
      oShape = tensor.shape(problem, sizes);
  lseShape = qLayout.isPacked() ? Shape{heads, sizes.rowsQ} : Shape{sizes.batch, heads, sizes.rowsQ};
}

void Interpreter::evaluate(llvm::ArrayRef<Row> rows, Outputs &outputs) const {
  int64_t sequence = rows.front().sequence, kvHead = kvHeadOf(rows.front());
  KeyVectors keys(*this, "k", sequence, kvHead), values(*this, "v", sequence, kvHead);
  for (const Row &row : rows)
    evaluate(row, keys, values, outputs);
}

void Interpreter::evaluate(const Row &row, KeyVectors &keys, KeyVectors &values, Outputs &outputs) const {
  // s[k] = modifiers(scale * dot(Q, K[k])) of the visible keys.
  std::vector<double> query = queryVector("q", row);
  std::vector<int64_t> visible;
  std::vector<double> scores;
  ScorePoint point = pointOf(row);
  for (point.k = 0; point.k < point.lenK; ++point.k) {
    if (sequences.keyRow(row.sequence, point.k) < 0 || !mask.keeps(point))
      continue;
    visible.push_back(point.k);
    scores.push_back(modified(point, scale * dot(query, keys[point.k])));
  }

  // LSE = ln(exp(sink) + sum of exp(s[k])), with the largest score taken out; a NaN stays.
  std::optional<double> sink = sinkOf(row.head); // a key more, without a value
  double largest = -infinity;
  if (sink && !(*sink == -infinity))
    largest = *sink;
  for (double score : scores)
    largest = std::isnan(score) || score > largest ? score : largest;
  bool seesNothing = largest == -infinity;
  double sum = sink && !seesNothing ? std::exp(*sink - largest) : 0;
  std::vector<double> weights;
  for (double score : scores)
    sum += weights.emplace_back(std::exp(score - largest));
  double lse = seesNothing ? -infinity : largest + std::log(sum);

  // O = sum of exp(s[k] - LSE) * V[k], of what dropout keeps.
  std::vector<double> result(dimV, std::isnan(lse) ? lse : 0.0);
  for (size_t i = 0; i < visible.size() && !seesNothing; ++i) {
    double kept = drops.factor(row, visible[i]);
    if (kept == 0)
      continue;
    double weight = kept * weights[i] / sum;
    addScaled(result.data(), weight, values[visible[i]]);
  }

  int64_t token = sequences.queryRow(row.sequence, row.row);
  int64_t at = offsetOf(outputs.o, oLayout, row.sequence, row.head, token);
  for (int64_t d = 0; d < dimV; ++d)
    outputs.o.store(at + d, result[d]);
  int64_t statistic = lseOffsetOf(outputs.lse, qLayout, row.sequence, row.head, token);
  outputs.lse.store(statistic, lse);
  outputs.known.store(statistic, 1);
}

Outputs Interpreter::run(llvm::function_ref<bool(const Row &)> wanted) {
  // All is padding until some sequence says otherwise.
  Outputs outputs{Tensor(Dtype::F64, oShape), Tensor(Dtype::F64, lseShape), Tensor(Dtype::I32, lseShape), {}};
  outputs.lse.fill(-infinity);
  outputs.known.fill(keepsPadding ? 0 : 1);

  std::vector<Row> rows;
  for (int64_t b = 0; b < sequences.size(); ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t r = 0; r < sequences.queriesOf(b).length; ++r) {
        int64_t token = sequences.queryRow(b, r);
        if (token < 0)
          continue;
        if (wanted({b, h, r})) {
          rows.push_back({b, h, r});
          continue;
        }
        int64_t at = offsetOf(outputs.o, oLayout, b, h, token);
        for (int64_t d = 0; d < dimV; ++d)
          outputs.o.store(at + d, unknown);
        int64_t statistic = lseOffsetOf(outputs.lse, qLayout, b, h, token);
        outputs.lse.store(statistic, unknown);
        outputs.known.store(statistic, 0);
      }

  // Rows write to places of their own, so threads need nothing but a counter.
  std::vector<llvm::ArrayRef<Row>> parts;
  for (llvm::ArrayRef<Row> left = rows; !left.empty(); left = left.drop_front(parts.back().size()))
    parts.push_back(left.take_front(64).take_while([&](const Row &row) {
      return row.sequence == left.front().sequence && kvHeadOf(row) == kvHeadOf(left.front());
    }));
  size_t each = parts.empty() ? 1 : llvm::divideCeil(64 * parts.size(), rows.size()); // a thread is worth 64 rows
  inParallel(parts.size(), each, [&](size_t i) { evaluate(parts[i], outputs); });
  return outputs;
}

llvm::Expected<Outputs> attn::reference::interpret(ProblemOp problem, const Tensors &inputs) {
  return interpret(problem, inputs, oneRowIn(1));
}

llvm::Expected<Outputs> attn::reference::interpret(ProblemOp problem, const Tensors &inputs,
                                                   std::function<bool(const Row &)> wanted) {
  llvm::Expected<Sizes> sizes = checkTensors(problem, inputs);
  if (!sizes)
    return sizes.takeError();
  if (!problem.getSegments())
    return Interpreter(problem, inputs, *sizes).run(wanted);
  llvm::Expected<Expanded> expanded = expand(problem, inputs);
  if (!expanded)
    return expanded.takeError();
  llvm::Expected<Outputs> outputs = interpret(expanded->problem, expanded->inputs, wanted);
  if (!outputs)
    return outputs;
  outputs->status = std::move(expanded->status);
  if (problem.getSinkAttr()) // to the problem over arrays these are padding
    for (int64_t head = 0; head < int64_t(problem.getHeads()); ++head) {
      std::optional<double> number = problem.getSinkNumber();
      double sink = number ? *number : inputs.find(problem.getSinkArray()->name)->second.load(head);
      for (int64_t token : expanded->alone)
        outputs->lse.store(head * outputs->lse.shape()[1] + token, sink);
    }
  return outputs;
}

std::function<bool(const Row &)> attn::reference::oneRowIn(int64_t n) {
  return [n](const Row &row) { return (row.row + 3 * row.head + 5 * row.sequence) % n == 0; };
}
