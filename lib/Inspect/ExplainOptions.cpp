// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Inspect/InspectJson.h"
#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace attn;
using Json = nlohmann::ordered_json;

/// A value as errors show it.
static std::string shown(const Json &value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  return text.size() > 100 ? text.substr(0, 100) + " ..." : text;
}

static rt::Error unexpected(const char *expected, const std::string &key, const Json &value) {
  return {fmt::format("expected {} for `{}`, got: {}", expected, key, shown(value))};
}

namespace {
/// Sets what the option `key` is about from its value.
using Setter = std::function<rt::Status(const std::string &key, const Json &value)>;
} // namespace

static bool readInteger(const Json &value, int64_t &number) {
  bool isLarge = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX);
  if (value.is_number_integer() && !isLarge)
    number = value.get<int64_t>();
  return value.is_number_integer() && !isLarge;
}

/// `T`: int64_t or an optional one.
template <typename T> static Setter integer(T &number) {
  return [&](const std::string &key, const Json &value) -> rt::Status {
    int64_t read;
    if (!readInteger(value, read))
      return unexpected("an integer of 64 bits", key, value);
    number = read;
    return {};
  };
}

static Setter seedOf(std::optional<uint64_t> &seed) {
  return [&](const std::string &key, const Json &value) -> rt::Status {
    if (!value.is_number_unsigned())
      return unexpected("an integer from 0 to 2^64 - 1", key, value);
    seed = value.get<uint64_t>();
    return {};
  };
}

static Setter lengthsOf(std::vector<int64_t> &lengths) {
  return [&](const std::string &key, const Json &value) -> rt::Status {
    if (!value.is_array() || value.empty())
      return unexpected("an array of one integer or more", key, value);
    for (const Json &length : value)
      if (!readInteger(length, lengths.emplace_back()))
        return unexpected("an array of integers", key, value);
    return {};
  };
}

static Setter tileOf(std::optional<ExplainRequest::Tile> &tile) {
  return [&](const std::string &key, const Json &value) -> rt::Status {
    if (value.is_string())
      tile = ExplainRequest::Tile::parse(value.get_ref<const std::string &>());
    return tile ? rt::Status() : unexpected("\"ROWSxKEYS\", from 1 to 2^24 each,", key, value);
  };
}

static Setter number(double &rate) {
  return [&](const std::string &key, const Json &value) -> rt::Status {
    if (!value.is_number())
      return unexpected("a number", key, value);
    rate = value.get<double>();
    return {};
  };
}

static Setter flag(bool &isSet) {
  return [&](const std::string &key, const Json &value) -> rt::Status {
    if (!value.is_boolean())
      return unexpected("true or false", key, value);
    isSet = value.get<bool>();
    return {};
  };
}

rt::Result<ExplainRequest> attn::parseExplainOptions(llvm::StringRef text) {
  ExplainRequest request;
  reference::InputRequest &inputs = request.inputs;
  const std::pair<const char *, Setter> options[] = {{"batch", integer(inputs.batch)},
                                                     {"seqlen_q", integer(inputs.seqlenQ)},
                                                     {"seqlen_kv", integer(inputs.seqlenKv)},
                                                     {"lengths_q", lengthsOf(inputs.lengthsQ)},
                                                     {"lengths_kv", lengthsOf(inputs.lengthsKv)},
                                                     {"padding", integer(inputs.padding)},
                                                     {"sequence", integer(request.sequence)},
                                                     {"head", integer(request.head)},
                                                     {"tile", tileOf(request.tile)},
                                                     {"seed", seedOf(inputs.seed)},
                                                     {"tflops", number(request.tflops)},
                                                     {"gbps", number(request.gbps)},
                                                     {"svg", flag(request.svg)}};
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return rt::Error{"expected a JSON object of options, got: " +
                     (json.is_discarded() ? text.substr(0, 100).str() : shown(json))};
  for (const auto &[key, value] : json.items()) {
    auto option = llvm::find_if(options, [&](const auto &option) { return option.first == key; });
    if (option == std::end(options)) {
      std::string keys;
      for (const auto &[known, setter] : options)
        keys += fmt::format("{}`{}`", keys.empty() ? "" : ", ", known);
      return rt::Error{fmt::format("expected options among {}, got: `{}`", keys, key)};
    }
    if (rt::Status set = option->second(key, value); !set)
      return set.error();
  }
  if (llvm::Error bad = checkRanges(request))
    return rt::Error{llvm::toString(std::move(bad))};
  return request;
}
