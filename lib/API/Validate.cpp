// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// $ATTN_VALIDATE: some rows of a launch's results, against the definition. What the mask
// makes visible is asked of its expression as it was written, pair by pair; nothing that
// the kernel was made with has a part in it.
//
#include "attn/API/Jit.h"
#include "attn/Reference/Difference.h"
#include <atomic>
#include <cstdlib>
#include <fmt/format.h>

using namespace attn;

/// How many rows; 0: none; nothing: it is no number.
static std::optional<int64_t> rowsToValidate() {
  static const std::optional<int64_t> rows = [] {
    const char *value = std::getenv("ATTN_VALIDATE");
    int64_t number = 0;
    bool wrong = value && *value && (llvm::StringRef(value).getAsInteger(10, number) || number < 0);
    return wrong ? std::nullopt : std::optional(number);
  }();
  return rows;
}

static reference::Dtype typeOf(Dtype dtype) {
  const reference::Dtype types[] = {reference::Dtype::BF16, reference::Dtype::F16, reference::Dtype::F32,
                                    reference::Dtype::I32};
  return types[int(dtype)];
}

rt::Status Kernel::validate(llvm::ArrayRef<TensorView> views, const Sizes &sizes) const {
  if (!rowsToValidate())
    return rt::Error{fmt::format("expected a number of rows in $ATTN_VALIDATE, got: {}", std::getenv("ATTN_VALIDATE"))};
  const int64_t rows = *rowsToValidate();
  if (rows == 0)
    return {};
  Compilation compilation;
  auto module = compilation.parse(text, "problem");
  if (!module)
    return module.error();
  rt::Result<mlir::Operation *> program = findProgram(**module, name);
  auto problem = program ? mlir::dyn_cast<ProblemOp>(*program) : ProblemOp();
  if (!problem)
    return {}; // gradients, and segments alone

  reference::Tensors inputs, results;
  for (auto [spec, view] : llvm::zip_equal(getSignature().tensors, views)) {
    auto strides = view.strides.empty() ? contiguousStrides(view.shape) : llvm::SmallVector<int64_t, 4>(view.strides);
    reference::Tensor &tensor = (spec.isResult() ? results : inputs)[spec.name];
    tensor = reference::Tensor(typeOf(view.dtype), view.shape, strides);
    if (rt::Status copied = copyToHost(tensor.bytes(), view); !copied)
      return copied;
  }
  // Others with each launch.
  static std::atomic<int64_t> turn = 0;
  const int64_t shift = turn++, sequences = getSignature().fixed.packedQ ? 1 : sizes.batch;
  const int64_t one = std::max<int64_t>(1, sequences * sizes.rowsQ * getSignature().fixed.heads / rows);
  auto expected = reference::interpret(problem, inputs, [=](const reference::Row &row) {
    return (row.row + 3 * row.head + 5 * row.sequence + shift) % one == 0;
  });
  if (!expected)
    return rt::Error{llvm::toString(expected.takeError())};
  auto judge = [&](const char *result, const reference::Difference &found, double tolerance) -> rt::Status {
    if (found.maxAbs <= tolerance)
      return {};
    return rt::Error{fmt::format("expected `{}` as the problem defines it, within {:.3g} ($ATTN_VALIDATE), got: {:.3g} off at {}",
                                 result, tolerance, found.maxAbs, reference::shapeText(found.worst))};
  };
  reference::Difference o = reference::differenceOfO(problem, *expected, results["o"]);
  if (rt::Status good = judge("o", o, reference::toleranceOfO(problem, o)); !good || !problem.hasLse())
    return good;
  reference::Difference lse = reference::differenceOfLse(*expected, results["lse"]);
  return judge("lse", lse, reference::toleranceOfLse(lse));
}
