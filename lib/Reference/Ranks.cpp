// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Reference/Ranks.h"
#include "Vectors.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <map>

using namespace attn;
using namespace attn::reference;

static constexpr double lseOfNothing = -std::numeric_limits<double>::infinity();
static constexpr double garbage = 1e9; ///< in padding

namespace {
/// The numbers of a value on one rank: [rows, heads, width].
struct Buffer {
  plan::Held held;
  int64_t width = 0;
  std::vector<double> numbers;

  Buffer() = default;
  Buffer(const plan::Held &held, int64_t width, double fill)
      : held(held), width(width), numbers(held.rowHeads() * width, fill) {}
  llvm::MutableArrayRef<double> at(int64_t row, int64_t head) {
    return llvm::MutableArrayRef(numbers).slice((row * held.heads.size() + head - held.heads.begin) * width, width);
  }
  bool hasHead(int64_t head) const { return held.heads.contain({head, head + 1}); }
};

/// A token of a shard and its row.
struct Token {
  int64_t sequence, position, row;
};

class Ranks : Vectors {
public:
  Ranks(plan::DefOp plan, ProblemOp problem, const plan::Tables &tables, const Tensors &inputs, const Sizes &sizes)
      : Vectors(problem, inputs, sizes), plan(plan), tables(tables), backward(plan.getBackward()) {}

  /// The stored values, by rank.
  std::vector<std::vector<Buffer>> run();
  /// Gradients of arrays, of all ranks together, are added to these tensors in `run`.
  void addArrayGrads(llvm::ArrayRef<ScoreOperand> of, Tensors &gradients) { arrays = of, ofArrays = &gradients; }
  void copyResult(std::vector<Buffer> &stored, Outputs &outputs) const;
  void copyGradients(std::vector<Buffer> &stored, llvm::StringRef first, llvm::StringRef second,
                     Tensors &gradients) const;

private:
  int64_t widthOf(plan::Kind kind) const;
  std::vector<Buffer> local(plan::LocalOp op) const;
  std::vector<Buffer> exchanged(plan::ExchangeOp op);
  void attend(plan::AttendOp op);
  void differentiate(plan::GradsOp op);
  /// Calls `visit` for each visible pair of a query head on a rank.
  void forEachPair(Buffer &queries, Buffer &keys,
                   llvm::function_ref<void(const Token &, const Token &, int64_t head, ScorePoint &)> visit) const;

  static std::vector<Token> tokensOf(const plan::Shard &shard) {
    std::vector<Token> tokens;
    for (const plan::Run &run : shard.runs)
      for (int64_t i = 0; i < run.length; ++i)
        tokens.push_back({run.sequence, run.position + i, run.row + i});
    return tokens;
  }
  /// Copies or adds tokens and heads that both have.
  static void transfer(Buffer &from, Buffer &to, bool add);

  std::vector<Buffer> &of(mlir::Value value) { return buffers.find(value)->second; }
  std::vector<Buffer> fresh(mlir::Value value, double fill) const {
    std::vector<Buffer> made;
    for (int64_t rank = 0; rank < tables.ranks(); ++rank)
      made.emplace_back(tables.held(value, rank), widthOf(llvm::cast<plan::RowsType>(value.getType()).getKind()), fill);
    return made;
  }

  plan::DefOp plan;
  const plan::Tables &tables;
  bool backward;
  llvm::ArrayRef<ScoreOperand> arrays;
  Tensors *ofArrays = nullptr;
  llvm::DenseMap<mlir::Value, std::vector<Buffer>> buffers;
};
} // namespace

/// q: Q, in a backward pass dO, LSE and delta behind it; kv: K and V; partial: O and LSE; dkv: dK and dV.
int64_t Ranks::widthOf(plan::Kind kind) const {
  switch (kind) {
  case plan::Kind::q:
    return dimQk + (backward ? dimV + 2 : 0);
  case plan::Kind::kv:
  case plan::Kind::dkv:
    return dimQk + dimV;
  case plan::Kind::partial:
    return dimV + 1;
  case plan::Kind::dq:
    return dimQk;
  }
  llvm_unreachable("all kinds return");
}

