// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Launch.h"

#include <algorithm>
#include <cfenv>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <fmt/format.h>
#include <mutex>
#include <string_view>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

using namespace attn::rt;

static constexpr size_t stackBytes = 16u << 20;

namespace {
/// Kernels compute with denormals and round to nearest, whatever the caller's thread does: XLA's flush them to zero,
/// and threads inherit that.
class DefaultArithmetic {
public:
  DefaultArithmetic() {
    std::fegetenv(&before);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&before); }
  DefaultArithmetic(const DefaultArithmetic &) = delete;
  DefaultArithmetic &operator=(const DefaultArithmetic &) = delete;

private:
  std::fenv_t before;
};
} // namespace

static int defaultThreads() {
  constexpr int most = 1024;
  const char *value = std::getenv("ATTN_NUM_THREADS");
  if (std::string_view text = value ? value : ""; !text.empty()) {
    int n = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error == std::errc() && end == text.data() + text.size() && n >= 1 && n <= most)
      return n;
    fmt::print(stderr, "attnc: warning: `ATTN_NUM_THREADS` is a number from 1 to {}; got: `{}`\n", most, text);
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  int usable = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                              : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, usable);
}

struct ThreadPool::State {
  pid_t pid = ::getpid();
  std::mutex job; ///< held by the caller whose job runs

  std::mutex mutex; ///< of what follows, but for `next`
  std::condition_variable wake, done;
  uint64_t generation = 0;
  bool stop = false;
  int busy = 0;
  const std::function<void(int64_t)> *body = nullptr;
  int64_t n = 0, chunk = 1;
  std::atomic<int64_t> next{0};
  std::vector<pthread_t> threads;

  void work() {
    DefaultArithmetic arithmetic;
    for (;;) {
      int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= n)
        return;
      for (int64_t i = begin, end = std::min(n, begin + chunk); i < end; ++i)
        (*body)(i);
    }
  }

  void loop() {
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stop || generation != seen; });
      if (stop)
        return;
      seen = generation;
      lock.unlock();
      work();
      lock.lock();
      if (--busy == 0)
        done.notify_one();
    }
  }

  void start(int count) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stackBytes);
    for (int i = 0; i < count; ++i) {
      pthread_t thread;
      auto main = [](void *self) -> void * { return static_cast<State *>(self)->loop(), nullptr; };
      if (::pthread_create(&thread, &attributes, main, this) != 0)
        break; // with fewer, then
      threads.push_back(thread);
    }
    pthread_attr_destroy(&attributes);
  }
};

ThreadPool::ThreadPool(int threads) : count(threads > 0 ? threads : defaultThreads()) {}

ThreadPool::~ThreadPool() {
  State *s = state.load();
  // In a forked child the threads don't exist and the locks may be held for
  // ever.
  if (!s || s->pid != ::getpid())
    return;
  {
    std::lock_guard lock(s->mutex);
    s->stop = true;
  }
  s->wake.notify_all();
  for (pthread_t thread : s->threads)
    ::pthread_join(thread, nullptr);
  delete s;
}

ThreadPool::State *ThreadPool::stateOfThisProcess() {
  State *s = state.load(std::memory_order_acquire);
  if (s && s->pid == ::getpid())
    return s;
  // First use, or first use after a fork; then the old state is left alone (see
  // the destructor).
  State *fresh = new State;
  if (!state.compare_exchange_strong(s, fresh, std::memory_order_acq_rel)) {
    delete fresh;
    return s;
  }
  return fresh;
}

void ThreadPool::forEach(int64_t n, const std::function<void(int64_t)> &body) {
  if (n <= 0)
    return;
  State *s = stateOfThisProcess();
  std::lock_guard job(s->job);
  if (s->threads.empty())
    s->start(count);
  if (s->threads.empty()) { // not even one; the caller's stack may do
    DefaultArithmetic arithmetic;
    for (int64_t i = 0; i < n; ++i)
      body(i);
    return;
  }
  std::unique_lock lock(s->mutex);
  s->body = &body;
  s->n = n;
  s->chunk = std::max<int64_t>(1, n / (64 * static_cast<int64_t>(s->threads.size())));
  s->next.store(0, std::memory_order_relaxed);
  s->busy = static_cast<int>(s->threads.size());
  ++s->generation;
  s->wake.notify_all();
  s->done.wait(lock, [&] { return s->busy == 0; });
}
