// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.problem -> tile.kernel. The kernel is written here once, plainly: who am
// I, load Q, walk over the key tiles, write O and LSE. Everything that depends
// on the mask comes from KeyWalk; everything clever is a later pass.
//
#include "KernelArguments.h"
#include "KeyWalk.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOTILE
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Builds the body of one kernel.
class ForwardKernel {
public:
  ForwardKernel(ProblemOp problem, KernelOp kernel, ConfigAttr config)
      : problem(problem), config(config), b(OpBuilder::atBlockEnd(&kernel.getBody().front())), loc(problem.getLoc()),
        math(b, loc) {
    for (auto [name, arg] :
         llvm::zip(kernel.getArgNames().getAsValueRange<StringAttr>(), kernel.getBody().getArguments()))
      args[name] = arg;
  }

  void build() {
    declarePlaces();
    if (!problem.getQLayout().isPacked()) {
      findDenseTile();
      attend(b);
      return;
    }
    findPackedTile();
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
    // so eight consecutive rows start in eight different groups of banks.
    auto shared = [&](const char *name, int64_t rows, int64_t cols) {
      return place(name, SharedType::get(b.getContext(), rows, cols, dtype, cols + 8));
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

  Value place(const char *name, Type type) { return PlaceOp::create(b, loc, type, name, IntegerAttr()); }

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
    MaskScope scope = findKeys();
    KeyWalk walk(problem.getMask(), scope);

    Value src = rowPointer("q", first, batch, h);
    Value copied = CopyAsyncOp::create(b, loc, Q, src, args["q_row"], math.value(rows), problem.getDimQk(), Value());
    ClearOp::create(b, loc, acc);
    ClearOp::create(b, loc, row);
    WaitOp::create(b, loc, copied);
    if (problem.scaleOrDefault() < 0)
      NegateOp::create(b, loc, Q);
    if (held)
      HoldOp::create(b, loc, held, Q);

    Value keys = rowPointer("k", firstKey, batch, kvHead), values = rowPointer("v", firstKey, batch, kvHead);
    Interval queries = {q0, math.add(q0, rows)};
    buildLoop(walk, scope, walk.runs(math, queries, config.getKvTile()), keys, values);

    NormalizeOp::create(b, loc, acc, row);
    StoreOp::create(b, loc, rowPointer("o", first, batch, h), args["o_row"], acc, math.value(rows),
                    math.value(writeRows), problem.getDimV());
    if (problem.hasLse())
      StoreLseOp::create(b, loc, lsePointer(), row, math.value(rows), math.value(writeRows));
  }

  /// Where this block's keys lie and how many there are; what masks ask about.
  MaskScope findKeys() {
    int64_t group = problem.getHeads() / problem.getKvHeads();
    kvHead = math.named(math.floorDiv(h, group), "kv_head");
    MaskScope scope;
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
    return scope;
  }

  Index extentOf(const MaskOperand &array) {
    return arg(array.shape == OperandShape::PerQuery ? "seqlen_q" : "seqlen_kv");
  }

  void buildLoop(KeyWalk &walk, const MaskScope &scope, ArrayRef<KeyRun> runs, Value keys, Value values) {
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
    auto loop = KvLoopOp::create(b, loc, TypeRange(), bounds, ValueRange(), b.getArrayAttr(segments));
    Block &body = loop.getBody().emplaceBlock();
    body.addArguments({b.getI32Type(), b.getI32Type(), b.getI1Type()}, {loc, loc, loc});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&body);

    Index k0 = math.named(math.mul(Index(body.getArgument(0)), config.getKvTile()), "k0");
    auto copy = [&](Value place, Value base, StringRef stride, int64_t dim) -> Value {
      Value src = AdvanceOp::create(b, loc, base, mul(wide(k0), args[stride]));
      Value left = math.value(math.sub(scope.lenK, k0));
      return CopyAsyncOp::create(b, loc, place, src, args[stride], left, dim, Value());
    };
    auto wait = [&](Value token) { WaitOp::create(b, loc, token); };

    wait(copy(K, keys, "k_row", problem.getDimQk()));
    wait(MmaQkOp::create(b, loc, s, held ? held : Q, K).getToken());
    auto keep = KeepOp::create(b, loc, s, math.value(q0), math.value(k0));
    SoftmaxStepOp::create(b, loc, s, row, acc, b.getF64FloatAttr(scaleOfProducts()));
    wait(copy(V, values, "v_row", problem.getDimV()));
    wait(MmaPvOp::create(b, loc, acc, s, V, /*guarded=*/true, Value()).getToken());
    YieldOp::create(b, loc, ValueRange());

    Block &test = keep.getBody().emplaceBlock();
    test.addArguments({b.getI32Type(), b.getI32Type()}, {loc, loc});
    b.setInsertionPointToStart(&test);
    SmallVector<Value> kept;
    for (Cond cond : walk.tests(math, Index(test.getArgument(0)), Index(test.getArgument(1))))
      kept.push_back(math.value(cond));
    YieldOp::create(b, loc, kept);
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
  Index lengthIn(StringRef prefixSums) {
    return math.sub(load(args[prefixSums], math.add(batch, 1)), load(args[prefixSums], batch));
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

  Value lsePointer() {
    Value offset = add(mul(wide(h), args["lse_head"]), wide(first));
    if (Value stride = args.lookup("lse_batch"))
      offset = add(mul(wide(batch), stride), offset);
    return AdvanceOp::create(b, loc, args["lse"], offset);
  }

  ProblemOp problem;
  ConfigAttr config;
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
};

struct ConvertAttnToTilePass : attn::impl::ConvertAttnToTileBase<ConvertAttnToTilePass> {
  using Base::Base;

  void runOnOperation() final {
    if (target != "cpu" && target != "sm_80") {
      getOperation().emitError("expected target `cpu` or `sm_80`, got: ") << target.getValue();
      return signalPassFailure();
    }
    if (target != "cpu" && !llvm::is_contained({80, 86, 87, 89, 90, 100, 120}, arch.getValue())) {
      getOperation().emitError("expected arch 80, 86, 87, 89, 90, 100 or 120, got: ") << arch.getValue();
      return signalPassFailure();
    }
    if (fallback < 0) {
      getOperation().emitError("expected fallback not to be negative, got: ") << fallback.getValue();
      return signalPassFailure();
    }
    for (ProblemOp problem : llvm::make_early_inc_range(getOperation().getOps<ProblemOp>()))
      if (failed(convert(problem)))
        signalPassFailure();
  }

  LogicalResult convert(ProblemOp problem) {
    ConfigAttr config = chooseConfig(problem, target == "cpu" ? 0 : arch.getValue());
    for (int64_t i = 0; i < fallback; ++i)
      if (ConfigAttr next = attn::fallbackOf(config))
        config = next;
    if (Attribute given = problem.getConfigAttr()) {
      config = dyn_cast<ConfigAttr>(given);
      if (!config)
        return problem.emitOpError("expected a #tile.config as its config, got: ") << given;
    }
    if (target == "cpu" && config.getHoldQ()) // a CPU has no registers to hold Q in
      config = ConfigAttr::get(config.getContext(), config.getQTile(), config.getKvTile(), config.getWarps(),
                               config.getBlocks(), false, config.getOneBody());
    OpBuilder b(problem);
    KernelArguments arguments(problem);
    SmallVector<Attribute> names;
    SmallVector<Type> types;
    for (auto &[name, type] : arguments.list) {
      names.push_back(b.getStringAttr(name));
      types.push_back(type);
    }
    auto kernel = KernelOp::create(b, problem.getLoc(), problem.getSymName(), b.getArrayAttr(names), target,
                                   problem.getQLayout().isPacked(), problem.getHeads(), config, IntegerAttr());
    Block &body = kernel.getBody().emplaceBlock();
    body.addArguments(types, SmallVector<Location>(types.size(), problem.getLoc()));
    ForwardKernel(problem, kernel, config).build();
    problem.erase();
    return success();
  }
};

} // namespace
