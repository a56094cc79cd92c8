// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Problems.h"
#include "Random.h"
#include "attn/Reference/Inputs.h"
#include "attn/Reference/Interpreter.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <numeric>

using namespace attn;
using namespace attn::fuzz;
using namespace attn::reference;

using Lengths = std::vector<int64_t>;

//===--------------------------------------------------------------------===//
// Sizes
//===--------------------------------------------------------------------===//

static int64_t edge(Random &random) {
  return random.pick<int64_t>({1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 257});
}

static constexpr int64_t farKeys = 13; // a class for lists that have many tiles

/// Lengths of all sequences, queries and keys.
static std::pair<Lengths, Lengths> lengths(Random &random, int64_t sizeClass) {
  auto many = [&](int64_t count, auto q, auto kv) {
    std::pair<Lengths, Lengths> both;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rows = q();
      both.first.push_back(rows);
      both.second.push_back(kv(rows));
    }
    return both;
  };
  auto anyEdge = [&](int64_t = 0) { return edge(random); };
  auto upTo = [&](int64_t n) { return [&random, n](int64_t = 0) { return random.between(1, n); }; };
  auto constant = [](int64_t n) { return [n](int64_t = 0) { return n; }; };
  auto same = [](int64_t rows) { return rows; };
  switch (sizeClass) {
  case 0:
    return many(1, anyEdge, anyEdge);
  case 1:
    return many(random.between(1, 2), anyEdge, same);
  case 2:
    return {};
  case 3: {
    auto small = [&](int64_t = 0) { return random.oneIn(3) ? 0 : random.between(1, 80); };
    return many(random.between(1, 6), small, small);
  }
  case 4:
    return many(random.between(1, 3), constant(1), upTo(300));
  case 5:
    return many(random.between(1, 2), anyEdge, constant(1));
  case 6:
    return many(1, [&] { return random.between(65, 260); }, [&](int64_t rows) { return random.between(1, rows - 1); });
  case 7:
    return many(1, upTo(130), [&](int64_t rows) { return rows + random.between(1, 200); });
  case 8:
    return many(random.between(1, 2), upTo(130), constant(0));
  case 9:
    return many(random.between(1, 2), constant(0), upTo(130));
  case 10:
    return many(random.between(2, 5), anyEdge, anyEdge);
  case 11: // many tiles
    return many(1, [&] { return random.between(300, 700); }, [&](int64_t) { return random.between(300, 900); });
  case farKeys:
    return many(1, upTo(300), [&](int64_t) { return random.between(2000, 5000); });
  default:
    return many(random.between(1, 4), upTo(150), upTo(150));
  }
}

/// Sequences of a few rows, many or a few of them, empty ones among them; or around `bound` rows, if those are many.
static std::pair<Lengths, Lengths> shortLengths(Random &random, bool few, int64_t bound) {
  int64_t count = random.pick<int64_t>({1, 3, 7, 9, random.between(2, 60), 257}), most = random.between(1, 20);
  if (few)
    count = random.between(1, 12);
  if (random.oneIn(few ? 15 : 5))
    count = random.between(1, 6), most = 130;
  bool single = random.oneIn(2); // one query each, as in cross attention
  if (bound > 64 && !random.oneIn(3))
    count = random.between(1, few ? 4 : 12), most = bound + random.between(-60, 60), single = false;
  std::pair<Lengths, Lengths> both;
  for (int64_t i = 0; i < count; ++i) {
    both.first.push_back(random.oneIn(8) ? 0 : single ? 1 : random.between(1, most));
    both.second.push_back(random.oneIn(8) ? 0 : random.between(1, most));
  }
  return both;
}

