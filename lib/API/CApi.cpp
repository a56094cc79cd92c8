// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-c/Attn.h"
#include "attn/API/Jit.h"

using namespace attn;

struct attnKernel {
  std::shared_ptr<Kernel> kernel;
  std::string resources;
};

static thread_local std::string lastError;

static int fail(const rt::Error &error) {
  lastError = error.str();
  return 1;
}

static llvm::SmallVector<TensorView, 12> viewsOf(const attnKernel *kernel, const attnTensor *tensors) {
  llvm::SmallVector<TensorView, 12> views;
  for (size_t i = 0; i < kernel->kernel->getSignature().tensors.size(); ++i) {
    const attnTensor &t = tensors[i];
    size_t rank = t.rank < 0 ? 0 : t.rank;
    views.push_back({t.data, Dtype(t.dtype), llvm::ArrayRef(t.shape, rank), {}});
    if (t.strides)
      views.back().strides = llvm::ArrayRef(t.strides, rank);
  }
  return views;
}

int attnVersion(void) { return 100; }

const char *attnLastError(void) { return lastError.c_str(); }

int attnCompile(const char *mlir, const char *name, const char *targetText, attnKernel **kernel) {
  Target target = Target::preferred();
  if (targetText) {
    rt::Result<Target> parsed = Target::parse(targetText);
    if (!parsed)
      return fail(parsed.error());
    target = *parsed;
  }
  auto created = Kernel::create(mlir, name ? name : "", target);
  if (!created)
    return fail(created.error());
  *kernel = new attnKernel{*created, (*created)->getCompiled().report.str()};
  return 0;
}

void attnDestroy(attnKernel *kernel) { delete kernel; }

int attnTensorCount(const attnKernel *kernel) { return kernel->kernel->getSignature().tensors.size(); }

const char *attnTensorName(const attnKernel *kernel, int index) {
  const auto &tensors = kernel->kernel->getSignature().tensors;
  return index < 0 || size_t(index) >= tensors.size() ? "" : tensors[index].name.c_str();
}

int attnTensorIsResult(const attnKernel *kernel, int index) {
  const auto &tensors = kernel->kernel->getSignature().tensors;
  return index >= 0 && size_t(index) < tensors.size() && tensors[index].isResult();
}

int attnWorkspaceSize(const attnKernel *kernel, const attnTensor *tensors, size_t *bytes) {
  rt::Result<Sizes> sizes = kernel->kernel->getSignature().check(viewsOf(kernel, tensors));
  if (!sizes)
    return fail(sizes.error());
  *bytes = kernel->kernel->workspaceBytes(*sizes);
  return 0;
}

int attnLaunch(const attnKernel *kernel, const attnTensor *tensors, void *, void *stream) {
  rt::Status status = kernel->kernel->launch(viewsOf(kernel, tensors), rt::Stream(stream));
  return status ? 0 : fail(status.error());
}

int64_t attnCompileCount(void) { return processCache().stats().compiles; }

const char *attnSource(const attnKernel *kernel) { return kernel->kernel->getArtifact().source.c_str(); }

const char *attnResources(const attnKernel *kernel) { return kernel->resources.c_str(); }
