// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of `attn.segments` against the reference:
//   attn-segments-test golden FILE.json      cases with known answers
//   attn-segments-test random --count=N      N cases of each family
//   attn-segments-test table                 which leading dimensions go together
//   attn-segments-test attention --count=N   attention over the sequences, N cases of each kind
//   attn-segments-test bad-inputs            each diagnostic, each bit of the status
//
#include "Programs.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

using namespace attn;
using namespace attn::segments;
namespace cl = llvm::cl;

static cl::opt<std::string> command(cl::Positional, cl::Required, cl::desc("golden|random|attention|table|bad-inputs"));
static cl::opt<std::string> file(cl::Positional, cl::desc("FILE.json"));
static cl::opt<std::string> targetText("target", cl::desc("default: the GPU if there is one, else cpu"));
static cl::opt<int64_t> count("count", cl::desc("cases of each family"), cl::init(1000));
static cl::opt<uint64_t> seed("seed", cl::init(1));
static cl::opt<std::string> family("family", cl::desc("this one only"));
static cl::opt<int64_t> onlyCase("case", cl::desc("rerun this case only"), cl::init(-1));

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "kernels of attn.segments against the reference\n");
  rt::Result<Target> target = Target::parse(targetText);
  if (!target) {
    llvm::errs() << "error: " << target.error().str() << "\n";
    return 1;
  }
  Programs programs(*target);
  bool good = command == "golden"       ? golden(programs, file)
              : command == "random"     ? randomCases(programs, count, seed, family, onlyCase)
              : command == "attention"  ? attention(programs, *target, count, seed)
              : command == "table"      ? table(programs)
              : command == "bad-inputs" ? badInputs(programs, *target)
                                        : false;
  llvm::outs() << command << " on " << target->str() << ": " << (good ? "ok" : "FAILED") << "\n";
  return good ? 0 : 1;
}
