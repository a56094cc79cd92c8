// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Binds a plan on all ranks, which compare what they have.
//
#include "RankSteps.h"
#include "attn-rt/Cache.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace attn;
using nlohmann::json;

namespace {
/// What all ranks have to have alike.
struct Field {
  std::string name;  ///< in the plural
  std::string words; ///< for a reader
  std::string text;  ///< all of it
};
} // namespace

static std::string digestOf(llvm::StringRef text) {
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), /*LowerCase=*/true);
}

static std::string numbers(llvm::ArrayRef<int64_t> values) {
  return llvm::join(llvm::map_range(values, [](int64_t x) { return std::to_string(x); }), ",");
}

static std::vector<Field> fieldsOf(plan::DefOp plan, ProblemOp problem, BackwardOp backward,
                                   const plan::CallSequences &sequences, const plan::Tables &tables,
                                   const Target &target) {
  std::vector<Field> fields;
  fields.push_back({"versions of this library", rt::libraryBuild(), rt::libraryBuild()});
  std::string learned = "none";
  if (backward && backward.getRequiresGrad())
    learned = llvm::join(backward.getRequiresGrad()->getAsValueRange<mlir::StringAttr>(), ", ");
  fields.push_back({"arrays that require grad", learned, learned});
  fields.push_back({"problems", problem.getSymName().str(), textOf(problem) + (backward ? textOf(backward) : "")});
  fields.push_back({"plans", "@" + plan.getSymName().str(), textOf(plan)});
  fields.push_back({"kinds of devices", target.isHost() ? "CPUs" : "GPUs", target.isHost() ? "CPUs" : "GPUs"});
  std::string lengths, slots;
  int64_t total[2];
  for (bool ofKeys : {false, true}) {
    lengths += numbers(sequences.lengths[ofKeys]) + ";", slots += numbers(sequences.slots[ofKeys]) + ";";
    total[ofKeys] = llvm::sum_of(sequences.lengths[ofKeys], int64_t(0));
  }
  fields.push_back({"sequences",
                    fmt::format("{} with {} queries and {} keys", sequences.lengths[0].size(), total[0], total[1]),
                    lengths});
  fields.push_back({"slots of sequences", "", slots});
  std::string shards; // others follow from what is compared above
  if (sequences.given)
    for (bool ofKeys : {false, true})
      for (int64_t rank = 0; rank < tables.ranks(); ++rank) {
        const plan::Shard &shard = tables.shardOf(ofKeys, rank);
        shards += fmt::format("{}:", shard.rows);
        for (const plan::Run &run : shard.runs)
          shards += fmt::format("{},{},{},{};", run.row, run.sequence, run.position, run.length);
      }
  fields.push_back({"shards", "", shards});
  return fields;
}

/// Why ranks cannot run together, if they cannot: the error of the first that has one, or a field that differs from
/// that of rank 0. `said`: by rank, of each its error, the kind of this, and fields.
static rt::Status compare(llvm::ArrayRef<json> said) {
  for (auto [rank, one] : llvm::enumerate(said))
    if (std::string error = one["error"]; !error.empty())
      return rt::Error{fmt::format("rank {}: {}", rank, error)}.as(rt::ErrorKind(one["kind"]));
  const json &first = said[0]["fields"];
  for (size_t number = 0; number < first.size(); ++number)
    for (size_t rank = 1; rank < said.size(); ++rank) {
      const json &field = said[rank]["fields"][number];
      if (first[number]["digest"] == field["digest"])
        continue;
      std::string name = first[number]["name"], here = first[number]["words"], there = field["words"];
      std::string words = here == there ? "" : fmt::format(" ({} there, {} on rank 0)", there, here);
      return rt::Error{fmt::format(
          "expected all ranks to have the same {}, got: other ones on rank {} than on rank 0{}", name, rank, words)};
    }
  return {};
}

static std::string jsonText(const json &said) { return said.dump(-1, ' ', false, json::error_handler_t::replace); }

/// What a rank says: two lines, what has to be alike on all ranks, and where it receives messages. It also says whether
/// all its kernels are compiled and loaded.
static std::string wordsOf(const std::vector<Field> &fields, const ReceivePlan &receives, bool isBuilt) {
  json alike = {{"error", ""}, {"kind", 0}, {"fields", json::array()}}, messages = json::array();
  for (const Field &field : fields)
    alike["fields"].push_back({{"name", field.name}, {"words", field.words}, {"digest", digestOf(field.text)}});
  for (const ReceivePlan::Message &message : receives.messages)
    messages.push_back({message.number, message.from, message.offsets});
  return jsonText(alike) + "\n" + jsonText({receives.bytes, messages, isBuilt});
}

static std::string wordsOf(const rt::Error &error) {
  return jsonText({{"error", error.str()}, {"kind", int(error.kind)}, {"fields", json::array()}}) + "\n";
}

