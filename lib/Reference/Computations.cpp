// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The formulas of AttnSparseOps.td, literally, and the calls of a program.
//
#include "attn/Reference/Computations.h"
#include "Vectors.h"
#include "attn-rt/ArrayChecks.h"
#include "attn/Reference/Interpreter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace attn;
using namespace attn::reference;
using llvm::StringRef, llvm::Twine;

static llvm::Error computationError(const Twine &what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), what);
}

//===--------------------------------------------------------------------===//
// Tensors of a call
//===--------------------------------------------------------------------===//

/// How many windows a sequence has.
static int64_t windowsIn(int64_t tokens, int64_t length, int64_t stride) {
  return tokens < length ? 0 : (tokens - length) / stride + 1;
}

Tensor reference::compressedOffsets(const Tensor &cuSeqlens, int64_t length, int64_t stride) {
  Tensor offsets(Dtype::I32, cuSeqlens.shape());
  for (int64_t b = 0; b + 1 < cuSeqlens.numElements(); ++b) {
    int64_t tokens = int64_t(cuSeqlens.load(b + 1) - cuSeqlens.load(b));
    offsets.store(b + 1, offsets.load(b) + double(windowsIn(tokens, length, stride)));
  }
  return offsets;
}

namespace {
/// What an op reads and writes.
class CallTensors {
public:
  CallTensors(std::vector<ProblemTensor> list, const FixedSizes &fixed, const Tensors &inputs)
      : inputs(inputs), list(std::move(list)), fixed(fixed) {}

  /// Holds operands and arrays against the op, and makes the results, which are 0.
  llvm::Error check();
  /// Offsets of `rows` rows of a packed layout.
  llvm::Error checkOffsets(StringRef name, int64_t rows) const;

  const Tensor &input(StringRef name) const { return inputs.find(name)->second; }
  Tensor &result(StringRef name) { return results.find(name)->second; }
  /// The rows of a sequence in tensors: packed, by an array of offsets, dense all `rows`.
  Span rowsOf(StringRef offsets, int64_t rows, int64_t sequence) const {
    if (!fixed.packedQ)
      return {0, rows};
    const int32_t *starts = input(offsets).data<int32_t>();
    return {starts[sequence], starts[sequence + 1] - starts[sequence]};
  }

  const Tensors &inputs;
  Tensors results;
  Sizes sizes{-1, -1, -1};

private:
  llvm::Error checkType(const ProblemTensor &spec, const Tensor &tensor) const;
  Shape shapeOf(const ProblemTensor &spec) const;

  std::vector<ProblemTensor> list;
  FixedSizes fixed;
};
} // namespace

llvm::Error CallTensors::checkType(const ProblemTensor &spec, const Tensor &tensor) const {
  bool isInt = spec.element == ProblemTensor::Int32;
  if (isInt != (tensor.dtype() == Dtype::I32) || (isInt && !tensor.isContiguous()))
    return computationError("expected " + Twine(isInt ? "a contiguous i32 array" : "a floating-point tensor") +
                            " for `" + spec.name + "`, got: " + toString(tensor.dtype()) +
                            (isInt && !tensor.isContiguous() ? " with strides " + shapeText(tensor.strides()) : ""));
  if (tensor.shape().size() != spec.axes.size())
    return computationError("expected " + Twine(spec.axes.size()) + " axes for `" + spec.name +
                            "`, got: " + shapeText(tensor.shape()));
  for (int64_t extent : tensor.shape())
    if (extent < 0 || extent > fixed.longest)
      return computationError("expected extents within [0, " + Twine(fixed.longest) + "] for `" + spec.name +
                              "`, got: " + shapeText(tensor.shape()));
  return llvm::Error::success();
}

Shape CallTensors::shapeOf(const ProblemTensor &spec) const {
  const std::vector<std::string> names = {"batch", "seqlen_q", "total_q", "seqlen_kv", "total_kv"};
  const int64_t values[] = {sizes.batch, sizes.rowsQ, sizes.rowsQ, sizes.rowsKv, sizes.rowsKv};
  Shape shape;
  for (ProblemTensor::Axis axis : spec.axes)
    shape.push_back(axis == ProblemTensor::Derived ? rt::ExtentCode::compile(spec.derived, names)->evaluate(values)
                                                   : spec.extentOf(axis, fixed, sizes));
  return shape;
}

