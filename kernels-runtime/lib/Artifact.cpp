// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Artifact.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>

using namespace attn::rt;
using Json = nlohmann::ordered_json;

std::string_view attn::rt::toString(Param::Kind kind) {
  switch (kind) {
  case Param::Kind::Pointer:
    return "pointer";
  case Param::Kind::I32:
    return "i32";
  case Param::Kind::I64:
    return "i64";
  case Param::Kind::F32:
    return "f32";
  case Param::Kind::TensorMap:
    return "tensor_map";
  case Param::Kind::Queue:
    return "queue";
  }
  return "?";
}

static std::optional<Param::Kind> kindOf(std::string_view text) {
  for (auto kind : {Param::Kind::Pointer, Param::Kind::I32, Param::Kind::I64, Param::Kind::F32, Param::Kind::TensorMap,
                    Param::Kind::Queue})
    if (toString(kind) == text)
      return kind;
  return std::nullopt;
}

std::string Artifact::toJson(bool withSource) const {
  Json json = {{"abi_version", abiVersion}, {"name", name}, {"entry", entry}, {"target", target}};
  json["params"] = Json::array();
  for (const Param &param : params)
    json["params"].push_back({{"name", param.name}, {"kind", toString(param.kind)}});
  json["threads"] = threads;
  json["smem_bytes"] = smemBytes;
  json["min_blocks"] = minBlocks;
  json["clusters"] = clusters;
  json["follows"] = follows;
  json["persistent"] = persistent;
  json["cluster_per_block"] = clusterPerBlock;
  json["notes"] = Json::array();
  for (const auto &[key, value] : notes)
    json["notes"].push_back({key, value});
  if (withSource)
    json["source"] = source;
  // Notes may hold anything; bytes that aren't UTF-8 must not be the end of us.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {
/// Reads fields and remembers the first one that isn't what it should be.
struct Reader {
  std::string bad;

  const Json *field(const Json &object, const char *name) {
    auto it = object.is_object() ? object.find(name) : object.end();
    if (object.is_object() && it != object.end())
      return &*it;
    fail(name);
    return nullptr;
  }
  void fail(const char *name) {
    if (bad.empty())
      bad = name;
  }
  void read(const Json &object, const char *name, std::string &to) {
    if (const Json *json = field(object, name))
      json->is_string() ? to = json->get<std::string>(), void() : fail(name);
  }
  void read(const Json &object, const char *name, bool &to) {
    if (const Json *json = field(object, name))
      json->is_boolean() ? to = json->get<bool>(), void() : fail(name);
  }
  void read(const Json &object, const char *name, int &to) {
    const Json *json = field(object, name);
    if (!json)
      return;
    int64_t value = json->is_number_integer() ? json->get<int64_t>() : -1;
    if (value < 0 || value > std::numeric_limits<int>::max())
      return fail(name);
    to = static_cast<int>(value);
  }
};
} // namespace

Result<Artifact> Artifact::fromJson(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Error{"artifact is not a JSON object", {}, {}};
  Artifact a;
  Reader reader;
  reader.read(json, "abi_version", a.abiVersion);
  if (reader.bad.empty() && a.abiVersion != kAbiVersion)
    return Error{fmt::format("expected an artifact of ABI version {}, got: {}", kAbiVersion, a.abiVersion), {}, {}};
  reader.read(json, "name", a.name);
  reader.read(json, "entry", a.entry);
  reader.read(json, "target", a.target);
  reader.read(json, "threads", a.threads);
  reader.read(json, "smem_bytes", a.smemBytes);
  reader.read(json, "min_blocks", a.minBlocks);
  reader.read(json, "clusters", a.clusters);
  reader.read(json, "follows", a.follows);
  reader.read(json, "persistent", a.persistent);
  reader.read(json, "cluster_per_block", a.clusterPerBlock);
  if (const Json *params = reader.field(json, "params"); params && params->is_array()) {
    for (const Json &item : *params) {
      Param param;
      std::string kind;
      reader.read(item, "name", param.name);
      reader.read(item, "kind", kind);
      auto known = kindOf(kind);
      known ? param.kind = *known, void() : reader.fail("kind");
      a.params.push_back(std::move(param));
    }
  } else {
    reader.fail("params");
  }
  if (auto notes = json.find("notes"); notes != json.end() && notes->is_array())
    for (const Json &item : *notes)
      if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string())
        a.notes.emplace_back(item[0].get<std::string>(), item[1].get<std::string>());
  if (json.contains("source"))
    reader.read(json, "source", a.source);
  if (!reader.bad.empty())
    return Error{fmt::format("artifact field `{}` is missing or has the wrong type", reader.bad), {}, {}};
  return a;
}