/// So many short sequences that their sizes are a hint, alike or not, or a long one among them; or few queries on many
/// keys.
static std::pair<Lengths, Lengths> lengthsThatSpecialize(Random &random, ProblemOp problem) {
  bool packedQ = problem.getQLayout().isPacked(), packedKv = problem.getKLayout().isPacked();
  std::pair<Lengths, Lengths> both;
  if (packedQ != packedKv || random.oneIn(4)) {
    int64_t count = random.between(1, 2);
    both.first.assign(count, random.between(1, 9));
    both.second.assign(count, 1024 + random.between(0, 200));
    return both;
  }
  int64_t count = llvm::divideCeil(packedQ ? 512 : 128, problem.getHeads()) + random.between(0, 3),
          most = random.between(1, packedQ ? 16 : 40);
  bool alike = random.oneIn(3);
  for (int64_t i = 0; i < count; ++i) {
    both.first.push_back(alike ? most : random.between(0, most));
    both.second.push_back(alike ? most : random.between(0, most));
  }
  if (packedQ && random.oneIn(3))
    both.first[count / 2] = random.between(65, 300), both.second[count / 2] = random.between(129, 300);
  return both;
}

static void printLengths(llvm::raw_ostream &os, const char *name, const Lengths &lengths) {
  os << name << " [";
  llvm::interleaveComma(lengths, os);
  os << "] ";
}