llvm::Error CallTensors::check() {
  for (const auto &[name, tensor] : inputs)
    if (llvm::none_of(list, [&, name = StringRef(name)](const ProblemTensor &spec) {
          return spec.name == name && spec.role != ProblemTensor::Result;
        })) {
      auto isGiven = [](const ProblemTensor &spec) { return spec.role != ProblemTensor::Result; };
      return computationError("expected one of `" +
                              llvm::join(llvm::map_range(llvm::make_filter_range(list, isGiven),
                                                         [](const ProblemTensor &spec) { return spec.name; }),
                                         "`, `") +
                              "`, got: `" + name + "`");
    }
  for (const ProblemTensor &spec : list) {
    if (spec.role == ProblemTensor::Result)
      continue;
    auto given = inputs.find(spec.name);
    if (given == inputs.end())
      return computationError("expected a tensor `" + spec.name + "`, got: none");
    if (llvm::Error failure = checkType(spec, given->second))
      return failure;
    spec.inferSizes(given->second.shape(), fixed, sizes);
  }
  for (const ProblemTensor &spec : list) {
    Shape shape = shapeOf(spec);
    if (spec.role == ProblemTensor::Result) {
      results[spec.name] = Tensor(spec.element == ProblemTensor::Int32 ? Dtype::I32 : Dtype::F64, shape);
      continue;
    }
    if (llvm::ArrayRef<int64_t> given = input(spec.name).shape(); given != llvm::ArrayRef(shape))
      return computationError("expected shape " + shapeText(shape) + " for `" + spec.name +
                              "`, got: " + shapeText(given));
  }
  return llvm::Error::success();
}

llvm::Error CallTensors::checkOffsets(StringRef name, int64_t rows) const {
  const Tensor &offsets = input(name);
  std::span<const int32_t> values(offsets.data<int32_t>(), offsets.numElements());
  rt::Status status = rt::checkOffsets({name.str(), values}, {}, rows, /*isWritten=*/true);
  return status ? llvm::Error::success() : computationError(status.error().message);
}

/// Offsets of compressed sequences follow from those of sequences.
static llvm::Error checkCompressedOffsets(const CallTensors &tensors, int64_t length, int64_t stride, int64_t rows) {
  if (llvm::Error failure = tensors.checkOffsets("cu_seqlens_compressed", rows))
    return failure;
  const Tensor &given = tensors.input("cu_seqlens_compressed");
  Tensor expected = compressedOffsets(tensors.input("cu_seqlens"), length, stride);
  for (int64_t b = 0; b < expected.numElements(); ++b)
    if (expected.load(b) != given.load(b))
      return computationError("expected " + Twine(int64_t(expected.load(b))) + " for `cu_seqlens_compressed`[" +
                              Twine(b) +
                              "], as windows of `cu_seqlens` have it, got: " + Twine(int64_t(given.load(b))));
  return llvm::Error::success();
}

static void storeAt(Tensor &tensor, int64_t offset, llvm::ArrayRef<double> values) {
  for (auto [d, value] : llvm::enumerate(values))
    tensor.store(offset + int64_t(d) * tensor.strides().back(), value);
}

/// Calls `visit(b, t, h)` for each row of a tensor of queries, packed with b = 0.
static void eachRow(LayoutAttr layout, const Sizes &sizes, int64_t heads,
                    llvm::function_ref<void(int64_t, int64_t, int64_t)> visit) {
  for (int64_t b = 0, batch = layout.isPacked() ? 1 : sizes.batch; b < batch; ++b)
    for (int64_t t = 0; t < sizes.rowsQ; ++t)
      for (int64_t h = 0; h < heads; ++h)
        visit(b, t, h);
}

//===--------------------------------------------------------------------===//
// attn.compress and its backward pass
//===--------------------------------------------------------------------===//

