// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attnc::run for PyTorch: tensors and the text of a problem in, results out. It is functional: results and workspace
// are PyTorch's memory, on the device of the tensors, and the kernel runs on the current stream.
//
// There are two ways to it. The operator goes through PyTorch's dispatcher, for torch.compile, torch.func and modes.
// The Python function that attncTorchDirect returns does the same for plain tensors in eager mode, in a third of the
// time.
//
#include "kernel_table.h"
#include "python_interface.h"
#include "torch_interface.h"

using namespace attnc;

namespace {

/// A failure of libattnc.so; Python makes an exception of its kind of it.
[[noreturn]] void fail() { throw std::runtime_error(lastFailure()); }

[[noreturn]] void refuse(const std::string &text) { throw std::runtime_error("attnc.TensorError: " + text); }

//===----------------------------------------------------------------------===//
// A call
//===----------------------------------------------------------------------===//

struct Device {
  int32_t type = 0, index = 0;

  explicit Device(Handle tensor) {
    check(torch.aoti_torch_get_device_type(tensor, &type), "ask for a device");
    check(torch.aoti_torch_get_device_index(tensor, &index), "ask for a device");
  }
  bool operator!=(const Device &other) const { return type != other.type || index != other.index; }

  bool isCpu() const {
    static const int32_t cpu = torch.aoti_torch_device_type_cpu();
    return type == cpu;
  }

  /// Makes it the current one, for as long as the guard lives.
  DeviceGuard enter() const {
    int32_t current = -1;
    Handle guard = nullptr;
    if (!isCpu()) {
      torch.aoti_torch_get_current_device_index(&current);
      if (current != index)
        check(torch.aoti_torch_create_device_guard(index, &guard), "set the device");
    }
    return DeviceGuard(guard);
  }

  OwnedTensor allocate(int64_t rank, const int64_t *extents, int32_t dtype) const {
    int64_t strides[attnMaxRank], stride = 1;
    for (int64_t i = rank; i-- > 0;) {
      strides[i] = stride;
      stride *= extents[i] > 0 ? extents[i] : 1;
    }
    Handle made = nullptr;
    check(torch.aoti_torch_empty_strided(rank, extents, strides, dtype, type, index, &made), "allocate a tensor");
    return OwnedTensor(made);
  }
};

/// PyTorch's numbers of dtypes, as attnDtype orders them.
const std::array<int32_t, 4> &dtypes() {
  static const std::array<int32_t, 4> numbers{torch.aoti_torch_dtype_bfloat16(), torch.aoti_torch_dtype_float16(),
                                              torch.aoti_torch_dtype_float32(), torch.aoti_torch_dtype_int32()};
  return numbers;
}

void *memoryOf(Handle tensor) {
  void *data = nullptr;
  check(torch.aoti_torch_get_data_ptr(tensor, &data), "ask for memory");
  return data;
}

attnTensor describe(Handle tensor, const Kernel &kernel, size_t index) {
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  int32_t dtype = 0;
  check(torch.aoti_torch_get_dim(tensor, &rank), "ask for a rank");
  check(torch.aoti_torch_get_sizes(tensor, &sizes), "ask for sizes");
  check(torch.aoti_torch_get_strides(tensor, &strides), "ask for strides");
  check(torch.aoti_torch_get_dtype(tensor, &dtype), "ask for a dtype");
  size_t known = 0;
  while (known < dtypes().size() && dtypes()[known] != dtype)
    ++known;
  if (known == dtypes().size() || rank > attnMaxRank)
    refuse(std::string("expected bfloat16, float16, float32 or int32 and at most 8 dimensions of `") +
           attnTensorName(kernel.handle(), int(index)) + "`, got: another dtype or more");
  return {memoryOf(tensor), attnDtype(known), int32_t(rank), sizes, strides};
}

/// Allocates results and workspace, launches, returns the results.
std::vector<OwnedTensor> run(const std::vector<OwnedTensor> &inputs, std::string_view problem, std::string_view name) {
  if (inputs.empty())
    refuse("expected tensors, got: none");
  const Device device(inputs[0].get());
  const DeviceGuard guard = device.enter();
  const Kernel *found = kernelOf(problem, name, device.isCpu());
  if (!found)
    fail();
  const Kernel &kernel = *found;
  const size_t count = kernel.tensorCount();
  std::vector<attnTensor> tensors(count);
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (kernel.isResult(i))
      continue;
    if (next == inputs.size())
      refuse("expected more tensors, got: " + std::to_string(next));
    Handle tensor = inputs[next++].get();
    if (Device(tensor) != device)
      refuse(std::string("expected `") + attnTensorName(kernel.handle(), int(i)) +
             "` on the device of the first tensor, got: another");
    tensors[i] = describe(tensor, kernel, i);
  }
  if (next != inputs.size())
    refuse("expected " + std::to_string(next) + " tensors, got: " + std::to_string(inputs.size()));
  std::shared_ptr<const SpecializedKernel> specialized = kernel.specialize(tensors.data());
  if (!specialized)
    fail();
  std::vector<OwnedTensor> results;
  for (size_t i = 0; i < count; ++i) {
    if (!kernel.isResult(i))
      continue;
    const ResultShape &shape = specialized->results[results.size()];
    results.push_back(device.allocate(shape.rank, shape.extents.data(), dtypes()[shape.dtype]));
    tensors[i] = {memoryOf(results.back().get()), shape.dtype, shape.rank, shape.extents.data(), nullptr};
  }
  OwnedTensor workspace;
  void *memory = nullptr, *stream = nullptr;
  if (const int64_t bytes = int64_t(specialized->workspaceBytes)) {
    workspace = device.allocate(1, &bytes, torch.aoti_torch_dtype_uint8());
    memory = memoryOf(workspace.get());
  }
  if (!device.isCpu())
    check(torch.aoti_torch_get_current_cuda_stream(device.index, &stream), "ask for the current stream");
  if (attnLaunch(specialized->handle.get(), tensors.data(), memory, stream))
    fail();
  return results;
}

