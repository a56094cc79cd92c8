// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_API_WARM_H
#define ATTN_API_WARM_H

#include "attn-rt/Cache.h"
#include "attn/API/Compile.h"

namespace attn {

/// The names of all passes of a module; an error if there is none.
rt::Result<std::vector<std::string>> passesOf(llvm::StringRef text);

/// Compiles the kernels of the pass `name`, or without a name those of all passes of the module, or finds them in
/// `cache`. Nothing is loaded, and no device is asked. `use` is called for each kernel that there is, until a pass
/// fails.
rt::Status warm(rt::Cache &cache, llvm::StringRef text, llvm::StringRef name, const Target &target,
                llvm::function_ref<void(const rt::CompiledKernel &)> use);

} // namespace attn

#endif // ATTN_API_WARM_H
