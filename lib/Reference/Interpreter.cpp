// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For each row: collect the keys that the mask keeps, then the formula of
// `attn.problem`, literally. Only visible keys and values are ever read.
//
#include "attn/Reference/Interpreter.h"
#include "attn/Reference/Segments.h"
#include "attn/Reference/Sequences.h"
#include <atomic>
#include <cmath>
#include <thread>

using namespace attn;
using namespace attn::reference;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

namespace {
class Interpreter {
public:
  Interpreter(ProblemOp problem, const Tensors &inputs, const Sizes &sizes);

  Outputs run(llvm::function_ref<bool(const Row &)> wanted);

private:
  const Tensor &input(llvm::StringRef name) const { return inputs.find(name)->second; }
  ScorePoint pointOf(const Row &row) const;
  void evaluate(const Row &row, Outputs &outputs) const;

  const Tensors &inputs;
  Sequences sequences;
  MaskInterface mask;
  llvm::SmallVector<ScoreModifierInterface> modifiers;
  LayoutAttr qLayout, kLayout, vLayout, oLayout;
  int64_t heads, kvHeads, dimQk, dimV;
  double scale;
  Shape oShape, lseShape;
};
} // namespace

/// Offset of the first element of a row in a tensor of the given layout. `row`
/// counts from the start of the batch entry, or of the tensor when packed.
static int64_t offsetOf(const Tensor &tensor, LayoutAttr layout, int64_t sequence, int64_t head, int64_t row) {
  switch (layout.getKind()) {
  case LayoutKind::bshd:
    return tensor.offset({sequence, row, head});
  case LayoutKind::sbhd:
    return tensor.offset({row, sequence, head});
  case LayoutKind::bhsd:
    return tensor.offset({sequence, head, row});
  case LayoutKind::thd:
    return tensor.offset({row, head});
  }
  llvm_unreachable("covered");
}

/// The same for lse.
static int64_t lseOffsetOf(const Tensor &lse, LayoutAttr qLayout, int64_t sequence, int64_t head, int64_t row) {
  return qLayout.isPacked() ? lse.offset({head, row}) : lse.offset({sequence, head, row});
}

static std::vector<double> loadVector(const Tensor &tensor, int64_t offset, int64_t size) {
  std::vector<double> values(size);
  tensor.load(offset, tensor.strides().back(), values);
  return values;
}

static double dot(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  double sum = 0;
  for (auto [x, y] : llvm::zip_equal(a, b))
    sum += x * y;
  return sum;
}

Interpreter::Interpreter(ProblemOp problem, const Tensors &inputs, const Sizes &sizes)
    : inputs(inputs), sequences(problem, inputs, sizes), mask(problem.getMask()), modifiers(problem.getModifiers()),
      qLayout(problem.getQLayout()), kLayout(problem.getKLayout()), vLayout(problem.getVLayout()),
      oLayout(problem.getOLayout()), heads(problem.getHeads()), kvHeads(problem.getKvHeads()),
      dimQk(problem.getDimQk()), dimV(problem.getDimV()), scale(problem.scaleOrDefault()) {
  for (const ProblemTensor &tensor : tensorsOf(problem))
    if (tensor.name == "o")
      oShape = tensor.shape(problem, sizes);
  lseShape = qLayout.isPacked() ? Shape{heads, sizes.rowsQ} : Shape{sizes.batch, heads, sizes.rowsQ};
}

ScorePoint Interpreter::pointOf(const Row &row) const {
  ScorePoint point{sequences.point(row.sequence, row.head), {}};
  point.q = row.row;
  point.entry = [this, row](const ScoreOperand &operand, int64_t k, int64_t at) {
    const int64_t places[] = {row.sequence, row.head, row.row, k, at};
    Shape index;
    for (ScoreOperand::Axis axis : operand.axes)
      index.push_back(places[axis]);
    return input(operand.name)(index);
  };
  return point;
}

void Interpreter::evaluate(const Row &row, Outputs &outputs) const {
  const Tensor &q = input("q"), &k = input("k"), &v = input("v");
  Span rowsOfQ = sequences.queriesOf(row.sequence), rowsOfKv = sequences.keysOf(row.sequence);
  int64_t kvHead = row.head / (heads / kvHeads);
  auto keyOffset = [&](const Tensor &tensor, LayoutAttr layout, int64_t key) {
    return offsetOf(tensor, layout, row.sequence, kvHead, rowsOfKv.start + key);
  };

  // s[k] = modifiers(scale * dot(Q, K[k])) of the visible keys.
  std::vector<double> query =
      loadVector(q, offsetOf(q, qLayout, row.sequence, row.head, rowsOfQ.start + row.row), dimQk);
  std::vector<int64_t> visible;
  std::vector<double> scores;
  ScorePoint point = pointOf(row);
  for (point.k = 0; point.k < point.lenK; ++point.k) {
    if (!mask.keeps(point))
      continue;
    visible.push_back(point.k);
    double score = scale * dot(query, loadVector(k, keyOffset(k, kLayout, point.k), dimQk));
    for (ScoreModifierInterface modifier : modifiers)
      score = modifier.modify(point, score);
    scores.push_back(score);
  }

  // LSE = ln(sum of exp(s[k])), with the largest score taken out; a NaN stays.
  double largest = -infinity;
  for (double score : scores)
    largest = std::isnan(score) || score > largest ? score : largest;
  bool seesNothing = largest == -infinity;
  double sum = 0;
  for (double score : scores)
    sum += std::exp(score - largest);
  double lse = seesNothing ? -infinity : largest + std::log(sum);

  // O = sum of exp(s[k] - LSE) * V[k].
  std::vector<double> result(dimV, 0.0);
  for (size_t i = 0; i < visible.size() && !seesNothing; ++i) {
    double weight = std::exp(scores[i] - lse);
    std::vector<double> value = loadVector(v, keyOffset(v, vLayout, visible[i]), dimV);
    for (int64_t d = 0; d < dimV; ++d)
      result[d] += weight * value[d];
  }

  int64_t token = rowsOfQ.start + row.row;
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
  outputs.known.fill(1);

  std::vector<Row> rows;
  for (int64_t b = 0; b < sequences.size(); ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t r = 0; r < sequences.queriesOf(b).length; ++r) {
        int64_t token = sequences.queriesOf(b).start + r;
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
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < rows.size(); i = next++)
      evaluate(rows[i], outputs);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(std::thread::hardware_concurrency(), rows.size() / 64); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
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
  if (outputs)
    outputs->status = std::move(expanded->status);
  return outputs;
}

std::function<bool(const Row &)> attn::reference::oneRowIn(int64_t n) {
  return [n](const Row &row) { return (row.row + 3 * row.head + 5 * row.sequence) % n == 0; };
}
