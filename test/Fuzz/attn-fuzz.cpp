// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random kernels on random problems against the reference. One line a failure,
// with what reruns it; one line at the end.
//
#include "Compare.h"
#include "Kernels.h"
#include "Random.h"
#include "attn-rt/Driver.h"
#include "attn/API/RunTensors.h"
#include "attn/Schedules/Schedule.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

using namespace attn;
using namespace attn::fuzz;
namespace cl = llvm::cl;

static cl::opt<std::string> targetText("target", cl::desc("default: the GPU if there is one, else cpu"));
static cl::opt<uint64_t> seed("seed", cl::desc("of the whole run"), cl::init(1));
static cl::opt<uint64_t> kernelCount("kernels", cl::init(198));
static cl::opt<uint64_t> problemCount("problems", cl::desc("for each kernel"), cl::init(13));
static cl::opt<int64_t> onlyKernel("kernel-seed", cl::desc("rerun this kernel only"), cl::init(-1));
static cl::opt<int64_t> onlyProblem("problem-seed", cl::desc("rerun this problem only"), cl::init(-1));
static cl::opt<unsigned> threadCount("threads", cl::desc("kernels compiled and run at a time; default: all CPUs"),
                                     cl::init(0));
static cl::opt<bool> fewQueries("few-queries", cl::desc("share out keys among blocks and pack heads into tiles"));
static cl::opt<bool> maxSeqlens("max-seqlen",
                                cl::desc("max_seqlen of a tile or two, which may be wrong; packed as a rule"));
static cl::opt<bool> shortSequences("short", cl::desc("stream short sequences, whose bounds may be wrong"));
static cl::opt<bool> noLengths(
    "no-lengths",
    cl::desc("problems without expected_seqlen and max_seqlen, and shapes that attnSpecialize has programs for"));
static cl::opt<bool> splitQ("split-q", cl::desc("split loops over queries among CTAs; of dense layouts"));
static cl::opt<bool> byResidue("by-residue", cl::desc("masks of every n-th key, with tiles of every n-th row"));
static cl::opt<bool> ofPieces("pieces", cl::desc("tensors that hold pieces of sequences"));
static cl::opt<bool> backwardPass("backward", cl::desc("the problems' backward passes"));
static cl::opt<double> mostSeconds("seconds", cl::desc("begin no other kernel after so many; default: all kernels"),
                                   cl::init(HUGE_VAL));
static cl::opt<std::string> jsonFile("json", cl::desc("append the summary to this file"));
static cl::opt<bool> verbose("verbose", cl::desc("a line for each problem"));

namespace {
struct Worst {
  double ratio = 0;
  uint64_t kernel = 0, problem = 0;
  void take(double candidate, uint64_t k, uint64_t p) {
    if (candidate > ratio)
      *this = {candidate, k, p};
  }
  nlohmann::ordered_json json() const { return {{"ratio", ratio}, {"kernel_seed", kernel}, {"problem_seed", problem}}; }
};

/// What all threads add to.
struct Summary {
  std::mutex mutex;
  std::set<std::string> digests;
  std::set<std::string> masks;            ///< distinct ones, in canonical form
  std::map<std::string, int64_t> classes; ///< problems by mask, layout, heads and score
  int64_t problems = 0, failures = 0, elements = 0, bySizes = 0;
  Worst norm, element, lse;

  void fail(const KernelCase &kernel, uint64_t kernelSeed, uint64_t problem, const std::string &sizes,
            const std::string &what) {
    ++failures;
    llvm::outs() << "FAILED --kernel-seed=" << kernelSeed << " --problem-seed=" << problem << ": " << what << " | "
                 << kernel.text << " | " << sizes << "\n";
    llvm::outs().flush();
  }
};
} // namespace

/// The problem's text with the heuristic's sizes, but as for few queries: keys shared
/// out, to few blocks, to as many as there are tiles, and to far more, so that parts
/// are empty; some or all heads of a group in a tile; or one of the two.
static std::string textOf(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op;
  return text;
}

/// Does the target refuse a schedule, once masks are canonical?
static bool isRefused(Computation of, ProblemOp problem, const Target &target, mlir::Attribute schedule) {
  MaskInterface mask = problem.getMask();
  problem.setMaskAttr(canonicalMask(mask));
  bool refused = scheduleOf(of, schedule)->refusal(of, target.info(), schedule).has_value();
  problem.setMaskAttr(mask);
  return refused;
}