void Ranks::transfer(Buffer &from, Buffer &to, bool add) {
  std::map<std::pair<int64_t, int64_t>, int64_t> rows;
  for (const Token &token : tokensOf(*from.held.rows))
    rows[{token.sequence, token.position}] = token.row;
  for (const Token &token : tokensOf(*to.held.rows)) {
    auto found = rows.find({token.sequence, token.position});
    if (found == rows.end())
      continue;
    for (int64_t head = from.held.heads.begin; head < from.held.heads.end; ++head) {
      if (!to.hasHead(head))
        continue;
      for (auto [number, old] : llvm::zip_equal(from.at(found->second, head), to.at(token.row, head)))
        old = add ? old + number : number;
    }
  }
}

std::vector<Buffer> Ranks::local(plan::LocalOp op) const {
  std::vector<Buffer> made = fresh(op.getRows(), garbage);
  bool ofKeys = plan::isRows(op.getRows().getType(), plan::Kind::kv);
  for (Buffer &buffer : made)
    for (const Token &token : tokensOf(*buffer.held.rows))
      for (int64_t head = buffer.held.heads.begin; head < buffer.held.heads.end; ++head) {
        std::vector<double> numbers;
        if (ofKeys) {
          for (auto [name, layout] : {std::pair("k", kLayout), std::pair("v", vLayout)}) {
            const Tensor &tensor = input(name);
            int64_t at =
                offsetOf(tensor, layout, token.sequence, head, sequences.keyRow(token.sequence, token.position));
            std::vector<double> vector(tensor.shape().back());
            tensor.load(at, tensor.strides().back(), vector);
            llvm::append_range(numbers, vector);
          }
        } else {
          Row row = {token.sequence, head, token.position};
          numbers = queryVector("q", row);
          if (backward) {
            std::vector<double> dOut = queryVector("do", row);
            llvm::append_range(numbers, dOut);
            numbers.push_back(statistic("lse", row));
            numbers.push_back(dot(dOut, queryVector("o", row)) -
                              (inputs.count("dlse") ? statistic("dlse", row) : 0)); // delta
          }
        }
        llvm::copy(numbers, buffer.at(token.row, head).begin());
      }
  return made;
}

std::vector<Buffer> Ranks::exchanged(plan::ExchangeOp op) {
  std::vector<Buffer> arriving(tables.ranks());
  int64_t width = widthOf(llvm::cast<plan::RowsType>(op.getRows().getType()).getKind());
  for (int64_t rank = 0; rank < tables.ranks(); ++rank) {
    int64_t to = tables.receiver(op, rank);
    Buffer &from = of(op.getRows())[rank], &made = arriving[to];
    made = Buffer(tables.held(op.getArrival(), to), width, garbage);
    if (*made.held.rows != *from.held.rows) {
      transfer(from, made, /*add=*/false);
      continue;
    }
    for (int64_t row = 0; row < made.held.rows->rows; ++row) // padding too
      for (int64_t head = made.held.heads.begin; head < made.held.heads.end; ++head)
        llvm::copy(from.at(row, head), made.at(row, head).begin());
  }
  return arriving;
}

void Ranks::forEachPair(
    Buffer &queries, Buffer &keys,
    llvm::function_ref<void(const Token &, const Token &, int64_t head, ScorePoint &)> visit) const {
  std::vector<Token> keyTokens = tokensOf(*keys.held.rows);
  for (const Token &q : tokensOf(*queries.held.rows))
    for (int64_t head = queries.held.heads.begin; head < queries.held.heads.end; ++head) {
      ScorePoint point = pointOf({q.sequence, head, q.position});
      for (const Token &k : keyTokens) {
        point.k = k.position;
        if (k.sequence == q.sequence && mask.keeps(point))
          visit(q, k, head, point);
      }
    }
}

