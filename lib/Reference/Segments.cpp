// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Reference/Segments.h"
#include "attn-rt/ArrayChecks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace attn;
using namespace attn::reference;

static llvm::Error segmentsError(const llvm::Twine &what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), what);
}

llvm::Expected<Sizes> reference::sizesOf(SegmentsOp op, const Tensors &inputs) {
  Sizes sizes{-1, -1, -1};
  for (const ProblemTensor &spec : tensorsOf(op)) {
    if (spec.role == ProblemTensor::Result)
      continue;
    auto it = inputs.find(spec.name);
    if (it == inputs.end() || it->second.dtype() != Dtype::I32 || it->second.shape().empty())
      return segmentsError("expected an i32 tensor `" + spec.name + "` with one axis or more");
    Shape shape(it->second.shape());
    if (spec.axes[0] == ProblemTensor::LastLeadingDims && shape.size() > sizes.lead.size() + 1)
      return segmentsError("expected no more axes of `" + spec.name + "` than of ids, got: " + shapeText(shape));
    spec.inferSizes(shape, FixedSizes::of(op), sizes);
    if (Shape expected = spec.shape(FixedSizes::of(op), sizes, shape.size() - 1); expected != shape)
      return segmentsError("expected shape " + shapeText(expected) + " for `" + spec.name +
                           "`, got: " + shapeText(shape));
  }
  return sizes;
}

std::string reference::statusText(int64_t status) {
  const char *says[] = {"an id below 0 or beyond the segments", "tokens of a segment are not one run",
                        "the mask of positions is not that of lengths and offsets", "a position beyond +-2^29"};
  std::string text;
  for (auto [bit, what] : llvm::enumerate(says))
    if (status >> bit & 1)
      text += (text.empty() ? "" : "; ") + std::string(what);
  return text;
}

//===--------------------------------------------------------------------===//
// A row
//===--------------------------------------------------------------------===//

namespace {
enum Status { BadId = 1, Split = 2, Positions = 4, BadPosition = 8 };

/// The tokens of one side of a row.
struct Side {
  std::vector<int64_t> ids;                 ///< 0: padding, or nothing that counts
  std::vector<int64_t> positions;           ///< 0 where they do not count
  std::vector<int64_t> run;                 ///< length of the run of equal ids around a token
  std::vector<std::vector<int64_t>> tokens; ///< of an id

  int64_t runsOf(int64_t id) const {
    int64_t runs = 0;
    for (size_t i = 0; i < tokens[id].size(); ++i)
      runs += i == 0 || tokens[id][i] != tokens[id][i - 1] + 1;
    return runs;
  }
};

/// A segment as an attention kernel has it.
struct Sequence {
  int64_t firstQ, lenQ, firstKv, lenKv;
};

class IdRow {
public:
  IdRow(SegmentsOp op, const Tensors &inputs, const Sizes &sizes, int64_t row)
      : rule(op.getRule()), segments(op.getSegments()) {
    readSide(q, inputs, "_q", sizes.tokensQ, row, sizes.positionRowsQ);
    readSide(kv, inputs, "_kv", sizes.tokensKv, row, sizes.positionRowsKv);
  }

  /// By how much positions of an id's queries and keys are shifted against each other.
  int64_t shift(int64_t t, int64_t u) const {
    return rule.family == SegmentRule::BottomRight ? kv.run[u] - q.run[t] : 0;
  }
  /// The pair is of one id; does the query see the key, if there is no window?
  bool sees(int64_t t, int64_t u) const {
    return rule.family == SegmentRule::Padding || kv.positions[u] <= q.positions[t] + shift(t, u);
  }
  bool isWithinWindow(int64_t t, int64_t u) const {
    int64_t diagonal = q.positions[t] + shift(t, u);
    return (!rule.left || kv.positions[u] >= diagonal - *rule.left) &&
           (!rule.right || kv.positions[u] <= diagonal + *rule.right);
  }