static std::string forFewQueries(ProblemOp problem, const Target &target, uint64_t kernelSeed) {
  constexpr int64_t counts[] = {2, 0, 1, 3, 4, 0, 5, 7, 1, 16, 0, 33, 200}; // 0: launches decide
  int64_t group = problem.getHeads() / problem.getKvHeads(), packed = kernelSeed % 3 ? group : 1;
  if (dependsOnHead(problem.getMask())) // heads cannot share a tile
    packed = group = 1;
  if (kernelSeed % 3 == 2) // the largest part of them
    do
      --packed;
    while (packed > 1 && group % packed);
  mlir::Attribute chosen = chooseSchedule(problem, target.info()).schedule;
  tile::ScheduleInterface tiles = mainKernelOf(chosen);
  if (auto split = llvm::dyn_cast<tile::SplitKvAttr>(chosen))
    tiles = split.getOf();
  packed = std::max<int64_t>(packed, 1);
  if (auto tiled = llvm::dyn_cast<tile::TiledAttr>(tiles))
    tiles = tiled.withPackHeads(packed);
  else if (auto hopper = llvm::dyn_cast<tile::WarpSpecializedAttr>(tiles))
    tiles = hopper.withPackHeads(packed);
  mlir::MLIRContext *context = problem.getContext();
  auto schedule = tile::SplitKvAttr::get(context, counts[kernelSeed % std::size(counts)], /*least=*/0, tiles);
  if (kernelSeed % 4 == 1) // only long loops
    if (auto loops = tile::SplitKvAttr::get(context, /*splits=*/0, /*least=*/kernelSeed % 8 == 1 ? 1 : 3, tiles);
        !isRefused(problem, problem, target, loops))
      schedule = loops;
  problem.setScheduleAttr(schedule);
  return textOf(problem);
}

/// Does a modifier read an array with an axis of rows? Then layouts are dense.
static bool needsDense(ScoreModifierInterface modifier) {
  return llvm::any_of(modifier.operands(), [](const ScoreOperand &operand) {
    return operand.has(ScoreOperand::Query) || operand.has(ScoreOperand::Key);
  });
}

/// The problem's text with pieces of sequences, and results that may be float32. Masks that pieces do not take are
/// replaced.
static std::string forPieces(mlir::ModuleOp module, uint64_t kernelSeed) {
  ProblemOp problem = *module.getOps<ProblemOp>().begin();
  Random random(kernelSeed, 7);
  mlir::MLIRContext *context = problem.getContext();
  auto pieces = LayoutAttr::get(context, LayoutKind::thd, Packing::pieces);
  problem.setQLayoutAttr(pieces), problem.setKLayoutAttr(pieces);
  problem.setVLayoutAttr(pieces), problem.setOLayoutAttr(pieces);
  if (llvm::any_of(problem.getModifiers(), needsDense))
    problem.removeScoreAttr();
  if (llvm::any_of(problem.getMask().operands(), [](const MaskOperand &array) { return !array.madeOf.empty(); })) {
    const char *other = random.pick<const char *>(
        {"#attn.causal<bottom_right>", "#attn.band<left = 70, right = 20>", "#attn.or<#attn.prefix<9>, #attn.causal>"});
    problem.setMaskAttr(llvm::cast<MaskInterface>(mlir::parseAttribute(other, context)));
  }
  if (backwardPass) {
    BackwardOp backward = *module.getOps<BackwardOp>().begin();
    backward.setFloat32Dq(random.oneIn(2)), backward.setFloat32Dkv(random.oneIn(2));
  }
  problem.setSinglePieces(random.oneIn(2)), problem.setKeepPadding(random.oneIn(2));
  return textOf(module);
}

