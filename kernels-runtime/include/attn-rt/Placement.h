// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On which device a launch runs, and whether that device can reach the memory of
// its tensors. The driver launches into a stream of another context without a
// word, or refuses it as an "invalid resource handle"; and a kernel that is given
// memory of another device ends all work of the process.
//
#ifndef ATTN_RT_PLACEMENT_H
#define ATTN_RT_PLACEMENT_H

#include "attn-rt/Driver.h"
#include "attn-rt/Result.h"

#include <string_view>

namespace attn::rt {

/// The context of a stream, current for the life of this object; where it was
/// not, it is pushed, and popped at the end. The default streams (null, legacy,
/// per-thread) belong to the calling thread's current context.
class StreamContext {
public:
  /// `otherwise` is made current, and stays so, for a default stream of a thread
  /// that has no context.
  static Result<StreamContext> enter(const Driver &driver, Stream stream, Context otherwise);
  StreamContext(StreamContext &&other) noexcept : driver(other.driver) { other.driver = nullptr; }
  StreamContext &operator=(StreamContext &&) = delete;
  ~StreamContext();

private:
  explicit StreamContext(const Driver *driver) : driver(driver) {}
  const Driver *driver; ///< null: nothing was pushed
};

/// Fails where kernels of the current context, which is of `device`, cannot use
/// memory at this address: memory of another device without peer access, or
/// memory that the driver does not know, where the device needs it to. `name` is
/// the tensor's. One call of the driver for the device's own memory; it does not
/// synchronise, and may be captured.
Status checkReach(const Driver &driver, DevicePtr memory, int device, std::string_view name);

} // namespace attn::rt

#endif // ATTN_RT_PLACEMENT_H