static llvm::Error evaluate(CompressOp op, CallTensors &tensors) {
  const int64_t length = op.getLength(), stride = op.getStride(), rows = tensors.sizes.rowsKv;
  LayoutAttr layout = op.getLayout();
  if (layout.isPacked()) {
    if (llvm::Error failure = tensors.checkOffsets("cu_seqlens", rows))
      return failure;
    tensors.result("cu_seqlens_compressed") = compressedOffsets(tensors.input("cu_seqlens"), length, stride);
  }
  llvm::SmallVector<std::string, 2> sides = {"k", "v"};
  if (op.getKOnly())
    sides.pop_back();
  for (const std::string &name : sides) {
    const Tensor &from = tensors.input(name);
    Tensor &to = tensors.result("compressed_" + name);
    for (int64_t b = 0; b < tensors.sizes.batch; ++b) {
      Span tokens = tensors.rowsOf("cu_seqlens", rows, b);
      int64_t first = layout.isPacked() ? int64_t(tensors.result("cu_seqlens_compressed").load(b)) : 0;
      for (int64_t i = 0, count = windowsIn(tokens.length, length, stride); i < count; ++i)
        for (int64_t g = 0; g < int64_t(op.getKvHeads()); ++g) {
          std::vector<double> sum(from.shape().back(), 0);
          for (int64_t n = 0; n < length; ++n)
            addScaled(sum.data(), 1, vectorAt(from, offsetOf(from, layout, b, g, tokens.start + i * stride + n)));
          for (double &value : sum)
            value /= double(length);
          storeAt(to, offsetOf(to, layout, b, g, first + i), sum);
        }
    }
  }
  return llvm::Error::success();
}

static llvm::Error evaluate(CompressBackwardOp op, CallTensors &tensors) {
  CompressOp compress = op.getCompressOp();
  const int64_t length = compress.getLength(), stride = compress.getStride(), rows = tensors.sizes.rowsKv;
  LayoutAttr layout = compress.getLayout();
  if (layout.isPacked()) {
    if (llvm::Error failure = tensors.checkOffsets("cu_seqlens", rows))
      return failure;
    if (llvm::Error failure =
            checkCompressedOffsets(tensors, length, stride, tensors.input("dcompressed_k").shape().front()))
      return failure;
  }
  for (auto [letter, name] : {std::pair("k", "dk"), {"v", "dv"}}) {
    const Tensor &from = tensors.input(std::string("dcompressed_") + letter);
    Tensor &to = tensors.result(name);
    for (int64_t b = 0; b < tensors.sizes.batch; ++b) {
      Span tokens = tensors.rowsOf("cu_seqlens", rows, b);
      int64_t first = layout.isPacked() ? tensors.input("cu_seqlens_compressed").data<int32_t>()[b] : 0;
      for (int64_t i = 0, count = windowsIn(tokens.length, length, stride); i < count; ++i)
        for (int64_t g = 0; g < int64_t(compress.getKvHeads()); ++g) {
          std::vector<double> gradient = vectorAt(from, offsetOf(from, layout, b, g, first + i));
          for (int64_t n = 0; n < length; ++n)
            addScaled(to.data<double>() + offsetOf(to, layout, b, g, tokens.start + i * stride + n), 1 / double(length),
                      gradient);
        }
    }
    for (int64_t j = 0; j < int64_t(op.getAdd().value_or(0)); ++j) {
      const Tensor &before = tensors.input("before_" + std::string(name) + "_" + std::to_string(j));
      before.forEachIndex([&](llvm::ArrayRef<int64_t> index) {
        int64_t at = to.offset(index);
        to.store(at, to.load(at) + before(index));
      });
    }
  }
  return llvm::Error::success();
}

//===--------------------------------------------------------------------===//
// attn.select
//===--------------------------------------------------------------------===//

namespace {
/// Lists of blocks, tile by tile.
class Selection {
public:
  Selection(SelectOp op, CallTensors &tensors)
      : tensors(tensors), layout(op.getLayout()), scorer(*op.getScorer()), length(op.getWindowLength()),
        stride(op.getWindowStride()), block(op.getBlock()), count(op.getCount()), first(op.getFirst()),
        local(op.getLocal()), rows(op.getRows()), listHeads(op.getListHeads()),
        group(int64_t(op.getHeads()) / listHeads), listsOfKvHead(listHeads / int64_t(op.getKvHeads())),
        scale(op.scaleOrDefault()) {}

