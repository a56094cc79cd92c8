// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors of the runtime. Nothing here throws: a function that can fail returns
// `Status`, or `Result<T>` where it also has a value, and both must be looked
// at.
//
//   Result<NvrtcCompiler> nvrtc = ...;
//   if (!nvrtc)
//     return nvrtc.error();
//   use(*nvrtc);
//
#ifndef ATTN_RT_RESULT_H
#define ATTN_RT_RESULT_H

#include <optional>
#include <string>
#include <utility>

namespace attn::rt {

/// What is at fault, in as far as it is known where an error is made.
enum class ErrorKind { Unknown, Problem, Unsupported, Tensor, Compile, Driver };

/// What went wrong, for a person. `message` is one or a few lines in the style
/// of our diagnostics: lower case, no full stop, names in backticks. `log` is a
/// compiler's output, empty for everything else. `path` is the reproducer
/// directory or the file that the error is about, empty where there is none.
struct Error {
  std::string message;
  std::string log;
  std::string path;
  /// The binary of a kernel is at fault, so that compiling it anew may help.
  bool isBinary = false;
  ErrorKind kind = ErrorKind::Unknown;

  /// The same error with a kind.
  Error as(ErrorKind other) && {
    kind = other;
    return std::move(*this);
  }

  /// All three, ready to print; no newline at the end.
  std::string str() const {
    std::string text = message;
    if (!log.empty())
      text += "\n" + log;
    while (!text.empty() && text.back() == '\n')
      text.pop_back();
    if (!path.empty())
      text += "\nsee `" + path + "`";
    return text;
  }
};

/// Success, or an Error. Converts to true on success.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failure(std::move(error)) {}

  explicit operator bool() const { return !failure; }
  bool ok() const { return !failure; }
  /// Only after a failure.
  const Error &error() const { return *failure; }

private:
  std::optional<Error> failure;
};

/// A value, or an Error. Converts to true when there is a value; `*` and `->`
/// are only for that case, `error()` for the other.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T &&value) : held(std::move(value)) {}
  Result(const T &value) : held(value) {} // not by value: GCC remarks on over-aligned types
  Result(Error error) : failure(std::move(error)) {}

  explicit operator bool() const { return held.has_value(); }
  bool ok() const { return held.has_value(); }
  T &operator*() & { return *held; }
  const T &operator*() const & { return *held; }
  T &&operator*() && { return *std::move(held); }
  T *operator->() { return &*held; }
  const T *operator->() const { return &*held; }
  const Error &error() const { return failure; }
  Status status() const { return held ? Status() : Status(failure); }

private:
  std::optional<T> held;
  Error failure;
};

} // namespace attn::rt

#endif // ATTN_RT_RESULT_H
