// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace attn::plan;

#include "attn/Dialect/Plan/IR/PlanDialect.cpp.inc"
#include "attn/Dialect/Plan/IR/PlanEnums.cpp.inc"
#include "attn/Dialect/Plan/IR/PlanInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Plan/IR/PlanTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Plan/IR/PlanAttrs.cpp.inc"
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
static LogicalResult verifyUses(Operation &op, Value value) {
  if (isa<ArrivalType>(value.getType()))
    return llvm::count_if(value.getUsers(), [](Operation *user) { return isa<WaitOp>(user); }) == 1
               ? success()
               : op.emitOpError("expected one `plan.wait` for what arrives");
  if ((isRows(value.getType(), Kind::partial) || isRows(value.getType(), Kind::dq)) && !value.hasOneUse())
    return op.emitOpError("expected one use of ") << value.getType();
  return value.use_empty() ? op.emitOpError("expected a use of these rows") : success();
}

LogicalResult DefOp::verifySymbolUses(SymbolTableCollection &symbols) { // C4
  Operation *problem = symbols.lookupNearestSymbolFrom(*this, getOfAttr());
  return problem && problem->getName().getStringRef() == "attn.problem"
             ? success()
             : emitOpError("expected the name of an `attn.problem` of the module, got: ") << getOfAttr();
}

LogicalResult DefOp::verifyRegions() {
  constexpr int64_t most = int64_t(1) << 16;
  if (int64_t(getRanks()) < 1 || int64_t(getRanks()) > most) // C1
    return emitOpError() << "expected from 1 to " << most << " ranks, got: " << int64_t(getRanks());
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
                         << " rows as the last step";
  for (Operation &op : body) {
    if (isa<StoreOp>(op) && &op != &body.back())
      return op.emitOpError("expected one `plan.store`, as the last step");
    for (Value value : op.getResults())
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

LogicalResult ExchangeOp::verify() {
  int64_t ranks = (*this)->getParentOfType<DefOp>().getRanks(), group = getWithin().value_or(ranks);
  if (group < 1 || ranks % group) // C1
    return emitOpError() << "expected groups whose size divides " << ranks << " ranks, got: within(" << group << ")";
  int64_t offset = getOffset();
  if (offset == 0 || offset <= -group || offset >= group) // C2
    return emitOpError() << "expected an offset to another of " << group << " ranks, got: " << offset;
  bool onward = getWhich() == Which::onward;
  int64_t hops = getHops().value_or(0), back = group / std::gcd(group, offset);
  if (onward != getHops().has_value() || (onward && (hops < 1 || hops >= back))) // C3
    return emitOpError() << "expected `hops` from 1 to " << back - 1 << " with rows onward, and no others";
  Kind kind = cast<RowsType>(getRows().getType()).getKind();
  if (kind != Kind::kv && (kind != Kind::dkv || getWhich() == Which::needed)) // C4
    return emitOpError() << "expected rows of kv" << (getWhich() == Which::needed ? "" : " or dkv")
                         << ", got: " << stringifyKind(kind);
  if (getUnless() && !getUnless().getDefiningOp<ExchangeOp>())
    return emitOpError("expected `unless` of what arrives in a `plan.exchange`");
  return success();
}

LogicalResult GradsOp::verify() {
  return getDkv().size() == getKeys().size() // C1
             ? success()
             : emitOpError() << "expected as many results of dkv as keys (" << getKeys().size()
                             << "), got: " << getDkv().size();
}