  void run() {
    tensors.result("blocks").fill(-1);
    struct Place {
      int64_t sequence, head, tile;
    };
    std::vector<Place> places;
    for (int64_t b = 0; b < tensors.sizes.batch; ++b)
      for (int64_t head = 0; head < listHeads; ++head)
        for (int64_t tile = 0; tile * rows < queriesOf(b).length; ++tile)
          places.push_back({b, head, tile});
    inParallel(places.size(), 16, [&](size_t i) { writeList(places[i].sequence, places[i].head, places[i].tile); });
  }

private:
  Span queriesOf(int64_t sequence) const { return tensors.rowsOf("cu_seqlens", tensors.sizes.rowsQ, sequence); }

  /// The importance of each block up to that of the tile's first query t. The own block, which is taken in any case,
  /// may have none.
  std::vector<double> importance(int64_t sequence, int64_t head, int64_t t) const {
    const bool ofKeys = scorer == BlockScorer::max;
    Span windows =
        ofKeys ? queriesOf(sequence) : tensors.rowsOf("cu_seqlens_compressed", tensors.sizes.rowsKv, sequence);
    const Tensor &q = tensors.input("q"), &keys = tensors.input(ofKeys ? "k" : "compressed_k");
    const int64_t row = queriesOf(sequence).start + t;
    std::vector<double> found(t / block + 1, ofKeys ? -std::numeric_limits<double>::infinity() : 0);
    for (int64_t h = head * group; h < (head + 1) * group; ++h) {
      std::vector<double> query = vectorAt(q, offsetOf(q, layout, sequence, h, row));
      for (int64_t i = 0; i < windows.length && i * stride + length - 1 <= t; ++i) {
        double score =
            dot(query, vectorAt(keys, offsetOf(keys, layout, sequence, head / listsOfKvHead, windows.start + i)));
        switch (scorer) {
        case BlockScorer::prob: {
          const Tensor &lse = tensors.input("lse");
          double p = std::exp(scale * score - lse.load(lseOffsetOf(lse, layout, sequence, h, row)));
          for (int64_t n = 0; n < length / stride; ++n) // i + n is part m of block j
            found[(i + n) / (block / stride)] += p;
          break;
        }
        case BlockScorer::mean_key:
          found[i] += score;
          break;
        case BlockScorer::max:
          if (double &largest = found[i / block]; score > largest || std::isnan(score))
            largest = score; // no number is more than NaN
          break;
        }
      }
    }
    for (double &value : found)
      if (std::isnan(value))
        value = -std::numeric_limits<double>::infinity();
    return found;
  }

  void writeList(int64_t sequence, int64_t head, int64_t tile) {
    const int64_t t = tile * rows, own = t / block;
    std::vector<double> rank = importance(sequence, head, t);
    std::vector<bool> taken(own + 1, false);
    std::vector<int64_t> others;
    int64_t left = count;
    for (int64_t j = 0; j <= own; ++j)
      if (j < first || j > own - local)
        taken[j] = true, --left;
      else
        others.push_back(j);
    llvm::stable_sort(others, [&](int64_t a, int64_t b) { return rank[a] > rank[b]; });
    for (int64_t j : llvm::ArrayRef(others).take_front(std::max<int64_t>(left, 0)))
      taken[j] = true;

    Span queries = queriesOf(sequence);
    Tensor &blocks = tensors.result("blocks");
    int64_t at = layout.isPacked() ? blocks.offset({head, queries.start / rows + sequence + tile})
                                   : blocks.offset({sequence, head, tile});
    for (int64_t j = 0; j <= own; ++j)
      if (taken[j])
        blocks.store(at++, double(j));
    for (int64_t j = own + 1; j * block < std::min(t + rows, queries.length); ++j)
      blocks.store(at++, double(j));
  }

  CallTensors &tensors;
  LayoutAttr layout;
  BlockScorer scorer;
  int64_t length, stride, block, count, first, local, rows, listHeads, group, listsOfKvHead;
  double scale;
};
} // namespace

static llvm::Error evaluate(SelectOp op, CallTensors &tensors) {
  if (op.getLayout().isPacked()) {
    if (llvm::Error failure = tensors.checkOffsets("cu_seqlens", tensors.sizes.rowsQ))
      return failure;
    if (op.getScorer() != BlockScorer::max)
      if (llvm::Error failure =
              checkCompressedOffsets(tensors, op.getWindowLength(), op.getWindowStride(), tensors.sizes.rowsKv))
        return failure;
  }
  Selection(op, tensors).run();
  return llvm::Error::success();
}

