// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Compile.h"
#include "attn-rt/Driver.h"
#include "attn/API/Pipeline.h"
#include "attn/API/SourceText.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Program/IR/PlainData.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Schedules/Schedule.h"
#include "attn/Schedules/Signature.h"
#include "attn/Target/Source.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/SourceMgr.h"
#include <fmt/format.h>
#include <mutex>
#include <set>

using namespace mlir;
using namespace attn;

rt::Result<Target> Target::parse(StringRef text) {
  if (text.empty())
    return preferred();
  auto [family, chip] = text.split(':');
  Target target{family.str(), 0};
  rt::Error error{fmt::format("expected target `cpu`, `sm_90a`, `sm_80` or `sm_80:<chip>` with chip {}, got: {}",
                              TargetInfo::textOfChips("sm_80"), text.str())};
  bool given = text.contains(':');
  if (given && (family != "sm_80" || chip.getAsInteger(10, target.arch) || !target.arch))
    return error;
  std::optional<TargetInfo> info = TargetInfo::get(family, target.arch);
  if (!info)
    return error;
  target.arch = info->chip;
  return target;
}

Target Target::preferred() {
  rt::Result<const rt::Driver *> driver = rt::Driver::get();
  if (!driver || (*driver)->deviceCount() == 0)
    return {};
  rt::Result<int> device = (*driver)->currentDevice();
  rt::Result<int> arch = (*driver)->arch(device ? *device : 0);
  if (!arch || *arch < 80)
    return {};
  return {*arch == 90 ? "sm_90a" : "sm_80", *arch};
}

std::string Target::str() const {
  return family != "sm_80" || arch == 80 ? family : fmt::format("{}:{}", family, arch);
}

static DialectRegistry dialects() {
  DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

/// Prints a warning that this process has not printed yet: most callers parse a text many times.
static void warnOnce(const std::string &text) {
  static std::mutex mutex;
  static std::set<std::string> printed;
  std::lock_guard lock(mutex);
  if (printed.insert(text).second)
    fmt::print(stderr, "attnc: warning: {}\n", text);
}

Compilation::Compilation() : context(dialects(), MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Warning) {
      warnOnce(diagnostic.str());
      return success();
    }
    llvm::raw_string_ostream os(diagnostics);
    auto print = [&](Diagnostic &d, const char *kind) {
      if (auto file = dyn_cast<FileLineColLoc>(d.getLocation()))
        os << file.getFilename().getValue() << ":" << file.getLine() << ":" << file.getColumn() << ": ";
      os << kind << ": " << cutLongLines(d.str()) << "\n";
    };
    print(diagnostic, diagnostic.getSeverity() == DiagnosticSeverity::Error ? "error" : "note");
    for (Diagnostic &note : diagnostic.getNotes())
      print(note, "note");
    return success();
  });
}

rt::Error Compilation::takeDiagnostics(StringRef what) {
  rt::Error error{what.str(), std::move(diagnostics), ""};
  diagnostics.clear();
  return error;
}

rt::Result<OwningOpRef<ModuleOp>> Compilation::parse(StringRef text, StringRef name, bool verify) {
  diagnostics.clear();
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name), llvm::SMLoc());
  OwningOpRef<ModuleOp> module;
  if (succeeded(checkNesting(context, {text, name})))
    module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context, verify));
  if (!module)
    return takeDiagnostics(fmt::format("`{}` is not a valid module", name.str())).as(rt::ErrorKind::Problem);
  return module;
}

rt::Status Compilation::lower(ModuleOp module, const Target &target, int fallback) {
  PassManager pm(&context);
  PipelineOptions options;
  options.target = target.family;
  options.arch = target.arch;
  options.fallback = fallback;
  buildPipeline(pm, options);
  if (failed(pm.run(module)))
    return takeDiagnostics("lowering for " + target.str() + " failed").as(rt::ErrorKind::Unsupported);
  return {};
}

rt::Status Compilation::check(tile::KernelOp kernel, const Target &target) {
  diagnostics.clear();
  bool generic = kernel.getTarget() == target.info().generic(); // of a program, what needs no roles
  if (kernel.getTarget() != target.family && !generic)
    return rt::Error{fmt::format("expected @{} to be a kernel for `{}`, got: one for `{}`", kernel.getSymName().str(),
                                 target.family, kernel.getTarget().str())};
  PassManager check(&context, tile::KernelOp::getOperationName());
  check.addPass(tile::createVerifyAsync());
  if (failed(check.run(kernel)))
    return takeDiagnostics(fmt::format("@{} is not safe to run", kernel.getSymName().str()));
  return {};
}

rt::Result<rt::Artifact> Compilation::print(tile::KernelOp kernel, const Target &target) {
  diagnostics.clear();
  std::optional<rt::Artifact> artifact = toArtifact(kernel);
  if (!artifact)
    return takeDiagnostics("printing for " + target.str() + " failed");
  if (!target.isHost())
    artifact->target = rt::targetOf(target.arch, /*specific=*/true);
  return std::move(*artifact);
}