void Ranks::attend(plan::AttendOp op) {
  for (auto [index, queries] : llvm::enumerate(op.getQueries())) {
    std::vector<Buffer> made = fresh(op.getPartials()[index], 0);
    for (int64_t rank = 0; rank < tables.ranks(); ++rank) {
      Buffer &result = made[rank], &q = of(queries)[rank];
      for (int64_t row = 0; row < result.held.rows->rows; ++row)
        for (int64_t head = result.held.heads.begin; head < result.held.heads.end; ++head)
          result.at(row, head).back() = lseOfNothing;
      if (!op.getBefore().empty())
        result.numbers = of(op.getBefore()[index])[rank].numbers;
      for (mlir::Value value : op.getKeys()) {
        Buffer &keys = of(value)[rank];
        forEachPair(q, keys, [&](const Token &query, const Token &key, int64_t head, ScorePoint &point) {
          llvm::ArrayRef<double> kv = keys.at(key.row, head / (heads / kvHeads));
          double score = modified(point, scale * dot(q.at(query.row, head).take_front(dimQk), kv.take_front(dimQk)));
          // A result of one key more: what was there counts less, and the key's value the rest.
          llvm::MutableArrayRef<double> partial = result.at(query.row, head);
          double before = partial.back(), largest = std::max(before, score);
          if (std::isnan(score))
            largest = score;
          if (largest == lseOfNothing)
            return;
          double lse = largest + std::log(std::exp(before - largest) + std::exp(score - largest));
          double kept = drops.factor({query.sequence, head, query.position}, key.position);
          double old = std::exp(before - lse), weight = std::exp(score - lse);
          for (auto [o, v] : llvm::zip_equal(partial.drop_back(), kv.drop_front(dimQk)))
            o = (old == 0 ? 0 : o * old) + (kept == 0 ? 0 : kept * weight * v);
          partial.back() = lse;
        });
      }
    }
    buffers[op.getPartials()[index]] = std::move(made);
  }
}

void Ranks::differentiate(plan::GradsOp op) {
  for (mlir::Value gradient : op.getGradients())
    buffers[gradient] = fresh(gradient, 0);
  for (int64_t rank = 0; rank < tables.ranks(); ++rank)
    for (auto [index, queries] : llvm::enumerate(op.getQueries())) {
      Buffer &q = of(queries)[rank], &dQuery = of(op.getDq()[index])[rank];
      if (!op.getBefore().empty())
        dQuery.numbers = of(op.getBefore()[index])[rank].numbers;
      for (auto [value, dkv] : llvm::zip_equal(op.getKeys(), op.getDkv())) {
        Buffer &keys = of(value)[rank], &dKeys = of(dkv)[rank];
        forEachPair(q, keys, [&](const Token &query, const Token &key, int64_t head, ScorePoint &point) {
          int64_t kvHead = head / (heads / kvHeads);
          llvm::ArrayRef<double> row = q.at(query.row, head), kv = keys.at(key.row, kvHead);
          llvm::ArrayRef<double> dOut = row.slice(dimQk, dimV);
          double lse = row[dimQk + dimV], delta = row.back();
          if (lse == lseOfNothing)
            return;
          double score = scale * dot(row.take_front(dimQk), kv.take_front(dimQk)), derivative = 1;
          std::vector<double> byEntry(arrays.size());
          score = modified(point, score, &derivative, arrays, byEntry);
          double p = std::exp(score - lse);
          double kept = drops.factor({query.sequence, head, query.position}, key.position);
          double dWeight = kept == 0 ? 0 : kept * dot(dOut, kv.drop_front(dimQk));
          double dModified = p * (dWeight - delta), dScore = dModified * derivative;
          for (auto [array, own] : llvm::zip_equal(arrays, byEntry))
            if (own != 0)
              addToEntry((*ofArrays)[gradientOf(array)], array, {query.sequence, head, query.position}, point,
                         dModified * own);
          llvm::MutableArrayRef<double> dk = dKeys.at(key.row, kvHead);
          addScaled(dQuery.at(query.row, head).data(), scale * dScore, kv.take_front(dimQk));
          addScaled(dk.data(), scale * dScore, row.take_front(dimQk));
          if (kept != 0)
            addScaled(dk.data() + dimQk, kept * p, dOut);
        });
      }
    }
}

