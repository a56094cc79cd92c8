// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `--test-mask-laws`: every analysis of a mask against its definition, `keeps`,
// on all small shapes. Knows no family: it takes the masks of the module's
// problems, and random expressions over them. Each analysis is built
// once as IR and evaluated for every shape, and computed on constants as well.
//
#include "EmittedMask.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace attn;
using namespace attn::test;

namespace {

using Set = std::vector<bool>;

class Laws {
public:
  Laws(MaskInterface mask, Location loc, std::mt19937 &rng, int64_t size)
      : mask(mask), leaf(mask), canonical(canonicalMask(mask)), loc(loc), rng(rng), size(size),
        rowIr(mask.getContext()), keysIr(mask.getContext()), columnIr(mask.getContext()), queriesIr(mask.getContext()),
        keepIr(mask.getContext()), truthIr(mask.getContext()) {
    rows = mask.rowIntervals(rowIr.math, rowIr.scope(), rowIr.arg(2));
    columns = mask.columnIntervals(columnIr.math, columnIr.scope(), columnIr.arg(2));
    while (leaf.children().size() == 1)
      leaf = leaf.children().front();
    leafRows = leaf.rowIntervals(rowIr.math, rowIr.scope(), rowIr.arg(2));
    leafColumns = leaf.columnIntervals(columnIr.math, columnIr.scope(), columnIr.arg(2));
    MaskScope lists = keysIr.scope(), queryLists = queriesIr.scope();
    lists.extremes = queryLists.extremes = nullptr;
    truth = mask.tileTruth(truthIr.math, truthIr.scope(), {truthIr.arg(2), truthIr.arg(3)},
                           {truthIr.arg(5), truthIr.arg(6)});
    keys = mask.keyRanges(keysIr.math, lists, {keysIr.arg(2), keysIr.arg(3)});
    queries = mask.queryRanges(queriesIr.math, queryLists, {queriesIr.arg(2), queriesIr.arg(3)});
    canonicalOperands = canonical.operands();
    keep = mask.emitKeep(keepIr.math, keepIr.scope(), keepIr.arg(2), keepIr.arg(3));
  }

  static MaskScope probe(Index any) {
    MaskScope scope{any, any, any, any, [](unsigned, Index) { return Index::runtime(1); }};
    scope.heads = heads;
    return scope;
  }

  LogicalResult check() {
    // The walk over keys asks with numbers what it then builds.
    Index any = Index::position(1);
    IndexMath math;
    auto asked = mask.rowIntervals(math, probe(any), any);
    if (rows.has_value() != asked.has_value() || (rows && rows->size() != asked->size()))
      return complain("row intervals of numbers and values", 0, 0);
    if (canonicalMask(canonical) != canonical)
      return complain("canonical form of a canonical form", 0, 0) << ": " << canonicalMask(canonical);
    for (lenQ = 0; lenQ <= size; ++lenQ)
      for (lenK = 0; lenK <= size; ++lenK) {
        Arrays arrays(mask, rng, lenQ, lenK, size + 1);
        head = rng() % heads;
        if (failed(checkShape(arrays)))
          return failure();
      }
    return checkCorners();
  }

  bool isOfZones() {
    IndexMath math;
    return mask.zones(math, probe(Index::position(1))).has_value();
  }
  /// Walks of unions of few zones visit no empty tile: tiles of up to 5, whose size is no divisor of a sequence's. Of
  /// long sequences, the first and the last tile of each interval of some lines.
  LogicalResult checkVisits() {
    constexpr int64_t longer = (1 << 20) - 3;
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>(24, 24),
                                 {24, 13},
                                 {11, 24},
                                 {7, 7},
                                 {longer, longer},
                                 {longer, 700},
                                 {700, longer}}) {
      lenQ = rows, lenK = columns, head = 0;
      Arrays arrays(mask, rng, lenQ, lenK, 12);
      MaskPoint point = pointOf(arrays);
      auto kept = [&](int64_t q, int64_t k) {
        point.q = q, point.k = k;
        return mask.keeps(point);
      };
      for (int64_t tile : {2, 3, 5})
        if (failed(checkVisits("rows", keysIr, keys, tile, lenQ, lenK, arrays, kept)) ||
            failed(checkVisits("keys", queriesIr, queries, tile, lenK, lenQ, arrays,
                               [&](int64_t k, int64_t q) { return kept(q, k); })))
          return failure();
    }
    return success();
  }

