// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel is written here once, plainly: who am I, load Q, walk over the key
// tiles, write O and LSE. Everything that depends on the mask comes from KeyWalk;
// everything clever is a later pass.
//
#include "ForwardKernel.h"
#include "KeyWalk.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Builds the body of one kernel.
class ForwardKernel {
public:
  ForwardKernel(ProblemOp problem, KernelOp kernel, ConfigAttr config)
      : problem(problem), config(config), boxes(kernel.isPersistent()),
        b(OpBuilder::atBlockEnd(&kernel.getBody().front())), loc(problem.getLoc()), math(b, loc) {
    for (auto [name, arg] :
         llvm::zip(kernel.getArgNames().getAsValueRange<StringAttr>(), kernel.getBody().getArguments()))
      args[name] = arg;
  }

  void build() {
    declarePlaces();
    if (!problem.getQLayout().isPacked()) {
      findDenseTile();
      findKeys();
      attend(b);
      return;
    }
    findPackedTile();
    findKeys();
    // Slots that stand for padding compute nothing but write their rows.
    Value live = math.value(math.lt(0, rows));
    auto branch = scf::IfOp::create(b, loc, live, /*withElseRegion=*/true);
    OpBuilder computes = branch.getThenBodyBuilder(), pads = branch.getElseBodyBuilder();
    attend(computes);
    storePadding(pads);
  }

private:
  //===------------------------------------------------------------------===//
  // Who am I
  //===------------------------------------------------------------------===//

  void declarePlaces() {
    Type dtype = problem.getDtype();
    int64_t colsQk = llvm::alignTo(problem.getDimQk(), 16), colsV = llvm::alignTo(problem.getDimV(), 16);
    // Rows one 16-byte unit longer than their columns: an odd number of units,
    // so eight consecutive rows start in eight different groups of banks. Boxes
    // are swizzled to the same end.
    auto shared = [&](const char *name, int64_t rows, int64_t cols) {
      return place(name, SharedType::get(b.getContext(), rows, cols, dtype, boxes ? SharedType::swizzled : cols + 8));
    };
    auto frag = [&](const char *name, int64_t cols) {
      return place(name, FragType::get(b.getContext(), config.getQTile(), cols, config.getWarps()));
    };
    Q = shared("Q", config.getQTile(), colsQk);
    K = shared("K", config.getKvTile(), colsQk);
    V = shared("V", config.getKvTile(), colsV);
    s = frag("s", config.getKvTile());
    acc = frag("acc", colsV);
    if (config.getHoldQ())
      held = place("held", HeldType::get(b.getContext(), config.getQTile(), colsQk, dtype, config.getWarps()));
    row = place("row", RowsType::get(b.getContext(), config.getQTile(), config.getWarps()));
  }

  Value place(const char *name, Type type) { return PlaceOp::create(b, loc, type, name); }

  /// Blocks that run at the same time should read the same keys. Where all tiles
  /// cost the same, the tiles of a head follow each other. Where later rows see
  /// more, the longest come first, or the last blocks would run alone: the last
  /// tiles of a group of heads (as many as share the L2 cache), then those before.
  void findDenseTile() {
    Index block = Value(BlockIndexOp::create(b, loc));
    Index seqlen = arg("seqlen_q");
    Index tiles = math.named(math.ceilDiv(seqlen, config.getQTile()), "tiles");
    int64_t heads = problem.getHeads();
    Index tile = 0;
    if (growsWithRows()) {
      int64_t together = std::gcd<int64_t>(heads, 8);
      Index turn = math.named(math.floorDiv(block, together), "turn");
      Index head = math.add(math.mul(div(turn, tiles), together), rem(block, together));
      head = math.named(head, "sequence_head");
      tile = math.sub(math.sub(tiles, 1), rem(turn, tiles));
      h = math.named(rem(head, heads), "h");
      batch = math.named(div(head, heads), "b");
    } else {
      Index head = math.named(div(block, tiles), "sequence_head");
      tile = rem(block, tiles);
      h = math.named(rem(head, heads), "h");
      batch = math.named(div(head, heads), "b");
    }
    q0 = math.named(math.mul(tile, config.getQTile()), "q0");
    rows = writeRows = math.named(math.min(math.sub(seqlen, q0), config.getQTile()), "rows");
    lenQ = seqlen;
    first = q0;
  }

