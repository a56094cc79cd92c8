// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Reference/Inputs.h"
#include "IdInputs.h"
#include "Vectors.h"
#include "attn-rt/ArrayChecks.h"
#include "attn/Reference/Interpreter.h"
#include "attn/Reference/Segments.h"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

using namespace attn;
using namespace attn::reference;

Dtype reference::dtypeOf(ProblemOp problem) {
  mlir::Type dtype = problem.getDtype();
  return dtype.isBF16() ? Dtype::BF16 : dtype.isF16() ? Dtype::F16 : Dtype::F32;
}

/// Of one made-up tensor.
constexpr int64_t maxElements = int64_t(1) << 31;

static llvm::Error checkSize(llvm::StringRef name, llvm::ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t extent : shape)
    if (extent && elements > maxElements / extent)
      return llvm::createStringError("expected at most 2^31 made-up values for `" + name +
                                     "`, got shape: " + shapeText(shape));
    else
      elements *= extent;
  return llvm::Error::success();
}

static Tensor intTensor(llvm::ArrayRef<int64_t> shape, llvm::function_ref<int64_t(int64_t)> value) {
  Tensor tensor(Dtype::I32, shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.store(i, value(i));
  return tensor;
}

std::vector<int64_t> reference::lengthsOf(const Tensors &tensors, llvm::StringRef side) {
  const Tensor &cu = tensors.find(("cu_seqlens_" + side).str())->second;
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i + 1 < cu.numElements(); ++i)
    lengths.push_back(int64_t(cu.load(i + 1) - cu.load(i)));
  return lengths;
}

/// Calls `visit(row, position)` for the rows of all sequences of a packed side, of `rows` there are.
static void eachRow(const Tensors &tensors, llvm::StringRef side, int64_t rows,
                    llvm::function_ref<void(int64_t, int64_t)> visit) {
  if (tensors.count(("pieces_" + side).str())) {
    std::vector<int64_t> rowOf = rowsOfPieces(tensors, side);
    int64_t at = 0;
    for (int64_t length : lengthsOf(tensors, side))
      for (int64_t i = 0; i < length; ++i, ++at)
        if (rowOf[at] >= 0)
          visit(rowOf[at], i);
    return;
  }
  auto starts = tensors.find(("padded_offsets_" + side).str());
  if (starts == tensors.end())
    starts = tensors.find(("cu_seqlens_" + side).str());
  for (auto [b, length] : llvm::enumerate(lengthsOf(tensors, side)))
    for (int64_t i = 0, start = int64_t(starts->second.load(b)); i < length; ++i)
      if (start + i >= 0 && start + i < rows)
        visit(start + i, i);
}

std::vector<int64_t> reference::positionsOf(const Tensors &tensors, llvm::StringRef side, int64_t rows) {
  std::vector<int64_t> positions(rows);
  std::iota(positions.begin(), positions.end(), 0);
  if (tensors.count(("cu_seqlens_" + side).str())) // packed
    eachRow(tensors, side, rows, [&](int64_t row, int64_t position) { positions[row] = position; });
  return positions;
}

