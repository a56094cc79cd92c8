// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Inspect/InspectJson.h"
#include <cmath>
#include <nlohmann/json.hpp>

using namespace attn;
using Json = nlohmann::ordered_json;

/// What is no UTF-8 is replaced; without exceptions it would end the process.
static std::string dump(const Json &json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

/// An integer while a double holds it exactly.
static Json numberOf(double number) {
  double whole = std::nearbyint(number); // as `%.0f`: estimates are not whole
  return std::fabs(whole) <= 9007199254740992.0 ? Json(int64_t(whole)) : Json(whole);
}

static Json textOrNull(const std::optional<std::string> &text) { return text ? Json(*text) : Json(); }

std::string attn::toJson(const Explanation &e) {
  Json backward = Json::array();
  for (const Explanation::Pass &pass : e.backward)
    backward.push_back({{"name", pass.name}, {"schedule", pass.schedule}, {"refused", textOrNull(pass.refusal)}});
  const TileCounts &counts = e.counts;
  Json json = {{"name", e.forward.name},
               {"target", e.target},
               {"text", e.text()},
               {"schedule", e.forward.schedule},
               {"refused", textOrNull(e.forward.refusal)},
               {"backward", backward},
               {"mask", e.mask},
               {"canonical_mask", e.canonicalMask},
               {"tile", {{"rows", e.qTile}, {"keys", e.kvTile}, {"stride", e.rowStride}}},
               {"map", {{"sequence", e.sequence}, {"head", e.head}, {"rows", e.seqlenQ}, {"keys", e.seqlenKv}}},
               {"counts",
                {{"tiles", numberOf(counts.tiles)},
                 {"visited", numberOf(counts.visited)},
                 {"full", numberOf(counts.full)},
                 {"partial", numberOf(counts.visited - counts.full)},
                 {"empty", counts.empty < 0 ? Json() : numberOf(counts.empty)},
                 {"pairs", numberOf(counts.pairs)},
                 {"visible", numberOf(counts.visible)},
                 {"exact", counts.exact}}},
               {"flops", {{"visible", numberOf(e.visibleFlops)}, {"visited", numberOf(e.visitedFlops)}}},
               {"bytes", numberOf(e.bytes)},
               {"milliseconds", e.milliseconds()}};
  if (!e.svg.empty())
    json["svg"] = e.svg;
  return dump(json);
}

std::string attn::toJson(llvm::ArrayRef<Support> answers) {
  Json json = Json::array();
  for (const Support &answer : answers)
    json.push_back({{"name", answer.name},
                    {"target", answer.target.str()},
                    {"supported", !answer.reason},
                    {"reason", textOrNull(answer.reason)},
                    {"nearest", answer.nearest.empty() ? Json() : Json(answer.nearest)}});
  return dump(json);
}

std::string attn::toJson(const MaskEquivalence &e) {
  const char *verdicts[] = {"equal", "different", "unknown"};
  Json json = {{"verdict", verdicts[e.verdict]}, {"forms", {e.forms[0], e.forms[1]}}, {"text", e.text()}};
  if (e.verdict == MaskEquivalence::Different) {
    Json entries = Json::array();
    for (const MaskEquivalence::Entry &entry : e.entries)
      entries.push_back({{"array", entry.array}, {"position", entry.position}, {"value", entry.value}});
    json["where"] = {{"seqlen_q", e.seqlenQ}, {"seqlen_kv", e.seqlenKv},
                     {"row", e.row},          {"key", e.key},
                     {"head", e.head},        {"heads", e.heads},
                     {"entries", entries},    {"seen_by", e.seenByFirst ? "first" : "second"}};
  }
  return dump(json);
}