  bool growsWithRows() {
    MaskScope none;
    return KeyWalk(problem.getMask(), none).growsWithRows();
  }

  /// Likewise; slots of several sequences, so all heads of a slot together.
  void findPackedTile() {
    Index block = Value(BlockIndexOp::create(b, loc));
    Index slots = math.add(math.add(math.floorDiv(arg("total_q"), config.getQTile()), arg("batch")), 2);
    slots = math.named(slots, "slots");
    Index slot = 0;
    if (growsWithRows()) {
      h = math.named(rem(block, problem.getHeads()), "h");
      slot = math.sub(math.sub(slots, 1), div(block, problem.getHeads()));
    } else {
      h = math.named(div(block, slots), "h");
      slot = rem(block, slots);
    }
    Value offsets = args[problem.getQLayout().getPadded() ? "padded_offsets_q" : "cu_seqlens_q"];
    auto find = FindSequenceOp::create(b, loc, math.value(slot), args["cu_seqlens_q"], offsets, args["batch"],
                                       args["total_q"], config.getQTile());
    batch = find.getB();
    q0 = find.getQ0();
    rows = find.getRows();
    writeRows = find.getWriteRows();
    first = math.named(math.add(find.getFirst(), q0), "row0");
  }

  //===------------------------------------------------------------------===//
  // The computation
  //===------------------------------------------------------------------===//

  void attend(OpBuilder &at) {
    b.setInsertionPoint(at.getInsertionBlock(), at.getInsertionPoint());
    findArrays();
    KeyWalk walk(problem.getMask(), scope);

    // Before the loops: behind them, the compiler would write what follows a loop once for each.
    Value queryRows, keys, values;
    bool repairs = boxes && walk.hidesKeys();
    if (repairs || !boxes) {
      queryRows = rowPointer("q", first, batch, h);
      keys = keyPointer("k");
      values = keyPointer("v");
    }
    Value copied =
        boxes ? copyBox(Q, "q", first, h)
              : CopyAsyncOp::create(b, loc, Q, queryRows, args["q_row"], math.value(rows), problem.getDimQk(), Value());
    ClearOp::create(b, loc, acc);
    ClearOp::create(b, loc, row);
    WaitOp::create(b, loc, copied);
    if (problem.scaleOrDefault() < 0 && !boxes)
      NegateOp::create(b, loc, Q);
    if (held)
      HoldOp::create(b, loc, held, Q);

    Interval queries = {q0, math.add(q0, rows)};
    if (config.getNarrow()) {
      auto own = QueryRowsOp::create(b, loc, math.value(q0), math.value(rows));
      queries = {own.getFirst(), own.getBehind()};
    }
    buildLoop(walk, walk.runs(math, queries, config.getKvTile()), keys, values);

    NormalizeOp::create(b, loc, acc, row);
    Value dst = rowPointer("o", first, batch, h), lse = problem.hasLse() ? lsePointer() : Value();
    StoreOp::create(b, loc, dst, args["o_row"], acc, math.value(rows), math.value(writeRows), problem.getDimV());
    if (lse)
      StoreLseOp::create(b, loc, lse, row, math.value(rows), math.value(writeRows));
    if (repairs) {
      auto repair = RepairOp::create(b, loc, acc, math.value(q0), math.value(rows), math.value(scope.lenK), queryRows,
                                     args["q_row"], keys, args["k_row"], values, args["v_row"], dst, args["o_row"], lse,
                                     problem.getDimQkAttr(), problem.getDimVAttr(),
                                     b.getF64FloatAttr(std::copysign(scaleOfProducts(), problem.scaleOrDefault())));
      buildTests(walk, repair.getBody());
      if (auto modifiers = problem.getModifiers(); !modifiers.empty()) {
        OpBuilder before(repair);
        repair.setScale(
            APFloat(writeScore(repair.getModify(), before, scaleOfProducts(), [&](ScoreScope &scope, Score score) {
              if (problem.scaleOrDefault() < 0)
                score.value = scope.each.neg(score.value);
              for (ScoreModifierInterface modifier : modifiers)
                score = settled(scope.each, modifier.emitScore(scope, score));
              return score;
            })));
      }
    }
  }

