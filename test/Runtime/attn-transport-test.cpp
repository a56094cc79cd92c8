// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The transport between GPUs of one host, on threads of this process and a driver whose streams are threads: messages
// of several plans in turn, whose exchanges have other receivers, in memory that is used again; ranks that are late,
// that do not come, and that fail.
//
#include "attn/ContextParallel/Transport.h"
#include "llvm/ADT/STLExtras.h"
#include <barrier>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

using namespace attn;

namespace {
constexpr size_t bytes = 512, most = 16; ///< of a message; exchanges of a plan

/// All ranks send to the rank `offsets[n]` farther on in exchange n. Places for what arrives are used in turn. With
/// `ahead` all exchanges are posted before the first is waited for.
struct TestPlan {
  std::vector<int64_t> offsets;
  int64_t places;
  bool ahead = false;
};

struct World {
  explicit World(int64_t ranks) : ranks(ranks), barrier(ranks), gathered(ranks * 4096) {}
  AllGather gatherOf(int64_t rank) {
    return [this, rank](const void *own, void *all, size_t size) {
      if (rank == 0)
        gathered.resize(size * ranks);
      barrier.arrive_and_wait();
      std::memcpy(gathered.data() + rank * size, own, size);
      barrier.arrive_and_wait();
      std::memcpy(all, gathered.data(), size * ranks);
      barrier.arrive_and_wait();
      return rt::Status();
    };
  }
  int64_t ranks;
  std::barrier<> barrier;
  std::vector<char> gathered;
};

/// What a rank sends in an exchange of a run.
uint8_t valueOf(int64_t rank, int64_t run, int64_t number) { return uint8_t(1 + rank * 67 + run * 5 + number * 13); }

struct Rank {
  Rank(World &world, int64_t rank, double timeout) : world(world), rank(rank), driver(**rt::Driver::get()) {
    (void)driver.useDevice(int(rank));
    transport = std::move(*makePeerTransport(rank, world.ranks, world.gatherOf(rank), timeout));
    stream = *driver.createStream();
    sent = *driver.alloc(bytes * most);
  }
  ~Rank() {
    (void)driver.destroyStream(stream);
    transport.reset();
    (void)driver.free(sent);
  }

  std::shared_ptr<const Transport::Route> bind(const TestPlan &plan) {
    std::vector<ReceivePlan> all(world.ranks);
    for (int64_t to = 0; to < world.ranks; ++to) {
      all[to].bytes = bytes * plan.places;
      for (auto [number, offset] : llvm::enumerate(plan.offsets))
        all[to].messages.push_back(
            {int64_t(number), (to - offset + world.ranks) % world.ranks, {bytes * (number % plan.places)}});
    }
    auto route = transport->route(all);
    return route ? *route : nullptr;
  }

