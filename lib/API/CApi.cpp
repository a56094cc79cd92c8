// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-c/Attn.h"
#include "attn/API/Describe.h"
#include "attn/API/Jit.h"
#include <fmt/format.h>

using namespace attn;

struct attnKernel {
  std::shared_ptr<const Kernel> kernel;
};

static thread_local std::string lastError;

static int fail(const rt::Error &error) {
  lastError = error.str();
  return 1;
}

static int finish(const rt::Status &status) { return status ? 0 : fail(status.error()); }

/// Hands out a kernel, or what went wrong.
static int give(const rt::Result<std::shared_ptr<const Kernel>> &made, attnKernel **kernel) {
  if (!made)
    return fail(made.error());
  *kernel = new attnKernel{*made};
  return 0;
}

/// The tensors of a call.
using Views = llvm::SmallVector<TensorView, 24>;

/// The tensors as launches take them, or what makes them none. Results are looked at only where they are `given`.
static rt::Status readViews(const attnKernel *kernel, const attnTensor *tensors, Given given, Views &views) {
  if (!kernel || !tensors)
    return rt::Error{"expected a kernel and its tensors, got: NULL"};
  for (auto [i, spec] : llvm::enumerate(kernel->kernel->getTensors())) {
    const attnTensor &t = tensors[i];
    if (spec.isResult() && given == Given::Inputs) {
      views.push_back({t.data, spec.dtype, {}, {}});
      continue;
    }
    if (t.dtype < attnBF16 || t.dtype > attnI32)
      return rt::Error{fmt::format("expected an attnDtype for `{}`, got: {}", spec.name, int(t.dtype))};
    if (t.rank < 0 || t.rank > attnMaxRank || (t.rank && !t.shape))
      return rt::Error{fmt::format("expected a rank from 0 to {} and a shape for `{}`, got: {}{}", attnMaxRank,
                                   spec.name, t.rank, t.shape ? "" : " and NULL")};
    views.push_back({t.data, Dtype(t.dtype), {t.shape, size_t(t.rank)}, {}});
    if (t.strides)
      views.back().strides = {t.strides, size_t(t.rank)};
  }
  return {};
}

int attnVersion(void) { return ATTN_VERSION_NUMBER; }

const char *attnLastError(void) { return lastError.c_str(); }

//===--------------------------------------------------------------------===//
// Kernels
//===--------------------------------------------------------------------===//

static int makeKernel(const char *mlir, const char *name, const char *targetText, attnKernel **kernel,
                      decltype(Kernel::lower) &make) {
  if (!mlir || !kernel)
    return fail({"expected a module's text and where to put the kernel, got: NULL"});
  rt::Result<Target> target = Target::parse(targetText ? targetText : "");
  if (!target)
    return fail(target.error());
  return give(make(mlir, name ? name : "", *target), kernel);
}

int attnLower(const char *mlir, const char *name, const char *target, attnKernel **kernel) {
  return makeKernel(mlir, name, target, kernel, Kernel::lower);
}

int attnCompile(const char *mlir, const char *name, const char *target, attnKernel **kernel) {
  return makeKernel(mlir, name, target, kernel, Kernel::create);
}

int attnBuild(const attnKernel *kernel) {
  return kernel ? finish(kernel->kernel->build()) : fail({"expected a kernel, got: NULL"});
}

int attnSpecialize(const attnKernel *kernel, const attnTensor *tensors, attnKernel **specialized) {
  Views views;
  if (rt::Status read = readViews(kernel, tensors, Given::Inputs, views); !read)
    return fail(read.error());
  if (!specialized)
    return fail({"expected where to put the kernel, got: NULL"});
  return give(kernel->kernel->specialize(views), specialized);
}

void attnDestroy(attnKernel *kernel) { delete kernel; }

int64_t attnCompileCount(void) { return processCache().stats().compiles; }

const char *attnSource(const attnKernel *kernel) { return kernel ? kernel->kernel->getSource().c_str() : ""; }

