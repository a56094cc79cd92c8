// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a call runs of repeats and whens, and what its exchanges move.
//
#include "ProgramBinder.h"

#include <fmt/format.h>

#include <algorithm>

using namespace attn::rt;
using Kind = Program::Argument::Kind;
using Access = Program::Argument::Access;
using StepKind = Program::Step::Kind;

namespace {
/// Where memory begins and ends, and whether it is written.
struct Range {
  uintptr_t begin = 0, end = 0;
  bool isWritten = false;
  bool meets(const Range &other) const { return begin < other.end && other.begin < end; }
};
} // namespace

/// Runs repeats and whens.
class ProgramCode::Unroller : Binder {
public:
  Unroller(const Binder &binder, std::vector<BoundStep> &bound)
      : Binder(binder), bound(bound), sizes(binder.values, binder.values + code.names.size()), current(code.values) {
    sizes.resize(code.names.size() + code.variables);
    values = sizes.data();
    for (size_t i = 0; i < current.size(); ++i)
      current[i] = static_cast<int>(i);
    carried = current.data();
  }

  Status run() {
    if (code.exchanges) {
      rank = code.valueOf("rank", values), ranks = code.valueOf("ranks", values);
      if (ranks < 1 || ranks > INT32_MAX || rank < 0 || rank >= ranks)
        return error("expected a rank from 0 to {} (`ranks` - 1), got: {}", ranks - 1, rank);
    }
    Status status = run(code.source.steps, code.steps);
    if (status)
      bound.resize(count);
    return status;
  }

private:
  template <typename... T> static Error error(fmt::format_string<T...> text, T &&...arguments) {
    return {fmt::format(text, std::forward<T>(arguments)...), {}, {}};
  }

  Status limit() {
    if (++work <= kMostSteps)
      return {};
    return error("expected a program `{}` that runs at most {} steps, got: more", code.source.name, kMostSteps);
  }

  BoundStep &append() {
    if (count == bound.size())
      bound.emplace_back();
    touched.resize(++count);
    return bound[count - 1];
  }

  Status run(const std::vector<Program::Step> &steps, const std::vector<StepCode> &codes) {
    for (size_t i = 0; i < steps.size(); ++i) {
      const Program::Step &step = steps[i];
      if (Status status = limit(); !status)
        return status;
      Status status = step.kind == StepKind::Exchange ? exchange(step, codes[i])
                      : step.kind == StepKind::Wait   ? wait(step)
                      : step.kind == StepKind::Repeat ? repeat(step, codes[i])
                      : step.kind == StepKind::When   ? when(step, codes[i])
                                                      : launch(step, codes[i]);
      if (!status)
        return status;
    }
    return {};
  }

  Status when(const Program::Step &step, const StepCode &own) {
    return own.count.evaluate(values, tables) ? run(step.steps, own.steps) : Status();
  }

  Status repeat(const Program::Step &step, const StepCode &own) {
    int64_t times = own.count.evaluate(values, tables);
    for (const Program::Carried &value : step.carried)
      current[static_cast<size_t>(value.value)] = current[static_cast<size_t>(value.initial)];
    std::vector<int> next(step.carried.size());
    for (int64_t i = 0; i < times; ++i) {
      if (Status status = limit(); !status)
        return status;
      sizes[code.names.size() + own.variable] = i;
      if (Status status = run(step.steps, own.steps); !status)
        return status;
      for (size_t j = 0; j < next.size(); ++j) // all of them at once
        next[j] = current[static_cast<size_t>(step.carried[j].next)];
      for (size_t j = 0; j < next.size(); ++j)
        current[static_cast<size_t>(step.carried[j].value)] = next[j];
    }
    return {};
  }

  Status launch(const Program::Step &step, const StepCode &own) {
    BoundStep &to = append();
    if (Status status = Binder::launch(step, own, to); !status || !code.exchanges)
      return status;
    std::vector<Range> &ranges = touched[count - 1];
    for (auto [data, bytes] : to.zeroed)
      ranges.push_back(rangeOf(data, bytes, true));
    for (const Program::Argument &argument : step.arguments)
      if (bool isMap = argument.kind == Kind::TensorMap;
          to.kind == BoundStep::Kind::Launch &&
          (isMap || (argument.kind == Kind::Pointer && argument.access != Access::None)))
        ranges.push_back(rangeOf(of(argument.tensor), !isMap && argument.access == Access::Write));
    return {};
  }

  static Range rangeOf(void *data, size_t bytes, bool isWritten) {
    uintptr_t begin = reinterpret_cast<uintptr_t>(data);
    return {begin, begin + bytes, isWritten};
  }
  /// All that lies between the first element and the last.
  Range rangeOf(size_t memory, bool isWritten) const {
    int64_t element = sizeOf(code.source.dtypeOf(static_cast<int>(memory)));
    if (memory >= given())
      return rangeOf(dataOf(memory), static_cast<size_t>(code.shapes[memory].elements(values, tables) * element),
                     isWritten);
    const TensorView &tensor = tensors[memory];
    if (tensor.isEmpty())
      return {};
    Range range = rangeOf(tensor.data, static_cast<size_t>(element), isWritten);
    for (int axis = 0; axis < tensor.rank(); ++axis) {
      int64_t reach = (tensor.shape[static_cast<size_t>(axis)] - 1) * tensor.strideOf(axis) * element;
      reach < 0 ? range.begin -= static_cast<uintptr_t>(-reach) : range.end += static_cast<uintptr_t>(reach);
    }
    return range;
  }