//===----------------------------------------------------------------------===//
// The operator
//===----------------------------------------------------------------------===//

/// attnc::run(Tensor[] tensors, str problem, str name) -> Tensor[]
void runBoxed(StackValue *stack, uint64_t, uint64_t) {
  std::vector<OwnedTensor> inputs = takeTensors(stack[0]);
  const std::string problem = takeString(stack[1]), name = takeString(stack[2]);
  std::vector<OwnedTensor> results = run(inputs, problem, name);
  Handle list = nullptr;
  check(torch.torch_new_list_reserve_size(results.size(), &list), "make a list");
  for (OwnedTensor &result : results)
    check(torch.torch_list_push_back(list, reinterpret_cast<StackValue>(result.release())), "fill a list");
  stack[0] = reinterpret_cast<StackValue>(list);
}

std::string registerOps() {
  if (std::string failure = torch.find(); !failure.empty())
    return failure;
  Handle definitions = nullptr; // libraries stay for as long as the process does
  if (torch.aoti_torch_library_init_def("attnc", __FILE__, __LINE__, &definitions) ||
      torch.aoti_torch_library_def(definitions, "run(Tensor[] tensors, str problem, str name) -> Tensor[]"))
    return "PyTorch refused to define attnc::run";
  for (const char *key : {"CPU", "CUDA"}) {
    Handle implementations = nullptr;
    if (torch.aoti_torch_library_init_impl("attnc", key, __FILE__, __LINE__, &implementations) ||
        torch.torch_library_impl(implementations, "run", runBoxed, builtFor))
      return std::string("PyTorch refused an implementation of attnc::run for ") + key;
  }
  return "";
}

//===----------------------------------------------------------------------===//
// The direct call
//===----------------------------------------------------------------------===//

struct PyDeleter {
  void operator()(PyObject *object) const { Py_DecRef(object); }
};
using OwnedObject = std::unique_ptr<PyObject, PyDeleter>;

/// A Python exception is set.
struct PythonError {};

PyObject *check(PyObject *object) {
  if (!object)
    throw PythonError();
  return object;
}

/// Runs other threads of Python in the meantime.
class WithoutGil {
public:
  WithoutGil() : state(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state); }

private:
  PyThreadState *state;
};

/// torch._C._aoti: tensors of Python from and to those of the C interface, as lists of capsules.
PyObject *toHandles, *fromHandles;

std::vector<OwnedTensor> handlesOf(PyObject *tensors) {
  OwnedObject capsules(check(PyObject_CallFunctionObjArgs(toHandles, tensors, nullptr)));
  std::vector<OwnedTensor> handles;
  for (Py_ssize_t i = 0, n = PyList_Size(capsules.get()); i < n; ++i)
    handles.emplace_back(PyCapsule_GetPointer(PyList_GetItem(capsules.get(), i), nullptr));
  return handles;
}

/// A list.
PyObject *objectsOf(std::vector<OwnedTensor> tensors) {
  OwnedObject capsules(check(PyList_New(Py_ssize_t(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyList_SetItem(capsules.get(), Py_ssize_t(i), check(PyCapsule_New(tensors[i].get(), nullptr, nullptr)));
  PyObject *objects = check(PyObject_CallFunctionObjArgs(fromHandles, capsules.get(), nullptr));
  for (OwnedTensor &tensor : tensors)
    tensor.release(); // taken
  return objects;
}

std::string_view textOf(PyObject *object) {
  Py_ssize_t size = 0;
  const char *text = PyUnicode_AsUTF8AndSize(object, &size);
  if (!text)
    throw PythonError();
  return {text, size_t(size)};
}

/// run(tensors, problem, name) -> list of tensors
PyObject *runDirectly(PyObject *, PyObject *const *arguments, Py_ssize_t count) {
  try {
    if (count != 3)
      throw std::runtime_error("attnc.Error: expected 3 arguments, got: " + std::to_string(count));
    std::vector<OwnedTensor> inputs = handlesOf(arguments[0]), results;
    const std::string_view problem = textOf(arguments[1]), name = textOf(arguments[2]);
    {
      const WithoutGil others;
      results = run(inputs, problem, name);
    }
    return objectsOf(std::move(results));
  } catch (const PythonError &) {
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyMethodDef directMethod = {"run", runDirectly, METH_FASTCALL,
                            "run(tensors, problem, name): attnc::run on plain tensors, without PyTorch's dispatcher."};

} // namespace

#define ATTNC_EXPORT extern "C" __attribute__((visibility("default")))

/// Registers attnc::run, once. NULL, or why that is not possible; the text stays.
ATTNC_EXPORT const char *attncTorchRegister(void) {
  static const std::string failure = registerOps();
  return failure.empty() ? nullptr : failure.c_str();
}

/// The function run(tensors, problem, name), after attncTorchRegister; the GIL is held. The arguments are functions of
/// torch._C._aoti: unsafe_alloc_void_ptrs_from_tensors and alloc_tensors_by_stealing_from_void_ptrs.
ATTNC_EXPORT PyObject *attncTorchDirect(PyObject *tensorsToHandles, PyObject *handlesToTensors) {
  Py_IncRef(toHandles = tensorsToHandles);
  Py_IncRef(fromHandles = handlesToTensors);
  return PyCFunction_NewEx(&directMethod, nullptr, nullptr);
}
