// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attnc::run for PyTorch: tensors and the text of a problem in, results out. It is functional: results and workspace
// are PyTorch's memory, on the device of the tensors, and the kernel runs on the current stream.
//
// PyTorch's stable C interface (torch/csrc/inductor/aoti_torch/c/shim.h, torch/csrc/stable/c/shim.h, from version 2.10)
// is looked up in the libraries that the process has loaded. So nothing of PyTorch is needed to build this file, and
// one build serves all versions.
//
#include "kernel_table.h"
#include <array>
#include <dlfcn.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

//===----------------------------------------------------------------------===//
// PyTorch's C interface
//===----------------------------------------------------------------------===//

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
} torch;

void check(Code code, const char *what) {
  if (code)
    throw std::runtime_error(std::string("attnc: PyTorch failed to ") + what);
}

/// A failure of libattnc.so; Python makes an exception of its kind of it.
[[noreturn]] void fail() { throw std::runtime_error(attnc::lastFailure()); }

struct TensorDeleter {
  void operator()(void *tensor) const { torch.aoti_torch_delete_tensor_object(tensor); }
};
using OwnedTensor = std::unique_ptr<void, TensorDeleter>;

/// The tensors of a list, which is taken.
std::vector<OwnedTensor> takeTensors(StackValue value) {
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

std::string takeString(StackValue value) {
  auto string = reinterpret_cast<Handle>(value);
  size_t length = 0;
  const char *data = nullptr;
  check(torch.torch_string_length(string, &length), "ask a string for its length");
  check(torch.torch_string_c_str(string, &data), "read a string");
  std::string text(data, length);
  torch.torch_delete_string(string);
  return text;
}

//===----------------------------------------------------------------------===//
// The operator
//===----------------------------------------------------------------------===//

struct Dtypes {
  int32_t torch[4]; ///< as attnDtype numbers them
  Dtypes()
      : torch{::torch.aoti_torch_dtype_bfloat16(), ::torch.aoti_torch_dtype_float16(),
              ::torch.aoti_torch_dtype_float32(), ::torch.aoti_torch_dtype_int32()} {}
};

struct GuardDeleter {
  void operator()(void *guard) const { torch.aoti_torch_delete_device_guard(guard); }
};

OwnedTensor newTensor(const attnTensor &shape, int32_t dtype, int32_t deviceType, int32_t device) {
  int64_t strides[attnMaxRank], stride = 1;
  for (int i = shape.rank; i-- > 0;) {
    strides[i] = stride;
    stride *= shape.shape[i] > 0 ? shape.shape[i] : 1;
  }
  Handle made = nullptr;
  check(torch.aoti_torch_empty_strided(shape.rank, shape.shape, strides, dtype, deviceType, device, &made),
        "allocate a tensor");
  return OwnedTensor(made);
}

/// attnc::run(Tensor[] tensors, str problem, str name) -> Tensor[]
void run(StackValue *stack, uint64_t, uint64_t) {
  static const Dtypes dtypes;
  static const int32_t cpu = torch.aoti_torch_device_type_cpu();
  std::vector<OwnedTensor> inputs = takeTensors(stack[0]);
  std::string problem = takeString(stack[1]), name = takeString(stack[2]);
  if (inputs.empty())
    throw std::runtime_error("attnc.TensorError: expected tensors, got: none");
  int32_t deviceType = 0, device = 0;
  check(torch.aoti_torch_get_device_type(inputs[0].get(), &deviceType), "ask for a device");
  check(torch.aoti_torch_get_device_index(inputs[0].get(), &device), "ask for a device");
  const bool onCpu = deviceType == cpu;
  std::unique_ptr<void, GuardDeleter> guard;
  if (!onCpu) {
    int32_t current = -1;
    torch.aoti_torch_get_current_device_index(&current);
    Handle made = nullptr;
    if (current != device) {
      check(torch.aoti_torch_create_device_guard(device, &made), "set the device");
      guard.reset(made);
    }
  }
  const attnc::Kernel *found = attnc::kernelOf(problem, name, onCpu);
  if (!found)
    fail();
  const attnc::Kernel &kernel = *found;
  const size_t count = kernel.isResult.size();
  std::vector<attnTensor> tensors(count);
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (kernel.isResult[i])
      continue;
    if (next == inputs.size())
      throw std::runtime_error("attnc.TensorError: expected more tensors, got: " + std::to_string(next));
    Handle tensor = inputs[next++].get();
    int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
    int32_t dtype = 0, ownType = 0, own = 0;
    check(torch.aoti_torch_get_dim(tensor, &rank), "ask for a rank");
    check(torch.aoti_torch_get_sizes(tensor, &sizes), "ask for sizes");
    check(torch.aoti_torch_get_strides(tensor, &strides), "ask for strides");
    check(torch.aoti_torch_get_dtype(tensor, &dtype), "ask for a dtype");
    check(torch.aoti_torch_get_data_ptr(tensor, &tensors[i].data), "ask for memory");
    check(torch.aoti_torch_get_device_type(tensor, &ownType), "ask for a device");
    check(torch.aoti_torch_get_device_index(tensor, &own), "ask for a device");
    if (ownType != deviceType || own != device)
      throw std::runtime_error(std::string("attnc.TensorError: expected `") + attnTensorName(kernel.handle, int(i)) +
                               "` on the device of the first tensor, got: another");
    int known = 0;
    while (known < 4 && dtypes.torch[known] != dtype)
      ++known;
    if (known == 4 || rank > attnMaxRank)
      throw std::runtime_error(
          std::string("attnc.TensorError: expected bfloat16, float16, float32 or int32 and at most 8 "
                      "dimensions of `") +
          attnTensorName(kernel.handle, int(i)) + "`, got: another dtype or more");
    tensors[i].dtype = attnDtype(known);
    tensors[i].rank = int32_t(rank);
    tensors[i].shape = sizes;
    tensors[i].strides = strides;
  }
  if (next != inputs.size())
    throw std::runtime_error("attnc.TensorError: expected " + std::to_string(next) +
                             " tensors, got: " + std::to_string(inputs.size()));
  attnKernel *specialized = nullptr;
  if (attnSpecialize(kernel.handle, tensors.data(), &specialized))
    fail();
  std::unique_ptr<attnKernel, attnc::KernelDeleter> special(specialized);
  std::vector<std::array<int64_t, attnMaxRank>> extents(count);
  if (attnInferShapes(specialized, tensors.data(), reinterpret_cast<int64_t(*)[attnMaxRank]>(extents.data())))
    fail();
  std::vector<OwnedTensor> results;
  for (size_t i = 0; i < count; ++i) {
    if (!kernel.isResult[i])
      continue;
    results.push_back(newTensor(tensors[i], dtypes.torch[tensors[i].dtype], deviceType, device));
    check(torch.aoti_torch_get_data_ptr(results.back().get(), &tensors[i].data), "ask for memory");
  }
  size_t bytes = 0;
  if (attnWorkspaceSize(specialized, tensors.data(), &bytes))
    fail();
  OwnedTensor workspace;
  void *memory = nullptr, *stream = nullptr;
  if (bytes) {
    int64_t size = int64_t(bytes);
    attnTensor shape = {nullptr, attnI32, 1, &size, nullptr};
    workspace = newTensor(shape, torch.aoti_torch_dtype_uint8(), deviceType, device);
    check(torch.aoti_torch_get_data_ptr(workspace.get(), &memory), "ask for memory");
  }
  if (!onCpu)
    check(torch.aoti_torch_get_current_cuda_stream(device, &stream), "ask for the current stream");
  if (attnLaunch(specialized, tensors.data(), memory, stream))
    fail();
  Handle list = nullptr;
  check(torch.torch_new_list_reserve_size(results.size(), &list), "make a list");
  for (OwnedTensor &result : results)
    check(torch.torch_list_push_back(list, reinterpret_cast<StackValue>(result.release())), "fill a list");
  stack[0] = reinterpret_cast<StackValue>(list);
}