  /// Rows of the leading axis of memory that lie one behind another.
  struct Rows {
    char *data = nullptr;
    int64_t count = 0, bytes = 0; ///< bytes: of a row
  };
  Result<Rows> rowsOf(size_t memory) const {
    std::vector<int64_t> shape = code.shapeOf(static_cast<int>(memory), values, tables);
    bool isBuffer = memory >= given();
    for (size_t i = 0; i < shape.size() && !isBuffer; ++i)
      shape[i] = tensors[memory].shape[i];
    for (int64_t &extent : shape)
      extent = std::max<int64_t>(extent, 0);
    int64_t elements = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      if (!isBuffer && shape[i] > 1 && !tensors[memory].isEmpty() &&
          tensors[memory].strideOf(static_cast<int>(i)) != elements)
        return error("expected `{}` to be contiguous, as it is exchanged, got: a stride of {} elements", nameOf(memory),
                     tensors[memory].strideOf(static_cast<int>(i)));
      if (i > 0 && __builtin_mul_overflow(elements, shape[i], &elements))
        return error("expected at most 2^44 elements of `{}`, which is exchanged, got: more", nameOf(memory));
    }
    int64_t all = 0;
    if (__builtin_mul_overflow(shape[0], elements, &all) || all > ShapeCode::most)
      return error("expected at most 2^44 elements of `{}`, which is exchanged, got: more", nameOf(memory));
    return Rows{static_cast<char *>(dataOf(memory)), shape[0],
                elements * sizeOf(code.source.dtypeOf(static_cast<int>(memory)))};
  }

  Status exchange(const Program::Step &step, const StepCode &own) {
    size_t destination = of(step.destination), source = of(step.source);
    if (destination < given() && code.source.tensors[destination].role != Program::Tensor::Role::Result)
      return error("expected a buffer or result to receive rows, got: `{}`", nameOf(destination));
    if (destination == source)
      return error("expected other memory than `{}` to receive its rows, got: the same", nameOf(source));
    auto to = rowsOf(destination), from = rowsOf(source);
    if (!to || !from)
      return to ? from.error() : to.error();
    auto number = [&](size_t i) { return own.numbers[i].evaluate(values, tables); };
    int64_t part = number(1), parts = number(2);
    if (parts < 1 || part < 0 || part >= parts || to->count % parts)
      return error("expected a block of {} equal blocks of {} rows of `{}`, got: {}", parts, to->count,
                   nameOf(destination), part);
    int64_t block = to->count / parts, sent = step.sent ? number(3) : from->count,
            received = step.received ? number(4) : block;
    if (sent < 0 || sent > from->count || received < 0 || received > block)
      return error("expected at most {} rows of `{}` to be sent and {} of `{}` to be received, got: {} and {}",
                   from->count, nameOf(source), block, nameOf(destination), sent, received);
    BoundStep &made = append();
    made.kind = BoundStep::Kind::Exchange, made.reusable = false;
    int64_t offset = number(0) % ranks + ranks; // more than 0
    made.exchange = {(rank + offset) % ranks,
                     (rank + 2 * ranks - offset) % ranks,
                     {from->data, static_cast<size_t>(sent * from->bytes)},
                     {to->data + part * block * to->bytes, static_cast<size_t>(received * to->bytes)},
                     -1};
    std::vector<Range> &ranges = touched[count - 1];
    ranges = {rangeOf(made.exchange.sent.first, made.exchange.sent.second, false),
              rangeOf(made.exchange.received.first, made.exchange.received.second, true)};
    auto isBefore = [&](const BoundStep &step, const std::vector<Range> &earlier) {
      return step.kind != BoundStep::Kind::Exchange && // which a wait stands for
             std::any_of(earlier.begin(), earlier.end(), [&](const Range &range) {
               return ranges[1].meets(range) || (range.isWritten && ranges[0].meets(range));
             });
    };
    for (int64_t i = static_cast<int64_t>(count) - 2; i >= 0 && made.exchange.after < 0; --i)
      if (isBefore(bound[static_cast<size_t>(i)], touched[static_cast<size_t>(i)]))
        made.exchange.after = i;
    pending.emplace_back(destination, count - 1);
    return {};
  }

  Status wait(const Program::Step &step) {
    BoundStep &made = append();
    made.kind = BoundStep::Kind::Wait, made.reusable = false;
    made.exchanges.clear();
    std::vector<std::pair<size_t, size_t>> others;
    for (auto [destination, number] : pending) {
      if (destination != of(step.destination)) {
        others.emplace_back(destination, number);
        continue;
      }
      made.exchanges.push_back(static_cast<int64_t>(number));
      touched[count - 1].insert(touched[count - 1].end(), touched[number].begin(), touched[number].end());
    }
    pending = std::move(others);
    return {};
  }

  std::vector<BoundStep> &bound;
  std::vector<int64_t> sizes;                     ///< and the variables of repeats
  std::vector<int> current;                       ///< the tensor or buffer that each value is
  std::vector<std::vector<Range>> touched;        ///< by each bound step
  std::vector<std::pair<size_t, size_t>> pending; ///< exchanges: the destination, the number of the bound step
  size_t count = 0;
  int64_t work = 0, rank = 0, ranks = 1;
};

Status ProgramCode::unroll(const Binder &binder, std::vector<BoundStep> &bound) const {
  return Unroller(binder, bound).run();
}