  /// Where this block's keys lie and how many there are.
  void findKeys() {
    int64_t group = problem.getHeads() / problem.getKvHeads();
    kvHead = math.named(math.floorDiv(h, group), "kv_head");
    if (problem.getQLayout().isPacked())
      lenQ = math.named(lengthIn("cu_seqlens_q"), "len_q");
    if (problem.getKLayout().isPacked()) {
      firstKey = load(args[problem.getKLayout().getPadded() ? "padded_offsets_kv" : "cu_seqlens_kv"], batch);
      firstKey = math.named(firstKey, "first_key");
      scope.lenK = math.named(lengthIn("cu_seqlens_kv"), "len_kv");
    } else {
      firstKey = 0;
      scope.lenK = arg("seqlen_kv");
    }
    scope.lenQ = lenQ;
    scope.batch = batch;
    scope.head = h;
  }

  /// The run-time arrays that masks ask about.
  void findArrays() {
    // Rows of the arrays that belong to this sequence; positions in them are 32 bits.
    llvm::StringMap<Value> arrays;
    for (const MaskOperand &array : distinctOperands(problem.getMask())) {
      if (array.shape == OperandShape::PerSequence)
        continue;
      Value start = mul(wide(batch), wide(extentOf(array)));
      arrays[array.name] = AdvanceOp::create(b, loc, args[array.name], start);
    }
    scope.load = [this, arrays, operands = problem.getMask().operands()](unsigned operand, Index position) {
      const MaskOperand &array = operands[operand];
      if (array.shape == OperandShape::PerSequence)
        return load(args[array.name], batch);
      position = math.min(position, math.sub(extentOf(array), 1)); // tiles reach over the end
      return Index(Value(LoadOp::create(b, loc, arrays.lookup(array.name), math.value(position), /*uniform=*/false)));
    };
  }

  Index extentOf(const MaskOperand &array) {
    return arg(array.shape == OperandShape::PerQuery ? "seqlen_q" : "seqlen_kv");
  }

  /// Near its row's last key, scores are the largest: the walk begins there. Not over boxes
  /// of packed keys, of which only a walk's last may reach into the next sequence.
  bool walksBackward() {
    return !(boxes && problem.getKLayout().isPacked()) &&
           llvm::any_of(problem.getModifiers(), [&](ScoreModifierInterface modifier) {
             std::optional<Diagonal> peak = modifier.peak();
             return peak && reachOf(problem.getMask(), *peak).value_or(1) <= 0;
           });
  }

  /// The same walk from its end: tile j is number -1 - j.
  static SmallVector<KeyRun> reversed(IndexMath &math, ArrayRef<KeyRun> runs) {
    SmallVector<KeyRun> result;
    for (const KeyRun &run : llvm::reverse(runs)) {
      KeyRun &back = result.emplace_back();
      for (Index bound : llvm::reverse(run.bounds))
        back.bounds.push_back(math.sub(0, bound));
      back.tests.assign(run.tests.rbegin(), run.tests.rend());
    }
    return result;
  }

  void buildLoop(KeyWalk &walk, ArrayRef<KeyRun> forward, Value keys, Value values) {
    bool backward = walksBackward();
    SmallVector<KeyRun> runs = backward ? reversed(math, forward) : SmallVector<KeyRun>(forward);
    SmallVector<Value> bounds;
    SmallVector<Attribute> segments;
    for (const KeyRun &run : runs) {
      for (Index bound : run.bounds)
        bounds.push_back(math.value(bound));
      SmallVector<Attribute> tests;
      for (ArrayRef<int64_t> segment : run.tests)
        tests.push_back(b.getDenseI64ArrayAttr(segment));
      segments.push_back(b.getArrayAttr(tests));
    }
    if (segments.empty())
      return; // no row sees any key
    auto loop =
        KvLoopOp::create(b, loc, TypeRange(), bounds, ValueRange(), b.getArrayAttr(segments), /*one_body=*/false);
    Block &body = loop.getBody().emplaceBlock();
    body.addArguments({b.getI32Type(), b.getI32Type(), b.getI1Type()}, {loc, loc, loc});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&body);

    Index tile = Index(body.getArgument(0));
    if (backward)
      tile = math.sub(-1, tile);
    Index k0 = math.named(math.mul(tile, config.getKvTile()), "k0");
    auto left = [&] { return math.value(math.sub(scope.lenK, k0)); };
    auto copy = [&](Value place, StringRef tensor, Value base, int64_t dim) -> Value {
      if (boxes)
        return copyBox(place, tensor, math.add(firstKey, k0), kvHead);
      Value stride = args[(tensor + "_row").str()];
      Value src = AdvanceOp::create(b, loc, base, mul(wide(k0), stride));
      return CopyAsyncOp::create(b, loc, place, src, stride, left(), dim, Value());
    };
    auto wait = [&](Value token) { WaitOp::create(b, loc, token); };

