// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CApi.h"
#include "attn-c/Attn.h"
#include "attn-rt/CTensors.h"
#include "attn/API/Jit.h"
#include <fmt/format.h>

using namespace attn;

struct attnKernel {
  std::shared_ptr<const Kernel> kernel;
};

static thread_local std::string lastError;
static thread_local attnErrorKind lastErrorKind = attnErrorUsage;

int attn::fail(const rt::Error &error, rt::ErrorKind kind) {
  lastError = error.str();
  lastErrorKind = static_cast<attnErrorKind>(error.kind == rt::ErrorKind::Unknown ? kind : error.kind);
  return 1;
}
static_assert(int(rt::ErrorKind::Unknown) == attnErrorUsage && int(rt::ErrorKind::Problem) == attnErrorProblem &&
              int(rt::ErrorKind::Unsupported) == attnErrorUnsupported &&
              int(rt::ErrorKind::Tensor) == attnErrorTensor && int(rt::ErrorKind::Compile) == attnErrorCompile &&
              int(rt::ErrorKind::Driver) == attnErrorDriver);

int attn::finish(const rt::Status &status, rt::ErrorKind kind) { return status ? 0 : fail(status.error(), kind); }

int attn::give(rt::Result<std::string> answer, std::string &kept, const char **json) {
  if (!answer)
    return fail(answer.error(), rt::ErrorKind::Problem);
  kept = std::move(*answer);
  *json = kept.c_str();
  return 0;
}

/// Hands out a kernel, or what went wrong.
static int give(const rt::Result<std::shared_ptr<const Kernel>> &made, rt::ErrorKind kind, attnKernel **kernel) {
  if (!made)
    return fail(made.error(), kind);
  *kernel = new attnKernel{*made};
  return 0;
}

/// The tensors of a call; they are a thread's.
static rt::Result<llvm::ArrayRef<TensorView>> viewsOf(const attnKernel *kernel, const attnTensor *tensors,
                                                      Given given) {
  static thread_local std::vector<TensorView> views;
  if (!kernel)
    return rt::Error{"expected a kernel, got: NULL"};
  if (rt::Status read = rt::readTensors(kernel->kernel->code().program(), tensors, given, views); !read)
    return read.error();
  return llvm::ArrayRef<TensorView>(views);
}

int attnVersion(void) { return ATTN_VERSION_NUMBER; }

const char *attnLastError(void) { return lastError.c_str(); }

attnErrorKind attnLastErrorKind(void) { return lastErrorKind; }

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
  return give(make(mlir, name ? name : "", *target), rt::ErrorKind::Compile, kernel);
}

int attnLower(const char *mlir, const char *name, const char *target, attnKernel **kernel) {
  return makeKernel(mlir, name, target, kernel, Kernel::lower);
}

int attnCompile(const char *mlir, const char *name, const char *target, attnKernel **kernel) {
  return makeKernel(mlir, name, target, kernel, Kernel::create);
}

int attnBuild(const attnKernel *kernel) {
  return kernel ? finish(kernel->kernel->build(), rt::ErrorKind::Compile) : fail({"expected a kernel, got: NULL"});
}

int attnSpecialize(const attnKernel *kernel, const attnTensor *tensors, attnKernel **specialized) {
  auto views = viewsOf(kernel, tensors, Given::Inputs);
  if (!views)
    return fail(views.error(), rt::ErrorKind::Tensor);
  if (!specialized)
    return fail({"expected where to put the kernel, got: NULL"});
  return give(kernel->kernel->specialize(*views), rt::ErrorKind::Tensor, specialized);
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
  return kernel ? finish(rt::inferShapes(kernel->kernel->code(), tensors, extents), rt::ErrorKind::Tensor)
                : fail({"expected a kernel, got: NULL"});
}

int attnWorkspaceSizeFor(const attnKernel *kernel, const attnTensor *tensors, int multiprocessors, size_t *bytes) {
  auto views = viewsOf(kernel, tensors, Given::Inputs);
  if (!views)
    return fail(views.error(), rt::ErrorKind::Tensor);
  if (!bytes)
    return fail({"expected where to put the size, got: NULL"});
  rt::Result<size_t> needed = kernel->kernel->workspaceBytes(*views, multiprocessors);
  if (!needed)
    return fail(needed.error(), rt::ErrorKind::Tensor);
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
  auto views = viewsOf(kernel, tensors, Given::Memory);
  if (!views)
    return fail(views.error(), rt::ErrorKind::Tensor);
  return finish(kernel->kernel->launch(*views, workspace, rt::Stream(stream), again), rt::ErrorKind::Tensor);
}

int attnLaunch(const attnKernel *kernel, const attnTensor *tensors, void *workspace, void *stream) {
  return launch(kernel, tensors, workspace, stream, /*again=*/false);
}

int attnLaunchAgain(const attnKernel *kernel, const attnTensor *tensors, void *workspace, void *stream) {
  return attnLaunchReuseMetadata(kernel, tensors, workspace, stream);
}

int attnLaunchReuseMetadata(const attnKernel *kernel, const attnTensor *tensors, void *workspace, void *stream) {
  return launch(kernel, tensors, workspace, stream, /*again=*/true);
}