private:
  LogicalResult checkVisits(StringRef lineName, Emitted &ir, TileRanges &ranges, int64_t tile, int64_t lines,
                            int64_t extent, const Arrays &arrays, llvm::function_ref<bool(int64_t, int64_t)> kept) {
    SmallVector<int64_t> tiles; // of lines
    constexpr int64_t all = 16;
    int64_t count = llvm::divideCeil(lines, tile);
    for (int64_t i = 0; i < std::min(count, all); ++i)
      tiles.push_back(count <= all ? i : i < 2 ? i * (count - 1) : rng() % count);
    for (int64_t number : tiles) {
      int64_t line = number * tile, behind = std::min(line + tile, lines);
      ir.evaluate({lenQ, lenK, line, behind, head}, arrays);
      for (const Interval &i : ranges.some) {
        int64_t lo = ir.of(i.lo), last = ir.of(i.hi) - 1, step = count <= all ? 1 : std::max<int64_t>(1, last - lo);
        for (int64_t at = lo; at <= last; at += step) {
          int64_t x = at / tile * tile, end = std::min(x + tile, extent);
          bool any = false;
          for (int64_t a = line; a < behind; ++a)
            for (int64_t b = x; b < end; ++b)
              any |= kept(a, b);
          if (!any)
            return complain(("no visit of an empty tile of " + Twine(tile) + " (x of " + lineName + ")").str(), line,
                            x);
        }
      }
    }
    return success();
  }

  InFlightDiagnostic complain(StringRef law, int64_t x, int64_t y) {
    return emitError(loc) << "mask law broken: " << law << " of " << mask << " at lenQ = " << lenQ
                          << ", lenK = " << lenK << ", x = " << x << ", y = " << y << ", head = " << head;
  }

  template <typename List> std::optional<Set> setOf(Emitted &ir, const List &list, int64_t extent) {
    Set set(extent, false);
    int64_t last = 0;
    for (const Interval &i : list) {
      int64_t lo = ir.of(i.lo), hi = ir.of(i.hi);
      if (hi <= lo)
        continue;
      if (lo < last || hi > extent || lo < 0)
        return std::nullopt; // not sorted, or beyond the sequence
      last = lo;
      std::fill(set.begin() + lo, set.begin() + hi, true);
    }
    return set;
  }

  LogicalResult checkRanges(StringRef name, Emitted &ir, TileRanges &ranges, bool exact, int64_t lines, int64_t extent,
                            const Arrays &arrays, llvm::function_ref<bool(int64_t, int64_t)> kept) {
    for (int64_t a = 0; a < lines; ++a) {
      Set some(extent, false), all(extent, true);
      for (int64_t b = a + 1; b <= lines; ++b) {
        for (int64_t x = 0; x < extent; ++x) {
          some[x] = some[x] || kept(b - 1, x);
          all[x] = all[x] && kept(b - 1, x);
        }
        ir.evaluate({lenQ, lenK, a, b, head}, arrays);
        std::optional<Set> some2 = setOf(ir, ranges.some, extent), all2 = setOf(ir, ranges.all, extent);
        if (!some2 || !all2)
          return complain((name + " sorted and in bounds").str(), a, b);
        for (int64_t x = 0; x < extent; ++x) {
          if (some[x] && !(*some2)[x])
            return complain((name + ": some is large enough").str(), a, b);
          if (!all[x] && (*all2)[x])
            return complain((name + ": all is small enough").str(), a, b);
        }
        if (exact && (some != *some2 || all != *all2))
          return complain((name + " exact").str(), a, b);
      }
    }
    return success();
  }

  LogicalResult checkLine(StringRef name, Emitted &ir, std::optional<IntervalList> &list, int64_t lines, int64_t extent,
                          const Arrays &arrays, llvm::function_ref<bool(int64_t, int64_t)> kept) {
    if (!list)
      return success();
    for (int64_t a = 0; a < lines; ++a) {
      Set truth(extent);
      for (int64_t x = 0; x < extent; ++x)
        truth[x] = kept(a, x);
      ir.evaluate({lenQ, lenK, a, 0, head}, arrays);
      if (setOf(ir, *list, extent) != std::optional(truth))
        return complain(name, a, 0);
    }
    return success();
  }

  MaskPoint pointOf(const Arrays &arrays) {
    MaskPoint p;
    p.lenQ = lenQ, p.lenK = lenK, p.head = head, p.heads = heads;
    p.load = [&](unsigned operand, int64_t position) { return arrays.at(operand, position); };
    p.listed = [&](unsigned operand, int64_t row, int64_t column) { return arrays.listed(operand, row, column); };
    return p;
  }

  LogicalResult checkShape(const Arrays &arrays) {
    MaskPoint point = pointOf(arrays);
    Set shown; // laws ask for pairs far more often than there are any
    for (point.q = 0; point.q < lenQ; ++point.q)
      for (point.k = 0; point.k < lenK; ++point.k)
        shown.push_back(mask.keeps(point));
    auto kept = [&](int64_t q, int64_t k) -> bool { return shown[q * lenK + k]; };
    auto transposed = [&](int64_t k, int64_t q) { return kept(q, k); };
    // An intersection may leave rows without keys inside a tile whose rows do
    // not meet; ranges of leaves have no such holes, nor have complements of them.
    bool isLeaf = leaf.children().empty();
    bool exactKeys = isLeaf && leafRows && leafRows->size() == 1;
    bool exactQueries = isLeaf && leafColumns && leafColumns->size() == 1;
    if (failed(checkLine("row intervals", rowIr, rows, lenQ, lenK, arrays, kept)) ||
        failed(checkLine("column intervals", columnIr, columns, lenK, lenQ, arrays, transposed)) ||
        failed(checkRanges("key ranges", keysIr, keys, exactKeys, lenQ, lenK, arrays, kept)) ||
        failed(checkRanges("query ranges", queriesIr, queries, exactQueries, lenK, lenQ, arrays, transposed)))
      return failure();
    for (int64_t q = 0; q < lenQ; ++q)
      for (int64_t k = 0; k < lenK; ++k) {
        if (keptByCanonical(q, k, arrays) != kept(q, k))
          return complain("canonical form", q, k);
        keepIr.evaluate({lenQ, lenK, q, k, head}, arrays);
        if (keepIr.of(keep) != kept(q, k))
          return complain("element test", q, k);
        for (auto [diagonal, shift] :
             {std::pair(Diagonal::top_left, int64_t(0)), {Diagonal::bottom_right, lenK - lenQ}})
          if (kept(q, k) && k - q - shift > reachOf(mask, diagonal).value_or(lenK + lenQ))
            return complain("reach", q, k);
      }
    return checkClasses(arrays, kept);
  }

  bool keptByCanonical(int64_t q, int64_t k, const Arrays &arrays) {
    MaskPoint p;
    p.q = q, p.k = k, p.lenQ = lenQ, p.lenK = lenK, p.head = head, p.heads = heads;
    p.load = [&](unsigned operand, int64_t position) { // the same arrays, elsewhere
      return arrays.at(arrays.first(canonicalOperands[operand]), position);
    };
    p.listed = [&](unsigned operand, int64_t row, int64_t column) {
      return arrays.listed(arrays.first(canonicalOperands[operand]), row, column);
    };
    return canonical.keeps(p);
  }

  /// The longest sequences: no number is too large for 32 bits, not even of rows and
  /// keys that the last tile has behind them.
  LogicalResult checkCorners() {
    if (!mask.operands().empty())
      return success();
    constexpr int64_t tile = 256;
    const int64_t longest = longestSequence(mask);
    for (auto [rows, columns] : {std::pair(longest, longest), {longest, int64_t(1)}, {int64_t(1), longest}}) {
      lenQ = rows, lenK = columns;
      for (int64_t q : {int64_t(0), lenQ / 2, lenQ - 1, lenQ - 1 + tile})
        for (int64_t k : {int64_t(0), lenK / 2, lenK - 1, lenK - 1 + tile}) {
          keepIr.evaluate({lenQ, lenK, q, k, head}, {mask, rng, 0, 0, 0});
          if (q < lenQ)
            keysIr.evaluate({lenQ, lenK, q, std::min(q + tile, lenQ), head}, {mask, rng, 0, 0, 0});
          if (k < lenK)
            queriesIr.evaluate({lenQ, lenK, k, std::min(k + tile, lenK), head}, {mask, rng, 0, 0, 0});
          MaskPoint p;
          p.q = q, p.k = k, p.lenQ = lenQ, p.lenK = lenK, p.head = head, p.heads = heads;
          if (q < lenQ && k < lenK && keepIr.of(keep) != mask.keeps(p))
            return complain("element test of long sequences", q, k);
          if (keepIr.overflows || keysIr.overflows || queriesIr.overflows)
            return complain("numbers of 32 bits", q, k);
        }
    }
    return success();
  }

  LogicalResult checkClasses(const Arrays &arrays, llvm::function_ref<bool(int64_t, int64_t)> kept) {
    MaskScope scope;
    auto number = [](int64_t n) { return Index::position(n); };
    auto entry = [](int64_t n) { return Index::runtime(n); };
    scope.lenQ = number(lenQ), scope.lenK = number(lenK), scope.head = number(head), scope.heads = heads;
    scope.load = [&](unsigned operand, Index position) { return entry(arrays.at(operand, position.getNumber())); };
    MaskScope informed = scope;
    informed.listedIn = [&](unsigned operand, Interval rows, Interval columns) {
      int64_t at[] = {rows.lo.getNumber(), rows.hi.getNumber(), columns.lo.getNumber(), columns.hi.getNumber()};
      return TileTruth{Cond::runtime(arrays.listedIn(operand, at, false)),
                       Cond::runtime(arrays.listedIn(operand, at, true))};
    };
    informed.extremes = [&](unsigned operand, Interval positions) -> std::optional<EntryRange> {
      auto range = arrays.rangeOf(operand, positions.lo.getNumber(), positions.hi.getNumber());
      return EntryRange{entry(range[0]), entry(range[1]), Cond::runtime(range[2])};
    };
    for (int64_t q0 = 0; q0 < lenQ; ++q0)
      for (int64_t q1 = q0 + 1; q1 <= lenQ; ++q1)
        for (int64_t k0 = 0; k0 < lenK; ++k0)
          for (int64_t k1 = k0 + 1; k1 <= lenK; ++k1) {
            bool any = false, every = true;
            for (int64_t q = q0; q < q1; ++q)
              for (int64_t k = k0; k < k1; ++k)
                (kept(q, k) ? any : every) = kept(q, k);
            TileClass c = classify(mask, scope, {number(q0), number(q1)}, {number(k0), number(k1)});
            if ((c == TileClass::Empty && any) || (c == TileClass::Full && !every))
              return complain("tile class", q0, k0);
            TileClass known = classify(mask, informed, {number(q0), number(q1)}, {number(k0), number(k1)});
            if ((known == TileClass::Empty && any) || (known == TileClass::Full && !every))
              return complain("tile class by entries", q0, k0);
            truthIr.evaluate({lenQ, lenK, q0, q1, head, k0, k1}, arrays);
            if ((any && !truthIr.of(truth.some)) || (!every && truthIr.of(truth.all)))
              return complain("tile class as code", q0, k0);
            // Nothing is unknown of an affine leaf.
            AffineTerms terms;
            bool exact = leaf.children().empty() && leaf.affine(terms);
            if (exact && c == TileClass::Partial && (!any || every))
              return complain("tile class exact", q0, k0);
          }
    return success();
  }

  MaskInterface mask, leaf, canonical; ///< the mask, or what it is the complement of; its canonical form
  Location loc;
  std::mt19937 &rng;
  int64_t size, lenQ = 0, lenK = 0, head = 0;
  Emitted rowIr, keysIr, columnIr, queriesIr, keepIr, truthIr;
  std::optional<IntervalList> rows, columns, leafRows, leafColumns;
  SmallVector<MaskOperand> canonicalOperands;
  TileRanges keys, queries;
  TileTruth truth;
  Cond keep = Cond::of(false);
};

