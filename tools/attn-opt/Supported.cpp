// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Support is asked of the verifiers and passes themselves: a problem is supported for a
// target if it can be lowered and printed for it. What is near to one that is not is found by
// trying changes, one and then two of them, until the same code says yes.
//
#include "Questions.h"
#include "attn/API/Compile.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace attn;
namespace cl = llvm::cl;

namespace {

/// Attributes to set, or, null, to leave out.
using Edit = SmallVector<std::pair<StringRef, Attribute>, 2>;

/// What one may change in a problem, towards what is usual.
std::vector<Edit> editsOf(ProblemOp problem) {
  Builder b(problem.getContext());
  auto i64 = [&](int64_t n) { return b.getI64IntegerAttr(n); };
  auto dim = [&](int64_t n) { return i64(std::clamp<int64_t>(n > 0 ? llvm::alignTo(n, 8) : 8, 8, 256)); };
  int64_t heads = problem.getHeads(), kvHeads = problem.getKvHeads();
  std::vector<Edit> edits = {{{"dim_qk", dim(problem.getDimQk())}, {"dim_v", dim(problem.getDimV())}}};
  if (kvHeads > 0 && heads > 0)
    edits.push_back({{"heads", i64(std::min<int64_t>(llvm::alignTo(heads, kvHeads), 65536))}});
  edits.push_back({{"kv_heads", i64(heads)}});
  edits.push_back({{"dtype", TypeAttr::get(b.getBF16Type())}});
  edits.push_back({{"o_layout", problem.getQLayout()}});
  edits.push_back({{"q_layout", problem.getOLayout()}});
  edits.push_back({{"v_layout", problem.getKLayout()}});
  edits.push_back({{"k_layout", problem.getVLayout()}});
  edits.push_back({{"config", {}}});
  edits.push_back({{"typical_q", {}}, {"typical_kv", {}}});
  edits.push_back({{"scale", {}}});
  if (std::optional<ArrayAttr> score = problem.getScore())
    for (size_t i = score->size(); i-- > 0;) {
      SmallVector<Attribute> fewer(score->getValue());
      fewer.erase(fewer.begin() + i);
      edits.push_back({{"score", b.getArrayAttr(fewer)}});
    }
  edits.push_back({{"mask", canonicalMask(problem.getMask())}});
  for (MaskInterface part : problem.getMask().conjuncts())
    edits.push_back({{"mask", part}});
  std::string name;
  for (char c : problem.getSymName())
    name += llvm::isAlnum(c) ? c : '_';
  edits.push_back({{"sym_name", b.getStringAttr(isIdentifier(name) ? name : "p" + name)}});
  return edits;
}

std::vector<Edit> editsOf(SegmentsOp segments) {
  Builder b(segments.getContext());
  std::vector<Edit> edits = {{{"segments", b.getI64IntegerAttr(std::clamp<int64_t>(segments.getSegments(), 1, 2048))}},
                             {{"mask", canonicalMask(segments.getMask())}},
                             {{"mask", CausalMaskAttr::get(segments.getContext(), Diagonal::top_left)}}};
  if (std::optional<int64_t> tiles = segments.getTiles())
    edits.push_back({{"tiles", b.getI64IntegerAttr(
                                   std::clamp<int64_t>(llvm::alignTo(std::max<int64_t>(*tiles, 16), 16), 16, 256))}});
  return edits;
}

class Supporter {
public:
  Supporter(MLIRContext &context, Operation *program) : context(context), program(program) {}

  /// Why not; nothing if it is.
  std::optional<std::string> reason(Operation *op, const Target &target) {
    std::string why;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (why.empty())
        why = withoutName(diagnostic.str());
      return success();
    });
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    module->push_back(op->clone());
    if (failed(verify(*module)))
      return why;
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    if (auto compiled = compilation.compile(text, "", target); !compiled) {
      StringRef log = compiled.error().log;
      return log.empty() ? compiled.error().message
                         : withoutName(log.substr(log.find("error: ") + 7).split('\n').first);
    }
    return std::nullopt;
  }

  /// The nearest problem that the target has.
  OwningOpRef<Operation *> nearest(const Target &target) {
    auto problem = dyn_cast<ProblemOp>(program);
    std::vector<Edit> edits = problem ? editsOf(problem) : editsOf(cast<SegmentsOp>(program));
    for (size_t i = 0; i < edits.size(); ++i)
      if (auto found = tried({edits[i]}, target))
        return found;
    for (size_t i = 0; i < edits.size(); ++i)
      for (size_t j = i + 1; j < edits.size(); ++j)
        if (auto found = tried({edits[i], edits[j]}, target))
          return found;
    return {};
  }

private:
  /// A diagnostic that begins with the op's name, without it.
  static std::string withoutName(StringRef message) {
    auto [name, rest] = message.split("' op ");
    return (rest.empty() ? name : rest).str();
  }

  OwningOpRef<Operation *> tried(ArrayRef<Edit> edits, const Target &target) {
    OwningOpRef<Operation *> changed = program->clone();
    for (const Edit &edit : edits) {
      bool changes = false;
      for (auto [name, value] : edit) {
        changes |= (*changed)->getAttr(name) != value;
        value ? (*changed)->setAttr(name, value) : (void)(*changed)->removeAttr(name);
      }
      if (!changes)
        return {};
    }
    if (reason(*changed, target))
      return {};
    return changed;
  }

  MLIRContext &context;
  Operation *program;
  Compilation compilation;
};

} // namespace

int attn::supported(int argc, char **argv) {
  cl::opt<std::string> file{cl::Positional, cl::desc("<problems.mlir>"), cl::init("-")};
  cl::ParseCommandLineOptions(argc, argv, "which targets have kernels for problems, and why others have none\n");
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(file);
  if (!buffer) {
    llvm::errs() << "error: cannot read `" << file << "`: " << buffer.getError().message() << "\n";
    return 2;
  }
  Compilation dialects;
  MLIRContext context(dialects.getContext().getDialectRegistry());
  context.loadAllAvailableDialects();
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  // What an attribute's own verifier refuses cannot be read at all: its message is the answer.
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, config);
  if (!module)
    return 1;
  bool all = true;
  for (Operation &op : *module->getBody()) {
    if (!isa<ProblemOp, SegmentsOp>(op))
      continue;
    Supporter supporter(context, &op);
    llvm::outs() << "@" << SymbolTable::getSymbolName(&op).getValue() << "\n";
    std::string before;
    for (const char *name : {"cpu", "sm_80", "sm_90a"}) {
      Target target = *Target::parse(name);
      std::optional<std::string> why = supporter.reason(&op, target);
      llvm::outs() << "  " << llvm::left_justify(name, 8) << (why ? "no: " + *why : "yes") << "\n";
      if (!why)
        continue;
      all = false;
      OwningOpRef<Operation *> near = supporter.nearest(target);
      std::string text = near ? "" : "no single change, nor two, of what is given";
      if (near)
        llvm::raw_string_ostream(text) << **near;
      if (text != before)
        llvm::outs() << "          nearest: " << text << "\n";
      before = text;
    }
  }
  return !all;
}