int64_t reference::addPieces(Tensors &tensors, llvm::StringRef side, int64_t gap, bool single,
                             llvm::function_ref<int64_t(int64_t)> below) {
  struct Piece {
    int64_t sequence, position, length;
  };
  std::vector<Piece> pieces;
  std::vector<int64_t> lengths = lengthsOf(tensors, side);
  for (auto [b, length] : llvm::enumerate(lengths)) {
    auto add = [&](int64_t begin, int64_t end) { pieces.push_back({int64_t(b), begin, end - begin}); };
    int64_t kind = below(8), chunks = 4 + below(5), chunk = below(chunks);
    auto startOf = [&, length = length](int64_t i) { return i * length / chunks; };
    if (kind == 0) { // nothing of it
    } else if (kind < 3) {
      add(0, length);
    } else if (single) {
      int64_t begin = below(length + 1);
      add(begin, begin + below(length - begin + 1));
    } else if (kind < 5) { // as a rank has it of dual chunks
      for (int64_t i : {std::min(chunk, chunks - 1 - chunk), std::max(chunk, chunks - 1 - chunk)})
        if (pieces.empty() || pieces.back().sequence != int64_t(b) || pieces.back().position != startOf(i))
          add(startOf(i), startOf(i + 1));
    } else {
      for (int64_t begin = 0; begin < length;) {
        int64_t end = std::min(length, begin + 1 + below(kind == 5 ? 20 : length));
        if (below(4))
          add(begin, end);
        begin = end;
      }
    }
  }
  auto shuffled = [&](std::vector<int64_t> &numbers) {
    for (size_t i = numbers.size(); i > 1; --i)
      std::swap(numbers[i - 1], numbers[below(i)]);
  };
  std::vector<int64_t> inRows(pieces.size()), order(pieces.size());
  std::iota(inRows.begin(), inRows.end(), 0);
  if (below(2))
    shuffled(inRows);
  std::iota(order.begin(), order.end(), 0);
  if (below(2))
    shuffled(order);
  const int64_t count = pieces.size(), line = count + 1;
  llvm::stable_sort(order,
                    [&](int64_t a, int64_t b) { return pieces[inRows[a]].sequence < pieces[inRows[b]].sequence; });
  auto room = [&] { return gap ? below(gap + 1) : 0; };
  Tensor lines(Dtype::I32, {PieceLines, line});
  int64_t row = room(), ends = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Piece &piece = pieces[inRows[i]];
    const int64_t numbers[] = {row, ends, piece.position, piece.sequence, order[i]};
    for (int64_t l = 0; l < PieceLines; ++l)
      lines.store(l * line + i, numbers[l]);
    row += piece.length + room(), ends += piece.length;
  }
  const int64_t last[] = {row, ends, 0, 0, 0};
  for (int64_t l = 0; l < PieceLines; ++l)
    lines.store(l * line + count, last[l]);
  tensors[("pieces_" + side).str()] = std::move(lines);
  tensors[("first_pieces_" + side).str()] = intTensor({int64_t(lengths.size()) + 1}, [&](int64_t b) {
    return llvm::count_if(pieces, [&](const Piece &piece) { return piece.sequence < b; });
  });
  return row;
}

void reference::addKeyPositions(ProblemOp problem, Tensors &tensors) {
  if (!readsKeyPositions(problem) || tensors.count(keyPositionsArray))
    return;
  std::vector<int64_t> positions;
  for (int64_t length : lengthsOf(tensors, "kv"))
    for (int64_t position = 0; position < length; ++position)
      positions.push_back(position);
  tensors[keyPositionsArray] = intTensor({int64_t(positions.size())}, [&](int64_t i) { return positions[i]; });
}

namespace {
/// One side of a packed problem: its arrays, and the rows its tensors have.
struct PackedSide {
  std::string side;
  LayoutAttr layout;
  std::vector<int64_t> lengths;
  int64_t padding;
  bool single; ///< at most one piece of a sequence
  std::mt19937_64 &rng;
  int64_t rows = 0;
  int64_t count = -1, whole = -1; ///< of pieces, and of positions

  void addArrays(Tensors &tensors) {
    std::string cuName = "cu_seqlens_" + side, offsetsName = "padded_offsets_" + side;
    int64_t batch = lengths.size();
    if (!tensors.count(cuName)) {
      int64_t sum = 0;
      tensors[cuName] = intTensor({batch + 1}, [&](int64_t i) { return i ? sum += lengths[i - 1] : 0; });
    }
    lengths = lengthsOf(tensors, side);
    rows = std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
    if (layout.hasPieces()) {
      if (!tensors.count("pieces_" + side) && !tensors.count("first_pieces_" + side))
        addPieces(tensors, side, padding, single,
                  [&](int64_t n) { return int64_t(rng() % uint64_t(std::max<int64_t>(n, 1))); });
      const Tensor &pieces = tensors["pieces_" + side];
      whole = rows, count = pieces.shape().back() - 1, rows = int64_t(pieces.load(count)) + padding;
    }
    if (!layout.getPadded())
      return;
    auto gap = [&] { return padding ? int64_t(rng() % (padding + 1)) : 0; };
    if (!tensors.count(offsetsName)) {
      int64_t at = gap();
      tensors[offsetsName] = intTensor({batch + 1}, [&](int64_t i) { return i ? at += lengths[i - 1] + gap() : at; });
    }
    const Tensor &offsets = tensors[offsetsName];
    rows = int64_t(offsets.load(offsets.numElements() - 1));
    for (auto [b, length] : llvm::enumerate(lengths)) // given ones of kv may be in any order
      rows = std::max(rows, int64_t(offsets.load(b)) + length);
    rows += padding;
  }
};
} // namespace

