// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/RunTensors.h"
#include "attn-rt/Driver.h"
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

rt::Status attn::runTensors(const Kernel &kernel, const llvm::StringMap<Tensor> &inputs,
                            llvm::StringMap<Tensor> &results) {
  const Signature &signature = kernel.getSignature();
  llvm::SmallVector<TensorView> views;
  llvm::SmallVector<Tensor *> outputs;
  std::vector<std::unique_ptr<DeviceCopy>> copies;
  const rt::Driver *driver = nullptr;
  if (!kernel.isHost()) {
    rt::Result<const rt::Driver *> opened = rt::Driver::get();
    if (!opened)
      return opened.error();
    driver = *opened;
  }
  for (const TensorSpec &spec : signature.tensors) {
    auto &map = spec.isResult() ? results : const_cast<llvm::StringMap<Tensor> &>(inputs);
    auto it = map.find(spec.name);
    if (it == map.end() && !spec.isResult())
      if (const TensorSpec *twin = signature.twinOf(spec)) {
        views.push_back(views[twin - signature.tensors.begin()]);
        outputs.push_back(nullptr);
        copies.emplace_back();
        continue;
      }
    if (it == map.end())
      return rt::Error{fmt::format("expected a tensor `{}`, got: none", spec.name)};
    Tensor &tensor = it->second;
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
  if (rt::Status launched = kernel.launch(views, nullptr); !launched)
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
