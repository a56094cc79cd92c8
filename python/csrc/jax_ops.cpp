// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attnc_run for JAX: a custom call of XLA's foreign function interface. Attributes `name` and `problem` say what runs;
// buffers are operands and arrays of the problem in its order, results are its results and a uint8 workspace. The
// attribute `shapes` has attnDtype, rank and extents of each buffer.
//
// Instantiation compiles for these shapes, so that a problem without a kernel fails where XLA compiles the program, and
// nothing is compiled while a command buffer is recorded; execution looks the kernel up and launches it.
//
// third_party/xla_ffi_c_api.h is jaxlib's. Only what version 0.1 of the interface has is used, so that one build serves
// jaxlib from 0.6.2 on.
//
#include "kernel_table.h"
#include "third_party/xla_ffi_c_api.h"
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int minorVersion = 1;

struct Failure {
  XLA_FFI_Error_Code code;
  std::string text;
};

/// A failure of libattnc.so; Python makes an exception of its kind of it.
[[noreturn]] void fail() {
  static const XLA_FFI_Error_Code codes[] = {XLA_FFI_Error_Code_INVALID_ARGUMENT, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                                             XLA_FFI_Error_Code_UNIMPLEMENTED,    XLA_FFI_Error_Code_INVALID_ARGUMENT,
                                             XLA_FFI_Error_Code_INTERNAL,         XLA_FFI_Error_Code_INTERNAL};
  throw Failure{codes[attnLastErrorKind()], attnc::lastFailure()};
}

[[noreturn]] void refuse(const std::string &text) {
  throw Failure{XLA_FFI_Error_Code_INVALID_ARGUMENT, "attnc.TensorError: " + text};
}

std::string_view attribute(const XLA_FFI_Attrs &attributes, std::string_view name) {
  for (int64_t i = 0; i < attributes.size; ++i)
    if (std::string_view(attributes.names[i]->ptr, attributes.names[i]->len) == name &&
        attributes.types[i] == XLA_FFI_AttrType_STRING) {
      auto *span = static_cast<const XLA_FFI_ByteSpan *>(attributes.attrs[i]);
      return {span->ptr, span->len};
    }
  throw Failure{XLA_FFI_Error_Code_INVALID_ARGUMENT, "attnc.Error: expected the attribute `" + std::string(name) + "`"};
}

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

attnTensor tensorOf(const XLA_FFI_Buffer &buffer, const char *name) {
  static const XLA_FFI_DataType known[] = {XLA_FFI_DataType_BF16, XLA_FFI_DataType_F16, XLA_FFI_DataType_F32,
                                           XLA_FFI_DataType_S32}; // as attnDtype numbers them
  int dtype = 0;
  while (dtype < 4 && known[dtype] != buffer.dtype)
    ++dtype;
  if (dtype == 4 || buffer.rank > attnMaxRank)
    refuse(std::string("expected bfloat16, float16, float32 or int32 and at most 8 dimensions of `") + name +
           "`, got: another dtype or more");
  return {buffer.data, attnDtype(dtype), int32_t(buffer.rank), buffer.dims, nullptr};
}

void *streamOf(const XLA_FFI_CallFrame &frame) {
  XLA_FFI_Stream_Get_Args arguments{};
  arguments.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE;
  arguments.ctx = frame.ctx;
  if (XLA_FFI_Error *error = frame.api->XLA_FFI_Stream_Get(&arguments)) {
    XLA_FFI_Error_Destroy_Args destroy{};
    destroy.struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE;
    destroy.error = error;
    frame.api->XLA_FFI_Error_Destroy(&destroy);
    throw Failure{XLA_FFI_Error_Code_INTERNAL, "attnc.DriverError: XLA has no stream for this call"};
  }
  return arguments.stream;
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

/// XLA asks for the version when a handler is registered.
bool isMetadata(XLA_FFI_CallFrame *frame) {
  if (!frame->extension_start || frame->extension_start->type != XLA_FFI_Extension_Metadata)
    return false;
  XLA_FFI_Metadata *metadata = reinterpret_cast<XLA_FFI_Metadata_Extension *>(frame->extension_start)->metadata;
  metadata->api_version.struct_size = XLA_FFI_Api_Version_STRUCT_SIZE;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = minorVersion;
  metadata->traits = XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE; // launches neither allocate nor synchronise
  return true;
}

XLA_FFI_Error *handle(XLA_FFI_CallFrame *frame, bool onCpu) {
  if (isMetadata(frame))
    return nullptr;
  Failure failure{XLA_FFI_Error_Code_INTERNAL, ""};
  try {
    if (frame->stage == XLA_FFI_ExecutionStage_INSTANTIATE)
      instantiate(*frame, onCpu);
    else
      execute(*frame, onCpu);
    return nullptr;
  } catch (Failure &caught) {
    failure = std::move(caught);
  } catch (std::exception &caught) {
    failure.text = std::string("attnc.Error: ") + caught.what();
  }
  XLA_FFI_Error_Create_Args arguments{};
  arguments.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  arguments.message = failure.text.c_str();
  arguments.errc = failure.code;
  return frame->api->XLA_FFI_Error_Create(&arguments);
}

} // namespace

#define ATTNC_HANDLER extern "C" __attribute__((visibility("default"))) XLA_FFI_Error *

/// Handlers of both stages for the platforms "cpu" and "CUDA".
ATTNC_HANDLER attncJaxCpu(XLA_FFI_CallFrame *frame) { return handle(frame, true); }
ATTNC_HANDLER attncJaxCuda(XLA_FFI_CallFrame *frame) { return handle(frame, false); }