  /// Lengths, offsets, status and sequences.
  void evaluate() {
    selected[0].assign(q.ids.size(), 0), selected[1].assign(kv.ids.size(), 0);
    lengths[0].assign(segments, 0), lengths[1].assign(segments, 0);
    for (int64_t id = 1; id <= segments; ++id)
      evaluateSegment(id);
    llvm::sort(sequences, [](const Sequence &a, const Sequence &b) { return a.firstQ < b.firstQ; });
    for (int side : {0, 1}) {
      int64_t previous = 0;
      for (auto [t, id] : llvm::enumerate(selected[side])) {
        if (id && id != previous)
          offsets[side].push_back(t);
        previous = id;
      }
      offsets[side].resize(segments + 1, -1); // the first ones, or -1 behind the last
    }
  }

  SegmentRule rule;
  int64_t segments, status = 0;
  Side q, kv;
  std::vector<int64_t> selected[2], lengths[2], offsets[2]; ///< of q, of kv
  std::vector<Sequence> sequences;                          ///< in the order of their queries

private:
  void readSide(Side &side, const Tensors &inputs, const std::string &name, int64_t count, int64_t row,
                int64_t positionRows) {
    const int32_t *ids = inputs.find("ids" + name)->second.data<int32_t>() + row * count;
    const int32_t *positions =
        rule.hasPositions() ? inputs.find("positions" + name)->second.data<int32_t>() + row % positionRows * count
                            : nullptr;
    side.tokens.resize(segments + 1);
    for (int64_t i = 0; i < count; ++i) {
      int64_t id = ids[i], position = positions ? positions[i] : 0, far = int64_t(1) << 29;
      if (id < 0 || id > segments)
        status |= BadId, id = 0;
      else if (id != 0 && (position > far || position < -far))
        status |= BadPosition, id = 0;
      side.ids.push_back(id);
      side.positions.push_back(position);
      side.tokens[id].push_back(i);
    }
    side.run.resize(count);
    for (int64_t i = 0, end; i < count; i = end) {
      for (end = i; end < count && side.ids[end] == side.ids[i]; ++end)
        ;
      std::fill(side.run.begin() + i, side.run.begin() + end, end - i);
    }
  }

  void evaluateSegment(int64_t id) {
    const std::vector<int64_t> &queries = q.tokens[id], &keys = kv.tokens[id];
    if (queries.empty() || keys.empty())
      return;
    // Of two runs there is no one end to align.
    if (rule.family == SegmentRule::BottomRight && (q.runsOf(id) > 1 || kv.runsOf(id) > 1)) {
      status |= Split;
      return;
    }
    std::vector<int64_t> seeing, seen;
    for (int64_t t : queries)
      if (llvm::any_of(keys, [&](int64_t u) { return sees(t, u); }))
        seeing.push_back(t), selected[0][t] = id;
    for (int64_t u : keys)
      if (llvm::any_of(queries, [&](int64_t t) { return sees(t, u); }))
        seen.push_back(u), selected[1][u] = id;
    int64_t n = seeing.size(), m = seen.size();
    lengths[0][id - 1] = n, lengths[1][id - 1] = m;
    if (n == 0)
      return;
    if (seeing.back() - seeing.front() + 1 != n || seen.back() - seen.front() + 1 != m)
      status |= Split;
    else if (!claimsHold(seeing, seen))
      status |= Positions;
    else
      sequences.push_back({seeing.front(), n, seen.front(), m});
  }

  /// Each bound of the mask by itself: is it, counted from the first token of either
  /// side, what it is in positions? Of all pairs.
  bool claimsHold(const std::vector<int64_t> &queries, const std::vector<int64_t> &keys) const {
    int64_t n = queries.size(), m = keys.size(), corner = rule.family == SegmentRule::BottomRight ? m - n : 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < m; ++j) {
        int64_t t = queries[i], u = keys[j];
        int64_t counted = i + corner, positioned = q.positions[t] + shift(t, u), p = kv.positions[u];
        if (rule.family != SegmentRule::Padding && (j <= counted) != (p <= positioned))
          return false;
        if (rule.right && (j <= counted + *rule.right) != (p <= positioned + *rule.right))
          return false;
        if (rule.left && (j >= counted - *rule.left) != (p >= positioned - *rule.left))
          return false;
      }
    return true;
  }
};