static Tensor intTensor(llvm::ArrayRef<int64_t> shape, llvm::function_ref<int64_t(int64_t)> value) {
  Tensor tensor(Dtype::I32, shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.store(i, value(i));
  return tensor;
}

/// Adds the arrays of one side and returns its rows. A dense side takes the
/// first length for all. `few`: mostly without long stretches of padding, which would be most of a small problem.
static int64_t addSide(Random &random, llvm::StringRef side, LayoutAttr layout, bool singlePieces, Lengths &lengths,
                       bool few, Tensors &arrays, Sizes &sizes) {
  if (!layout.isPacked()) {
    int64_t length = lengths.empty() ? random.pick<int64_t>({0, 1, 70}) : lengths.front();
    std::fill(lengths.begin(), lengths.end(), length);
    return length;
  }
  int64_t batch = lengths.size(), sum = 0;
  arrays[("cu_seqlens_" + side).str()] =
      intTensor({batch + 1}, [&](int64_t i) { return i ? sum += lengths[i - 1] : 0; });
  bool dense = few && !random.oneIn(8);
  int64_t behind = random.oneIn(2) ? 0 : dense ? random.between(1, 7) : random.pick<int64_t>({1, 7, 64, 130});
  if (layout.hasPieces()) {
    int64_t gap = random.pick<int64_t>({0, dense ? 3 : 70}),
            rows = addPieces(arrays, side, gap, singlePieces,
                             [&](int64_t n) { return random.between(0, std::max<int64_t>(n, 1) - 1); });
    (side == "q" ? sizes.piecesQ : sizes.piecesKv) = arrays[("pieces_" + side).str()].shape().back() - 1;
    (side == "q" ? sizes.wholeQ : sizes.wholeKv) = sum;
    return rows + behind;
  }
  if (!layout.getPadded())
    return sum + behind;
  auto gap = [&] {
    return random.oneIn(2) ? 0
           : dense         ? random.between(1, 3)
                           : random.pick<int64_t>({1, 3, random.between(1, 20), 64, 70});
  };
  int64_t at = gap();
  arrays[("padded_offsets_" + side).str()] =
      intTensor({batch + 1}, [&](int64_t i) { return i ? at += lengths[i - 1] + gap() : at; });
  return at + behind;
}

/// Positions around the own one, and any others.
static Tensor boundArray(Random &random, llvm::ArrayRef<int64_t> shape, OperandEntries entries) {
  int64_t extent = std::max<int64_t>(shape.back(), 1), far = random.pick<int64_t>({0, 3, 20, 64, 200});
  int64_t wild = random.pick<int64_t>({0, 0, 4, 30}); // one in so many is anything
  return intTensor(shape, [&](int64_t at) -> int64_t {
    if (wild && random.oneIn(wild))
      return random.pick<int64_t>({INT32_MIN, -1, 0, extent, INT32_MAX, random.between(0, extent)});
    int64_t position = at % extent, away = random.between(0, far);
    return entries == OperandEntries::Own ? position : position + (entries == OperandEntries::End ? 1 + away : -away);
  });
}

/// Mostly the key before, or any.
static Tensor parentArray(Random &random, llvm::ArrayRef<int64_t> shape, const Tensors &arrays) {
  int64_t extent = std::max<int64_t>(shape.back(), 1), often = random.pick<int64_t>({0, 2, 10, 50});
  std::vector<int64_t> positions = reference::positionsOf(arrays, "kv", shape.back());
  return intTensor(shape, [&](int64_t at) -> int64_t {
    int64_t position = positions[at % extent];
    return often && !random.oneIn(often) ? position - 1 : random.between(-1, position - 1);
  });
}

/// Entries of a mask's array.
static Tensor maskArray(Random &random, const MaskOperand &array, llvm::ArrayRef<int64_t> shape, int64_t rowsKv) {
  if (!array.isOne() && array.entries != OperandEntries::Id)
    return boundArray(random, shape, array.entries);
  if (array.isOne())
    return intTensor(shape, [&](int64_t) {
      return random.pick<int64_t>({-5, 0, 1, random.between(0, 70), random.between(0, std::max<int64_t>(rowsKv, 1)),
                                   rowsKv, rowsKv + 1, INT32_MAX});
    });
  // Documents: in rising order with padding between, all one, or in any order.
  int64_t kind = random.between(0, 3), id = 1, extent = std::max<int64_t>(shape.back(), 1);
  int64_t length = random.pick<int64_t>({3, 20, 64, 100});
  return intTensor(shape, [&](int64_t at) -> int64_t {
    if (kind == 0)
      return 7;
    if (kind == 1)
      return random.pick<int64_t>({-3, 0, 1, 2, INT32_MAX});
    if (at % extent == 0)
      id = 1;
    id += random.oneIn(length);
    return random.oneIn(16) ? 0 : id;
  });
}

/// Lists of blocks, few or many, in any order and some twice; fewer rows of blocks than there are, or more. Sets how
/// long the two arrays are.
static void addBlocks(Random &random, const ProblemTensor &spec, const FixedSizes &fixed,
                      llvm::ArrayRef<int64_t> lengthsQ, Sizes &sizes, Tensors &arrays) {
  const BlockLists &lists = *spec.lists->lists;
  int64_t longest = 0, blocks = llvm::divideCeil(sizes.keysOfBlocks(), lists.kv),
          few = random.pick<int64_t>({1, 2, 4, 10, 40});
  for (int64_t length : lengthsQ)
    longest = std::max(longest, length);
  int64_t rows =
      std::max<int64_t>(0, int64_t(llvm::divideCeil(longest, lists.q)) + random.pick<int64_t>({0, 0, 0, -1, 2}));
  sizes.entries[spec.name] = rows + 1;
  std::vector<int64_t> columns;
  arrays[spec.name] = intTensor(spec.shape(fixed, sizes), [&](int64_t at) {
    int64_t first = columns.size(), count = at % (rows + 1) == 0 ? 0 : random.between(0, 2 * blocks / few);
    for (int64_t i = 0; i < count; ++i)
      columns.push_back(random.between(0, blocks - 1));
    if (random.oneIn(2))
      std::sort(columns.begin() + first, columns.end());
    return int64_t(columns.size());
  });
  sizes.entries[lists.columns] = columns.size();
  arrays[lists.columns] = intTensor({int64_t(columns.size())}, [&](int64_t i) { return columns[i]; });
}

/// Lists of one width: blocks in any order, some twice, some -1 or beyond the keys. Sets the width.
static void addLists(Random &random, const ProblemTensor &spec, const FixedSizes &fixed,
                     llvm::ArrayRef<MaskOperand> operands, Sizes &sizes, Tensors &arrays) {
  const auto *map =
      llvm::find_if(operands, [&](const MaskOperand &o) { return o.lists && o.lists->columns == spec.name; });
  const int64_t blocks = llvm::divideCeil(sizes.keysOfBlocks(), map->lists->kv);
  const int64_t most = random.oneIn(4) ? blocks + 2 : random.between(0, blocks); // beyond it there are few
  sizes.entries[spec.name] = random.pick<int64_t>({0, 1, 2, blocks / 4, blocks / 2, blocks + 3, 40});
  arrays[spec.name] = intTensor(spec.shape(fixed, sizes), [&](int64_t) -> int64_t {
    return random.oneIn(10) ? random.pick<int64_t>({-1, 0, blocks, INT32_MAX, INT32_MIN}) : random.between(-1, most);
  });
}

//===--------------------------------------------------------------------===//
// Memory
//===--------------------------------------------------------------------===//

/// Strides of a view: the axes but the last in any order, with gaps, or one of
/// them repeated (`mayRepeat`: stride 0).
static Shape stridesOf(Random &random, const ProblemTensor &tensor, llvm::ArrayRef<int64_t> shape, bool mayRepeat) {
  bool isData = tensor.hasRowStride();
  Shape strides(shape.size(), 1), order;
  int64_t step = shape.back(), unit = isData ? 8 : 1;
  if (!isData)
    step += random.between(0, 9); // lse: its rows stay neighbours
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    order.push_back(shape.size() - 2 - i);
  int64_t kind = random.between(0, 3); // contiguous, packed QKV, any order, repeated
  if (kind >= 2)
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random.between(0, i - 1)]);
  for (int64_t axis : order) {
    if (kind == 1 && axis == tensor.rowAxis)
      step *= 3;
    if (kind >= 2 && random.oneIn(2))
      step += unit * random.between(1, 5);
    strides[axis] = step;
    step *= std::max<int64_t>(shape[axis], 1);
  }
  if (kind == 3 && mayRepeat)
    strides[tensor.headAxis] = 0;
  return strides;
}

