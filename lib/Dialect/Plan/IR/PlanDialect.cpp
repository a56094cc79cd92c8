// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::plan;

#include "attn/Dialect/Plan/IR/PlanDialect.cpp.inc"
#include "attn/Dialect/Plan/IR/PlanEnums.cpp.inc"
#include "attn/Dialect/Plan/IR/PlanInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Plan/IR/PlanTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Plan/IR/PlanAttrs.cpp.inc"

/// One type for all parts and what is made of them.
static ParseResult parseCommonType(OpAsmParser &parser, SmallVectorImpl<Type> &parts, Type &joined,
                                   const SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands) {
  if (parser.parseType(joined))
    return failure();
  parts.assign(operands.size(), joined);
  return success();
}
static void printCommonType(OpAsmPrinter &printer, Operation *, TypeRange, Type joined, OperandRange) {
  printer << joined;
}

#define GET_OP_CLASSES
#include "attn/Dialect/Plan/IR/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Plan/IR/PlanTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Plan/IR/PlanAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Plan/IR/PlanOps.cpp.inc"
      >();
}

bool attn::plan::isRows(Type type, Kind kind) {
  auto rows = dyn_cast<RowsType>(type);
  return rows && rows.getKind() == kind;
}

ValueRange attn::plan::queriesOf(Operation *step) {
  if (auto attend = dyn_cast<AttendOp>(step))
    return attend.getQueries();
  if (auto grads = dyn_cast<GradsOp>(step))
    return grads.getQueries();
  return {};
}

ValueRange attn::plan::keysOf(Operation *step) {
  if (auto attend = dyn_cast<AttendOp>(step))
    return attend.getKeys();
  if (auto grads = dyn_cast<GradsOp>(step))
    return grads.getKeys();
  return {};
}

std::optional<std::string> attn::plan::distribute(ShardingInterface sharding, const Sequences &sequences,
                                                  std::vector<Shard> &shards) {
  if (std::optional<std::string> wrong = checkSequences(sequences))
    return wrong;
  if (std::optional<std::string> refused = sharding.distribute(sequences, shards))
    return refused;
  return checkShards(sequences, shards);
}

/// C3: what arrives is waited for once, partial results and dq go on once, and no rows are for nothing.
static LogicalResult verifyUses(Operation &op, OpResult value) {
  const unsigned number = value.getResultNumber();
  if (isa<ArrivalType>(value.getType())) {
    int64_t waits = llvm::count_if(value.getUsers(), [](Operation *user) { return isa<WaitOp>(user); });
    return waits == 1 ? success() : op.emitOpError("expected one `plan.wait` for what arrives, got: ") << waits;
  }
  if ((isRows(value.getType(), Kind::partial) || isRows(value.getType(), Kind::dq)) && !value.hasOneUse())
    return op.emitOpError("expected one use of result ")
           << number << ", of " << value.getType() << ", got: " << llvm::range_size(value.getUses());
  return value.use_empty() ? op.emitOpError("expected a use of result ") << number << ", got: none" : success();
}

LogicalResult DefOp::verifySymbolUses(SymbolTableCollection &symbols) { // C4
  Operation *problem = symbols.lookupNearestSymbolFrom(*this, getOfAttr());
  return problem && problem->getName().getStringRef() == "attn.problem"
             ? success()
             : emitOpError("expected the name of an `attn.problem` of the module, got: ") << getOfAttr();
}

LogicalResult DefOp::verifyRegions() {
  if (int64_t(getRanks()) < 1 || int64_t(getRanks()) > mostRanks) // C1
    return emitOpError() << "expected from 1 to " << mostRanks << " ranks, got: " << int64_t(getRanks());
  Block &body = getBody().front();
  if (body.empty()) // to be filled by `plan-make-steps`
    return success();
  for (Operation &op : body)
    if (!isa_and_nonnull<PlanDialect>(op.getDialect())) // C4
      return op.emitOpError("expected steps of the `plan` dialect in a plan");
  auto store = dyn_cast<StoreOp>(body.back());
  SmallVector<Kind> expected =
                        getBackward() ? SmallVector<Kind>{Kind::dq, Kind::dkv} : SmallVector<Kind>{Kind::partial},
                    found;
  if (store)
    for (Value rows : store.getRows())
      found.push_back(cast<RowsType>(rows.getType()).getKind());
  if (found != expected) // C2
    return emitOpError() << "expected a `plan.store` of " << (getBackward() ? "dq and dkv" : "partial")
                         << " rows as the last step, got: " << body.back().getName();
  for (Operation &op : body) {
    if (isa<StoreOp>(op) && &op != &body.back())
      return op.emitOpError("expected one `plan.store`, as the last step");
    for (OpResult value : op.getResults())
      if (failed(verifyUses(op, value)))
        return failure();
  }
  return success();
}