//===--------------------------------------------------------------------===//
// All rows
//===--------------------------------------------------------------------===//

/// What packed layouts read of one side.
struct Packed {
  std::vector<int64_t> cuSeqlens = {0}, offsets;
  int64_t length(size_t b) const { return cuSeqlens[b + 1] - cuSeqlens[b]; }
  void add(int64_t offset, int64_t length) {
    offsets.push_back(offset);
    cuSeqlens.push_back(cuSeqlens.back() + length);
  }
  void fill(size_t sequences, int64_t rows) {
    cuSeqlens.resize(sequences + 1, cuSeqlens.back());
    offsets.resize(sequences + 1, rows);
  }
};
} // namespace

/// How many keys of a sequence some query sees.
static int64_t costOf(SegmentsOp op, int64_t lenQ, int64_t lenKv) {
  MaskPoint point;
  point.lenQ = lenQ, point.lenK = lenKv;
  int64_t cost = 0;
  for (point.k = 0; point.k < lenKv; ++point.k) {
    bool seen = false;
    for (point.q = 0; point.q < lenQ && !seen; ++point.q)
      seen = op.getMask().keeps(point);
    cost += seen;
  }
  return cost;
}

/// Slots of tiles, those of the sequences that cost most first.
static std::vector<int64_t> listTiles(SegmentsOp op, const Packed &q, const Packed &kv, int64_t rows, int64_t longest) {
  const int64_t tile = *op.getTiles();
  std::vector<std::pair<int64_t, int64_t>> found; // cost, in steps; slot
  std::optional<int64_t> last;
  int64_t sequenceCost = 0;
  std::vector<int32_t> offsets(q.offsets.begin(), q.offsets.end());
  rt::usedWorkTiles(offsets, rows, tile, [&](int64_t slot, std::optional<int64_t> b, int64_t first) {
    int64_t lenQ = b ? q.length(*b) : 0;
    if (first < lenQ && b != last)
      last = b, sequenceCost = costOf(op, lenQ, kv.length(*b));
    int64_t cost = first < lenQ ? sequenceCost : 0;
    found.emplace_back(llvm::divideCeil(cost * 255, std::max<int64_t>(longest, 1)), slot);
  });
  llvm::sort(found, std::greater<>());
  std::vector<int64_t> slots;
  for (auto [cost, slot] : found)
    slots.push_back(slot);
  return slots;
}

llvm::Expected<Tensors> reference::interpret(SegmentsOp op, const Tensors &inputs, int32_t unused) {
  llvm::Expected<Sizes> sizes = sizesOf(op, inputs);
  if (!sizes)
    return sizes.takeError();
  Tensors results;
  for (const ProblemTensor &spec : tensorsOf(op))
    if (spec.role == ProblemTensor::Result)
      results[spec.name] = Tensor(Dtype::I32, spec.shape(FixedSizes::of(op), *sizes));
  llvm::StringMap<int64_t> written;
  auto append = [&](const std::string &name, const std::vector<int64_t> &values) {
    int64_t &at = written[name];
    for (int64_t value : values)
      results[name].data<int32_t>()[at++] = int32_t(value);
  };
  Packed packed[2];
  const int64_t tokens[] = {sizes->tokensQ, sizes->tokensKv}, rows = sizes->idRows;
  const char *const sides[] = {"_q", "_kv"};
  for (int64_t r = 0; r < rows; ++r) {
    IdRow row(op, inputs, *sizes, r);
    row.evaluate();
    for (int side : {0, 1}) {
      append(std::string("seqlens") + sides[side], row.lengths[side]);
      append(std::string("offsets") + sides[side], row.offsets[side]);
      if (op.getMaps())
        append(std::string("segments") + sides[side], row.selected[side]);
    }
    append("status", {row.status});
    for (const Sequence &s : row.sequences) {
      packed[0].add(r * tokens[0] + s.firstQ, s.lenQ);
      packed[1].add(r * tokens[1] + s.firstKv, s.lenKv);
    }
  }
  for (int side : {0, 1}) {
    packed[side].fill(rows * op.getSegments(), rows * tokens[side]);
    append(std::string("cu_seqlens") + sides[side], packed[side].cuSeqlens);
    append(std::string("padded_offsets") + sides[side], packed[side].offsets);
  }
  if (op.getTiles()) {
    std::vector<int64_t> slots = listTiles(op, packed[0], packed[1], rows * tokens[0], tokens[1]);
    append("tile_count", {int64_t(slots.size())});
    slots.resize(results["tiles_q"].numElements(), unused);
    append("tiles_q", slots);
  }
  return results;
}