std::vector<std::vector<Buffer>> Ranks::run() {
  std::vector<std::vector<Buffer>> stored;
  for (mlir::Operation &step : plan.getBody().front())
    llvm::TypeSwitch<mlir::Operation *>(&step)
        .Case([&](plan::LocalOp op) { buffers[op.getRows()] = local(op); })
        .Case([&](plan::HeadsOp op) {
          std::vector<Buffer> made = fresh(op.getPart(), garbage);
          for (int64_t rank = 0; rank < tables.ranks(); ++rank)
            transfer(of(op.getRows())[rank], made[rank], /*add=*/false);
          buffers[op.getPart()] = std::move(made);
        })
        .Case([&](plan::ExchangeOp op) {
          std::vector<Buffer> arriving = exchanged(op);
          buffers[op.getArrival()] = std::move(arriving);
        })
        .Case([&](plan::WaitOp op) {
          std::vector<Buffer> arrived = std::move(of(op.getArrival()));
          buffers[op.getRows()] = std::move(arrived);
        })
        .Case([&](plan::AttendOp op) { attend(op); })
        .Case([&](plan::GradsOp op) { differentiate(op); })
        .Case([&](plan::SumOp op) {
          std::vector<Buffer> made = fresh(op.getSum(), 0);
          for (mlir::Value part : op.getParts())
            for (int64_t rank = 0; rank < tables.ranks(); ++rank)
              transfer(of(part)[rank], made[rank], /*add=*/true);
          buffers[op.getSum()] = std::move(made);
        })
        .Case([&](plan::JoinHeadsOp op) {
          std::vector<Buffer> made = fresh(op.getJoined(), garbage);
          for (mlir::Value part : op.getParts())
            for (int64_t rank = 0; rank < tables.ranks(); ++rank)
              transfer(of(part)[rank], made[rank], /*add=*/false);
          buffers[op.getJoined()] = std::move(made);
        })
        .Case([&](plan::StoreOp op) {
          for (mlir::Value value : op.getRows())
            stored.push_back(of(value));
        });
  return stored;
}

void Ranks::copyResult(std::vector<Buffer> &stored, Outputs &outputs) const {
  outputs.lse.fill(lseOfNothing);
  outputs.known.fill(1);
  for (Buffer &buffer : stored)
    for (const Token &token : tokensOf(*buffer.held.rows))
      for (int64_t head = 0; head < heads; ++head) {
        llvm::ArrayRef<double> partial = buffer.at(token.row, head);
        double lse = partial.back(), share = 1;
        if (std::optional<double> sink = sinkOf(head); sink && *sink != lseOfNothing) { // a key more, without a value
          double largest = std::max(lse, *sink);
          double all = largest + std::log(std::exp(lse - largest) + std::exp(*sink - largest));
          share = std::exp(lse - all), lse = all;
        }
        int64_t row = sequences.queryRow(token.sequence, token.position);
        int64_t at = offsetOf(outputs.o, oLayout, token.sequence, head, row);
        for (int64_t d = 0; d < dimV; ++d)
          outputs.o.store(at + d, partial[d] * share);
        outputs.lse.store(lseOffsetOf(outputs.lse, qLayout, token.sequence, head, row), lse);
      }
}

void Ranks::copyGradients(std::vector<Buffer> &stored, llvm::StringRef first, llvm::StringRef second,
                          Tensors &gradients) const {
  bool ofKeys = !second.empty();
  auto copy = [&](llvm::StringRef name, LayoutAttr layout, const Token &token, int64_t head,
                  llvm::ArrayRef<double> numbers) {
    int64_t row =
        ofKeys ? sequences.keyRow(token.sequence, token.position) : sequences.queryRow(token.sequence, token.position);
    Tensor &gradient = gradients[name];
    int64_t at = offsetOf(gradient, layout, token.sequence, head, row);
    for (auto [d, number] : llvm::enumerate(numbers))
      gradient.store(at + d, number);
  };
  for (Buffer &buffer : stored)
    for (const Token &token : tokensOf(*buffer.held.rows))
      for (int64_t head = buffer.held.heads.begin; head < buffer.held.heads.end; ++head) {
        llvm::ArrayRef<double> numbers = buffer.at(token.row, head);
        copy(first, ofKeys ? kLayout : qLayout, token, head, numbers.take_front(dimQk));
        if (ofKeys)
          copy(second, vLayout, token, head, numbers.drop_front(dimQk));
      }
}