//===--------------------------------------------------------------------===//
// attn.combine and its backward pass
//===--------------------------------------------------------------------===//

static std::string numbered(const char *name, int64_t number) { return name + std::to_string(number); }

static int64_t gatesOffsetOf(const Tensor &gates, LayoutAttr layout, int64_t b, int64_t t, int64_t h) {
  return layout.isPacked() ? gates.offset({t, h}) : gates.offset({b, t, h});
}

/// The factors of a row's branches.
static std::vector<double> factorsOf(CombineOp op, const CallTensors &tensors, int64_t b, int64_t t, int64_t h) {
  if (op.getUniform())
    return std::vector<double>(int64_t(op.getBranches()), 1 / double(int64_t(op.getBranches())));
  const Tensor &gates = tensors.input("gates");
  std::vector<double> factors = vectorAt(gates, gatesOffsetOf(gates, op.getLayout(), b, t, h));
  for (double &factor : factors)
    factor = 1 / (1 + std::exp(-factor));
  return factors;
}

static llvm::Error evaluate(CombineOp op, CallTensors &tensors) {
  LayoutAttr layout = op.getLayout();
  Tensor &o = tensors.result("o");
  eachRow(layout, tensors.sizes, op.getHeads(), [&](int64_t b, int64_t t, int64_t h) {
    int64_t at = offsetOf(o, layout, b, h, t);
    for (auto [i, factor] : llvm::enumerate(factorsOf(op, tensors, b, t, h))) {
      const Tensor &branch = tensors.input(numbered("o_", int64_t(i)));
      addScaled(o.data<double>() + at, factor, vectorAt(branch, offsetOf(branch, layout, b, h, t)));
    }
  });
  return llvm::Error::success();
}

static llvm::Error evaluate(CombineBackwardOp op, CallTensors &tensors) {
  CombineOp combine = op.getCombineOp();
  LayoutAttr layout = combine.getLayout();
  const Tensor &gradient = tensors.input("do");
  eachRow(layout, tensors.sizes, combine.getHeads(), [&](int64_t b, int64_t t, int64_t h) {
    std::vector<double> dOut = vectorAt(gradient, offsetOf(gradient, layout, b, h, t));
    for (auto [i, factor] : llvm::enumerate(factorsOf(combine, tensors, b, t, h))) {
      const Tensor &branch = tensors.input(numbered("o_", int64_t(i))),
                   &lse = tensors.input(numbered("lse_", int64_t(i)));
      double delta = dot(dOut, vectorAt(branch, offsetOf(branch, layout, b, h, t))),
             given = lse.load(lseOffsetOf(lse, layout, b, h, t));
      Tensor &deltas = tensors.result(numbered("delta_", int64_t(i))),
             &gated = tensors.result(numbered("gated_lse_", int64_t(i)));
      deltas.store(lseOffsetOf(deltas, layout, b, h, t), delta);
      gated.store(lseOffsetOf(gated, layout, b, h, t),
                  given == -std::numeric_limits<double>::infinity() ? given : given - std::log(factor));
      if (combine.getUniform())
        continue;
      Tensor &dGates = tensors.result("dgates");
      dGates.store(gatesOffsetOf(dGates, layout, b, t, h) + int64_t(i), factor * (1 - factor) * delta);
    }
  });
  return llvm::Error::success();
}

//===--------------------------------------------------------------------===//
// attn.add and attn.gather_rows
//===--------------------------------------------------------------------===//

static llvm::Error evaluate(AddOp op, CallTensors &tensors) {
  Tensor &sum = tensors.result("result");
  for (int64_t i = 0; i < int64_t(op.getParts()); ++i) {
    const Tensor &part = tensors.input(numbered("part_", i));
    part.forEachIndex([&](llvm::ArrayRef<int64_t> index) {
      int64_t at = sum.offset(index);
      sum.store(at, sum.load(at) + part(index));
    });
  }
  return llvm::Error::success();
}

