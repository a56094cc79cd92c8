// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of extents before sizes have numbers. Sizes of tensors, `rank` and variables are 0 or more, `ranks` is
// 1 or more, and numbers of tables are anything.
//
#include "Verifier.h"
#include "llvm/Support/MathExtras.h"

using namespace attn::program;
using attn::rt::Extent;
using llvm::StringRef;

static constexpr int64_t anything = INT64_MIN;

void Bounds::add(StringRef size, const Extent &value) { sizes.insert({size, {value, least(value)}}); }

int64_t Bounds::least(const Extent &extent) const {
  if (std::optional<int64_t> constant = extent.constant())
    return *constant;
  if (extent.op() == Extent::Op::Symbol) {
    auto size = sizes.find(extent.name());
    return size != sizes.end() ? size->second.second : extent.name() == "ranks";
  }
  if (extent.op() == Extent::Op::Lookup)
    return anything;
  if (extent.op() == Extent::Op::Splits)
    return 1;
  int64_t a = least(extent.operands()[0]), b = least(extent.operands()[1]), result = 0;
  switch (extent.op()) {
  case Extent::Op::Add:
    return a == anything || b == anything || llvm::AddOverflow(a, b, result) ? anything : result;
  case Extent::Op::Sub: {
    std::optional<int64_t> less = extent.operands()[1].constant();
    return a == anything || !less || llvm::SubOverflow(a, *less, result) ? anything : result;
  }
  case Extent::Op::Mul:
    return a < 0 || b < 0 ? anything : llvm::MulOverflow(a, b, result) ? 0 : result;
  case Extent::Op::Min:
    return std::min(a, b);
  case Extent::Op::Max:
    return std::max(a, b);
  case Extent::Op::FloorDiv:
    return a < 0 ? anything : 0;
  case Extent::Op::CeilDiv:
    return a < 0 ? anything : std::min<int64_t>(a, 1);
  case Extent::Op::Mod:
    return 0;
  default: // RoundUp
    return a < 0 || b < 1 ? anything : a;
  }
}

bool Bounds::isEmptyWith(const Extent &extent, const Extent &count) const {
  int steps = 1 << 10; // sizes may name each other in many ways
  return isEmptyWith(extent, count, steps);
}

bool Bounds::isEmptyWith(const Extent &extent, const Extent &count, int &steps) const {
  if (--steps < 0)
    return false;
  if (extent == count)
    return true;
  auto valueOf = [&](const Extent &size) -> const Extent * {
    auto found = size.op() == Extent::Op::Symbol ? sizes.find(size.name()) : sizes.end();
    return found == sizes.end() ? nullptr : &found->second.first;
  };
  auto of = [](const Extent &whole, int i) -> const Extent & { return whole.operands()[i]; };
  auto with = [&](int i) { return isEmptyWith(extent, of(count, i), steps); };
  auto is = [&](int i) { return isEmptyWith(of(extent, i), count, steps); };
  auto atLeast = [&](const Extent &whole, int i, int64_t bound) { return least(of(whole, i)) >= bound; };

  // Where the count is 0, so is what it is made of.
  if (const Extent *value = valueOf(count); value && isEmptyWith(extent, *value, steps))
    return true;
  if ((count.op() == Extent::Op::CeilDiv && with(0)) ||
      (count.op() == Extent::Op::RoundUp && atLeast(count, 1, 1) && with(0)) ||
      (count.op() == Extent::Op::Max && (with(0) || with(1))) ||
      (count.op() == Extent::Op::Mul && ((atLeast(count, 0, 1) && with(1)) || (atLeast(count, 1, 1) && with(0)))))
    return true;

  // An extent is 0 where what it is made of is.
  if (const Extent *value = valueOf(extent))
    return isEmptyWith(*value, count, steps);
  switch (extent.op()) {
  case Extent::Op::Mul:
    return (atLeast(extent, 1, 0) && is(0)) || (atLeast(extent, 0, 0) && is(1));
  case Extent::Op::Min:
    return is(0) || is(1);
  case Extent::Op::Add:
    return is(0) && is(1);
  case Extent::Op::FloorDiv:
  case Extent::Op::CeilDiv:
  case Extent::Op::RoundUp:
    return atLeast(extent, 1, 1) && is(0);
  default:
    return false;
  }
}
