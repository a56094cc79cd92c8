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
  std::string shards;
  plan.walk([&](plan::LocalOp local) {
    for (int64_t rank = 0; rank < tables.ranks(); ++rank) {
      const plan::Shard &shard = *tables.held(local.getRows(), rank).rows;
      shards += fmt::format("{}:", shard.rows);
      for (const plan::Run &run : shard.runs)
        shards += fmt::format("{},{},{},{};", run.row, run.sequence, run.position, run.length);
    }
  });
  fields.push_back({"shards", "", shards});
  return fields;
}

/// An error on all ranks if some field differs from that of rank 0.
static rt::Status compare(Transport &transport, llvm::ArrayRef<Field> fields) {
  json own = json::array();
  for (const Field &field : fields)
    own.push_back({{"words", field.words}, {"digest", digestOf(field.text)}});
  auto all = transport.allGather(own.dump());
  if (!all)
    return all.status();
  json first = json::parse((*all)[0], nullptr, false);
  for (size_t number = 0; number < fields.size(); ++number)
    for (size_t rank = 1; rank < all->size(); ++rank) {
      json other = json::parse((*all)[rank], nullptr, false);
      if (!first.is_array() || !other.is_array() || first.size() != fields.size() || other.size() != fields.size())
        return rt::Error{fmt::format("expected all ranks to bind a plan by the same version of this library, got: "
                                     "another one on rank {}",
                                     rank)};
      if (first[number]["digest"] == other[number]["digest"])
        continue;
      std::string here = first[number]["words"], there = other[number]["words"];
      std::string words = here == there ? "" : fmt::format(" ({} there, {} on rank 0)", there, here);
      return rt::Error{
          fmt::format("expected all ranks to have the same {}, got: other ones on rank {} than on rank 0{}",
                      fields[number].name, rank, words)};
    }
  return {};
}

rt::Result<std::unique_ptr<RankSteps>> RankSteps::bind(plan::DefOp plan, ProblemOp problem, BackwardOp backward,
                                                       const plan::CallSequences &sequences, Transport &transport,
                                                       std::shared_ptr<PlanKernels> kernels) {
  rt::Status own;
  plan::Tables tables;
  if (int64_t(plan.getRanks()) != transport.getRanks())
    own = rt::Error{fmt::format("expected a plan for {} ranks, as the transport has, got: one for {}",
                                transport.getRanks(), int64_t(plan.getRanks()))};
  else if (std::optional<std::string> wrong = tables.compute(plan, problem, sequences))
    own = rt::Error{*wrong}.as(rt::ErrorKind::Problem);
  if (rt::Status all = transport.agree(own); !all)
    return all.error();
  if (rt::Status same = compare(transport, fieldsOf(plan, problem, backward, sequences, tables, kernels->getTarget()));
      !same)
    return same.error();
  auto made = create(plan, problem, backward, sequences, tables, transport.getRank(), std::move(kernels));
  if (rt::Status all = transport.agree(made.status()); !all)
    return all.error();
  ReceivePlan mine = (*made)->steps->receivePlan();
  json own_plan = {{"bytes", mine.bytes}, {"messages", json::array()}};
  for (const ReceivePlan::Message &message : mine.messages)
    own_plan["messages"].push_back({message.number, message.from, message.offsets});
  auto texts = transport.allGather(own_plan.dump());
  if (!texts)
    return texts.error();
  std::vector<ReceivePlan> plans;
  for (const std::string &text : *texts) {
    json read = json::parse(text);
    ReceivePlan &plan = plans.emplace_back();
    plan.bytes = read["bytes"];
    for (const json &message : read["messages"])
      plan.messages.push_back({message[0], message[1], message[2]});
  }
  auto route = transport.route(plans);
  if (!route)
    return route.error();
  (*made)->route = std::move(*route);
  return std::move(*made);
}
