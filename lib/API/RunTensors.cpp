// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/RunTensors.h"
#include "attn-rt/Driver.h"
#include <cmath>
#include <fmt/format.h>

using namespace attn;
using reference::Tensor;

namespace {
/// A tensor's bytes in the memory of a device, for the life of a launch.
class DeviceCopy {
public:
  DeviceCopy(const rt::Driver &driver, llvm::ArrayRef<char> bytes) : driver(driver), size(bytes.size()) {
    rt::Result<rt::DevicePtr> allocated = driver.alloc(size);
    if (!allocated) {
      status = allocated.status();
      return;
    }
    ptr = *allocated;
    if (size)
      status = driver.copyToDevice(ptr, bytes.data(), size);
  }
  DeviceCopy(const DeviceCopy &) = delete;
  ~DeviceCopy() {
    if (ptr)
      (void)driver.free(ptr);
  }
  rt::Status copyBack(llvm::MutableArrayRef<char> bytes) const {
    return size ? driver.copyToHost(bytes.data(), ptr, size) : rt::Status();
  }

  rt::Status status;
  rt::DevicePtr ptr = 0;

private:
  const rt::Driver &driver;
  size_t size;
};
} // namespace

static Dtype dtypeOf(const Tensor &tensor) {
  switch (tensor.dtype()) {
  case reference::Dtype::BF16:
    return Dtype::BF16;
  case reference::Dtype::F16:
    return Dtype::F16;
  case reference::Dtype::I32:
    return Dtype::I32;
  default:
    return Dtype::F32;
  }
}

/// The input of this name; ids and positions of keys that are missing are those of queries. Null: there is none.
static const Tensor *findInput(const llvm::StringMap<Tensor> &inputs, llvm::StringRef name) {
  auto found = inputs.find(name);
  if (found == inputs.end() && (name == "ids_kv" || name == "positions_kv"))
    found = inputs.find((name.drop_back(2) + "q").str());
  return found == inputs.end() ? nullptr : &found->second;
}

rt::Result<std::shared_ptr<const Kernel>> attn::specialize(const Kernel &kernel,
                                                           const llvm::StringMap<Tensor> &inputs) {
  llvm::SmallVector<TensorView> views;
  for (const rt::Program::Tensor &spec : kernel.getTensors()) {
    const Tensor *tensor = spec.isResult() ? nullptr : findInput(inputs, spec.name);
    if (!tensor && !spec.isResult())
      return rt::Error{fmt::format("expected a tensor `{}`, got: none", spec.name)};
    views.push_back(tensor ? TensorView{nullptr, dtypeOf(*tensor), tensor->shape(), tensor->strides()}
                           : TensorView{nullptr, spec.dtype, {}, {}});
  }
  return kernel.specialize(views);
}

rt::Status attn::runTensors(const Kernel &kernel, const llvm::StringMap<Tensor> &inputs,
                            llvm::StringMap<Tensor> &results) {
  llvm::SmallVector<TensorView> views;
  llvm::SmallVector<const Tensor *> tensors;
  llvm::SmallVector<Tensor *> outputs;
  std::vector<std::unique_ptr<DeviceCopy>> copies;
  const rt::Driver *driver = nullptr;
  if (!kernel.isHost()) {
    rt::Result<const rt::Driver *> opened = rt::Driver::get();
    if (!opened)
      return opened.error();
    driver = *opened;
  }
  for (const rt::Program::Tensor &spec : kernel.getTensors()) {
    auto found = results.find(spec.name);
    const Tensor *given = !spec.isResult()         ? findInput(inputs, spec.name)
                          : found != results.end() ? &found->second
                                                   : nullptr;
    if (!given)
      return rt::Error{fmt::format("expected a tensor `{}`, got: none", spec.name)};
    size_t other = llvm::find(tensors, given) - tensors.begin(); // arrays of both sides may lie in the same memory
    tensors.push_back(given);
    if (other + 1 < tensors.size()) {
      views.push_back(views[other]);
      outputs.push_back(nullptr);
      copies.emplace_back();
      continue;
    }
    Tensor &tensor = const_cast<Tensor &>(*given); // inputs are only read
    void *data = tensor.data<char>();
    if (driver) {
      copies.push_back(std::make_unique<DeviceCopy>(*driver, tensor.bytes()));
      if (!copies.back()->status)
        return copies.back()->status;
      data = reinterpret_cast<void *>(copies.back()->ptr + tensor.firstByte());
    }
    views.push_back({data, dtypeOf(tensor), tensor.shape(), tensor.strides()});
    outputs.push_back(spec.isResult() ? &tensor : nullptr);
  }
  rt::Result<size_t> needed = kernel.workspaceBytes(views);
  if (!needed)
    return needed.error();
  // Poisoned: nobody may read what nobody wrote.
  std::vector<float> workspace(*needed / sizeof(float), std::nanf(""));
  void *memory = workspace.data();
  std::unique_ptr<DeviceCopy> deviceWorkspace;
  if (driver && *needed) {
    deviceWorkspace = std::make_unique<DeviceCopy>(
        *driver, llvm::ArrayRef(reinterpret_cast<const char *>(workspace.data()), *needed));
    if (!deviceWorkspace->status)
      return deviceWorkspace->status;
    memory = reinterpret_cast<void *>(deviceWorkspace->ptr);
  }
  if (rt::Status launched = kernel.launch(views, memory, nullptr); !launched)
    return launched;
  if (!driver)
    return {};
  if (rt::Status done = driver->synchronizeContext(); !done)
    return done;
  for (auto [output, copy] : llvm::zip(outputs, copies))
    if (output)
      if (rt::Status copied = copy->copyBack(output->bytes()); !copied)
        return copied;
  return {};
}
