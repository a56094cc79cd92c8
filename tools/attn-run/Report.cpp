// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Report.h"
#include "attn/Reference/Difference.h"
#include "attn/Reference/ProgramInputs.h"
#include "attn/Reference/Segments.h"
#include "attn/Reference/Sequences.h"
#include "llvm/Support/Format.h"

using namespace attn;
using namespace attn::reference;

namespace {
struct ClassCounts {
  int64_t empty = 0, full = 0, partial = 0;
};
} // namespace

/// Counts the tiles of all sequences, of one head where masks are the same for all.
static ClassCounts countClasses(ProblemOp problem, const Kernel &kernel, const Tensors &inputs, const Sizes &sizes) {
  if (problem.getSegments()) {
    Expanded expanded = llvm::cantFail(expand(problem, inputs));
    return countClasses(expanded.problem, kernel, expanded.inputs, sizes);
  }
  int64_t qTile = kernel.getQTile(), kvTile = kernel.getKvTile(), rowStride = kernel.getRowStride();
  MaskInterface mask = canonicalMask(problem.getMask());
  if (rowStride != 1) // tiles of one residue have the rest of the mask
    mask = findResidues(mask, rowStride)->rest;
  Sequences sequences(problem, inputs, sizes);
  ClassCounts counts;
  auto tile = [](int64_t at, int64_t size, int64_t end) {
    return Interval{Index::position(at), Index::position(std::min(at + size, end))};
  };
  for (int64_t b = 0; b < sequences.size(); ++b)
    for (int64_t h = 0, heads = dependsOnHead(problem.getMask()) ? problem.getHeads() : 1; h < heads; ++h) {
      MaskScope scope = sequences.scope(b, h);
      int64_t lenQ = sequences.queriesOf(b).length, lenK = sequences.keysOf(b).length;
      for (int64_t q = 0; q < lenQ; q += qTile)
        for (int64_t k = 0; k < lenK; k += kvTile) {
          TileClass c = classify(mask, scope, tile(q, qTile, lenQ), tile(k, kvTile, lenK));
          bool isWhole = c == TileClass::Full && k + kvTile <= lenK; // keys behind the last one are tested for
          (c == TileClass::Empty ? counts.empty : isWhole ? counts.full : counts.partial) += rowStride;
        }
    }
  return counts;
}

static void reportKernel(llvm::raw_ostream &os, const Target &target, const Kernel &kernel) {
  const rt::CompiledKernel &compiled = kernel.getCompiled();
  bool compiledNow = compiled.origin == rt::CompiledKernel::Origin::Compiled;
  os << "target   " << target.str() << ", kernel " << (compiledNow ? "compiled" : "from the cache");
  if (!compiled.directory.empty())
    os << ", " << compiled.directory;
  os << "\n";
}

void attn::reportOp(llvm::raw_ostream &os, mlir::Operation *op, const Target &target, const Kernel &kernel,
                    const Tensors &inputs) {
  os << (isa<ProgramOp>(op) ? "program  @" : "op       @") << mlir::SymbolTable::getSymbolName(op).getValue() << "\n";
  os << "sizes    ";
  for (const rt::Program::Tensor &tensor : kernel.getTensors())
    if (!tensor.isResult())
      os << tensor.name << " " << shapeText(inputs.find(tensor.name)->second.shape()) << " ";
  os << "\n";
  reportKernel(os, target, kernel);
}

void attn::reportProblem(llvm::raw_ostream &os, Computation computation, const Target &target, const Kernel &kernel,
                         const Tensors &inputs, const Sizes &sizes) {
  ProblemOp problem = computation.problem;
  os << "problem  " << problem << "\n";
  if (computation.backward)
    os << "backward " << computation.backward << "\n";
  os << "sizes    ";
  for (ProblemTensor &tensor : tensorsOf(computation))
    if (tensor.role == ProblemTensor::Operand)
      os << tensor.name << " " << shapeText(inputs.find(tensor.name)->second.shape()) << " ";
  os << "\n";
  reportKernel(os, target, kernel);
  os << "schedule " << kernel.getSchedule() << "\n";
  ClassCounts counts = countClasses(problem, kernel, inputs, sizes);
  for (auto &[key, value] : kernel.getArtifact().notes)
    os << "kernel   " << value << "\n";
  os << "tiles    of " << (dependsOnHead(problem.getMask()) ? "all heads: " : "one head: ") << counts.full << " full, "
     << counts.partial << " partial, " << counts.empty << " empty (not visited)\n";
}