/// What a given array says must make sense before anything is made from it.
static llvm::Error checkGiven(const PackedSide &side, const Tensors &tensors, bool writesKv) {
  auto contents = [&](const char *prefix) {
    auto it = tensors.find(prefix + side.side);
    return it == tensors.end() ? llvm::ArrayRef<int32_t>()
                               : llvm::ArrayRef(it->second.data<int32_t>(), it->second.numElements());
  };
  llvm::ArrayRef<int32_t> cu = contents("cu_seqlens_");
  if (cu.empty())
    return llvm::Error::success();
  std::string lengths = "cu_seqlens_" + side.side, offsets = "padded_offsets_" + side.side;
  if (auto pieces = tensors.find("pieces_" + side.side); pieces != tensors.end()) {
    llvm::ArrayRef<int64_t> shape = pieces->second.shape();
    std::string first = "first_pieces_" + side.side;
    if (shape.size() != 2 || shape[0] != PieceLines || shape[1] < 1 || contents("first_pieces_").size() != cu.size())
      return llvm::createStringError("expected `pieces_" + side.side + "` of shape [5, pieces + 1] with `" + first +
                                     "` [batch + 1], got: " + shapeText(shape));
    std::string name = "pieces_" + side.side;
    rt::Status fits =
        rt::checkPieces({lengths, cu}, {name, contents("pieces_")}, {first, contents("first_pieces_")}, maxElements,
                        /*whole=*/0);
    return fits ? llvm::Error::success() : llvm::createStringError(fits.error().message);
  }
  rt::Status fits = rt::checkOffsets({lengths, cu}, {offsets, contents("padded_offsets_")}, maxElements,
                                     writesKv || side.side == "q");
  return fits ? llvm::Error::success() : llvm::createStringError(fits.error().message);
}

void reference::poisonPadding(Tensor &tensor, const Tensors &tensors, llvm::StringRef side, int rowAxis) {
  std::vector<bool> used(tensor.shape()[rowAxis], false);
  eachRow(tensors, side, used.size(), [&](int64_t row, int64_t) { used[row] = true; });
  tensor.forEachElement([&](llvm::ArrayRef<int64_t> index, int64_t at) {
    if (!used[index[rowAxis]])
      tensor.store(at, std::nan(""));
  });
}

/// All tiles that have something to write, in any order.
static void addMissingTiles(ProblemOp problem, const Sizes &sizes, std::mt19937_64 &rng, Tensors &tensors) {
  if (tensors.count("tiles_q") || tensors.count("tile_count"))
    return;
  const Tensor &bounds = tensors[problem.getQLayout().getPadded() ? "padded_offsets_q" : "cu_seqlens_q"];
  std::vector<int64_t> slots;
  rt::usedWorkTiles({bounds.data<int32_t>(), size_t(bounds.numElements())}, sizes.rowsQ, *problem.getTiles(),
                    [&](int64_t slot, std::optional<int64_t>, int64_t) { slots.push_back(slot); });
  std::shuffle(slots.begin(), slots.end(), rng);
  int64_t places = extentOf(ProblemTensor::Slots, FixedSizes::of(problem), sizes);
  tensors["tile_count"] = intTensor({1}, [&](int64_t) { return int64_t(slots.size()); });
  tensors["tiles_q"] = intTensor({places}, [&](int64_t i) { return i < int64_t(slots.size()) ? slots[i] : -1; });
}

/// Documents of random lengths with some padding (0), in rising order, those of queries and
/// of keys alike (by their names, but for `_q` and `_kv`); prefixes of any length; intervals around
/// positions.
static Tensor maskArray(ProblemOp problem, llvm::StringRef name, llvm::ArrayRef<int64_t> shape, const Sizes &made,
                        const Tensors &tensors, uint64_t seed, std::mt19937_64 &rng) {
  llvm::SmallVector<MaskOperand> operands = distinctOperands(problem.getMask());
  const MaskOperand &array = *llvm::find_if(operands, [&](const MaskOperand &o) { return o.name == name; });
  std::mt19937_64 ofDocuments(seed);
  if (array.entries == OperandEntries::Id) {
    llvm::StringRef stem = name.ends_with("_q") ? name.drop_back(2) : name.ends_with("_kv") ? name.drop_back(3) : name;
    for (char c : stem)
      ofDocuments.seed(ofDocuments() + c);
  }
  auto &numbers = array.entries == OperandEntries::Id ? ofDocuments : rng;
  auto below = [&](int64_t n) { return int64_t(numbers() % uint64_t(std::max<int64_t>(n, 1))); };
  int64_t batch = std::max<int64_t>(made.batch, 1), id = 1, extent = std::max<int64_t>(shape.back(), 1);
  if (array.isOne())
    return intTensor(shape, [&](int64_t) { return below(2 * made.rowsKv / batch + 2) - 1; });
  if (array.entries == OperandEntries::Parent) { // mostly the key before
    std::vector<int64_t> positions = positionsOf(tensors, "kv", shape.back());
    return intTensor(shape, [&](int64_t at) {
      int64_t position = positions[at % extent];
      return below(8) ? position - 1 : below(position + 1) - 1;
    });
  }
  return intTensor(shape, [&](int64_t at) -> int64_t {
    int64_t position = at % extent, away = below(1 + extent / 3);
    switch (array.entries) {
    case OperandEntries::Own:
      return position;
    case OperandEntries::Begin:
      return std::max<int64_t>(position - away, 0);
    case OperandEntries::End:
      return position + 1 + away;
    case OperandEntries::Parent:
    case OperandEntries::Id:
      break;
    }
    id = position == 0 ? 1 : id + (below(std::max<int64_t>(extent / 4, 2)) == 0);
    return below(16) == 0 ? 0 : id;
  });
}

