// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-c/Attn.h"
#include "attn/API/Describe.h"
#include "attn/API/Jit.h"
#include <fmt/format.h>

using namespace attn;

struct attnKernel {
  std::shared_ptr<Kernel> kernel;
  std::string source, resources;
};

static thread_local std::string lastError;

static int fail(const rt::Error &error) {
  lastError = error.str();
  return 1;
}

/// The tensors as launches take them, or what makes them none.
static rt::Result<llvm::SmallVector<TensorView, 12>> viewsOf(const attnKernel *kernel, const attnTensor *tensors) {
  if (!kernel || !tensors)
    return rt::Error{"expected a kernel and its tensors, got: NULL"};
  llvm::SmallVector<TensorView, 12> views;
  for (auto [i, spec] : llvm::enumerate(kernel->kernel->getSignature().tensors)) {
    const attnTensor &t = tensors[i];
    if (t.dtype < attnBF16 || t.dtype > attnI32)
      return rt::Error{fmt::format("expected an attnDtype for `{}`, got: {}", spec.name, int(t.dtype))};
    if (t.rank < 0 || t.rank > 8 || (t.rank && !t.shape))
      return rt::Error{fmt::format("expected a rank from 0 to 8 and a shape for `{}`, got: {}{}", spec.name, t.rank,
                                   t.shape ? "" : " and NULL")};
    views.push_back({t.data, Dtype(t.dtype), llvm::ArrayRef(t.shape, size_t(t.rank)), {}});
    if (t.strides)
      views.back().strides = llvm::ArrayRef(t.strides, size_t(t.rank));
  }
  return views;
}

/// The same, checked.
static rt::Result<Sizes> sizesOf(const attnKernel *kernel, const attnTensor *tensors) {
  auto views = viewsOf(kernel, tensors);
  if (!views)
    return views.error();
  return kernel->kernel->getSignature().check(*views);
}

int attnVersion(void) { return 100; }

const char *attnLastError(void) { return lastError.c_str(); }

int attnCompile(const char *mlir, const char *name, const char *targetText, attnKernel **kernel) {
  if (!mlir || !kernel)
    return fail({"expected a module's text and where to put the kernel, got: NULL"});
  rt::Result<Target> target = Target::parse(targetText ? targetText : "");
  if (!target)
    return fail(target.error());
  auto created = Kernel::create(mlir, name ? name : "", *target);
  if (!created)
    return fail(created.error());
  *kernel = new attnKernel{*created, (*created)->getSource(), (*created)->getResources()};
  return 0;
}

int attnDescribe(const char *mlir, const char *name, const char **json) {
  if (!mlir || !json)
    return fail({"expected a module's text and where to put the description, got: NULL"});
  static thread_local std::string description;
  rt::Result<std::string> described = describe(mlir, name ? name : "");
  if (!described)
    return fail(described.error());
  description = std::move(*described);
  *json = description.c_str();
  return 0;
}

void attnDestroy(attnKernel *kernel) { delete kernel; }

int attnTensorCount(const attnKernel *kernel) {
  if (!kernel)
    return fail({"expected a kernel, got: NULL"}), 0;
  return kernel->kernel->getSignature().tensors.size();
}

/// Null, with an error, if there is none.
static const TensorSpec *tensorOf(const attnKernel *kernel, int index) {
  int count = attnTensorCount(kernel);
  if (!kernel)
    return nullptr;
  if (index < 0 || index >= count) {
    fail({fmt::format("expected the number of a tensor, from 0 to {}, got: {}", count - 1, index)});
    return nullptr;
  }
  return &kernel->kernel->getSignature().tensors[index];
}

const char *attnTensorName(const attnKernel *kernel, int index) {
  const TensorSpec *spec = tensorOf(kernel, index);
  return spec ? spec->name.c_str() : "";
}

int attnTensorIsResult(const attnKernel *kernel, int index) {
  const TensorSpec *spec = tensorOf(kernel, index);
  return spec && spec->isResult();
}

int attnWorkspaceSize(const attnKernel *kernel, const attnTensor *tensors, size_t *bytes) {
  rt::Result<Sizes> sizes = sizesOf(kernel, tensors);
  if (!sizes)
    return fail(sizes.error());
  if (!bytes)
    return fail({"expected where to put the size, got: NULL"});
  rt::Result<size_t> needed = kernel->kernel->workspaceBytes(*sizes);
  if (!needed)
    return fail(needed.error());
  *bytes = *needed;
  return 0;
}

static int launch(const attnKernel *kernel, const attnTensor *tensors, void *workspace, void *stream, bool again) {
  auto views = viewsOf(kernel, tensors);
  if (!views)
    return fail(views.error());
  rt::Status status = kernel->kernel->launch(*views, workspace, rt::Stream(stream), again);
  return status ? 0 : fail(status.error());
}

int attnLaunch(const attnKernel *kernel, const attnTensor *tensors, void *workspace, void *stream) {
  return launch(kernel, tensors, workspace, stream, /*again=*/false);
}

int attnLaunchAgain(const attnKernel *kernel, const attnTensor *tensors, void *workspace, void *stream) {
  return launch(kernel, tensors, workspace, stream, /*again=*/true);
}

int64_t attnCompileCount(void) { return processCache().stats().compiles; }

const char *attnSource(const attnKernel *kernel) { return kernel ? kernel->source.c_str() : ""; }

const char *attnResources(const attnKernel *kernel) { return kernel ? kernel->resources.c_str() : ""; }

const char *attnSchedule(const attnKernel *kernel) { return kernel ? kernel->kernel->getSchedule().c_str() : ""; }

const char *attnLaunchSchedule(const attnKernel *kernel, const attnTensor *tensors) {
  rt::Result<Sizes> sizes = sizesOf(kernel, tensors);
  if (!sizes)
    return fail(sizes.error()), nullptr;
  rt::Result<const std::string *> schedule = kernel->kernel->getSchedule(*sizes);
  return schedule ? (*schedule)->c_str() : (fail(schedule.error()), nullptr);
}
