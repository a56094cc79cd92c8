// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Support is asked of the verifiers and passes themselves: a problem is supported for a
// target if it can be lowered and printed for it. What is near to one that is not is found by
// trying changes, one and then two of them, until the same code says yes. A backward pass is asked
// for with the problem that it names, and what is changed may be either.
//
#include "Questions.h"
#include "attn/API/SourceText.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include <numeric>

using namespace mlir;
using namespace attn;
namespace cl = llvm::cl;

namespace {

/// Attributes to set, or, null, to leave out: of a program, or of the problem that it names.
struct Edit {
  SmallVector<std::pair<StringRef, Attribute>, 2> attributes;
  bool ofProblem = false;
};

Edit renamed(Operation *op) {
  std::string name;
  for (char c : SymbolTable::getSymbolName(op).getValue())
    name += llvm::isAlnum(c) ? c : '_';
  return {{{"sym_name", StringAttr::get(op->getContext(), isIdentifier(name) ? name : "p" + name)}}};
}

/// What one may change in a problem, towards what is usual.
std::vector<Edit> editsOf(ProblemOp problem) {
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
  edit({{"config", {}}});
  edit({{"no_lse", {}}});
  edit({{"typical_q", {}}, {"typical_kv", {}}});
  for (auto [q, kv] : {std::pair("typical_q", "typical_kv"), {"bound_q", "bound_kv"}})
    if (auto m = problem->getAttrOfType<IntegerAttr>(q), n = problem->getAttrOfType<IntegerAttr>(kv); m && n)
      edit({{q, i64(std::max<int64_t>(m.getInt(), 1))}, {kv, i64(std::max<int64_t>(n.getInt(), 1))}});
  edit({{"bound_q", {}}, {"bound_kv", {}}});
  for (const char *clause : {"visits", "segments", "tiles", "scale", "sink"})
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
std::vector<Edit> editsOf(BackwardOp backward, ModuleOp file) {
  std::vector<Edit> edits = {{{{"config", {}}}}};
  if (std::optional<ArrayAttr> learned = backward.getLearned())
    for (size_t i = 0; learned->size() > 1 && i < learned->size(); ++i) {
      SmallVector<Attribute> fewer(learned->getValue());
      fewer.erase(fewer.begin() + i);
      edits.push_back({{{"learned", ArrayAttr::get(backward.getContext(), fewer)}}});
    }
  if (auto problem = file.lookupSymbol<ProblemOp>(backward.getProblem())) {
    for (Edit &edit : editsOf(problem))
      edits.push_back({std::move(edit.attributes), /*ofProblem=*/true});
  } else {
    for (auto other : file.getOps<ProblemOp>())
      edits.push_back({{{"problem", FlatSymbolRefAttr::get(other.getSymNameAttr())}}});
  }
  edits.push_back({{{"learned", {}}}});
  edits.push_back(renamed(backward));
  return edits;
}

std::vector<Edit> editsOf(SegmentsOp segments) {
  Builder b(segments.getContext());
  std::vector<Edit> edits = {{{{"segments", b.getI64IntegerAttr(std::clamp<int64_t>(segments.getSegments(), 1, 2048))}}},
                             {{{"mask", canonicalMask(segments.getMask())}}},
                             {{{"mask", CausalMaskAttr::get(segments.getContext(), Diagonal::top_left)}}}};
  if (std::optional<int64_t> tiles = segments.getTiles())
    edits.push_back({{{"tiles", b.getI64IntegerAttr(std::clamp<int64_t>(
                                    llvm::alignTo(std::max<int64_t>(*tiles, 16), 16), 16, 256))}}});
  edits.push_back(renamed(segments));
  return edits;
}

/// A program and the problem that it names, if it does: a module of their own.
struct Question {
  OwningOpRef<ModuleOp> module;
  Operation *program = nullptr;
  ProblemOp described; ///< of a backward pass; null if there is none of the name

  Question(ModuleOp file, Operation *asked, ArrayRef<Edit> edits = {})
      : module(ModuleOp::create(UnknownLoc::get(file.getContext()))), program(asked->clone()) {
    for (const Edit &edit : edits)
      if (!edit.ofProblem)
        apply(edit, program);
    if (auto backward = dyn_cast<BackwardOp>(program))
      if (auto problem = file.lookupSymbol<ProblemOp>(backward.getProblem())) {
        module->push_back(described = problem.clone());
        for (const Edit &edit : edits)
          if (edit.ofProblem)
            apply(edit, described);
        backward.setProblem(described.getSymName());
      }
    module->push_back(program);
  }

  bool changes = true; ///< does each edit?

private:
  void apply(const Edit &edit, Operation *op) {
    bool some = false;
    for (auto [name, value] : edit.attributes) {
      some |= op->getAttr(name) != value;
      value ? op->setAttr(name, value) : (void)op->removeAttr(name);
    }
    changes &= some;
  }
};

class Supporter {
public:
  Supporter(ModuleOp file, Operation *program) : file(file), program(program) {}

  /// Why not; nothing if it is.
  std::optional<std::string> reason(const Target &target) { return reason(Question(file, program), target); }

  /// The nearest program that the target has: what has changed of it and of the problem that it names, a line each.
  std::string nearest(const Target &target) {
    std::vector<Edit> edits = llvm::TypeSwitch<Operation *, std::vector<Edit>>(program)
                                  .Case([&](BackwardOp backward) { return editsOf(backward, file); })
                                  .Case<ProblemOp, SegmentsOp>([](auto op) { return editsOf(op); });
    for (size_t i = 0; i < edits.size(); ++i)
      if (std::string found = tried({edits[i]}, target); !found.empty())
        return found;
    for (size_t i = 0; i < edits.size(); ++i)
      for (size_t j = i + 1; j < edits.size(); ++j)
        if (std::string found = tried({edits[i], edits[j]}, target); !found.empty())
          return found;
    return "no single change, nor two, of what is given";
  }

private:
  std::optional<std::string> reason(const Question &question, const Target &target) {
    return refusalOf(compilation, *question.module, target);
  }

  /// Empty if it is none.
  std::string tried(ArrayRef<Edit> edits, const Target &target) {
    Question question(file, program, edits);
    if (!question.changes || reason(question, target))
      return "";
    std::string text;
    llvm::raw_string_ostream os(text);
    if (llvm::any_of(edits, [](const Edit &edit) { return edit.ofProblem; }))
      os << *question.described << "\n";
    if (llvm::any_of(edits, [](const Edit &edit) { return !edit.ofProblem; }) || isa<BackwardOp>(program))
      os << *question.program << "\n";
    return StringRef(text).rtrim().str();
  }

  ModuleOp file;
  Operation *program;
  Compilation compilation;
};

/// A diagnostic that begins with the op's name, without it.
std::string withoutName(StringRef message) {
  auto [name, rest] = message.split("' op ");
  return (rest.empty() ? name : rest).str();
}

} // namespace

std::optional<std::string> attn::refusalOf(Compilation &compilation, ModuleOp module, const Target &target,
                                           StringRef name) {
  std::string why;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    if (why.empty())
      why = withoutName(diagnostic.str());
    return success();
  });
  if (failed(verify(module)))
    return why;
  std::string text;
  llvm::raw_string_ostream(text) << module;
  if (auto compiled = compilation.compile(text, name, target); !compiled) {
    if (!why.empty()) // the compilation's context is the module's
      return why;
    StringRef log = compiled.error().log;
    return log.empty() ? compiled.error().message : withoutName(log.substr(log.find("error: ") + 7).split('\n').first);
  }
  return std::nullopt;
}

