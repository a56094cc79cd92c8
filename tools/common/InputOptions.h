// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Command-line options of tools that need a problem's tensors: how long sequences are, and
// what comes from files. Options exist as long as an object of this does.
//
#ifndef ATTN_TOOLS_COMMON_INPUTOPTIONS_H
#define ATTN_TOOLS_COMMON_INPUTOPTIONS_H

#include "attn/Reference/ProgramInputs.h"
#include "llvm/Support/CommandLine.h"

namespace attn {

/// `NAME=FILE`
inline std::pair<llvm::StringRef, llvm::StringRef> nameAndFile(const std::string &text) {
  return llvm::StringRef(text).split('=');
}

class InputOptions {
public:
  /// That sizes are sane, whatever the problem.
  llvm::Error check() const;
  /// All inputs of a problem or its backward pass, from files or made up (`reference::inputsOf`).
  llvm::Expected<reference::Tensors> inputsOf(Computation computation) const;
  /// What the options and the files say of a problem's inputs.
  llvm::Expected<reference::InputRequest> requestFor(Computation computation) const;

  /// What the options and the files say of the inputs of @`name`, which is no attention problem. With `exact`, numbers
  /// of files, float32 or float64, stay as they are.
  llvm::Expected<reference::InputRequest> requestFor(llvm::StringRef name, const rt::Program &signature,
                                                     bool exact) const;

  /// The files of `--arg`.
  llvm::SmallVector<llvm::StringRef> getFiles() const;

private:
  reference::InputRequest request() const; ///< without files
  llvm::Error loadFiles(Computation computation, reference::Tensors &tensors) const;

  template <typename T> using Opt = llvm::cl::opt<T>;
  llvm::cl::list<std::string> argFiles{
      "arg",
      llvm::cl::desc("an input: NAME=FILE.npy, int32 for integers, else float32, rounded to the dtype of the problem")};
  Opt<uint64_t> seed{"seed", llvm::cl::desc("of inputs that no file gives"), llvm::cl::init(1)};
  Opt<int64_t> batch{"batch", llvm::cl::desc("sequences, or with segments rows of ids; default: 2, packed 4"),
                     llvm::cl::init(2)};
  Opt<int64_t> seqlenQ{"seqlen-q", llvm::cl::desc("query rows of a sequence (dense layouts, segments)"),
                       llvm::cl::init(256)};
  Opt<int64_t> seqlenKv{"seqlen-kv", llvm::cl::desc("keys of a sequence (likewise); default: --seqlen-q"),
                        llvm::cl::init(-1)};
  llvm::cl::list<int64_t> lengthsQ{"lengths-q", llvm::cl::CommaSeparated,
                                   llvm::cl::desc("lengths of packed sequences; default: --lengths-kv")};
  llvm::cl::list<int64_t> lengthsKv{"lengths-kv", llvm::cl::CommaSeparated,
                                    llvm::cl::desc("likewise, keys; default: --lengths-q")};
  Opt<int64_t> padding{"padding", llvm::cl::desc("padded layouts: rows of padding around sequences"),
                       llvm::cl::init(5)};
};

} // namespace attn

#endif // ATTN_TOOLS_COMMON_INPUTOPTIONS_H