llvm::Expected<Expanded> reference::expand(ProblemOp problem, const Tensors &inputs) {
  Expanded expanded;
  expanded.module = mlir::ModuleOp::create(problem.getLoc());
  mlir::OpBuilder b = mlir::OpBuilder::atBlockEnd(expanded.module->getBody());
  expanded.problem = cast<ProblemOp>(b.clone(*problem));
  SegmentsOp segments = expandSegments(expanded.problem);
  llvm::Expected<Tensors> results = interpret(segments, inputs);
  if (!results)
    return results.takeError();
  Sizes sizes = llvm::cantFail(sizesOf(segments, inputs));
  const Tensor &lengths = results->find("cu_seqlens_q")->second, &offsets = results->find("padded_offsets_q")->second;
  std::vector<bool> inSequence(sizes.idRows * sizes.tokensQ, false);
  for (int64_t s = 0; s + 1 < lengths.numElements(); ++s)
    for (int64_t i = 0, length = int64_t(lengths.load(s + 1) - lengths.load(s)); i < length; ++i)
      inSequence[int64_t(offsets.load(s)) + i] = true;
  for (int64_t r = 0; r < sizes.idRows; ++r)
    for (auto [t, id] : llvm::enumerate(IdRow(segments, inputs, sizes, r).q.ids))
      if (int64_t token = r * sizes.tokensQ + int64_t(t); id && !inSequence[token])
        expanded.alone.push_back(token);
  for (const ProblemTensor &spec : tensorsOf(expanded.problem))
    if (auto found = results->find(spec.name); found != results->end())
      expanded.inputs[spec.name] = std::move(found->second);
    else if (auto given = inputs.find(spec.name); given != inputs.end())
      expanded.inputs[spec.name] = given->second;
  expanded.status = std::move((*results)["status"]);
  return expanded;
}

//===--------------------------------------------------------------------===//
// Pairs
//===--------------------------------------------------------------------===//

void reference::visiblePairs(SegmentsOp op, const Tensors &inputs, const Sizes &sizes, TileListPair visit) {
  for (int64_t r = 0; r < sizes.idRows; ++r) {
    IdRow row(op, inputs, sizes, r);
    for (int64_t id = 1; id <= row.segments; ++id)
      for (int64_t t : row.q.tokens[id])
        for (int64_t u : row.kv.tokens[id])
          if (row.sees(t, u) && row.isWithinWindow(t, u))
            visit(r, t, u);
  }
}

void reference::sequencePairs(SegmentsOp op, const Tensors &results,
                              std::function<void(int64_t query, int64_t key)> visit) {
  auto array = [&](llvm::StringRef name) { return results.find(name)->second.data<int32_t>(); };
  const int32_t *cuQ = array("cu_seqlens_q"), *cuKv = array("cu_seqlens_kv");
  for (int64_t b = 0, n = results.find("cu_seqlens_q")->second.numElements() - 1; b < n; ++b) {
    MaskPoint point;
    point.lenQ = cuQ[b + 1] - cuQ[b], point.lenK = cuKv[b + 1] - cuKv[b];
    for (point.q = 0; point.q < point.lenQ; ++point.q)
      for (point.k = 0; point.k < point.lenK; ++point.k)
        if (op.getMask().keeps(point))
          visit(array("padded_offsets_q")[b] + point.q, array("padded_offsets_kv")[b] + point.k);
  }
}