  rt::Status run(const TestPlan &plan, const Transport::Route *route, int64_t number, std::minstd_rand &random) {
    auto names = std::make_shared<PlanNames>();
    names->plan = "@test", names->exchanges.assign(plan.offsets.size(), "kv");
    rt::Result<void *> memory = transport->begin(names, route, stream);
    if (!memory)
      return memory.error();
    std::vector<std::vector<uint8_t>> found(plan.offsets.size(), std::vector<uint8_t>(bytes));
    auto to = [&](size_t n) { return (rank + plan.offsets[n]) % world.ranks; };
    auto from = [&](size_t n) { return (rank - plan.offsets[n] + world.ranks) % world.ranks; };
    auto place = [&](size_t n) { return static_cast<char *>(*memory) + bytes * (n % plan.places); };
    auto post = [&](size_t n) {
      if (random() % 8 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
      rt::Status done = driver.fill(sent + n * bytes, valueOf(rank, number, n), bytes, stream);
      MessagePart out = {reinterpret_cast<void *>(sent + n * bytes), bytes}, in = {place(n), bytes};
      return done ? transport->post(n, to(n), out, from(n), in, stream) : done;
    };
    auto wait = [&](size_t n) {
      rt::Status done = transport->wait(n, from(n), to(n), stream);
      return done ? driver.copyToHostAsync(found[n].data(), rt::DevicePtr(place(n)), bytes, stream) : done;
    };
    for (size_t n = 0; n < plan.offsets.size(); ++n) {
      rt::Status done = post(n);
      if (done && !plan.ahead)
        done = wait(n);
      if (!done)
        return done;
    }
    for (size_t n = 0; plan.ahead && n < plan.offsets.size(); ++n)
      if (rt::Status done = wait(n); !done)
        return done;
    if (rt::Status done = transport->finish(stream); !done)
      return done;
    (void)driver.synchronize(stream);
    if (rt::Status fine = transport->check(); !fine)
      return fine;
    for (auto [n, offset] : llvm::enumerate(plan.offsets))
      if (uint8_t value = valueOf((rank - offset + world.ranks) % world.ranks, number, n);
          llvm::any_of(found[n], [&](uint8_t byte) { return byte != value; }))
        return rt::Error{"expected exchange " + std::to_string(n) + " of run " + std::to_string(number) + " on rank " +
                         std::to_string(rank) + " to be what was sent"};
    return {};
  }

  World &world;
  int64_t rank;
  const rt::Driver &driver;
  std::unique_ptr<Transport> transport;
  rt::Stream stream;
  rt::DevicePtr sent;
};

/// Calls `body` on a thread for each rank.
template <typename Body> void onRanks(int64_t ranks, double timeout, Body body) {
  World world(ranks);
  std::vector<std::thread> threads;
  for (int64_t number = 0; number < ranks; ++number)
    threads.emplace_back([&, number] {
      Rank rank(world, number, timeout);
      body(rank);
      world.barrier.arrive_and_wait();
    });
  for (std::thread &thread : threads)
    thread.join();
}
} // namespace

static int failures = 0;
static std::mutex printing;

static void expect(bool right, const std::string &what) {
  std::lock_guard<std::mutex> lock(printing);
  failures += !right;
  if (!right)
    std::printf("wrong: %s\n", what.c_str());
}

static void testPlansInTurn(int64_t ranks) {
  onRanks(ranks, 5, [&](Rank &rank) {
    std::vector<TestPlan> plans = {{{}, 1}, {{}, 2}, {{}, 3}, {{}, most, true}, {{}, most, true}};
    for (int64_t i = 1; i < ranks; ++i) {
      plans[0].offsets.push_back(1);
      plans[1].offsets.push_back(i);
      plans[2].offsets.insert(plans[2].offsets.end(), {ranks - i, i});
      plans[3].offsets.push_back(i);
      plans[4].offsets.push_back(ranks - i);
    }
    std::vector<std::shared_ptr<const Transport::Route>> routes;
    for (const TestPlan &plan : plans)
      routes.push_back(rank.bind(plan));
    std::minstd_rand shared(unsigned(7 * ranks)), own(unsigned(rank.rank + 1));
    for (int64_t run = 0; run < 60; ++run) {
      size_t which = shared() % plans.size();
      rt::Status done = rank.run(plans[which], routes[which].get(), run, own);
      expect(done.ok(), done ? "" : done.error().str());
      if (!done)
        break;
    }
  });
}

/// The last rank does not run, or fails between `begin` and `finish`.
static void testAbsence(bool fails) {
  onRanks(3, fails ? 20 : 0.3, [&](Rank &rank) {
    TestPlan plan = {{1, 1}, 2};
    auto route = rank.bind(plan);
    std::minstd_rand random(1);
    expect(rank.run(plan, route.get(), 0, random).ok(), "the first run");
    rank.world.barrier.arrive_and_wait();
    if (rank.rank == 2) {
      if (fails) {
        expect(rank.transport->begin(std::make_shared<PlanNames>(), route.get(), rank.stream).ok(), "begin");
        rank.transport->abandon(rt::Error{"out of luck"});
      }
      return;
    }
    rt::Status done = rank.run(plan, route.get(), 1, random);
    std::string said = done ? "nothing" : done.error().str();
    expect(llvm::StringRef(said).contains(fails ? "got: rank 2 failed" : "of `@test`") &&
               (fails || llvm::StringRef(said).contains("within 0.3 s")),
           said);
    rt::Status again = rank.run(plan, route.get(), 2, random);
    expect(!again && again.error().str() == said, "the same error afterwards");
  });
}

int main() {
  for (int64_t ranks : {1, 2, 3, 5})
    testPlansInTurn(ranks);
  testAbsence(/*fails=*/false);
  testAbsence(/*fails=*/true);
  std::printf(failures ? "failed\n" : "ok\n");
  return failures != 0;
}