std::string registerOps() {
  void *libtorch = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (!libtorch)
    return "PyTorch is not loaded in this process";
#define FIND(name, result, parameters)                                                                                 \
  if (!(torch.name = reinterpret_cast<decltype(torch.name)>(dlsym(libtorch, #name))))                                  \
    return "expected PyTorch 2.10 or later, got: one without " #name;
  TORCH_FUNCTIONS(FIND)
#undef FIND
  if (void *cuda = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD))
    torch.aoti_torch_get_current_cuda_stream = reinterpret_cast<decltype(torch.aoti_torch_get_current_cuda_stream)>(
        dlsym(cuda, "aoti_torch_get_current_cuda_stream"));
  Handle definitions = nullptr; // libraries stay for as long as the process does
  if (torch.aoti_torch_library_init_def("attnc", __FILE__, __LINE__, &definitions) ||
      torch.aoti_torch_library_def(definitions, "run(Tensor[] tensors, str problem, str name) -> Tensor[]"))
    return "PyTorch refused to define attnc::run";
  for (const char *key : {"CPU", "CUDA"}) {
    Handle implementations = nullptr;
    if (torch.aoti_torch_library_init_impl("attnc", key, __FILE__, __LINE__, &implementations) ||
        torch.torch_library_impl(implementations, "run", run, builtFor))
      return std::string("PyTorch refused an implementation of attnc::run for ") + key;
  }
  return "";
}

} // namespace

/// Registers attnc::run, once. NULL, or why that is not possible; the text stays.
extern "C" __attribute__((visibility("default"))) const char *attncTorchRegister(void) {
  static const std::string failure = registerOps();
  return failure.empty() ? nullptr : failure.c_str();
}