SmallVector<Operation *> attn::programsOf(ModuleOp module) {
  SmallVector<Operation *> programs;
  for (Operation &op : *module.getBody())
    if (isa<ProblemOp, BackwardOp, SegmentsOp, GatherRowsOp, ComputationInterface, attn::ProgramOp>(op) &&
        SymbolTable::getSymbolVisibility(&op) != SymbolTable::Visibility::Private)
      programs.push_back(&op);
  return programs;
}

rt::Result<Operation *> attn::findProgram(ModuleOp module, StringRef name) {
  SmallVector<Operation *> kinds[4]; // programs of several computations, backward passes, problems, others
  std::string names;
  for (Operation *op : programsOf(module)) {
    StringRef own = SymbolTable::getSymbolName(op).getValue();
    if (own == name)
      return op;
    names += (names.empty() ? "@" : ", @") + own.str();
    kinds[isa<attn::ProgramOp>(op) ? 0 : isa<BackwardOp>(op) ? 1 : isa<ProblemOp>(op) ? 2 : 3].push_back(op);
  }
  if (names.empty())
    return rt::Error{"expected an `attn.problem` in the module, got: none"}.as(rt::ErrorKind::Problem);
  if (!name.empty())
    return rt::Error{fmt::format("expected one of the module's problems {}, got: @{}", names, name.str())}.as(
        rt::ErrorKind::Problem);
  ArrayRef<Operation *> choice = *llvm::find_if(kinds, [](auto &ops) { return !ops.empty(); });
  if (choice.size() > 1)
    return rt::Error{fmt::format("expected the name of one of {}, got: none", names)}.as(rt::ErrorKind::Problem);
  return choice.front();
}

rt::Result<Computation> attn::findComputation(ModuleOp module, StringRef name) {
  rt::Result<Operation *> found = findProgram(module, name);
  if (!found)
    return found.error();
  if (auto problem = dyn_cast<ProblemOp>(*found))
    return Computation(problem);
  if (auto backward = dyn_cast<BackwardOp>(*found))
    return Computation(backward);
  return rt::Error{fmt::format("expected an `attn.problem` (`segments(S)` makes one of ids and positions), got: `{}`",
                               (*found)->getName().getStringRef().str())};
}

rt::Result<ProblemOp> attn::findProblem(ModuleOp module, StringRef name) {
  SmallVector<ProblemOp> problems;
  for (Operation *op : programsOf(module))
    if (auto problem = dyn_cast<ProblemOp>(op))
      problems.push_back(problem);
  if (name.empty() && problems.size() == 1) // whatever else is there
    return ProblemOp(problems.front());
  rt::Result<Computation> found = findComputation(module, name);
  if (!found)
    return found.error();
  if (!found->backward)
    return ProblemOp(found->problem);
  return rt::Error{"expected an `attn.problem`, got: `attn.backward`"};
}

bool attn::isWorthKernels(const Program &special, const Program &plain, const Program &first) {
  auto addsUp = [](const Program &program) { return program.hasBuffer("dq_accumulator"); };
  auto hasTilesOf = [&](const Program &other) {
    return special.qTile == other.qTile && special.kvTile == other.kvTile;
  };
  if (special.hasShortKernel || special.isSplit() || (addsUp(plain) && !addsUp(special)))
    return true;
  return !hasTilesOf(plain) && !hasTilesOf(first);
}

/// Where nothing is said of lengths, nor of what depends on them, sizes may say it. Bits of `deterministic` gradients
/// depend on no neighbours.
static rt::SpecializationRule::Source specializationOf(ProblemOp problem, BackwardOp backward) {
  bool says = problem.expectedQueries() || problem.getScheduleAttr() || problem.getTiles() || problem.getSegments();
  if (says || (backward && (backward.getPartialKv() || backward.getScheduleAttr())))
    return rt::SpecializationRule::Source::Nothing;
  return backward && backward.getDeterministic() ? rt::SpecializationRule::Source::Lengths
                                                 : rt::SpecializationRule::Source::Sizes;
}

/// Calls `use` with a pass as what it is.
template <typename Use> static auto withPass(Operation *pass, Use use) {
  if (auto problem = dyn_cast<ProblemOp>(pass))
    return use(Computation(problem));
  if (auto backward = dyn_cast<BackwardOp>(pass))
    return use(Computation(backward));
  if (auto rows = dyn_cast<GatherRowsOp>(pass))
    return use(rows);
  if (auto op = dyn_cast<ComputationInterface>(pass))
    return use(op);
  return use(cast<SegmentsOp>(pass));
}

rt::Result<rt::Program> attn::signatureOf(Operation *pass) {
  if (auto program = dyn_cast<attn::ProgramOp>(pass)) {
    std::string fault;
    ScopedDiagnosticHandler handler(pass->getContext(), [&](Diagnostic &diagnostic) {
      fault = diagnostic.str();
      return success();
    });
    FailureOr<rt::Program> signature = signatureOf(program);
    if (failed(signature))
      return rt::Error{fmt::format("@{}: {}", program.getSymName().str(), fault)}.as(rt::ErrorKind::Problem);
    return std::move(*signature);
  }
  return rt::Program(withPass(pass, [](auto op) { return signatureOf(op); }));
}