/// Of block maps of which there is neither array: lists of about a quarter of the blocks, in any order, some twice.
static llvm::Error addMissingBlocks(const std::vector<ProblemTensor> &list, const FixedSizes &fixed, Sizes &made,
                                    std::mt19937_64 &rng, Tensors &tensors) {
  for (const ProblemTensor &spec : list) {
    if (!spec.lists)
      continue;
    const BlockLists &lists = *spec.lists->lists;
    bool given = tensors.count(spec.name);
    if (given != bool(tensors.count(lists.columns)))
      return llvm::createStringError("expected both `" + spec.name + "` and `" + lists.columns +
                                     "` or none of them, got: `" + (given ? spec.name : lists.columns) + "`");
    if (!given) {
      // Of packed sequences, rows enough for one that has all tokens.
      const int64_t rows = llvm::divideCeil(made.rowsQ, lists.q),
                    blocks = llvm::divideCeil(made.keysOfBlocks(), lists.kv);
      made.entries[spec.name] = rows + 1;
      std::vector<int64_t> columns;
      tensors[spec.name] = intTensor(spec.shape(fixed, made), [&](int64_t at) {
        if (at % (rows + 1) > 0)
          for (int64_t block = 0; block < blocks; ++block)
            for (int64_t times = rng() % 4 ? 0 : 1 + rng() % 2; times > 0; --times)
              columns.insert(columns.end() - std::min<int64_t>(columns.size(), rng() % 2), block);
        return int64_t(columns.size());
      });
      tensors[lists.columns] = intTensor({int64_t(columns.size())}, [&](int64_t i) { return columns[i]; });
    }
    for (const std::string &name : {spec.name, lists.columns})
      if (llvm::ArrayRef<int64_t> shape = tensors[name].shape(); !shape.empty())
        made.entries[name] = shape.back();
  }
  return llvm::Error::success();
}

/// Lists of one width of which there is no array: blocks in any order, some twice, some -1 or beyond the keys.
static void addMissingLists(ProblemOp problem, const std::vector<ProblemTensor> &list, const FixedSizes &fixed,
                            Sizes &made, std::mt19937_64 &rng, Tensors &tensors) {
  llvm::SmallVector<MaskOperand> operands = distinctOperands(problem.getMask());
  for (const ProblemTensor &spec : list) {
    if (!llvm::is_contained(spec.axes, ProblemTensor::Lines))
      continue;
    if (!tensors.count(spec.name)) {
      const MaskOperand &offsets = *llvm::find_if(
          operands, [&](const MaskOperand &map) { return map.lists && map.lists->columns == spec.name; });
      const int64_t blocks = llvm::divideCeil(made.keysOfBlocks(), offsets.lists->kv);
      made.entries[spec.name] = 1 + blocks / 3;
      tensors[spec.name] =
          intTensor(spec.shape(fixed, made), [&](int64_t) { return int64_t(rng() % uint64_t(blocks + 3)) - 1; });
    }
    if (llvm::ArrayRef<int64_t> shape = tensors[spec.name].shape(); !shape.empty())
      made.entries[spec.name] = shape.back();
  }
}