llvm::Expected<Tensors> reference::interpret(GatherRowsOp op, const Tensors &inputs) {
  CallTensors tensors(tensorsOf(op), FixedSizes::of(op), inputs);
  if (llvm::Error failure = tensors.check())
    return failure;
  const Tensor &index = tensors.input("index");
  Tensor &result = tensors.result("result");
  for (int64_t p = 0; p < int64_t(op.getParts()); ++p) {
    const Tensor &part = tensors.input(numbered("part_", p));
    for (int64_t i = 0, rows = result.shape()[0]; i < rows; ++i) {
      int64_t from = int64_t(index({p, i}));
      if (from >= part.shape()[0])
        return computationError("expected rows below " + Twine(part.shape()[0]) + " of `part_" + Twine(p) +
                                "` in `index`, got: " + Twine(from) + " for row " + Twine(i));
      for (int64_t h = 0; from >= 0 && h < int64_t(op.getHeads()); ++h)
        addScaled(result.data<double>() + result.offset({i, h}), 1, vectorAt(part, part.offset({from, h})));
    }
  }
  return std::move(tensors.results);
}

llvm::Expected<Tensors> reference::interpret(ComputationInterface op, const Tensors &inputs) {
  CallTensors tensors(tensorsOf(op), FixedSizes::of(op), inputs);
  if (llvm::Error failure = tensors.check())
    return failure;
  llvm::Error failure = llvm::TypeSwitch<mlir::Operation *, llvm::Error>(op.getOperation())
                            .Case<CompressOp, CompressBackwardOp, SelectOp, CombineOp, CombineBackwardOp, AddOp>(
                                [&](auto own) { return evaluate(own, tensors); })
                            .Default([](mlir::Operation *unknown) {
                              return computationError("expected an op that the reference has, got: `" +
                                                      unknown->getName().getStringRef() + "`");
                            });
  if (failure)
    return failure;
  return std::move(tensors.results);
}

//===--------------------------------------------------------------------===//
// attn.program
//===--------------------------------------------------------------------===//

/// What rows hold that a call leaves alone (`keep_padding`).
static constexpr double unset = std::numeric_limits<double>::quiet_NaN();

/// Arrays of score modifiers are float32.
static void roundArrays(Computation computation, Tensors &inputs) {
  for (const ProblemTensor &spec : tensorsOf(computation))
    if (auto given = inputs.find(spec.name);
        given != inputs.end() && spec.role == ProblemTensor::Array && given->second.dtype() == Dtype::F64)
      given->second = given->second.to(Dtype::F32);
}

static llvm::Expected<Tensors> evaluate(ProblemOp problem, Tensors inputs) {
  if (problem.getSegments())
    return computationError("expected a callee without ids, got: @" + problem.getSymName());
  roundArrays(problem, inputs);
  llvm::Expected<Outputs> outputs = interpret(problem, inputs);
  if (!outputs)
    return outputs.takeError();
  const Tensor &known = outputs->known;
  known.forEachIndex([&](llvm::ArrayRef<int64_t> index) {
    if (known(index) != 0)
      return;
    outputs->lse.store(outputs->lse.offset(index), unset);
    int64_t sequence = index.size() == 3 ? index[0] : 0;
    int64_t at = offsetOf(outputs->o, problem.getOLayout(), sequence, index.drop_back().back(), index.back());
    storeAt(outputs->o, at, std::vector<double>(outputs->o.shape().back(), unset));
  });
  Tensors results;
  results["o"] = std::move(outputs->o);
  if (problem.hasLse())
    results["lse"] = std::move(outputs->lse);
  return results;
}

static llvm::Expected<Tensors> evaluate(BackwardOp backward, Tensors inputs) {
  if (backward.getProblemOp().getSegments())
    return computationError("expected a callee without ids, got: @" + backward.getSymName());
  roundArrays(backward, inputs);
  llvm::Expected<Gradients> gradients = interpret(backward, inputs, {}, {});
  if (!gradients)
    return gradients.takeError();
  for (const auto &[name, known] : gradients->known) {
    Tensor &gradient = gradients->values.find(name)->second;
    known.forEachIndex([&, &known = known](llvm::ArrayRef<int64_t> index) {
      if (known(index) == 0)
        storeAt(gradient, gradient.offset(index), std::vector<double>(gradient.shape().back(), unset));
    });
  }
  return std::move(gradients->values);
}