/// The problem's text with bounds of a tile or two, as a rule with what all keys of a sequence are looked at for in one
/// go: packed rows, a mask that hides none (or a causal one), and scores as they are; of gradients a tile, and keys
/// that heads do not share.
static std::string forBounds(mlir::ModuleOp module, uint64_t kernelSeed) {
  ProblemOp problem = *module.getOps<ProblemOp>().begin();
  Random random(kernelSeed, 5);
  mlir::MLIRContext *context = problem.getContext();
  auto bound = [&] {
    if (backwardPass && !random.oneIn(4))
      return uint64_t(random.between(65, 256));
    return uint64_t(
        random.pick<int64_t>({85, 100, 128, 129, 140, 144, 150, 161, 190, 192, 200, 224, 230, 250, 256, 300}));
  };
  problem.removeExpectedSeqlenQAttr(), problem.removeExpectedSeqlenKvAttr();
  uint64_t rows = bound();
  problem.setMaxSeqlenQ(rows);
  problem.setMaxSeqlenKv(random.oneIn(3) ? bound() : rows);
  auto narrow = [&](uint64_t dim) { return dim <= 128 ? dim : 8 * random.between(1, 16); };
  problem.setDimQk(narrow(problem.getDimQk()));
  problem.setDimV(narrow(problem.getDimV()));
  if (!random.oneIn(4)) {
    auto packed = LayoutAttr::get(context, LayoutKind::thd, random.oneIn(2) ? Packing::padded : Packing::contiguous);
    problem.setQLayoutAttr(packed), problem.setOLayoutAttr(packed);
    packed = LayoutAttr::get(context, LayoutKind::thd, random.oneIn(2) ? Packing::padded : Packing::contiguous);
    problem.setKLayoutAttr(packed), problem.setVLayoutAttr(packed);
  }
  bool packed = problem.getQLayout().isPacked() || problem.getKLayout().isPacked();
  if (!random.oneIn(4) || (packed && llvm::any_of(problem.getModifiers(), needsDense))) {
    problem.removeScoreAttr();
    if (!backwardPass || random.oneIn(2)) // gradients are looked at with dropout, too
      problem.removeDropoutAttr(), problem.removeSeedAttr();
  }
  if (!random.oneIn(4))
    problem.setMaskAttr(
        llvm::cast<MaskInterface>(mlir::parseAttribute(random.oneIn(3) ? "#attn.causal" : "#attn.full", context)));
  if (!backwardPass)
    return textOf(problem);
  if (!random.oneIn(4))
    problem.setKvHeads(problem.getHeads());
  if (random.oneIn(4) && problem.getQLayout().isPacked() && problem.getKLayout().isPacked()) {
    problem.setExpectedSeqlenQ(problem.getMaxSeqlenQ()), problem.setExpectedSeqlenKv(problem.getMaxSeqlenKv());
    problem.removeMaxSeqlenQAttr(), problem.removeMaxSeqlenKvAttr();
  }
  return textOf(module);
}

/// Tiles that sequences own, for which shared memory has room.
static tile::CtaPerSequenceAttr anyCtaPerSequence(ProblemOp problem, const Target &target, Random &random,
                                                  bool backward) {
  int64_t group = problem.getHeads() / problem.getKvHeads(), warps = random.pick<int64_t>({1, 1, 2, 4});
  int64_t rows = 16 * warps * random.between(1, 2), keys = 16 * warps * random.between(1, 2);
  // Of both sides' rows two tensors, and what a block keeps beside them.
  int64_t perRow = 2 * (llvm::alignTo(problem.getDimQk(), 16) + llvm::alignTo(problem.getDimV(), 16) + 16);
  while ((rows + keys) * perRow + 4096 > target.info().sharedMemory)
    (rows > keys ? rows : keys) /= 2, warps = std::min(warps, std::min(rows, keys) / 16);
  int64_t pack = backward || random.oneIn(2) ? group : 1;
  if (dependsOnHead(problem.getMask()) || group > rows) // tests of a tile are of one head
    pack = 1;
  return tile::CtaPerSequenceAttr::get(problem.getContext(), rows, keys, warps, /*blocks=*/1).withPackHeads(pack);
}