/// o and lse that follow from the other tensors, rounded as a kernel leaves them; NaN in padding.
static llvm::Error addForwardResults(ProblemOp problem, Tensors &tensors) {
  Tensors inputs;
  std::vector<ProblemTensor> list = tensorsOf(problem);
  for (const ProblemTensor &spec : list)
    if (spec.role != ProblemTensor::Result)
      inputs[spec.name] = tensors.lookup(spec.name);
  llvm::Expected<Outputs> outputs = interpret(problem, inputs);
  if (!outputs)
    return outputs.takeError();
  for (auto [name, values, dtype] : {std::tuple(llvm::StringRef("o"), &outputs->o, dtypeOf(problem)),
                                     std::tuple(llvm::StringRef("lse"), &outputs->lse, Dtype::F32)}) {
    if (tensors.count(name))
      continue;
    Tensor rounded = values->to(dtype);
    if (problem.getQLayout().isPacked())
      poisonPadding(rounded, tensors, "q", /*rowAxis=*/name == "lse");
    tensors[name] = std::move(rounded);
  }
  return llvm::Error::success();
}

/// delta = dot(dO, O); NaN in padding, as o has.
static void addDelta(LayoutAttr layout, Tensors &tensors) {
  const Tensor &o = tensors["o"], &dOut = tensors["do"], &lse = tensors["lse"];
  Tensor delta(Dtype::F32, lse.shape());
  bool packed = layout.isPacked();
  int64_t heads = lse.shape()[packed ? 0 : 1], batch = packed ? 1 : lse.shape()[0];
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t row = 0; row < lse.shape().back(); ++row) {
        auto vectorOf = [&](const Tensor &tensor) { return vectorAt(tensor, offsetOf(tensor, layout, b, h, row)); };
        delta.store(lseOffsetOf(delta, layout, b, h, row), dot(vectorOf(dOut), vectorOf(o)));
      }
  tensors["delta"] = std::move(delta);
}

llvm::Expected<Sizes> reference::addMissingArrays(Computation computation, InputSizes sizes, uint64_t seed,
                                                  Tensors &tensors, bool withFloats) {
  std::mt19937_64 rng(seed);
  ProblemOp problem = computation.problem;
  // What is given decides what is made.
  std::vector<ProblemTensor> list = tensorsOf(computation);
  for (ProblemTensor &spec : list) {
    auto given = tensors.find(spec.name);
    if (given == tensors.end() || given->second.shape().size() != spec.axes.size())
      continue;
    for (auto [axis, extent] : llvm::zip(spec.axes, given->second.shape())) {
      if (axis == ProblemTensor::BatchPlusOne && extent == 0)
        return llvm::createStringError("expected shape [batch + 1] for `" + spec.name + "`, got: [0]");
      if (axis == ProblemTensor::Batch || axis == ProblemTensor::BatchPlusOne)
        sizes.batch = extent - (axis == ProblemTensor::BatchPlusOne);
      if (axis == ProblemTensor::RowsQ && !problem.getQLayout().isPacked())
        sizes.seqlenQ = extent;
      if (axis == ProblemTensor::RowsKv && !problem.getKLayout().isPacked())
        sizes.seqlenKv = extent;
    }
  }
  Sizes made{sizes.batch, sizes.seqlenQ, sizes.seqlenKv};
  if (problem.getSegments()) {
    addMissingIds(problem, sizes, rng, tensors);
    made = {sizes.batch * int64_t(*problem.getSegments()), sizes.batch * sizes.seqlenQ, sizes.batch * sizes.seqlenKv};
  }
  PackedSide q{"q", problem.getQLayout(), sizes.lengthsQ, sizes.padding, bool(problem.getSinglePieces()), rng};
  PackedSide kv{"kv", problem.getKLayout(), sizes.lengthsKv, sizes.padding, bool(problem.getSinglePieces()), rng};
  // One side given, the other made: as many sequences, of the same lengths.
  for (auto [side, other] : {std::pair(&q, &kv), std::pair(&kv, &q)})
    if (side->layout.isPacked() && other->layout.isPacked() && !tensors.count("cu_seqlens_" + side->side) &&
        tensors.count("cu_seqlens_" + other->side))
      side->lengths = lengthsOf(tensors, other->side);
  for (auto [side, rows] : {std::pair(&q, &made.rowsQ), std::pair(&kv, &made.rowsKv)}) {
    if (!side->layout.isPacked() || problem.getSegments())
      continue;
    if (llvm::Error error = checkGiven(*side, tensors, bool(computation.backward)))
      return error;
    side->lengths.resize(side->lengths.empty() || tensors.count("cu_seqlens_" + side->side) ? sizes.batch
                                                                                            : side->lengths.size());
    made.batch = side->lengths.size();
    side->addArrays(tensors);
    *rows = side->rows;
    (side == &q ? made.piecesQ : made.piecesKv) = side->count;
    (side == &q ? made.wholeQ : made.wholeKv) = side->whole;
  }
  addKeyPositions(problem, tensors);
  if (problem.getTiles())
    addMissingTiles(problem, made, rng, tensors);
  addMissingLists(problem, list, FixedSizes::of(computation), made, rng, tensors);
  if (llvm::Error error = addMissingBlocks(list, FixedSizes::of(computation), made, rng, tensors))
    return error;
  for (auto [i, spec] : llvm::enumerate(list)) {
    if (spec.role != ProblemTensor::Array || tensors.count(spec.name))
      continue;
    if (llvm::StringRef(spec.name).contains("pieces_")) // one of both is given
      return llvm::createStringError("expected both or none of the two arrays of pieces of a side, got: none for `" +
                                     spec.name + "`");
    if (spec.element == ProblemTensor::Float32 && !withFloats)
      continue;
    Shape shape = spec.shape(computation, made);
    if (llvm::Error error = checkSize(spec.name, shape))
      return error;
    if (spec.element == ProblemTensor::Float32) {
      Tensor array(Dtype::F32, shape);
      array.fillNormal(seed * 1000003 + i);
      tensors[spec.name] = std::move(array);
    } else if (std::optional<Dropout> dropout = problem.dropoutInForce(); dropout && spec.name == dropout->seed) {
      tensors[spec.name] = intTensor(shape, [&](int64_t) { return int64_t(int32_t(rng())); });
    } else {
      tensors[spec.name] = maskArray(problem, spec.name, shape, made, tensors, seed, rng);
    }
  }
  return made;
}