/// The type of a result of a callee.
static Dtype dtypeOf(mlir::Operation *callee, StringRef result) {
  auto find = [&](const std::vector<ProblemTensor> &list, mlir::Type data) {
    auto spec = llvm::find_if(list, [&](const ProblemTensor &tensor) { return tensor.name == result; });
    assert(spec != list.end() && "a result that the callee has");
    if (spec->element == ProblemTensor::Int32)
      return Dtype::I32;
    bool isData = spec->element == ProblemTensor::Data;
    return isData && data.isBF16() ? Dtype::BF16 : isData && data.isF16() ? Dtype::F16 : Dtype::F32;
  };
  return llvm::TypeSwitch<mlir::Operation *, Dtype>(callee)
      .Case<ProblemOp>([&](ProblemOp op) { return find(tensorsOf(op), op.getDtype()); })
      .Case<BackwardOp>([&](BackwardOp op) { return find(tensorsOf(op), op.getProblemOp().getDtype()); })
      .Case<GatherRowsOp>([&](GatherRowsOp op) { return find(tensorsOf(op), op.getDtype()); })
      .Case<ComputationInterface>([&](ComputationInterface op) { return find(tensorsOf(op), op.getDataType()); });
}

namespace {
class ProgramInterpreter {
public:
  ProgramInterpreter(ProgramOp program, const Tensors &inputs, Between between)
      : program(program), inputs(inputs), between(between) {}

  llvm::Expected<Tensors> run() {
    if (llvm::Error failure = bindOperands())
      return failure;
    Tensors results;
    for (mlir::Operation &op : program.getBody().front()) {
      if (auto call = dyn_cast<CallOp>(op))
        if (llvm::Error failure = evaluateCall(call))
          return computationError("@" + program.getSymName() + ", call of @" + call.getCallee() + ": " +
                                  llvm::toString(std::move(failure)));
      if (auto result = dyn_cast<ResultOp>(op))
        results[result.getName()] = values[result.getTensor()];
    }
    return results;
  }

private:
  llvm::Error bindOperands() {
    std::string names;
    for (auto operand : program.getOps<OperandOp>()) {
      auto given = inputs.find(operand.getName());
      if (given == inputs.end())
        return computationError("expected a tensor `" + operand.getName() + "` of @" + program.getSymName() +
                                ", got: none");
      values[operand.getTensor()] = given->second;
      names += (names.empty() ? "`" : ", `") + operand.getName().str() + "`";
    }
    for (const auto &[name, tensor] : inputs)
      if (llvm::none_of(program.getOps<OperandOp>(),
                        [name = StringRef(name)](OperandOp operand) { return operand.getName() == name; }))
        return computationError("expected one of " + names + ", got: `" + name + "`");
    return llvm::Error::success();
  }

  llvm::Error evaluateCall(CallOp call) {
    mlir::Operation *callee = mlir::SymbolTable::lookupNearestSymbolFrom(program, call.getCalleeAttr());
    Tensors operands;
    for (auto [name, value] :
         llvm::zip_equal(call.getOperandNames().getAsValueRange<mlir::StringAttr>(), call.getTensors()))
      operands[name] = dtypes.count(value) ? values[value].to(dtypes[value]) : values[value];
    llvm::Expected<Tensors> results =
        llvm::TypeSwitch<mlir::Operation *, llvm::Expected<Tensors>>(callee)
            .Case<ProblemOp, BackwardOp>([&](auto op) { return evaluate(op, std::move(operands)); })
            .Case<GatherRowsOp>([&](GatherRowsOp op) { return interpret(op, operands); })
            .Case<ComputationInterface>([&](ComputationInterface op) { return interpret(op, operands); });
    if (!results)
      return results.takeError();
    for (auto [name, value] :
         llvm::zip_equal(call.getResultNames().getAsValueRange<mlir::StringAttr>(), call.getResults())) {
      auto given = results->find(name);
      if (given == results->end())
        return computationError("expected a result that it has, got: `" + name + "`");
      values[value] = std::move(given->second);
      if (between == Between::Rounded)
        dtypes[value] = dtypeOf(callee, name);
    }
    return llvm::Error::success();
  }

  ProgramOp program;
  const Tensors &inputs;
  Between between;
  llvm::DenseMap<mlir::Value, Tensor> values;
  llvm::DenseMap<mlir::Value, Dtype> dtypes; ///< to which values are rounded where calls read them
};
} // namespace

llvm::Expected<Tensors> reference::interpret(ProgramOp program, const Tensors &inputs, Between between) {
  return ProgramInterpreter(program, inputs, between).run();
}