/// The problem's text with bounds on its sequences, of which most are longer, head dims up
/// to 512, and either what the heuristic streams it with or any rows and keys at a time.
static std::string forShortSequences(mlir::ModuleOp module, const Target &target, uint64_t kernelSeed) {
  ProblemOp problem = *module.getOps<ProblemOp>().begin();
  Random random(kernelSeed, 3);
  auto bound = [&] { return uint64_t(random.pick<int64_t>({1, 1, 2, 3, 5, 8, 16, 17, 40, 65, 90, 128})); };
  problem.setMaxSeqlenQ(bound());
  problem.setMaxSeqlenKv(bound());
  if (random.oneIn(4))
    problem.setDimQk(8 * random.between(1, 64));
  if (random.oneIn(4))
    problem.setDimV(8 * random.between(1, 64));
  if (backwardPass && dependsOnHead(problem.getMask())) { // their gradients end there
    problem.setDimQk(std::min<uint64_t>(problem.getDimQk(), 256));
    problem.setDimV(std::min<uint64_t>(problem.getDimV(), 256));
  }
  if (Random(kernelSeed, 4).oneIn(3) && problem.getQLayout().isPacked() &&
      problem.getKLayout().isPacked()) { // as is typical: others have kernels of their own, but for wide heads
    problem.setExpectedSeqlenQ(problem.getMaxSeqlenQ()), problem.setExpectedSeqlenKv(problem.getMaxSeqlenKv());
    problem.removeMaxSeqlenQAttr(), problem.removeMaxSeqlenKvAttr();
    return textOf(module);
  }
  BackwardOp backward;
  if (backwardPass)
    backward = *module.getOps<BackwardOp>().begin();
  if (backwardPass && dependsOnHead(problem.getMask())) // not streamed
    return textOf(module);
  mlir::Attribute chosen =
      chooseSchedule(backward ? Computation(backward) : Computation(problem), target.info()).schedule;
  if (auto both = llvm::dyn_cast<tile::ByLengthAttr>(chosen); both && backward)
    chosen = both.getShortSequences();
  auto kernel = llvm::dyn_cast<tile::ScheduleInterface>(chosen);
  if (kernel && kernel.isPerSequence() && random.oneIn(2))
    return textOf(module);
  auto give = [&](mlir::Attribute schedule) {
    backward ? backward.setScheduleAttr(schedule) : problem.setScheduleAttr(schedule);
    return textOf(module);
  };
  if (std::max(problem.getDimQk(), problem.getDimV()) <= 256 && random.oneIn(2))
    return give(anyCtaPerSequence(problem, target, random, backwardPass));
  int64_t group = problem.getHeads() / problem.getKvHeads(), pack = random.pick<int64_t>({1, 2, 3, 4});
  pack = group % pack || backwardPass ? 1 : pack;
  int64_t chunks = std::max(problem.getDimQk(), problem.getDimV()) / 8;
  int64_t least = chunks > 16 ? 8 : chunks > 4 ? 2 : 1, lanes = std::min<int64_t>(32, least << random.between(0, 4));
  if (dependsOnHead(problem.getMask())) // a warp has one head
    pack = 1, lanes = 32;
  int64_t rows = pack * random.between(1, 4 / pack), keys = random.between(1, 6);
  return give(tile::SimtRowsAttr::get(problem.getContext(), rows, keys, lanes, random.pick<int64_t>({1, 2, 4, 8}),
                                      /*blocks=*/1, pack));
}

/// The problem's text with a schedule that splits the loop of every KV tile, if its mask allows that.
static std::string forSplitQ(mlir::ModuleOp module, const Target &target, uint64_t kernelSeed) {
  BackwardOp backward = *module.getOps<BackwardOp>().begin();
  auto kernels = llvm::dyn_cast<tile::BackwardKernelsAttr>(chooseSchedule(backward, target.info()).schedule);
  if (!kernels)
    return textOf(module);
  kernels = kernels.withSplitQ(kernelSeed % 4 ? 1 : 3);
  if (!isRefused(backward, backward.getProblemOp(), target, kernels))
    backward.setScheduleAttr(kernels);
  return textOf(module);
}