static bool reportOne(llvm::raw_ostream &os, const char *name, const Difference &difference, double tolerance) {
  bool good = difference.maxAbs <= tolerance && !difference.written;
  os << (good ? "ok       " : "FAILED   ") << name << ": max error " << llvm::format("%.3g", difference.maxAbs)
     << ", rms " << llvm::format("%.3g", difference.rms) << " over " << difference.compared << " values up to "
     << llvm::format("%.3g", difference.maxExpected)
     << (difference.notFinite ? ", " + std::to_string(difference.notFinite) + " of them infinite or NaN" : "")
     << "; tolerance " << llvm::format("%.3g", tolerance)
     << (difference.maxAbs <= tolerance ? "" : ", at " + shapeText(difference.worst))
     << (difference.written ? "; " + std::to_string(difference.written) + " values of padding were overwritten" : "")
     << "\n";
  return good;
}

static bool reportGradients(llvm::raw_ostream &os, BackwardOp backward, const Tensors &inputs, const Tensors &results) {
  llvm::Expected<Gradients> expected = interpret(backward, inputs, {}, {});
  if (!expected) {
    os << "error: " << llvm::toString(expected.takeError()) << "\n";
    return false;
  }
  bool good = true;
  std::vector<std::string> names = {"dq", "dk", "dv"};
  for (const ScoreOperand &array : backward.getDifferentiatedArrays())
    names.push_back(gradientOf(array));
  for (const std::string &name : names) {
    Difference found = differenceOfGradient(*expected, name, results.find(name)->second);
    good &= reportOne(os, name.c_str(), found, toleranceOfGradient(backward, inputs, name, found));
  }
  return good;
}

void attn::reportStatus(llvm::raw_ostream &os, const Tensors &results) {
  auto found = results.find("status");
  if (found == results.end())
    return;
  const Tensor &status = found->second;
  for (int64_t row = 0; row < status.numElements(); ++row)
    if (int64_t bits = status.load(row))
      os << "status   " << bits << " of row " << row << ": " << statusText(bits) << "\n";
}

bool attn::reportError(llvm::raw_ostream &os, Computation computation, const Tensors &inputs, const Tensors &results) {
  if (computation.backward)
    return reportGradients(os, computation.backward, inputs, results);
  ProblemOp problem = computation.problem;
  auto expected = interpret(problem, inputs);
  if (!expected) {
    os << "error: " << llvm::toString(expected.takeError()) << "\n";
    return false;
  }
  Difference o = differenceOfO(problem, *expected, results.find("o")->second);
  bool good = reportOne(os, "o", o, toleranceOfO(problem, o));
  if (problem.hasLse()) {
    Difference lse = differenceOfLse(*expected, results.find("lse")->second);
    good &= reportOne(os, "lse", lse, toleranceOfLse(lse));
  }
  if (auto status = results.find("status"); status != results.end()) {
    int64_t wrong = 0, rows = expected->status.numElements();
    for (int64_t i = 0; i < rows; ++i)
      wrong += status->second.load(i) != expected->status.load(i);
    os << (wrong ? "FAILED   " : "ok       ") << "status: " << wrong << " of " << rows << " rows differ\n";
    good &= !wrong;
  }
  return good;
}

bool attn::reportError(llvm::raw_ostream &os, mlir::Operation *op, const rt::Program &signature,
                       const Tensors &expected, const Tensors &results) {
  // bfloat16 is coarser than float16.
  reference::Dtype coarsest = reference::Dtype::F32;
  for (const rt::Program::Tensor &tensor : signature.tensors)
    if (tensor.dtype == rt::Dtype::BF16 || (tensor.dtype == rt::Dtype::F16 && coarsest == reference::Dtype::F32))
      coarsest = reference::dtypeOf(tensor.dtype);
  bool good = true, ofProgram = isa<ProgramOp>(op);
  // Results of a program may be small since large numbers cancel, as the gradient of a lone key does.
  double largest = 0;
  std::vector<std::pair<const rt::Program::Tensor &, Difference>> differences;
  for (const rt::Program::Tensor &tensor : signature.tensors) {
    if (!tensor.isResult())
      continue;
    Difference found = difference(expected.find(tensor.name)->second, results.find(tensor.name)->second);
    if (ofProgram && tensor.dtype != rt::Dtype::I32)
      largest = std::max(largest, found.maxExpected);
    differences.push_back({tensor, std::move(found)});
  }
  for (auto &[tensor, found] : differences) {
    bool isInt = tensor.dtype == rt::Dtype::I32;
    reference::Dtype dtype = ofProgram && !isInt ? coarsest : reference::dtypeOf(tensor.dtype);
    found.maxExpected = std::max(found.maxExpected, largest);
    good &= reportOne(os, tensor.name.c_str(), found, toleranceOfResult(dtype, ofProgram, found));
  }
  return good;
}