LogicalResult LocalOp::verify() {
  Kind kind = cast<RowsType>(getRows().getType()).getKind();
  return kind == Kind::q || kind == Kind::kv // C1
             ? success()
             : emitOpError() << "expected rows of q or kv, got: " << stringifyKind(kind);
}

static LogicalResult verifyGroups(Operation *op, int64_t group) {
  int64_t ranks = op->getParentOfType<DefOp>().getRanks();
  if (group < 1 || ranks % group)
    return op->emitOpError() << "expected groups whose size divides " << ranks << " ranks, got: within(" << group
                             << ")";
  return success();
}

static LogicalResult verifyLocal(Operation *op, Value rows) {
  return rows.getDefiningOp<LocalOp>() ? success()
                                       : op->emitOpError("expected parts of the heads of a `plan.local` only");
}

LogicalResult HeadsOp::verify() {
  if (failed(verifyGroups(*this, getWithin()))) // C2
    return failure();
  return verifyLocal(*this, getRows()); // C1
}

LogicalResult ExchangeOp::verify() {
  int64_t group = getWithin().value_or((*this)->getParentOfType<DefOp>().getRanks());
  if (failed(verifyGroups(*this, group))) // C1
    return failure();
  int64_t offset = getOffset();
  if (offset == 0 || offset <= -group || offset >= group) // C2
    return emitOpError() << "expected an offset to another of " << group << " ranks, got: " << offset;
  Kind kind = cast<RowsType>(getRows().getType()).getKind();
  if (getWhich() != Which::all && kind != Kind::kv) // C3
    return emitOpError() << "expected rows of kv where some are sent, got: " << stringifyKind(kind);
  if (Value condition = getIfSent() ? getIfSent() : getUnlessSent()) {
    if (kind != Kind::dkv)
      return emitOpError() << "expected rows of dkv where `if` or `unless` decides, got: " << stringifyKind(kind);
    if (!condition.getDefiningOp<ExchangeOp>() || (getIfSent() && getUnlessSent()))
      return emitOpError("expected one `if` or `unless` of what arrives in a `plan.exchange`");
  }
  if (!getByHeads())
    return success();
  if (getWhich() != Which::all) // C4
    return emitOpError("expected all rows where `heads` are sent");
  return verifyLocal(*this, getRows());
}

/// O and dQ of each of the queries.
static LogicalResult verifyStep(Operation *step, size_t queries, size_t keys, size_t before) {
  if (queries == 0 || keys == 0) // C2
    return step->emitOpError("expected queries and keys, got: none");
  if (before != 0 && before != queries) // C1
    return step->emitOpError() << "expected a result before for each of " << queries << " queries, got: " << before;
  return success();
}

LogicalResult AttendOp::verify() {
  return verifyStep(*this, getQueries().size(), getKeys().size(), getBefore().size());
}

LogicalResult AttendOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  types.assign(adaptor.getQueries().size(), RowsType::get(context, Kind::partial));
  return success();
}

LogicalResult GradsOp::verify() { return verifyStep(*this, getQueries().size(), getKeys().size(), getBefore().size()); }

LogicalResult GradsOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  types.assign(adaptor.getQueries().size(), RowsType::get(context, Kind::dq));
  types.append(adaptor.getKeys().size(), RowsType::get(context, Kind::dkv));
  return success();
}

LogicalResult JoinHeadsOp::verify() {
  for (Value part : getParts()) // C1
    if (part.getType() != getJoined().getType())
      return emitOpError() << "expected parts of " << getJoined().getType() << ", got: " << part.getType();
  Kind kind = cast<RowsType>(getJoined().getType()).getKind();
  return kind == Kind::partial || kind == Kind::dq
             ? success()
             : emitOpError() << "expected rows of partial or dq, got: " << stringifyKind(kind);
}
