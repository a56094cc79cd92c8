// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attnc_run for JAX: a custom call of XLA's foreign function interface. Attributes `name` and `problem` say what runs;
// buffers are operands and arrays of the problem in its order, results are its results and a uint8 workspace. The
// attribute `shapes` has attnDtype, rank and extents of each buffer.
//
// Instantiation compiles for these shapes, so that a problem without a kernel fails where XLA compiles the program, and
// nothing is compiled while a command buffer is recorded; execution looks the kernel up and launches it.
//
#include "jax_calls.h"
#include <memory>
#include <vector>

using namespace attnc::jax;

namespace {

const attnc::Kernel &kernelOf(const XLA_FFI_Attrs &attributes, bool onCpu) {
  const attnc::Kernel *kernel = attnc::kernelOf(attribute(attributes, "problem"), attribute(attributes, "name"), onCpu);
  if (!kernel)
    fail();
  return *kernel;
}

/// Compiles what execution will ask for.
void instantiate(const XLA_FFI_CallFrame &frame, bool onCpu) {
  const attnc::Kernel &kernel = kernelOf(frame.attrs, onCpu);
  const XLA_FFI_Array *shapes = nullptr;
  for (int64_t i = 0; i < frame.attrs.size; ++i)
    if (std::string_view(frame.attrs.names[i]->ptr, frame.attrs.names[i]->len) == "shapes" &&
        frame.attrs.types[i] == XLA_FFI_AttrType_ARRAY)
      shapes = static_cast<const XLA_FFI_Array *>(frame.attrs.attrs[i]);
  if (!shapes || shapes->dtype != XLA_FFI_DataType_S64)
    refuse("expected the attribute `shapes`");
  const auto *next = static_cast<const int64_t *>(shapes->data), *end = next + shapes->size;
  std::vector<attnTensor> tensors(kernel.tensorCount());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (kernel.isResult(i))
      continue;
    if (end - next < 2 || next[1] < 0 || next[1] > attnMaxRank || end - next - 2 < next[1])
      refuse("expected dtype, rank and extents of each buffer as `shapes`");
    tensors[i] = {nullptr, attnDtype(next[0]), int32_t(next[1]), next + 2, nullptr};
    next += 2 + next[1];
  }
  if (!kernel.specialize(tensors.data()))
    fail();
}

void execute(const XLA_FFI_CallFrame &frame, bool onCpu) {
  const attnc::Kernel &kernel = kernelOf(frame.attrs, onCpu);
  const size_t count = kernel.tensorCount();
  std::vector<attnTensor> tensors(count);
  int64_t inputs = 0, results = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool isResult = kernel.isResult(i);
    int64_t &next = isResult ? results : inputs;
    if (next >= (isResult ? frame.rets.size - 1 : frame.args.size))
      refuse("expected more buffers, got: " + std::to_string(frame.args.size) + " and " +
             std::to_string(frame.rets.size) + " results");
    void *buffer = isResult ? frame.rets.rets[next] : frame.args.args[next];
    ++next;
    tensors[i] = tensorOf(*static_cast<const XLA_FFI_Buffer *>(buffer), attnTensorName(kernel.handle(), int(i)));
  }
  if (inputs != frame.args.size || results + 1 != frame.rets.size)
    refuse("expected " + std::to_string(inputs) + " buffers and " + std::to_string(results + 1) +
           " results, got: " + std::to_string(frame.args.size) + " and " + std::to_string(frame.rets.size));
  std::shared_ptr<const attnc::SpecializedKernel> specialized = kernel.specialize(tensors.data());
  if (!specialized)
    fail();
  const auto &workspace = *static_cast<const XLA_FFI_Buffer *>(frame.rets.rets[results]);
  const size_t bytes = specialized->workspaceBytes;
  if (workspace.rank != 1 || size_t(workspace.dims[0]) < bytes)
    refuse("expected a workspace of " + std::to_string(bytes) + " bytes, got: " +
           std::to_string(workspace.rank == 1 ? workspace.dims[0] : 0) + "; the program was traced for another device");
  if (attnLaunch(specialized->handle.get(), tensors.data(), bytes ? workspace.data : nullptr,
                 onCpu ? nullptr : streamOf(frame)))
    fail();
}

XLA_FFI_Error *handle(XLA_FFI_CallFrame *frame, bool onCpu) {
  // Launches neither allocate nor synchronise.
  if (isMetadata(frame, XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE))
    return nullptr;
  return guarded(frame, [&] {
    if (frame->stage == XLA_FFI_ExecutionStage_INSTANTIATE)
      instantiate(*frame, onCpu);
    else
      execute(*frame, onCpu);
  });
}

} // namespace

/// Handlers of both stages for the platforms "cpu" and "CUDA".
ATTNC_HANDLER attncJaxCpu(XLA_FFI_CallFrame *frame) { return handle(frame, true); }
ATTNC_HANDLER attncJaxCuda(XLA_FFI_CallFrame *frame) { return handle(frame, false); }