const char *attnResources(const attnKernel *kernel) {
  return kernel && kernel->kernel->isBuilt() ? kernel->kernel->getResources().c_str() : "";
}

const char *attnSchedule(const attnKernel *kernel) { return kernel ? kernel->kernel->getSchedule().c_str() : ""; }

//===--------------------------------------------------------------------===//
// Tensors
//===--------------------------------------------------------------------===//

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

int attnTensorCount(const attnKernel *kernel) {
  if (!kernel)
    return fail({"expected a kernel, got: NULL"}), 0;
  return kernel->kernel->getTensors().size();
}

/// Null, with an error, if there is none.
static const rt::Program::Tensor *tensorOf(const attnKernel *kernel, int index) {
  int count = attnTensorCount(kernel);
  if (!kernel)
    return nullptr;
  if (index < 0 || index >= count) {
    fail({fmt::format("expected the number of a tensor, from 0 to {}, got: {}", count - 1, index)});
    return nullptr;
  }
  return &kernel->kernel->getTensors()[index];
}

const char *attnTensorName(const attnKernel *kernel, int index) {
  const rt::Program::Tensor *tensor = tensorOf(kernel, index);
  return tensor ? tensor->name.c_str() : "";
}

int attnTensorIsResult(const attnKernel *kernel, int index) {
  const rt::Program::Tensor *tensor = tensorOf(kernel, index);
  return tensor && tensor->isResult();
}

int attnInferShapes(const attnKernel *kernel, attnTensor *tensors, int64_t (*extents)[attnMaxRank]) {
  Views views;
  if (rt::Status read = readViews(kernel, tensors, Given::Inputs, views); !read)
    return fail(read.error());
  if (!extents)
    return fail({"expected where to put the extents, got: NULL"});
  rt::Result<std::vector<std::vector<int64_t>>> shapes = kernel->kernel->shapesOf(views);
  if (!shapes)
    return fail(shapes.error());
  for (auto [i, shape] : llvm::enumerate(*shapes)) {
    if (!kernel->kernel->getTensors()[i].isResult())
      continue;
    llvm::copy(shape, extents[i]);
    attnTensor &result = tensors[i];
    result.dtype = attnDtype(views[i].dtype), result.rank = shape.size();
    result.shape = extents[i], result.strides = nullptr;
  }
  return 0;
}

int attnWorkspaceSizeFor(const attnKernel *kernel, const attnTensor *tensors, int multiprocessors, size_t *bytes) {
  Views views;
  if (rt::Status read = readViews(kernel, tensors, Given::Inputs, views); !read)
    return fail(read.error());
  if (!bytes)
    return fail({"expected where to put the size, got: NULL"});
  rt::Result<size_t> needed = kernel->kernel->workspaceBytes(views, multiprocessors);
  if (!needed)
    return fail(needed.error());
  *bytes = *needed;
  return 0;
}

int attnWorkspaceSize(const attnKernel *kernel, const attnTensor *tensors, size_t *bytes) {
  return attnWorkspaceSizeFor(kernel, tensors, /*multiprocessors=*/0, bytes);
}

//===--------------------------------------------------------------------===//
// Launches
//===--------------------------------------------------------------------===//

static int launch(const attnKernel *kernel, const attnTensor *tensors, void *workspace, void *stream, bool again) {
  Views views;
  if (rt::Status read = readViews(kernel, tensors, Given::Memory, views); !read)
    return fail(read.error());
  return finish(kernel->kernel->launch(views, workspace, rt::Stream(stream), again));
}

int attnLaunch(const attnKernel *kernel, const attnTensor *tensors, void *workspace, void *stream) {
  return launch(kernel, tensors, workspace, stream, /*again=*/false);
}

int attnLaunchAgain(const attnKernel *kernel, const attnTensor *tensors, void *workspace, void *stream) {
  return launch(kernel, tensors, workspace, stream, /*again=*/true);
}
