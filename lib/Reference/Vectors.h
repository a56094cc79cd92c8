// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What both passes of the reference ask of a problem's tensors: the vectors of a
// sequence's rows, and what a score modifier may see.
//
#ifndef ATTN_LIB_REFERENCE_VECTORS_H
#define ATTN_LIB_REFERENCE_VECTORS_H

#include "DropoutReference.h"
#include "attn/Reference/Interpreter.h"
#include "attn/Reference/Sequences.h"

namespace attn::reference {

/// Offset of the first element of a row in a tensor of the given layout. `row`
/// counts from the start of the batch entry, or of the tensor when packed.
int64_t offsetOf(const Tensor &tensor, LayoutAttr layout, int64_t sequence, int64_t head, int64_t row);
/// The same for lse.
int64_t lseOffsetOf(const Tensor &lse, LayoutAttr qLayout, int64_t sequence, int64_t head, int64_t row);

double dot(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b);
/// The last axis from an offset on.
std::vector<double> vectorAt(const Tensor &tensor, int64_t offset);
/// Adds weight * vector to as many numbers.
void addScaled(double *to, double weight, llvm::ArrayRef<double> vector);

/// Calls `work(i)` for each i below `count`, on all CPU cores where there are several
/// times `each` of them.
void inParallel(size_t count, size_t each, llvm::function_ref<void(size_t)> work);

class Vectors {
protected:
  /// Rows of `k` or `v` of a sequence and kv head, each read when it is asked for. Some thousands are kept for the next
  /// query; a reference holds until another key is asked for.
  class KeyVectors {
  public:
    KeyVectors(const Vectors &of, llvm::StringRef name, int64_t sequence, int64_t kvHead);
    const std::vector<double> &operator[](int64_t key);

  private:
    const Vectors &of;
    const Tensor &tensor;
    LayoutAttr layout;
    int64_t sequence, kvHead;
    struct Kept {
      int64_t key = -1;
      std::vector<double> vector;
    };
    std::vector<Kept> kept; ///< key k in place k modulo their number
  };

  Vectors(ProblemOp problem, const Tensors &inputs, const Sizes &sizes);

  const Tensor &input(llvm::StringRef name) const { return inputs.find(name)->second; }
  ScorePoint pointOf(const Row &row) const;
  /// A scaled product after all score modifiers, as float32 if there are some: beside a large bias it has no more of
  /// it. `derivative` is multiplied by theirs, if it is not null; `byEntry` becomes, for each of `arrays`, the
  /// derivative by the entry that belongs to the score.
  double modified(const ScorePoint &point, double score, double *derivative = nullptr,
                  llvm::ArrayRef<ScoreOperand> arrays = {}, llvm::MutableArrayRef<double> byEntry = {}) const;
  /// Adds to the entry of an array's gradient that belongs to a score.
  static void addToEntry(Tensor &gradient, const ScoreOperand &array, const Row &row, const ScorePoint &point,
                         double amount);
  /// The score of the key more that rows of the head see, if the problem says so.
  std::optional<double> sinkOf(int64_t head) const;
  /// A row of `q`, `o` or `do`.
  std::vector<double> queryVector(llvm::StringRef name, const Row &row) const;
  /// An entry of `lse` or `dlse`.
  double statistic(llvm::StringRef name, const Row &row) const;

  const Tensors &inputs;
  Sizes sizes;
  MaskInterface mask;
  llvm::SmallVector<ScoreModifierInterface> modifiers;
  std::optional<double> sinkNumber;
  std::optional<ScoreOperand> sinkArray;
  DropoutReference drops;
  LayoutAttr qLayout, kLayout, vLayout, oLayout;
  int64_t heads, kvHeads, dimQk, dimV;
  double scale;
  Sequences sequences;
};

} // namespace attn::reference

#endif // ATTN_LIB_REFERENCE_VECTORS_H
