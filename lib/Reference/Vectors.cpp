// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Vectors.h"
#include <atomic>
#include <thread>

using namespace attn;
using namespace attn::reference;

int64_t reference::offsetOf(const Tensor &tensor, LayoutAttr layout, int64_t sequence, int64_t head, int64_t row) {
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

int64_t reference::lseOffsetOf(const Tensor &lse, LayoutAttr qLayout, int64_t sequence, int64_t head, int64_t row) {
  return qLayout.isPacked() ? lse.offset({head, row}) : lse.offset({sequence, head, row});
}

// Most of a reference's time is spent in the two loops over a row's columns. AVX2 without FMA, so that bits are the
// same on all CPUs.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ATTN_WIDE __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define ATTN_WIDE
#endif

ATTN_WIDE double reference::dot(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  assert(a.size() == b.size());
  double sums[4] = {0, 0, 0, 0}; // a sum alone would have each addition wait for the one before
  size_t i = 0;
  for (; i + 4 <= a.size(); i += 4)
    for (size_t j = 0; j < 4; ++j)
      sums[j] += a[i + j] * b[i + j];
  for (; i < a.size(); ++i)
    sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

ATTN_WIDE void reference::addScaled(double *to, double weight, llvm::ArrayRef<double> vector) {
  const double *from = vector.data();
  for (size_t i = 0, count = vector.size(); i < count; ++i)
    to[i] += weight * from[i];
}

void reference::inParallel(size_t count, size_t each, llvm::function_ref<void(size_t)> work) {
  std::atomic<size_t> next = 0;
  auto loop = [&] {
    for (size_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(std::thread::hardware_concurrency(), count / each); ++i)
    threads.emplace_back(loop);
  loop();
  for (std::thread &thread : threads)
    thread.join();
}

std::vector<double> attn::reference::vectorAt(const Tensor &tensor, int64_t offset) {
  std::vector<double> values(tensor.shape().back());
  tensor.load(offset, tensor.strides().back(), values);
  return values;
}

Vectors::Vectors(ProblemOp problem, const Tensors &inputs, const Sizes &sizes)
    : inputs(inputs), sizes(sizes), mask(problem.getMask()), modifiers(problem.getModifiers()),
      sinkNumber(problem.getSinkNumber()), sinkArray(problem.getSinkArray()), drops(problem, inputs),
      qLayout(problem.getQLayout()), kLayout(problem.getKLayout()), vLayout(problem.getVLayout()),
      oLayout(problem.getOLayout()), heads(problem.getHeads()), kvHeads(problem.getKvHeads()),
      dimQk(problem.getDimQk()), dimV(problem.getDimV()), scale(problem.scaleOrDefault()),
      sequences(problem, inputs, sizes) {}

std::optional<double> Vectors::sinkOf(int64_t head) const {
  return sinkArray ? input(sinkArray->name)({head}) : sinkNumber;
}

std::vector<double> Vectors::queryVector(llvm::StringRef name, const Row &row) const {
  const Tensor &tensor = input(name);
  LayoutAttr layout = name == "q" ? qLayout : oLayout;
  return vectorAt(tensor, offsetOf(tensor, layout, row.sequence, row.head, sequences.queryRow(row.sequence, row.row)));
}

Vectors::KeyVectors::KeyVectors(const Vectors &of, llvm::StringRef name, int64_t sequence, int64_t kvHead)
    : of(of), tensor(of.input(name)), layout(name == "k" ? of.kLayout : of.vLayout), sequence(sequence), kvHead(kvHead),
      kept(std::min<int64_t>(of.sequences.keysOf(sequence).length, 4096)) {}

const std::vector<double> &Vectors::KeyVectors::operator[](int64_t key) {
  Kept &place = kept[key % kept.size()];
  if (place.key != key)
    place = {key, vectorAt(tensor, offsetOf(tensor, layout, sequence, kvHead, of.sequences.keyRow(sequence, key)))};
  return place.vector;
}

double Vectors::statistic(llvm::StringRef name, const Row &row) const {
  const Tensor &tensor = input(name);
  return tensor.load(lseOffsetOf(tensor, qLayout, row.sequence, row.head, sequences.queryRow(row.sequence, row.row)));
}

double Vectors::modified(const ScorePoint &point, double score, double *derivative, llvm::ArrayRef<ScoreOperand> arrays,
                         llvm::MutableArrayRef<double> byEntry) const {
  llvm::fill(byEntry, 0);
  for (ScoreModifierInterface modifier : modifiers) {
    double slope = derivative || !arrays.empty() ? modifier.derivative(point, score) : 1;
    for (auto [array, own] : llvm::zip_equal(arrays, byEntry)) {
      own *= slope;
      for (auto [n, operand] : llvm::enumerate(modifier.operands()))
        if (operand == array)
          own += modifier.entryDerivative(point, score, n);
    }
    if (derivative)
      *derivative *= slope;
    score = modifier.modify(point, score);
  }
  return modifiers.empty() ? score : double(float(score));
}

/// The table's entry that the pair has.
static int64_t distanceOf(const ScoreOperand &array, const ScorePoint &p) {
  int64_t reach = array.entries / 2, diagonal = p.q + (array.diagonal == Diagonal::bottom_right ? p.lenK - p.lenQ : 0);
  return std::clamp(p.k - diagonal, -reach, reach) + reach;
}

void Vectors::addToEntry(Tensor &gradient, const ScoreOperand &array, const Row &row, const ScorePoint &point,
                         double amount) {
  const int64_t places[] = {row.sequence, row.head, row.row, point.k, distanceOf(array, point)};
  Shape index;
  for (ScoreOperand::Axis axis : array.axes)
    index.push_back(places[axis]);
  int64_t offset = gradient.offset(index);
  gradient.store(offset, gradient.load(offset) + amount);
}

ScorePoint Vectors::pointOf(const Row &row) const {
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
