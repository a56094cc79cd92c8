// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "OptionChecks.h"
#include "attn/Reference/NumberChecks.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

llvm::Error attn::checkSizes(llvm::StringRef option, llvm::ArrayRef<int64_t> sizes, int64_t least) {
  return reference::checkSizes("--" + option, sizes, least);
}

llvm::Error attn::checkPositive(llvm::StringRef option, double number) {
  return reference::checkPositive("--" + option, number);
}

/// A file that is there is the same by whatever path; one that is not yet, by its folder and name.
static bool areSameFile(llvm::StringRef a, llvm::StringRef b) {
  namespace fs = llvm::sys::fs;
  namespace path = llvm::sys::path;
  bool same = false;
  if (!fs::equivalent(a, b, same))
    return same;
  auto folderOf = [](llvm::StringRef file) {
    llvm::StringRef folder = path::parent_path(file);
    return folder.empty() ? "." : folder;
  };
  return path::filename(a) == path::filename(b) && !fs::equivalent(folderOf(a), folderOf(b), same) && same;
}

llvm::Error attn::checkResultPaths(llvm::ArrayRef<llvm::StringRef> inputs, llvm::ArrayRef<llvm::StringRef> results) {
  for (auto [i, result] : llvm::enumerate(results)) {
    for (llvm::StringRef earlier : results.take_front(i))
      if (areSameFile(earlier, result))
        return llvm::createStringError("expected a file of its own for each result, got: `" + earlier + "` and `" +
                                       result + "`");
    for (llvm::StringRef input : inputs)
      if (areSameFile(input, result))
        return llvm::createStringError("expected a result's file to be none of the inputs, got: `" + result +
                                       "`, which is `" + input + "`");
  }
  return llvm::Error::success();
}
