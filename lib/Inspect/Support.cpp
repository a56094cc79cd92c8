// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is near to a pass that no target has is found by trying changes, one and then two of them, until the same code
// says yes. A backward pass is asked for with the problem that it names, and what is changed may be either.
//
#include "attn/Inspect/Support.h"
#include "Edits.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace attn;

namespace {

/// A pass and the problem that it names, if it does: a module of their own.
struct Question {
  OwningOpRef<ModuleOp> module;
  Operation *pass = nullptr;
  ProblemOp described; ///< of a backward pass; null if there is none of the name

  Question(ModuleOp file, Operation *asked, ArrayRef<Edit> edits = {})
      : module(ModuleOp::create(UnknownLoc::get(file.getContext()))), pass(asked->clone()) {
    for (const Edit &edit : edits)
      if (!edit.ofProblem)
        apply(edit, pass);
    if (auto backward = dyn_cast<BackwardOp>(pass); backward && hasAttributes(backward))
      if (auto problem = file.lookupSymbol<ProblemOp>(backward.getProblem())) {
        module->push_back(described = problem.clone());
        for (const Edit &edit : edits)
          if (edit.ofProblem)
            apply(edit, described);
        backward.setProblem(described.getSymName());
      }
    module->push_back(pass);
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
  Supporter(ModuleOp file, Operation *pass, Compilation &compilation)
      : file(file), pass(pass), compilation(compilation) {}

  /// Why not; nothing if it is.
  std::optional<std::string> reason(const Target &target) { return reason(Question(file, pass), target); }

  /// `Support::nearest`.
  std::string nearest(const Target &target) {
    if (!hasAttributes(pass))
      return "";
    std::vector<Edit> edits = editsOf(pass, file);
    for (size_t i = 0; i < edits.size(); ++i)
      if (std::string found = tried({edits[i]}, target); !found.empty())
        return found;
    for (size_t i = 0; i < edits.size(); ++i)
      for (size_t j = i + 1; j < edits.size(); ++j)
        if (std::string found = tried({edits[i], edits[j]}, target); !found.empty())
          return found;
    return "";
  }

private:
  std::optional<std::string> reason(const Question &question, const Target &target) {
    return refusalOf(compilation, *question.module, target);
  }

  /// Empty if it is none.
  std::string tried(ArrayRef<Edit> edits, const Target &target) {
    Question question(file, pass, edits);
    if (!question.changes || reason(question, target))
      return "";
    std::string text;
    llvm::raw_string_ostream os(text);
    if (llvm::any_of(edits, [](const Edit &edit) { return edit.ofProblem; }))
      os << *question.described << "\n";
    if (llvm::any_of(edits, [](const Edit &edit) { return !edit.ofProblem; }) || isa<BackwardOp>(pass))
      os << *question.pass << "\n";
    return StringRef(text).rtrim().str();
  }

  ModuleOp file;
  Operation *pass;
  Compilation &compilation;
};

/// A diagnostic that begins with the op's name, without it.
std::string withoutName(StringRef message) {
  auto [name, rest] = message.split("' op ");
  return (rest.empty() ? name : rest).str();
}

/// Modules that are not verified may have passes without one.
std::string nameOf(Operation *pass) {
  auto name = pass->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
  return name ? name.str() : "";
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

rt::Result<std::vector<Target>> attn::parseTargets(StringRef text) {
  std::vector<Target> targets;
  for (StringRef part : llvm::split(text, ',')) {
    if (part.empty())
      return rt::Error{"expected targets such as cpu,sm_80, got: " + (text.empty() ? "none" : text.str())};
    rt::Result<Target> target = Target::parse(part);
    if (!target)
      return target.error();
    targets.push_back(*target);
  }
  return targets;
}

std::vector<Support> attn::supportOf(ModuleOp module, ArrayRef<Operation *> passes, ArrayRef<Target> targets) {
  Compilation compilation; // of its own: attributes of all that is tried would stay in one that is kept
  std::vector<Support> answers;
  for (Operation *pass : passes) {
    Supporter supporter(module, pass, compilation);
    for (const Target &target : targets) {
      Support &answer = answers.emplace_back(Support{nameOf(pass), target, supporter.reason(target), ""});
      if (answer.reason)
        answer.nearest = supporter.nearest(target);
    }
  }
  return answers;
}

rt::Result<std::vector<Support>> attn::supportOf(StringRef text, StringRef name, ArrayRef<Target> targets) {
  Compilation compilation;
  auto module = compilation.parse(text, "problem", /*verify=*/false);
  if (!module)
    return module.error();
  SmallVector<Operation *> passes = programsOf(**module), asked;
  std::string names;
  for (Operation *pass : passes) {
    names += (names.empty() ? "@" : ", @") + nameOf(pass);
    if (name.empty() || nameOf(pass) == name)
      asked.push_back(pass);
  }
  if (passes.empty())
    return rt::Error{"expected an `attn.problem`, `attn.backward` or `attn.segments` in the module, got: none"};
  if (asked.empty())
    return rt::Error{"expected one of the module's problems " + names + ", got: @" + name.str()};
  return supportOf(**module, asked, targets);
}
