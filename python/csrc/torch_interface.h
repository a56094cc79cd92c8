// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's stable C interface (torch/csrc/inductor/aoti_torch/c/shim.h, torch/csrc/stable/c/shim.h, from
// version 2.10), looked up in the libraries that the process has loaded. So nothing of PyTorch is needed to build, and
// one build serves all versions.
//
#ifndef ATTNC_TORCH_INTERFACE_H
#define ATTNC_TORCH_INTERFACE_H

#include <cstdint>
#include <dlfcn.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace attnc {

using Code = int32_t;  // 0: success
using Handle = void *; // a tensor, list, string, library or guard
using StackValue = uint64_t;
using Boxed = void (*)(StackValue *, uint64_t inputs, uint64_t outputs);

constexpr uint64_t builtFor = uint64_t(2) << 56 | uint64_t(10) << 48; // 2.10: strings and lists on the stack

#define TORCH_FUNCTIONS(X)                                                                                             \
  X(aoti_torch_library_init_def, Code, (const char *, const char *, uint32_t, Handle *))                               \
  X(aoti_torch_library_init_impl, Code, (const char *, const char *, const char *, uint32_t, Handle *))                \
  X(aoti_torch_library_def, Code, (Handle, const char *))                                                              \
  X(torch_library_impl, Code, (Handle, const char *, Boxed, uint64_t))                                                 \
  X(aoti_torch_get_data_ptr, Code, (Handle, void **))                                                                  \
  X(aoti_torch_get_dim, Code, (Handle, int64_t *))                                                                     \
  X(aoti_torch_get_sizes, Code, (Handle, int64_t **))                                                                  \
  X(aoti_torch_get_strides, Code, (Handle, int64_t **))                                                                \
  X(aoti_torch_get_dtype, Code, (Handle, int32_t *))                                                                   \
  X(aoti_torch_get_device_type, Code, (Handle, int32_t *))                                                             \
  X(aoti_torch_get_device_index, Code, (Handle, int32_t *))                                                            \
  X(aoti_torch_empty_strided, Code, (int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, Handle *))  \
  X(aoti_torch_delete_tensor_object, Code, (Handle))                                                                   \
  X(aoti_torch_get_current_device_index, Code, (int32_t *))                                                            \
  X(aoti_torch_create_device_guard, Code, (int32_t, Handle *))                                                         \
  X(aoti_torch_delete_device_guard, Code, (Handle))                                                                    \
  X(aoti_torch_device_type_cuda, int32_t, ())                                                                          \
  X(aoti_torch_device_type_cpu, int32_t, ())                                                                           \
  X(aoti_torch_dtype_bfloat16, int32_t, ())                                                                            \
  X(aoti_torch_dtype_float16, int32_t, ())                                                                             \
  X(aoti_torch_dtype_float32, int32_t, ())                                                                             \
  X(aoti_torch_dtype_int32, int32_t, ())                                                                               \
  X(aoti_torch_dtype_uint8, int32_t, ())                                                                               \
  X(torch_new_list_reserve_size, Code, (size_t, Handle *))                                                             \
  X(torch_list_size, Code, (Handle, size_t *))                                                                         \
  X(torch_list_get_item, Code, (Handle, size_t, StackValue *))                                                         \
  X(torch_list_push_back, Code, (Handle, StackValue))                                                                  \
  X(torch_delete_list, Code, (Handle))                                                                                 \
  X(torch_string_length, Code, (Handle, size_t *))                                                                     \
  X(torch_string_c_str, Code, (Handle, const char **))                                                                 \
  X(torch_delete_string, Code, (Handle))

struct Torch {
#define DECLARE(name, result, parameters) result(*name) parameters;
  TORCH_FUNCTIONS(DECLARE)
#undef DECLARE
  Code (*aoti_torch_get_current_cuda_stream)(int32_t, void **); // of the CUDA library; null without it

  /// Fills in the functions. Empty, or why that is not possible.
  std::string find() {
    void *libtorch = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
    if (!libtorch)
      return "PyTorch is not loaded in this process";
#define FIND(name, result, parameters)                                                                                 \
  if (!(name = reinterpret_cast<decltype(name)>(dlsym(libtorch, #name))))                                              \
    return "expected PyTorch 2.10 or later, got: one without " #name;
    TORCH_FUNCTIONS(FIND)
#undef FIND
    if (void *cuda = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD))
      aoti_torch_get_current_cuda_stream = reinterpret_cast<decltype(aoti_torch_get_current_cuda_stream)>(
          dlsym(cuda, "aoti_torch_get_current_cuda_stream"));
    return "";
  }
};

inline Torch torch;

inline void check(Code code, const char *what) {
  if (code)
    throw std::runtime_error(std::string("attnc: PyTorch failed to ") + what);
}

struct TensorDeleter {
  void operator()(void *tensor) const { torch.aoti_torch_delete_tensor_object(tensor); }
};
using OwnedTensor = std::unique_ptr<void, TensorDeleter>;

/// The tensors of a list, which is taken.
inline std::vector<OwnedTensor> takeTensors(StackValue value) {
  auto list = reinterpret_cast<Handle>(value);
  size_t size = 0;
  check(torch.torch_list_size(list, &size), "ask a list for its size");
  std::vector<OwnedTensor> tensors;
  for (size_t i = 0; i < size; ++i) {
    StackValue item = 0;
    check(torch.torch_list_get_item(list, i, &item), "read a list");
    tensors.emplace_back(reinterpret_cast<Handle>(item));
  }
  torch.torch_delete_list(list);
  return tensors;
}

inline std::string takeString(StackValue value) {
  auto string = reinterpret_cast<Handle>(value);
  size_t length = 0;
  const char *data = nullptr;
  check(torch.torch_string_length(string, &length), "ask a string for its length");
  check(torch.torch_string_c_str(string, &data), "read a string");
  std::string text(data, length);
  torch.torch_delete_string(string);
  return text;
}

struct GuardDeleter {
  void operator()(void *guard) const { torch.aoti_torch_delete_device_guard(guard); }
};
using DeviceGuard = std::unique_ptr<void, GuardDeleter>;

} // namespace attnc

#endif // ATTNC_TORCH_INTERFACE_H