    wait(copy(K, "k", keys, problem.getDimQk()));
    bool negated = boxes && problem.scaleOrDefault() < 0;
    wait(MmaQkOp::create(b, loc, s, held ? held : Q, K, negated).getToken());
    double scale = modifyScores(loop, k0);
    auto keep = KeepOp::create(b, loc, s, math.value(q0), math.value(k0));
    bool rising = !backward &&
                  llvm::any_of(problem.getModifiers(), [](ScoreModifierInterface modifier) { return modifier.peak(); });
    SoftmaxStepOp::create(b, loc, s, row, acc, b.getF64FloatAttr(scale), rising ? b.getUnitAttr() : UnitAttr());
    wait(copy(V, "v", values, problem.getDimV()));
    if (boxes && problem.getKLayout().isPacked())
      ZeroRowsOp::create(b, loc, V, left()); // what lies behind a packed sequence is somebody else's
    wait(MmaPvOp::create(b, loc, acc, s, V, /*guarded=*/!boxes, Value()).getToken());
    YieldOp::create(b, loc, ValueRange());
    buildTests(walk, keep.getBody());
  }

  /// An op for each score modifier; returns by what scores are still to be multiplied.
  double modifyScores(KvLoopOp loop, Index k0) {
    double factor = scaleOfProducts();
    OpBuilder before(loop);
    for (ScoreModifierInterface modifier : problem.getModifiers()) {
      double within = modifier.smallBelow(factor);
      auto op = ModifyOp::create(b, loc, s, math.value(q0), math.value(k0),
                                 within > 0 ? b.getF64FloatAttr(within) : FloatAttr());
      if (within > 0)
        writeScore(op.getSmall(), before, factor,
                   [&](ScoreScope &scope, Score score) { return modifier.emitSmallScore(scope, score); });
      factor = writeScore(op.getBody(), before, factor,
                          [&](ScoreScope &scope, Score score) { return modifier.emitScore(scope, score); });
    }
    return factor;
  }

  /// The region of a score: what `emit` makes of the product, which is to be multiplied
  /// by `factor`. Returns by what the result is.
  double writeScore(Region &region, OpBuilder &before, double factor,
                    llvm::function_ref<Score(ScoreScope &, Score)> emit) {
    Block &block = region.emplaceBlock();
    Type i32 = b.getI32Type(), f32 = b.getF32Type();
    block.addArguments({f32, i32, i32, i32, f32}, SmallVector<Location>(5, loc));
    OpBuilder inside = OpBuilder::atBlockEnd(&block);
    ScoreScope score = {scope,
                        int64_t(problem.getHeads()),
                        FloatMath(before, loc),
                        FloatMath(inside, loc),
                        Index(block.getArgument(1)),
                        Index(block.getArgument(2)),
                        Index(block.getArgument(3)),
                        block.getArgument(4),
                        [&](const ScoreOperand &operand) -> Value { // per head
                          return LoadOp::create(before, loc, b.getF32Type(), args[operand.name], math.value(h), false);
                        },
                        [&](Diagonal diagonal) { return reachOf(problem.getMask(), diagonal); }};
    Score result = emit(score, {block.getArgument(0), factor});
    SmallVector<Value> parts = {result.value};
    if (result.times || result.offset)
      parts.append({result.times ? result.times : score.each.constant(1),
                    result.offset ? result.offset : score.each.constant(0)});
    YieldOp::create(inside, loc, parts);
    return result.factor;
  }

  /// The region of an element test: the conditions that `walk` numbers.
  void buildTests(KeyWalk &walk, Region &region) {
    OpBuilder::InsertionGuard guard(b);
    Block &test = region.emplaceBlock();
    test.addArguments({b.getI32Type(), b.getI32Type()}, {loc, loc});
    b.setInsertionPointToStart(&test);
    SmallVector<Value> kept;
    for (Cond cond : walk.tests(math, Index(test.getArgument(0)), Index(test.getArgument(1))))
      kept.push_back(math.value(cond));
    YieldOp::create(b, loc, kept);
  }

  /// The place's rows of a head, from `row` (of the sequence, or of all tokens when packed) on.
  Value copyBox(Value place, StringRef tensor, Index row, Index head) {
    Index sequence = args.contains((tensor + "_batch").str()) ? batch : Index(0);
    return CopyBoxOp::create(b, loc, place, args[(tensor + "_map").str()], math.value(row), math.value(head),
                             math.value(sequence));
  }

  /// Positive: the sign is in Q by now. A scale of 0 makes every product 0, and
  /// so does the least float; but a score of -inf has to stay one.
  double scaleOfProducts() {
    double scale = std::abs(problem.scaleOrDefault());
    return scale > 0 ? scale : 0x1p-149;
  }

  void storePadding(OpBuilder &at) {
    b.setInsertionPoint(at.getInsertionBlock(), at.getInsertionPoint());
    StorePaddingOp::create(b, loc, rowPointer("o", first, batch, h), args["o_row"], math.value(writeRows),
                           problem.getDimV());
    if (problem.hasLse())
      StorePaddingOp::create(b, loc, lsePointer(), wide(Index(1)), math.value(writeRows), 1);
  }

  //===------------------------------------------------------------------===//
  // Arithmetic
  //===------------------------------------------------------------------===//

  Index arg(StringRef name) { return Index(args[name]); }
  Index div(Index a, Index d) {
    if (d.isConstant())
      return math.floorDiv(a, d.getNumber());
    return Value(arith::DivUIOp::create(b, loc, math.value(a), math.value(d)));
  }
  Index rem(Index a, Index d) { return Value(arith::RemUIOp::create(b, loc, math.value(a), math.value(d))); }
  Value wide(Index a) { return arith::ExtSIOp::create(b, loc, b.getI64Type(), math.value(a)); }
  Value mul(Value a, Value c) { return arith::MulIOp::create(b, loc, a, c); }
  Value add(Value a, Value c) { return arith::AddIOp::create(b, loc, a, c); }
  Index load(Value array, Index at) { return Value(LoadOp::create(b, loc, array, math.value(at), /*uniform=*/true)); }
  /// NOTE: a batch of 0 has slots too (its padding), but one prefix sum only.
  Index lengthIn(StringRef prefixSums) {
    Index behind = math.min(math.add(batch, 1), arg("batch"));
    return math.sub(load(args[prefixSums], behind), load(args[prefixSums], batch));
  }

  /// The row `row` (of the sequence, or of all tokens when packed) of a head.
  Value rowPointer(StringRef tensor, Index row, Index batch, Index head) {
    Value offset = mul(wide(head), args[(tensor + "_head").str()]);
    if (!row.is(0))
      offset = add(mul(wide(row), args[(tensor + "_row").str()]), offset);
    if (Value stride = args.lookup((tensor + "_batch").str()))
      offset = add(mul(wide(batch), stride), offset);
    Location named = NameLoc::get(b.getStringAttr(tensor + "_rows"), loc);
    return AdvanceOp::create(b, named, args[tensor], offset);
  }

  /// The first key of the sequence.
  Value keyPointer(StringRef tensor) { return rowPointer(tensor, firstKey, batch, kvHead); }

  Value lsePointer() {
    Value offset = add(mul(wide(h), args["lse_head"]), wide(first));
    if (Value stride = args.lookup("lse_batch"))
      offset = add(mul(wide(batch), stride), offset);
    return AdvanceOp::create(b, loc, args["lse"], offset);
  }

  ProblemOp problem;
  ConfigAttr config;
  bool boxes; ///< tiles are copied as boxes of tensors, by their maps
  OpBuilder b;
  Location loc;
  IndexMath math;
  llvm::StringMap<Value> args;
  Value Q, K, V, s, acc, row, held;
  Index batch = 0, h = 0, kvHead = 0;
  Index q0 = 0;        ///< the tile's first row in its sequence
  Index first = 0;     ///< the same as a row of the tensor
  Index rows = 0;      ///< rows to compute
  Index writeRows = 0; ///< rows to write
  Index lenQ = 0, firstKey = 0;
  MaskScope scope;
};

} // namespace

void attn::writeForward(ProblemOp problem, KernelOp kernel, ConfigAttr config) {
  ForwardKernel(problem, kernel, config).build();
}