/// Kernels of a backward pass with tiles of different sizes, or those that the heuristic has for `of` as it is.
static mlir::Attribute anyBackwardKernels(BackwardOp of, const Target &target, Random &random) {
  mlir::Attribute chosen = chooseSchedule(of, target.info()).schedule;
  auto kernels = llvm::dyn_cast<tile::BackwardKernelsAttr>(chosen);
  if (!target.isHost() || !kernels)
    return kernels ? kernels.withSplitQ(0) : kernels;
  auto tiles = [&](int64_t qTile, int64_t kvTile) -> tile::ScheduleInterface {
    return tile::TiledBackwardAttr::get(of.getContext(), qTile, kvTile, /*warps=*/1, /*ctas_per_sm=*/1);
  };
  auto size = [&] { return random.pick<int64_t>({16, 32, 64, 128}); };
  return tile::BackwardKernelsAttr::get(of.getContext(), kernels.getAccumulation(), tiles(size(), size()),
                                        tile::ScheduleInterface(), tiles(size(), size()), /*split_q=*/0);
}

/// The problem's text with a mask under which rows see every n-th key, and tiles of every n-th row, if those can
/// compute it.
static std::string forResidues(mlir::ModuleOp module, const Target &target, uint64_t kernelSeed) {
  ProblemOp problem = *module.getOps<ProblemOp>().begin();
  mlir::MLIRContext *context = problem.getContext();
  Random random(kernelSeed, 6);
  problem.removeScoreAttr(), problem.removeDropoutAttr(), problem.removeSeedAttr();
  int64_t stride = random.pick<int64_t>({2, 3, 4, 4, 5, 6, 7, 8, 12, 16, 20});
  auto strided = StridedMaskAttr::get(context, stride, random.between(0, stride - 1),
                                      random.oneIn(2) ? Diagonal::bottom_right : Diagonal::top_left);
  MaskInterface mask = problem.getMask();
  BackwardOp backward;
  if (backwardPass)
    backward = *module.getOps<BackwardOp>().begin();
  mlir::Attribute tiles;
  int64_t wide = std::max(problem.getDimQk(), problem.getDimV());
  if (backward)
    tiles = anyBackwardKernels(backward, target, random);
  else if (target.info().specializesWarps)
    tiles = tile::WarpSpecializedAttr::get(context, 128, wide > 128 ? 48 : random.pick<int64_t>({48, 64, 80, 128}),
                                           /*warps=*/8, /*ctas_per_sm=*/1);
  else
    tiles =
        tile::TiledAttr::get(context, 64, random.pick<int64_t>({16, 32, 64, 128}), /*warps=*/target.isHost() ? 1 : 4,
                             /*ctas_per_sm=*/1);
  // Some masks have no tiles by residue (those with trees, for example); the causal one has.
  for (MaskInterface other : {mask, MaskInterface(CausalMaskAttr::get(context, Diagonal::top_left))}) {
    problem.setMaskAttr(AndMaskAttr::get(context, {other, strided}));
    std::optional<ResidueMask> residues = findResidues(canonicalMask(problem.getMask()));
    if (!tiles || !residues)
      continue;
    auto schedule = tile::ByResidueAttr::get(context, residues->strided.getStride(), tiles);
    if (isRefused(backward ? Computation(backward) : Computation(problem), problem, target, schedule))
      continue;
    backward ? backward.setScheduleAttr(schedule) : problem.setScheduleAttr(schedule);
    break;
  }
  return textOf(module);
}

/// All arrays of score modifiers and sinks.
static std::string learnedArrays(Compilation &compilation, const std::string &text) {
  auto module = compilation.parse(text, "fuzz");
  std::string names;
  if (module)
    for (const ScoreOperand &array : scoreOperands(*(**module).getOps<ProblemOp>().begin()))
      names += (names.empty() ? "\"" : ", \"") + array.name + "\"";
  return names.empty() ? "" : " requires_grad([" + names + "])";
}

/// With `keep_padding` no row in no piece has been written. Such rows then become what they are without the clause,
/// which `compare` expects. Returns what is wrong.
static std::string checkKeptPadding(Computation computation, Problem &made) {
  if (!computation.problem.getKeepPadding())
    return "";
  for (auto &[name, tensor] : made.results) {
    bool ofKeys = name == "dk" || name == "dv", isLse = name == "lse";
    std::vector<bool> isInPiece(tensor.shape()[isLse ? 1 : 0], false);
    for (int64_t row : reference::rowsOfPieces(made.inputs, ofKeys ? "kv" : "q"))
      if (row >= 0)
        isInPiece[row] = true;
    std::string wrong;
    tensor.forEachElement([&](llvm::ArrayRef<int64_t> index, int64_t at) {
      if (isInPiece[index[isLse ? 1 : 0]])
        return;
      if (!std::isnan(tensor.load(at)) && wrong.empty()) // its bytes were 0xff
        wrong = name.str() + ": expected padding as it was, got: another value in row " +
                std::to_string(index[isLse ? 1 : 0]);
      tensor.store(at, isLse ? -HUGE_VAL : 0);
    });
    if (!wrong.empty())
      return wrong;
  }
  return "";
}

