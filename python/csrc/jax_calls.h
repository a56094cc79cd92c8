// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What custom calls of XLA's foreign function interface have in common.
//
// third_party/xla_ffi_c_api.h is jaxlib's. Only what version 0.1 of the interface has is used where nothing else is
// said, so that one build serves jaxlib from 0.6.2 on.
//
#ifndef ATTNC_JAX_CALLS_H
#define ATTNC_JAX_CALLS_H

#include "kernel_table.h"
#include "third_party/xla_ffi_c_api.h"
#include <exception>
#include <string>
#include <string_view>

namespace attnc::jax {

constexpr int minorVersion = 1;

struct Failure {
  XLA_FFI_Error_Code code;
  std::string text;
};

/// A failure of libattnc.so; Python makes an exception of its kind of it.
[[noreturn]] inline void fail() {
  static const XLA_FFI_Error_Code codes[] = {XLA_FFI_Error_Code_INVALID_ARGUMENT, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                                             XLA_FFI_Error_Code_UNIMPLEMENTED,    XLA_FFI_Error_Code_INVALID_ARGUMENT,
                                             XLA_FFI_Error_Code_INTERNAL,         XLA_FFI_Error_Code_INTERNAL};
  throw Failure{codes[attnLastErrorKind()], lastFailure()};
}

[[noreturn]] inline void refuse(const std::string &text) {
  throw Failure{XLA_FFI_Error_Code_INVALID_ARGUMENT, "attnc.TensorError: " + text};
}

inline std::string_view attribute(const XLA_FFI_Attrs &attributes, std::string_view name) {
  for (int64_t i = 0; i < attributes.size; ++i)
    if (std::string_view(attributes.names[i]->ptr, attributes.names[i]->len) == name &&
        attributes.types[i] == XLA_FFI_AttrType_STRING) {
      auto *span = static_cast<const XLA_FFI_ByteSpan *>(attributes.attrs[i]);
      return {span->ptr, span->len};
    }
  throw Failure{XLA_FFI_Error_Code_INVALID_ARGUMENT, "attnc.Error: expected the attribute `" + std::string(name) + "`"};
}

inline int64_t number(const XLA_FFI_Attrs &attributes, std::string_view name) {
  for (int64_t i = 0; i < attributes.size; ++i)
    if (std::string_view(attributes.names[i]->ptr, attributes.names[i]->len) == name &&
        attributes.types[i] == XLA_FFI_AttrType_SCALAR) {
      auto *scalar = static_cast<const XLA_FFI_Scalar *>(attributes.attrs[i]);
      if (scalar->dtype == XLA_FFI_DataType_S64)
        return *static_cast<const int64_t *>(scalar->value);
    }
  throw Failure{XLA_FFI_Error_Code_INVALID_ARGUMENT, "attnc.Error: expected the attribute `" + std::string(name) + "`"};
}

inline attnTensor tensorOf(const XLA_FFI_Buffer &buffer, const char *name) {
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

inline void destroy(const XLA_FFI_CallFrame &frame, XLA_FFI_Error *error) {
  XLA_FFI_Error_Destroy_Args arguments{};
  arguments.struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE;
  arguments.error = error;
  frame.api->XLA_FFI_Error_Destroy(&arguments);
}

inline void *streamOf(const XLA_FFI_CallFrame &frame) {
  XLA_FFI_Stream_Get_Args arguments{};
  arguments.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE;
  arguments.ctx = frame.ctx;
  if (XLA_FFI_Error *error = frame.api->XLA_FFI_Stream_Get(&arguments)) {
    destroy(frame, error);
    throw Failure{XLA_FFI_Error_Code_INTERNAL, "attnc.DriverError: XLA has no stream for this call"};
  }
  return arguments.stream;
}

/// XLA asks for the version when a handler is registered.
inline bool isMetadata(XLA_FFI_CallFrame *frame, XLA_FFI_Handler_Traits traits) {
  if (!frame->extension_start || frame->extension_start->type != XLA_FFI_Extension_Metadata)
    return false;
  XLA_FFI_Metadata *metadata = reinterpret_cast<XLA_FFI_Metadata_Extension *>(frame->extension_start)->metadata;
  metadata->api_version.struct_size = XLA_FFI_Api_Version_STRUCT_SIZE;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = minorVersion;
  metadata->traits = traits;
  return true;
}

/// Runs `call`; what it throws becomes an error of XLA.
template <typename Call> XLA_FFI_Error *guarded(XLA_FFI_CallFrame *frame, Call call) {
  Failure failure{XLA_FFI_Error_Code_INTERNAL, ""};
  try {
    call();
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

#define ATTNC_HANDLER extern "C" __attribute__((visibility("default"))) XLA_FFI_Error *

} // namespace attnc::jax

#endif // ATTNC_JAX_CALLS_H