/// The tables of a call whose tensors have these sequences.
static llvm::Expected<Sizes> prepare(plan::DefOp plan, Computation computation, const plan::CallSequences &sequences,
                                     const Tensors &inputs, plan::Tables &tables) {
  ProblemOp problem = computation.problem;
  bool wantsGradients = static_cast<bool>(computation.backward);
  if (plan.getBackward() != wantsGradients)
    return llvm::createStringError(wantsGradients ? "expected a plan of gradients (`backward`), got one of results"
                                                  : "expected a plan of results, got one of gradients (`backward`)");
  if (problem.getSegments())
    return llvm::createStringError("expected a problem without segments in a plan");
  llvm::Expected<Sizes> sizes = checkTensors(computation, inputs);
  if (!sizes)
    return sizes.takeError();
  Sequences of(problem, inputs, *sizes);
  for (bool ofKeys : {false, true}) {
    const std::vector<int64_t> &lengths = sequences.lengths[ofKeys];
    bool same = int64_t(lengths.size()) == of.size();
    for (int64_t i = 0; same && i < of.size(); ++i)
      same = lengths[i] == (ofKeys ? of.keysOf(i) : of.queriesOf(i)).length;
    if (!same)
      return llvm::createStringError("expected sequences of the lengths that the tensors have");
  }
  if (std::optional<std::string> wrong = tables.compute(plan, problem, sequences))
    return llvm::createStringError(*wrong);
  return sizes;
}

static Tensor resultOf(Computation computation, llvm::StringRef name, const Sizes &sizes) {
  for (const ProblemTensor &tensor : tensorsOf(computation))
    if (tensor.name == name)
      return Tensor(Dtype::F64, tensor.shape(computation.problem, sizes));
  llvm_unreachable("results have this name");
}

llvm::Expected<Outputs> attn::reference::interpret(plan::DefOp plan, ProblemOp problem,
                                                   const plan::CallSequences &sequences, const Tensors &inputs) {
  plan::Tables tables;
  llvm::Expected<Sizes> sizes = prepare(plan, problem, sequences, inputs, tables);
  if (!sizes)
    return sizes.takeError();
  bool isPacked = problem.getQLayout().isPacked();
  int64_t heads = problem.getHeads();
  Shape lse = isPacked ? Shape{heads, sizes->rowsQ} : Shape{sizes->batch, heads, sizes->rowsQ};
  Outputs outputs{resultOf(problem, "o", *sizes), Tensor(Dtype::F64, lse), Tensor(Dtype::I32, lse), {}};
  Ranks ranks(plan, problem, tables, inputs, *sizes);
  ranks.copyResult(ranks.run().front(), outputs);
  return outputs;
}

llvm::Expected<Tensors> attn::reference::interpret(plan::DefOp plan, BackwardOp backward,
                                                   const plan::CallSequences &sequences, const Tensors &inputs) {
  llvm::SmallVector<ScoreOperand> arrays = backward.getDifferentiatedArrays();
  for (const ScoreOperand &array : arrays)
    if (backward.getProblemOp().isSinkArray(array))
      return llvm::createStringError("expected gradients without those of sinks, got: `%s`", gradientOf(array).c_str());
  plan::Tables tables;
  llvm::Expected<Sizes> sizes = prepare(plan, backward, sequences, inputs, tables);
  if (!sizes)
    return sizes.takeError();
  Tensors gradients;
  for (llvm::StringRef name : {"dq", "dk", "dv"})
    gradients[name] = resultOf(backward, name, *sizes);
  for (const ScoreOperand &array : arrays)
    gradients[gradientOf(array)] = resultOf(backward, gradientOf(array), *sizes);
  Ranks ranks(plan, backward.getProblemOp(), tables, inputs, *sizes);
  ranks.addArrayGrads(arrays, gradients);
  std::vector<std::vector<Buffer>> stored = ranks.run();
  ranks.copyGradients(stored[0], "dq", "", gradients);
  ranks.copyGradients(stored[1], "dk", "dv", gradients);
  return gradients;
}