void attn::withCompilation(llvm::function_ref<void(Compilation &)> use) {
  static std::mutex mutex;
  static auto *idle = new std::vector<std::unique_ptr<Compilation>>; // live as long as the process
  std::unique_ptr<Compilation> own;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!idle->empty()) {
      own = std::move(idle->back());
      idle->pop_back();
    }
  }
  if (!own)
    own = std::make_unique<Compilation>();
  use(*own);
  std::lock_guard<std::mutex> lock(mutex);
  idle->push_back(std::move(own));
}

/// Leaves in the module a program, what it calls, and what these name, and returns those of them that are computed.
static SmallVector<Operation *> keepComputed(ModuleOp module, Operation *found) {
  SmallVector<Operation *> computed = {found};
  if (auto program = dyn_cast<attn::ProgramOp>(found)) {
    computed.clear();
    for (auto call : program.getOps<attn::CallOp>())
      if (Operation *callee = module.lookupSymbol(call.getCalleeAttr()); !llvm::is_contained(computed, callee))
        computed.push_back(callee);
  }
  llvm::SmallPtrSet<Operation *, 8> kept(computed.begin(), computed.end());
  kept.insert(found);
  for (Operation *op : computed) { // a backward pass describes its gradients by its forward pass
    auto forward = op->getAttrOfType<FlatSymbolRefAttr>(isa<BackwardOp>(op)           ? "problem"
                                                        : isa<CompressBackwardOp>(op) ? "compress"
                                                                                      : "combine");
    if (forward)
      kept.insert(module.lookupSymbol(forward));
  }
  for (Operation *op : programsOf(module)) {
    if (!kept.contains(op))
      op->erase();
    else if (op != found)
      SymbolTable::setSymbolVisibility(op, SymbolTable::Visibility::Private);
  }
  return computed;
}

rt::Result<Program> Compilation::compile(StringRef text, StringRef name, const Target &target, int fallback,
                                         StringRef file, std::optional<rt::ExpectedLengths> expected) {
  rt::Result<OwningOpRef<ModuleOp>> module = parse(text, file);
  if (!module)
    return module.error();
  rt::Result<Operation *> found = findProgram(**module, name);
  if (!found)
    return found.error();
  std::string symbol = SymbolTable::getSymbolName(*found).str();
  Program program;
  rt::Result<rt::Program> signature = signatureOf(*found);
  if (!signature)
    return signature.error();
  rt::SpecializationRule rule;
  SmallVector<Operation *> computed = keepComputed(**module, *found);
  for (Operation *op : computed) {
    auto problem = dyn_cast<ProblemOp>(op);
    auto backward = dyn_cast<BackwardOp>(op);
    if (!problem && !backward)
      continue;
    Computation pass = backward ? Computation(backward) : Computation(problem);
    ProblemOp masked = pass.problem;
    canonicalizeMask(masked); // before there are kernels in its place
    if (computed.size() == 1) {
      FixedSizes fixed = FixedSizes::of(pass);
      rule = {specializationOf(masked, backward),
              fixed.heads,
              fixed.kvHeads,
              fixed.dimQk,
              fixed.dimV,
              fixed.packedQ,
              fixed.packedKv,
              fixed.backward};
      if (expected)
        masked.setExpectedSeqlenQ(expected->queries), masked.setExpectedSeqlenKv(expected->keys);
    }
    if (faultOfSchedule(pass)) // lowering refuses it
      continue;
    ChosenSchedule chosen = chooseSchedule(pass, target.info(), fallback);
    program.mayNotFit |= !target.isHost() && chosen.mayNotFit;
    program.hasFallback |= !target.isHost() && chosen.hasFallback;
    program.hasShortKernel |= isa<tile::ByLengthAttr>(chosen.schedule) || mainKernelOf(chosen.schedule).isPerSequence();
    std::string schedule = describeSchedule(pass, chosen.schedule) + "; " + chosen.why;
    if (computed.size() > 1)
      schedule = (program.schedule.empty() ? "@" : "\n@") + pass.getName().str() + ": " + schedule;
    program.schedule += schedule;
    setSchedule(pass, chosen); // so that lowering does not choose again
  }
  if (rt::Status lowered = lower(**module, target, fallback); !lowered)
    return lowered.error();
  program::DefOp steps = *(*module)->getOps<program::DefOp>().begin();
  program.plan = toProgram(steps, symbol);
  program.plan.setSignature(std::move(*signature)); // a canonical mask may have fewer arrays, in another order
  program.plan.specialization = rule;
  for (const std::string &name : program.plan.kernels) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<tile::KernelOp>(steps, StringAttr::get(&context, name));
    rt::Result<rt::Artifact> artifact = print(kernel, target);
    if (!artifact)
      return artifact.error();
    if (name == symbol) {
      program.main = program.kernels.size();
      program.rowStride = kernel.getRowStride();
      program.qTile = kernel.getSchedule().getQueries() * kernel.getRowStride();
      program.kvTile = kernel.getSchedule().getKvTile() * kernel.getRowStride();
    }
    program.kernels.push_back(std::move(*artifact));
  }
  return program;
}