static void fuzzKernel(const Target &target, uint64_t kernelSeed, Summary &summary) {
  Compilation compilation;
  mlir::MLIRContext *context = &compilation.getContext();
  auto dataTypes = tile::dataTypesOf(target.family, context);
  KernelCase kernelCase = makeKernel(kernelSeed, llvm::is_contained(dataTypes, mlir::Float32Type::get(context)));
  auto leaveOut = [&](llvm::StringRef clause) {
    if (size_t at = kernelCase.text.find(clause); at != std::string::npos)
      kernelCase.text.erase(at, clause.size());
  };
  if (splitQ) // of dense layouts only
    if (size_t at = kernelCase.text.find("layout("); at != std::string::npos)
      kernelCase.text.replace(at, kernelCase.text.find(')', at) - at, "layout(bshd");
  if (backwardPass) // it reads lse
    leaveOut(" outputs(o)");
  if (noLengths)
    leaveOut(" expected_seqlen(256)"), leaveOut(" expected_seqlen(16384)");
  if (backwardPass)
    kernelCase.text +=
        kernelSeed % 3 ? "\nattn.backward @grads of(@fuzz)" : "\nattn.backward @grads of(@fuzz) deterministic dlse";
  if (backwardPass && !shortSequences && !maxSeqlens && !byResidue && !ofPieces)
    kernelCase.text += learnedArrays(compilation, kernelCase.text);
  auto module = compilation.parse(kernelCase.text, "fuzz");
  if (module && splitQ)
    kernelCase.text = forSplitQ(**module, target, kernelSeed);
  if (module && byResidue)
    kernelCase.text = forResidues(**module, target, kernelSeed);
  if (module && ofPieces)
    kernelCase.text = forPieces(**module, kernelSeed);
  if (module && fewQueries)
    kernelCase.text = forFewQueries(*(**module).getOps<ProblemOp>().begin(), target, kernelSeed);
  if (module && maxSeqlens)
    kernelCase.text = forBounds(**module, kernelSeed);
  if (module && shortSequences)
    kernelCase.text = forShortSequences(**module, target, kernelSeed);
  auto kernel =
      module ? Kernel::create(kernelCase.text, "", target) : rt::Result<std::shared_ptr<const Kernel>>(module.error());
  if (!kernel) {
    std::lock_guard<std::mutex> lock(summary.mutex);
    return summary.fail(kernelCase, kernelSeed, 0, "", kernel.error().str());
  }
  Computation problem = *findComputation(**module, "");
  std::string mask;
  llvm::raw_string_ostream(mask) << canonicalMask(problem.problem.getMask());
  uint64_t begin = onlyProblem >= 0 ? onlyProblem : 0, end = onlyProblem >= 0 ? begin + 1 : uint64_t(problemCount);
  for (uint64_t number = begin; number < end; ++number) {
    Problem made = makeProblem(problem, kernelSeed, number, noLengths);
    Verdict verdict;
    auto special = specialize(**kernel, made.inputs);
    rt::Status ran = special ? runTensors(**special, made.inputs, made.results) : special.status();
    if (!ran)
      verdict.failure = ran.error().str();
    else if (verdict.failure = checkKeptPadding(problem, made); verdict.failure.empty())
      verdict = compare(problem, made);
    std::lock_guard<std::mutex> lock(summary.mutex);
    ++summary.problems;
    summary.bySizes += special && *special != *kernel;
    summary.digests.insert((*kernel)->getCompiled().digest);
    summary.masks.insert(mask);
    for (const std::string &name : {kernelCase.mask, kernelCase.layout, kernelCase.heads, kernelCase.score})
      ++summary.classes[name];
    summary.elements += verdict.compared;
    summary.norm.take(verdict.normRatio, kernelSeed, number);
    summary.element.take(verdict.elementRatio, kernelSeed, number);
    summary.lse.take(verdict.lseRatio, kernelSeed, number);
    if (!verdict.failure.empty())
      summary.fail(kernelCase, kernelSeed, number, made.description, verdict.failure);
    else if (verbose)
      llvm::outs() << "ok --kernel-seed=" << kernelSeed << " --problem-seed=" << number << ": norm "
                   << verdict.normRatio << " element " << verdict.elementRatio << " lse " << verdict.lseRatio << " | "
                   << kernelCase.text << " | " << made.description << "\n";
    llvm::outs().flush();
  }
}