struct TestMaskLaws : PassWrapper<TestMaskLaws, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestMaskLaws)
  TestMaskLaws() = default;
  TestMaskLaws(const TestMaskLaws &other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "test-mask-laws"; }
  StringRef getDescription() const final { return "check every analysis of the module's masks on all small shapes"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<arith::ArithDialect>(); }

  MaskInterface randomMask(ArrayRef<MaskInterface> leaves, int depth, std::mt19937 &rng) {
    if (depth == 0 || rng() % 4 == 0)
      return leaves[rng() % leaves.size()];
    SmallVector<MaskInterface> parts;
    for (unsigned i = 0, n = 2 + rng() % 2; i < n; ++i)
      parts.push_back(randomMask(leaves, depth - 1, rng));
    switch (rng() % 7) {
    case 6:
      return HeadsMaskAttr::get(&getContext(), parts);
    case 0:
      return negated(parts.front());
    case 1: // diff
      parts.back() = negated(parts.back());
      [[fallthrough]];
    case 2:
    case 3:
      return AndMaskAttr::get(&getContext(), parts);
    default:
      return OrMaskAttr::get(&getContext(), parts);
    }
  }

  /// What is said of two masks' equality, against all small shapes beyond those that are
  /// looked at first, and pairs of larger ones.
  LogicalResult checkComparison(MaskInterface a, MaskInterface b, std::mt19937 &rng) {
    AffineTerms terms;
    if (!a.affine(terms) || !b.affine(terms))
      return success();
    MaskComparison said = compareMasks(a, b);
    if (said.verdict == MaskComparison::Different)
      return said.where.lenQ > said.where.q && said.where.lenK > said.where.k &&
                     a.keeps(said.where) == said.shownByFirst && b.keeps(said.where) != said.shownByFirst
                 ? success()
                 : complain(a, b, said.where);
    MaskPoint p;
    for (p.lenQ = 1; p.lenQ <= 10; ++p.lenQ)
      for (p.lenK = 1; p.lenK <= 10; ++p.lenK)
        for (p.q = 0; p.q < p.lenQ; ++p.q)
          for (p.k = 0; p.k < p.lenK; ++p.k)
            if (said.verdict == MaskComparison::Equal && a.keeps(p) != b.keeps(p))
              return complain(a, b, p);
    for (int i = 0; i < 2000 && said.verdict == MaskComparison::Equal; ++i) {
      p.lenQ = 1 + rng() % 60, p.lenK = 1 + rng() % 60;
      p.q = rng() % p.lenQ, p.k = rng() % p.lenK;
      if (a.keeps(p) != b.keeps(p))
        return complain(a, b, p);
    }
    ++compared[said.verdict];
    return success();
  }
  InFlightDiagnostic complain(MaskInterface a, MaskInterface b, const MaskPoint &p) {
    return emitError(getOperation().getLoc())
           << "mask law broken: comparison of " << a << " and " << b << " at lenQ = " << p.lenQ << ", lenK = " << p.lenK
           << ", q = " << p.q << ", k = " << p.k;
  }
  int64_t compared[3] = {};

  void runOnOperation() final {
    getContext().allowUnregisteredDialects(); // for this pass's own loads
    std::mt19937 rng(seed);
    SmallVector<MaskInterface> masks;
    getOperation().walk([&](ProblemOp problem) { masks.push_back(problem.getMask()); });
    int64_t checked = 0, ofZones = 0;
    auto check = [&](MaskInterface mask) {
      ++checked;
      Location loc = getOperation().getLoc();
      if (visits) {
        Laws laws(canonicalMask(mask), loc, rng, size); // as walks have it
        bool covered = laws.isOfZones();
        ofZones += covered;
        return covered ? laws.checkVisits() : success();
      }
      return Laws(mask, loc, rng, size).check();
    };
    for (MaskInterface mask : masks)
      if (failed(check(mask)))
        return signalPassFailure();
    MaskInterface before;
    for (int64_t i = 0; i < random && !masks.empty(); ++i) {
      MaskInterface mask = randomMask(masks, 1 + i % 4, rng);
      if (failed(check(mask)))
        return signalPassFailure();
      if (visits)
        continue;
      if (failed(checkComparison(mask, canonicalMask(mask), rng)) ||
          (before && failed(checkComparison(mask, before, rng))))
        return signalPassFailure();
      before = mask;
    }
    llvm::outs() << "mask laws hold for " << checked << " masks\n";
    if (visits)
      llvm::outs() << ofZones << " of them are unions of few zones\n";
    else if (random)
      llvm::outs() << compared[MaskComparison::Equal] << " pairs are equal, " << compared[MaskComparison::Unknown]
                   << " are not decided\n";
  }

  Option<int64_t> random{*this, "random", llvm::cl::desc("how many random expressions over the masks"),
                         llvm::cl::init(0)};
  Option<bool> visits{*this, "visits",
                      llvm::cl::desc("only that walks visit no empty tile, where masks are unions of few zones"),
                      llvm::cl::init(false)};
  Option<int64_t> size{*this, "size", llvm::cl::desc("largest length"), llvm::cl::init(6)};
  Option<unsigned> seed{*this, "seed", llvm::cl::desc("of the random expressions and arrays"), llvm::cl::init(1)};
};

} // namespace

namespace attn::test {
void registerTestMaskLaws() { PassRegistration<TestMaskLaws>(); }
} // namespace attn::test