namespace {
/// What all ranks said.
struct Said {
  std::vector<ReceivePlan> receives; ///< by rank
  bool areBuilt = true;              ///< are the kernels of all ranks compiled?
};
} // namespace

static rt::Result<Said> readTexts(llvm::ArrayRef<std::string> texts, llvm::StringRef own) {
  auto ofOtherVersion = [](size_t rank) {
    return rt::Error{fmt::format("expected all ranks to bind a plan by the same version of this library, got: another "
                                 "one on rank {}",
                                 rank)};
  };
  auto lines = [](llvm::StringRef text) { return text.split('\n'); };
  if (!llvm::all_of(texts, [&](const std::string &text) { return lines(text).first == lines(own).first; })) {
    std::vector<json> said;
    for (auto [rank, text] : llvm::enumerate(texts)) {
      said.push_back(json::parse(lines(text).first.str(), nullptr, /*allow_exceptions=*/false));
      const json &one = said.back();
      if (!one.is_object() || !one.contains("error") || !one.contains("kind") || !one.contains("fields") ||
          (one["error"] == "" && said[0]["error"] == "" && one["fields"].size() != said[0]["fields"].size()))
        return ofOtherVersion(rank);
    }
    if (rt::Status same = compare(said); !same)
      return same.error();
  }
  Said all;
  for (auto [rank, text] : llvm::enumerate(texts)) {
    json said = json::parse(lines(text).second.str(), nullptr, /*allow_exceptions=*/false);
    if (!said.is_array() || said.size() != 3)
      return ofOtherVersion(rank);
    ReceivePlan &receives = all.receives.emplace_back();
    receives.bytes = said[0];
    all.areBuilt &= bool(said[2]);
    for (const json &message : said[1])
      receives.messages.push_back({message[0], message[1], message[2]});
  }
  return all;
}

/// Compiles what this rank runs, and waits for the others. An error is one on all ranks.
static rt::Status buildAll(llvm::function_ref<rt::Status()> build, Transport &transport) {
  rt::Status built = build();
  auto texts = transport.allGather(built ? "" : wordsOf(built.error()));
  if (!built)
    return built;
  if (!texts)
    return texts.status();
  for (auto [rank, text] : llvm::enumerate(*texts))
    if (json said = json::parse(llvm::StringRef(text).split('\n').first.str(), nullptr, false); said.is_object())
      return rt::Error{fmt::format("rank {}: {}", rank, std::string(said["error"]))}.as(rt::ErrorKind(said["kind"]));
  return {};
}

void RankSteps::refuse(Transport &transport, const rt::Error &error) { (void)transport.allGather(wordsOf(error)); }

rt::Result<std::unique_ptr<RankSteps>> RankSteps::bind(plan::DefOp plan, ProblemOp problem, BackwardOp backward,
                                                       const plan::CallSequences &sequences, Transport &transport,
                                                       std::shared_ptr<PlanKernels> kernels, bool isChecked,
                                                       llvm::function_ref<void()> beforeWaiting) {
  plan::Tables tables;
  std::string own;
  auto make = [&]() -> rt::Result<std::unique_ptr<RankSteps>> {
    if (rt::Status device = transport.checkDevice(); !device)
      return device.error();
    if (int64_t(plan.getRanks()) != transport.getRanks())
      return rt::Error{fmt::format("expected a plan for {} ranks, as the transport has, got: one for {}",
                                   transport.getRanks(), int64_t(plan.getRanks()))};
    if (std::optional<std::string> wrong = tables.compute(plan, problem, sequences, isChecked))
      return rt::Error{*wrong}.as(rt::ErrorKind::Problem);
    std::vector<Field> fields = fieldsOf(plan, problem, backward, sequences, tables, kernels->getTarget());
    auto made = lower(plan, problem, backward, sequences, tables, transport.getRank(), std::move(kernels));
    if (!made)
      return made;
    const bool isBuilt = (*made)->isBuilt(); // others are compiled when all ranks are known to have the same plan
    if (rt::Status loaded = isBuilt ? (*made)->build() : rt::Status(); !loaded)
      return loaded.error();
    own = wordsOf(fields, (*made)->steps->receivePlan(), isBuilt);
    return made;
  };
  auto made = make();
  if (!made)
    own = wordsOf(made.error());
  if (beforeWaiting)
    beforeWaiting();
  auto texts = transport.allGather(own);
  if (!made) // what went wrong here says most
    return made;
  if (!texts)
    return texts.error();
  auto said = readTexts(*texts, own);
  if (!said)
    return said.error();
  if (!said->areBuilt)
    if (rt::Status built = buildAll([&] { return (*made)->build(); }, transport); !built)
      return built.error();
  auto route = transport.route(said->receives);
  if (!route)
    return route.error();
  (*made)->route = std::move(*route);
  return made;
}