static Tensor poisoned(Dtype dtype, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides, int64_t slack) {
  Tensor tensor(dtype, shape, strides);
  tensor.addSlack(slack);
  llvm::fill(tensor.bytes(), char(0xff));
  return tensor;
}

//===--------------------------------------------------------------------===//
// Values
//===--------------------------------------------------------------------===//

static void fillValues(Random &random, Tensor &tensor, const ProblemTensor &spec, llvm::raw_ostream &os) {
  tensor.fillNormal(random.bits());
  int64_t kind = random.between(0, 9);
  if (kind < 4)
    return;
  double factor = kind < 7 ? random.magnitude(-4, 4) : 1, offset = kind == 7 ? random.magnitude(-1, 2) : 0;
  if (kind == 9) // nothing but zeros, or one value
    factor = 0, offset = random.oneIn(2);
  int64_t dominant =
      kind == 8 && tensor.shape()[spec.rowAxis] ? random.between(0, tensor.shape()[spec.rowAxis] - 1) : -1;
  os << spec.name << " * " << factor << " + " << offset << (dominant >= 0 ? ", one row * 40" : "") << "; ";
  tensor.forEachElement([&](llvm::ArrayRef<int64_t> index, int64_t at) {
    if (tensor.strides()[spec.headAxis] == 0 && index[spec.headAxis] != 0)
      return; // the same element as that of head 0
    tensor.store(at, tensor.load(at) * factor * (index[spec.rowAxis] == dominant ? 40 : 1) + offset);
  });
}

/// NaN or Inf in some elements of one row.
static void injectSpecials(Random &random, Tensor &tensor, const ProblemTensor &spec, llvm::raw_ostream &os) {
  if (tensor.numElements() == 0)
    return;
  double value = random.pick<double>({std::nan(""), HUGE_VAL, -HUGE_VAL});
  llvm::SmallVector<int64_t, 4> index;
  for (int64_t extent : tensor.shape())
    index.push_back(random.between(0, extent - 1));
  os << value << " in " << spec.name << shapeText(index) << "; ";
  bool all = random.oneIn(3);
  int64_t dim = index.back();
  for (index.back() = 0; index.back() < tensor.shape().back(); ++index.back())
    if (all || index.back() == dim)
      tensor.store(tensor.offset(index), value);
}