llvm::Error reference::addMissingInputs(Computation computation, InputSizes sizes, uint64_t seed, Tensors &tensors) {
  ProblemOp problem = computation.problem;
  llvm::Expected<Sizes> made = addMissingArrays(computation, std::move(sizes), seed, tensors);
  if (!made)
    return made.takeError();
  for (auto [i, spec] : llvm::enumerate(tensorsOf(computation))) {
    if (spec.role != ProblemTensor::Operand || tensors.count(spec.name))
      continue;
    if (computation.backward && (spec.name == "o" || spec.name == "lse" || spec.name == "delta"))
      continue; // they follow from the others
    Shape shape = spec.shape(computation, *made);
    if (llvm::Error error = checkSize(spec.name, shape))
      return error;
    Tensor tensor(spec.element == ProblemTensor::Float32 ? Dtype::F32 : dtypeOf(problem), shape);
    tensor.fillNormal(seed * 1000003 + i);
    bool ofKeys = spec.name == "k" || spec.name == "v";
    LayoutAttr layout = ofKeys ? problem.getKLayout() : problem.getQLayout();
    if (problem.getSegments())
      poisonWithoutId(tensor, tensors[ofKeys ? "ids_kv" : "ids_q"]);
    else if (layout.isPacked() && spec.rowAxis >= 0)
      poisonPadding(tensor, tensors, ofKeys ? "kv" : "q", spec.rowAxis);
    tensors[spec.name] = std::move(tensor);
  }
  bool hasDelta = computation.backward && computation.backward.getDelta();
  if (computation.backward && !(tensors.count(hasDelta ? "delta" : "o") && tensors.count("lse"))) {
    if (llvm::Error error = addForwardResults(problem, tensors))
      return error;
    if (hasDelta) { // o is no tensor of the pass
      if (!tensors.count("delta"))
        addDelta(problem.getOLayout(), tensors);
      tensors.erase("o");
    }
  }
  return checkTensors(computation, tensors).takeError();
}

Tensors reference::poisonedResults(Computation computation, const Sizes &sizes) {
  Tensors results;
  for (ProblemTensor &spec : tensorsOf(computation)) {
    if (spec.role != ProblemTensor::Result)
      continue;
    Dtype dtype = spec.element == ProblemTensor::Data      ? dtypeOf(computation.problem)
                  : spec.element == ProblemTensor::Float32 ? Dtype::F32
                                                           : Dtype::I32;
    Tensor tensor(dtype, spec.shape(computation, sizes));
    llvm::fill(tensor.bytes(), char(0xff));
    results[spec.name] = std::move(tensor);
  }
  return results;
}