static nlohmann::ordered_json toJson(const Summary &summary, const Target &target, double seconds) {
  char date[32];
  std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  nlohmann::ordered_json line = {{"date", date}, {"target", target.str()}};
  if (target.isHost())
    line["cpus"] = std::thread::hardware_concurrency();
  else if (auto driver = rt::Driver::get())
    if (auto name = (*driver)->deviceName(0))
      line["gpu"] = *name;
  line["modes"] = nlohmann::ordered_json::array(); // options by their names
  for (const cl::opt<bool> *mode :
       {&fewQueries, &splitQ, &byResidue, &ofPieces, &maxSeqlens, &shortSequences, &noLengths, &backwardPass})
    if (*mode)
      line["modes"].push_back(mode->ArgStr.str());
  line["seed"] = uint64_t(seed);
  line["kernels"] = summary.digests.size();
  line["masks"] = summary.masks.size();
  line["problems"] = summary.problems;
  line["elements_of_o"] = summary.elements;
  line["failures"] = summary.failures;
  line["worst_norm_ratio_of_2"] = summary.norm.json();
  line["worst_element_ratio_of_1"] = summary.element.json();
  line["worst_lse_ratio_of_1"] = summary.lse.json();
  line["problems_by_class"] = summary.classes;
  line["seconds"] = std::round(seconds * 10) / 10;
  return line;
}

static double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "random kernels and problems against the reference\n");
  rt::Result<Target> parsed = Target::parse(targetText);
  if (!parsed) {
    llvm::errs() << "error: " << parsed.error().str() << "\n";
    return 1;
  }
  if (!(mostSeconds > 0)) {
    llvm::errs() << "error: expected --seconds above 0, got: " << mostSeconds << "\n";
    return 1;
  }
  if (fewQueries && backwardPass) {
    llvm::errs() << "error: expected --few-queries without --backward: split-KV is a schedule of forward passes\n";
    return 1;
  }
  if (splitQ && !backwardPass) {
    llvm::errs() << "error: expected --split-q with --backward: it is a schedule of backward passes\n";
    return 1;
  }
  const Target &target = *parsed;
  auto start = std::chrono::steady_clock::now();
  Summary summary;
  // Runs of different seeds share no kernel seed.
  uint64_t first = onlyKernel >= 0 ? uint64_t(onlyKernel) : seed * 1'000'000;
  uint64_t end = onlyKernel >= 0 ? first + 1 : first + kernelCount;
  std::atomic<uint64_t> next = first;
  auto work = [&] {
    for (uint64_t kernel = next++; kernel < end && since(start) < mostSeconds; kernel = next++)
      fuzzKernel(target, kernel, summary);
  };
  unsigned count = threadCount ? unsigned(threadCount) : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < count; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();

  double seconds = since(start);
  nlohmann::ordered_json line = toJson(summary, target, seconds);
  llvm::outs() << line.dump() << "\n"
               << summary.problems << " problems of " << summary.digests.size() << " kernels and "
               << summary.masks.size() << " masks, " << summary.failures << " failures\n";
  if (noLengths)
    llvm::outs() << summary.bySizes << " of them had programs by their sizes\n";
  if (!jsonFile.empty()) {
    std::error_code error;
    llvm::raw_fd_ostream file(jsonFile, error, llvm::sys::fs::OF_Append);
    if (error) {
      llvm::errs() << "error: cannot write `" << jsonFile << "`: " << error.message() << "\n";
      return 1;
    }
    file << line.dump() << "\n";
  }
  return summary.failures != 0 || summary.problems == 0;
}