/// Fills `o` and `lse` with what the reference makes of the exact inputs, or of the rounded ones.
static void fillForward(ProblemOp problem, const Tensors &arrays, Tensors &inputs) {
  Tensors operands;
  for (const ProblemTensor &spec : tensorsOf(problem))
    if (spec.role != ProblemTensor::Result)
      operands[spec.name] = inputs.lookup(spec.name);
  Outputs outputs = llvm::cantFail(interpret(problem, operands));
  auto fill = [&](Tensor &tensor, const Tensor &values, int rowAxis) {
    tensor.forEachElement([&](llvm::ArrayRef<int64_t> index, int64_t at) { tensor.store(at, values(index)); });
    if (problem.getQLayout().isPacked())
      poisonPadding(tensor, arrays, "q", rowAxis);
  };
  fill(inputs["o"], outputs.o, 0);
  fill(inputs["lse"], outputs.lse, 1);
}

/// Does a modifier multiply? A score may pass the largest float on its way then.
static bool hasFunctions(ProblemOp problem) {
  return llvm::any_of(problem.getModifiers(), [](ScoreModifierInterface modifier) {
    return !llvm::isa<BiasAttr, RelativeBiasAttr, AlibiAttr, SoftcapAttr>(modifier);
  });
}

/// What hides padding in models: a large finite bias, of the first keys (entries of the last axis), whole tiles of them
/// now and then, or of all. It is so large that float32 has nothing of products beside it.
static void hidePadding(Random &random, Tensor &bias, bool modest, llvm::raw_ostream &os) {
  double hidden =
      random.pick<double>({-1e13, -1e16, -1e20, -1e30, modest ? -1e34 : -std::numeric_limits<float>::max()});
  int64_t last = bias.shape().back(), count = random.oneIn(4) ? last : random.between(0, last);
  os << "bias of the first " << count << " is " << hidden << "; ";
  bias.forEachElement([&](llvm::ArrayRef<int64_t> index, int64_t at) {
    if (index.back() < count)
      bias.store(at, hidden);
  });
}