int attn::supported(int argc, char **argv) {
  cl::opt<std::string> file{cl::Positional, cl::desc("<problems.mlir>"), cl::init("-")};
  cl::list<std::string> targetTexts{"target", cl::CommaSeparated,
                                    cl::desc("which to ask for; default: cpu,sm_80,sm_90a")};
  cl::ParseCommandLineOptions(argc, argv, "which targets have kernels for problems, and why others have none\n");
  std::vector<std::string> asked(targetTexts.begin(), targetTexts.end());
  if (asked.empty())
    asked = {"cpu", "sm_80", "sm_90a"};
  SmallVector<Target> targets;
  for (const std::string &text : asked) {
    if (text.empty()) {
      llvm::errs() << "error: expected targets with --target, got none\n";
      return 2;
    }
    rt::Result<Target> target = Target::parse(text);
    if (!target) {
      llvm::errs() << "error: " << target.error().str() << "\n";
      return 2;
    }
    targets.push_back(*target);
  }
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(file);
  if (!buffer) {
    llvm::errs() << "error: cannot read `" << file << "`: " << buffer.getError().message() << "\n";
    return 2;
  }
  Compilation dialects;
  MLIRContext context(dialects.getContext().getDialectRegistry());
  context.loadAllAvailableDialects();
  llvm::SourceMgr sources;
  llvm::MemoryBufferRef text = **buffer;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  ScopedDiagnosticHandler cut(&context, [&](Diagnostic &diagnostic) { return printCut(diagnostic, text); });
  // What an attribute's own verifier refuses cannot be read at all: its message is the answer.
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module;
  if (succeeded(checkNesting(context, text)))
    module = parseSourceFile<ModuleOp>(sources, config);
  if (!module)
    return 1;
  bool all = true;
  SmallVector<Operation *> programs = programsOf(*module);
  if (programs.empty()) {
    llvm::errs() << "error: expected an `attn.problem`, `attn.backward` or `attn.segments` in the module, got: none\n";
    return 2;
  }
  for (Operation *op : programs) {
    Supporter supporter(*module, op);
    llvm::outs() << "@" << SymbolTable::getSymbolName(op).getValue() << "\n";
    std::string before;
    for (const Target &target : targets) {
      std::optional<std::string> why = supporter.reason(target);
      llvm::outs() << "  " << llvm::left_justify(target.str() + " ", 8) << (why ? "no: " + *why : "yes") << "\n";
      if (!why)
        continue;
      all = false;
      std::string near = supporter.nearest(target);
      StringRef indent = "          nearest: ";
      for (StringRef line : llvm::split(near, '\n')) {
        if (near != before)
          llvm::outs() << indent << line << "\n";
        indent = "                   ";
      }
      before = near;
    }
  }
  return !all;
}
