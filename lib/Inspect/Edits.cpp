// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Edits.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace attn;

static Edit renamed(Operation *op) {
  std::string name;
  for (char c : SymbolTable::getSymbolName(op).getValue())
    name += llvm::isAlnum(c) ? c : '_';
  return {{{"sym_name", StringAttr::get(op->getContext(), isIdentifier(name) ? name : "p" + name)}}};
}

/// What one may change in a problem, towards what is usual.
static std::vector<Edit> editsOf(ProblemOp problem) {
  Builder b(problem.getContext());
  auto i64 = [&](int64_t n) { return b.getI64IntegerAttr(n); };
  int64_t heads = problem.getHeads(), kvHeads = problem.getKvHeads();
  std::vector<Edit> edits;
  auto edit = [&](std::initializer_list<std::pair<StringRef, Attribute>> attributes) { edits.push_back({attributes}); };
  for (int64_t most : {512, 256}) {
    auto dim = [&](int64_t n) { return i64(std::clamp<int64_t>(n > 0 ? llvm::alignTo(n, 8) : 8, 8, most)); };
    edit({{"dim_qk", dim(problem.getDimQk())}, {"dim_v", dim(problem.getDimV())}});
  }
  if (kvHeads > 0 && heads > 0)
    edit({{"heads", i64(std::min<int64_t>(llvm::alignTo(heads, kvHeads), 65536))}});
  edit({{"kv_heads", i64(heads)}});
  if (int64_t masks = headsOf(problem.getMask()); heads > 0 && kvHeads > 0 && masks > 1) {
    int64_t more = llvm::alignTo(heads, masks), evenly = llvm::alignTo(heads, std::lcm(masks, kvHeads));
    if (kvHeads == heads)
      edit({{"heads", i64(more)}, {"kv_heads", i64(more)}});
    edit({{"heads", i64(std::min<int64_t>(evenly, 65536))}});
  }
  edit({{"dtype", TypeAttr::get(b.getBF16Type())}});
  edit({{"o_layout", problem.getQLayout()}});
  edit({{"q_layout", problem.getOLayout()}});
  edit({{"v_layout", problem.getKLayout()}});
  edit({{"k_layout", problem.getVLayout()}});
  edit({{"schedule", {}}, {"schedule_reason", {}}});
  edit({{"no_lse", {}}});
  edit({{"expected_seqlen_q", {}}, {"expected_seqlen_kv", {}}});
  for (auto [q, kv] : {std::pair("expected_seqlen_q", "expected_seqlen_kv"), {"max_seqlen_q", "max_seqlen_kv"}})
    if (auto m = problem->getAttrOfType<IntegerAttr>(q), n = problem->getAttrOfType<IntegerAttr>(kv); m && n)
      edit({{q, i64(std::max<int64_t>(m.getInt(), 1))}, {kv, i64(std::max<int64_t>(n.getInt(), 1))}});
  edit({{"max_seqlen_q", {}}, {"max_seqlen_kv", {}}});
  for (const char *clause : {"kv_list_capacity", "segments", "tiles", "scale", "sink"})
    edit({{clause, {}}});
  edit({{"dropout", {}}, {"seed", {}}});
  if (std::optional<ArrayAttr> score = problem.getScore())
    for (size_t i = score->size(); i-- > 0;) {
      SmallVector<Attribute> fewer(score->getValue());
      fewer.erase(fewer.begin() + i);
      edit({{"score", b.getArrayAttr(fewer)}});
    }
  edit({{"mask", canonicalMask(problem.getMask())}});
  for (MaskInterface part : problem.getMask().conjuncts())
    edit({{"mask", part}});
  edits.push_back(renamed(problem));
  return edits;
}

/// Of a backward pass: its own clauses, and then what its problem may change.
static std::vector<Edit> editsOf(BackwardOp backward, ModuleOp file) {
  std::vector<Edit> edits = {{{{"schedule", {}}, {"schedule_reason", {}}}}};
  if (std::optional<ArrayAttr> names = backward.getRequiresGrad())
    for (size_t i = 0; names->size() > 1 && i < names->size(); ++i) {
      SmallVector<Attribute> fewer(names->getValue());
      fewer.erase(fewer.begin() + i);
      edits.push_back({{{"requires_grad", ArrayAttr::get(backward.getContext(), fewer)}}});
    }
  if (auto problem = file.lookupSymbol<ProblemOp>(backward.getProblem()); problem && hasAttributes(problem)) {
    for (Edit &edit : editsOf(problem))
      edits.push_back({std::move(edit.attributes), /*ofProblem=*/true});
  } else {
    for (auto other : file.getOps<ProblemOp>())
      if (other.getSymNameAttr())
        edits.push_back({{{"problem", FlatSymbolRefAttr::get(other.getSymNameAttr())}}});
  }
  edits.push_back({{{"requires_grad", {}}}});
  edits.push_back(renamed(backward));
  return edits;
}

static std::vector<Edit> editsOf(SegmentsOp segments) {
  Builder b(segments.getContext());
  std::vector<Edit> edits = {
      {{{"segments", b.getI64IntegerAttr(std::clamp<int64_t>(segments.getSegments(), 1, 2048))}}},
      {{{"mask", canonicalMask(segments.getMask())}}},
      {{{"mask", CausalMaskAttr::get(segments.getContext(), Diagonal::top_left)}}}};
  if (std::optional<int64_t> tiles = segments.getTiles())
    edits.push_back({{{"tiles", b.getI64IntegerAttr(
                                    std::clamp<int64_t>(llvm::alignTo(std::max<int64_t>(*tiles, 16), 16), 16, 256))}}});
  edits.push_back(renamed(segments));
  return edits;
}

std::vector<Edit> attn::editsOf(Operation *pass, ModuleOp file) {
  return llvm::TypeSwitch<Operation *, std::vector<Edit>>(pass)
      .Case([&](BackwardOp backward) { return ::editsOf(backward, file); })
      .Case<ProblemOp, SegmentsOp>([](auto op) { return ::editsOf(op); })
      .Default([](Operation *other) { return std::vector<Edit>{renamed(other)}; });
}

bool attn::hasAttributes(Operation *pass) {
  ScopedDiagnosticHandler quiet(pass->getContext(), [](Diagnostic &) { return success(); });
  return llvm::TypeSwitch<Operation *, bool>(pass)
      .Case<ProblemOp, BackwardOp, SegmentsOp>([](auto op) { return succeeded(op.verifyInvariantsImpl()); })
      .Default([](Operation *other) { return succeeded(other->getName().verifyInvariants(other)); });
}