Problem attn::fuzz::makeProblem(Computation computation, uint64_t kernelSeed, uint64_t number, bool noLengths) {
  ProblemOp problem = computation.problem;
  Random random(kernelSeed, number + 1);
  Problem made;
  llvm::raw_string_ostream os(made.description);
  // Of many problems of a kernel, the later ones are all what it is for, and small.
  bool late = number >= (computation.backward ? 4 : 13);
  bool isShort = problem.getMaxSeqlenQ() && ((number + kernelSeed) % 2 || late);
  bool hasLists = llvm::any_of(problem.getMask().operands(), [](const MaskOperand &array) { return array.lists; });
  int64_t sizeClass = hasLists && !computation.backward && random.oneIn(3) ? farKeys : (number + kernelSeed) % 13;
  auto [lengthsQ, lengthsKv] =
      noLengths ? lengthsThatSpecialize(random, problem)
      : isShort ? shortLengths(random, late, std::max(*problem.getMaxSeqlenQ(), *problem.getMaxSeqlenKv()))
                : lengths(random, sizeClass);
  int64_t batch = lengthsQ.size();
  made.sizes.batch = batch;
  const bool single = problem.getSinglePieces(), few = late || noLengths;
  made.sizes.rowsQ = addSide(random, "q", problem.getQLayout(), single, lengthsQ, few, made.exact, made.sizes);
  made.sizes.rowsKv = addSide(random, "kv", problem.getKLayout(), single, lengthsKv, few, made.exact, made.sizes);
  addKeyPositions(problem, made.exact);
  printLengths(os, "lengths q", lengthsQ);
  printLengths(os, "kv", lengthsKv);
  os << "rows q " << made.sizes.rowsQ << " kv " << made.sizes.rowsKv << "; ";

  bool specials = random.oneIn(5) && !computation.backward;
  for (const ProblemTensor &spec : tensorsOf(computation)) {
    if (spec.lists)
      addBlocks(random, spec, FixedSizes::of(computation), lengthsQ, made.sizes, made.exact);
    else if (llvm::is_contained(spec.axes, ProblemTensor::Lines))
      addLists(random, spec, FixedSizes::of(computation), distinctOperands(problem.getMask()), made.sizes, made.exact);
    Shape shape = spec.shape(computation, made.sizes);
    if (spec.role == ProblemTensor::Array) {
      if (!made.exact.count(spec.name) && spec.element == ProblemTensor::Float32) {
        Tensor slopes(Dtype::F32, shape);
        if (spec.name == "sinks_of_heads")
          for (int64_t i = 0; i < slopes.numElements(); ++i)
            slopes.store(i, random.pick<double>({0, 20, -HUGE_VAL, random.magnitude(-3, 2), -random.magnitude(-3, 2)}));
        else
          for (int64_t i = 0; i < slopes.numElements(); ++i) {
            double some = spec.name == "gates"
                              ? 1.5
                              : 1; // where a score function has its kink no bias lies: it has two slopes there
            slopes.store(i, random.pick<double>({0, some, random.magnitude(-4, 0), -random.magnitude(-4, -1)}));
          }
        if (spec.name == "bias" && !computation.backward && random.oneIn(2))
          hidePadding(random, slopes, hasFunctions(problem), os);
        made.exact[spec.name] = std::move(slopes);
      } else if (spec.name == "drop_words") {
        made.exact[spec.name] = intTensor(shape, [&](int64_t) { return int64_t(int32_t(random.bits())); });
      } else if (!made.exact.count(spec.name)) {
        llvm::SmallVector<MaskOperand> operands = distinctOperands(problem.getMask());
        const auto *array = llvm::find_if(operands, [&](const MaskOperand &o) { return o.name == spec.name; });
        made.exact[spec.name] = spec.hasParents ? parentArray(random, shape, made.exact)
                                                : maskArray(random, *array, shape, made.sizes.rowsKv);
      }
      made.inputs[spec.name] = made.exact[spec.name];
      continue;
    }
    bool ofForward = spec.name == "o" || spec.name == "lse", ofArray = spec.rowAxis < 0 && spec.headAxis < 0;
    Shape strides = stridesOf(random, spec, shape, spec.role == ProblemTensor::Operand && !ofForward);
    if (ofArray) // a gradient is contiguous, as its array
      strides = Shape(Tensor(Dtype::F32, shape).strides());
    int64_t slack = random.pick<int64_t>({8, 64, 20000});
    Dtype dtype = spec.element == ProblemTensor::Float32 ? Dtype::F32 : dtypeOf(problem);
    Tensor rounded = poisoned(dtype, shape, strides, slack);
    if (spec.role == ProblemTensor::Result) {
      made.results[spec.name] = std::move(rounded);
      continue;
    }
    Tensor exact = poisoned(Dtype::F32, shape, strides, 0);
    if (ofForward) { // when all they are made of is there
      made.exact[spec.name] = std::move(exact);
      made.inputs[spec.name] = std::move(rounded);
      continue;
    }
    if (spec.name == "do" || spec.name == "dlse")
      exact.fillNormal(random.bits());
    else
      fillValues(random, exact, spec, os);
    if (specials && random.oneIn(2))
      injectSpecials(random, exact, spec, os);
    bool ofKeys = spec.name == "k" || spec.name == "v";
    LayoutAttr layout = ofKeys ? problem.getKLayout() : problem.getQLayout();
    if (layout.isPacked())
      poisonPadding(exact, made.exact, ofKeys ? "kv" : "q", spec.rowAxis);
    exact.forEachOffset([&](int64_t at) { rounded.store(at, exact.load(at)); });
    made.exact[spec.name] = std::move(exact);
    made.inputs[spec.name] = std::move(rounded);
  }
  if (computation.backward)
    for (Tensors *inputs : {&made.exact, &made.inputs})
      fillForward(problem, made.exact, *inputs);
  return made;
}
