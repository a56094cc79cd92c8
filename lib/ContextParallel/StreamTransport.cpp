// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StreamTransport.h"
#include "attn-rt/Placement.h"
#include <fmt/format.h>

using namespace attn;

static constexpr auto interval = std::chrono::milliseconds(20); ///< between looks at runs
static constexpr auto grace = std::chrono::seconds(2);          ///< for streams to end after a failure

rt::Status StreamTransport::open() {
  rt::Result<const rt::Driver *> opened = rt::Driver::get();
  if (!opened)
    return opened.error();
  driver = *opened;
  rt::Result<rt::Context> made = driver->ensureContext();
  if (!made)
    return made.error();
  context = *made;
  for (rt::Stream *stream : {&communication, &rescue}) {
    rt::Result<rt::Stream> created = driver->createUrgentStream();
    if (!created)
      return created.error();
    *stream = *created;
  }
  for (rt::Event *event : {&posted, &last}) {
    rt::Result<rt::Event> created = driver->createUntimedEvent();
    if (!created)
      return created.error();
    *event = *created;
  }
  watcher = std::thread([this] { watch(); });
  return {};
}

void StreamTransport::close() {
  if (!watcher.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
    isClosing = true;
  }
  changed.notify_all();
  watcher.join();
  rt::CapturesUntouched untouched(*driver);
  auto inside = rt::StreamContext::enter(*driver, communication, context);
  for (const Run &run : running)
    for (const auto &marks : {run.arrivals, run.departures})
      for (const Mark &mark : marks)
        free.push_back(mark.event);
  for (rt::Event event : free)
    (void)driver->destroyEvent(event);
  for (rt::Event event : moved)
    if (event)
      (void)driver->destroyEvent(event);
  (void)driver->destroyEvent(posted), (void)driver->destroyEvent(last);
  (void)driver->destroyStream(communication), (void)driver->destroyStream(rescue);
}

StreamTransport::~StreamTransport() = default;

rt::Error StreamTransport::timedOut(llvm::StringRef what) const {
  return rt::Error{fmt::format("expected {} on rank {} within {:g} s, got: nothing", what.str(), getRank(), timeout)}
      .as(rt::ErrorKind::Driver);
}

rt::Status StreamTransport::setFailure(rt::Error error) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failure)
    failure = std::move(error);
  return *failure;
}

rt::Status StreamTransport::check() {
  std::lock_guard<std::mutex> lock(mutex);
  return failure ? rt::Status(*failure) : rt::Status();
}

rt::Status StreamTransport::checkDevice() {
  rt::Result<rt::Context> own = driver->ensureContext();
  if (!own)
    return own.error();
  return *own == context
             ? rt::Status()
             : rt::Status(rt::Error{"expected the transport's device to be the current one, got: another"}.as(
                   rt::ErrorKind::Driver));
}

rt::Result<rt::Event> StreamTransport::recordMark(rt::Stream stream) {
  rt::Event event = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!free.empty())
      event = free.back(), free.pop_back();
  }
  if (!event) {
    rt::Result<rt::Event> made = driver->createUntimedEvent();
    if (!made)
      return made;
    event = *made;
  }
  if (rt::Status done = driver->record(event, stream); !done)
    return done.error();
  return event;
}

rt::Result<void *> StreamTransport::begin(std::shared_ptr<const PlanNames> ofPlan, const Route *route,
                                          rt::Stream stream) {
  if (rt::Status fine = check(); !fine)
    return fine.error();
  if (rt::Result<rt::Context> own = driver->contextOf(stream); !own || *own != context)
    return own ? rt::Error{"expected a stream of the transport's device, got: another one's"} : own.error();
  rt::Result<bool> capturing = driver->isCapturing(stream);
  if (!capturing)
    return capturing.error();
  captured = *capturing, hasPosted = false, names = std::move(ofPlan), currentStream = stream;
  current = {};
  if (hasRun && lastStream != stream && !captured)
    if (rt::Status done = driver->waitEvent(stream, last); !done)
      return done.error();
  if (!captured) {
    rt::Result<rt::Event> began = recordMark(stream);
    if (!began)
      return began.error();
    current.began = *began;
  }
  return prepare(route);
}

rt::Status StreamTransport::post(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                                 llvm::ArrayRef<MessagePart> received, rt::Stream stream) {
  rt::Status done = received.empty() ? rt::Status() : offer(number, from, stream);
  if (done)
    done = driver->record(posted, stream);
  if (done)
    done = driver->waitEvent(communication, posted);
  hasPosted = true;
  if (done)
    done = transfer(number, to, sent, from, received);
  if (!done)
    return done;
  if (size_t(number) >= moved.size())
    moved.resize(number + 1);
  if (!moved[number]) {
    rt::Result<rt::Event> made = driver->createUntimedEvent();
    if (!made)
      return made.error();
    moved[number] = *made;
  }
  done = driver->record(moved[number], communication);
  if (!done || captured || sent.empty())
    return done;
  rt::Result<rt::Event> mark = recordMark(communication);
  if (!mark)
    return mark.error();
  current.departures.push_back({*mark, fmt::format("rank {} to receive {}", to, names->exchange(number))});
  return {};
}

rt::Status StreamTransport::wait(int64_t number, std::optional<int64_t> from, std::optional<int64_t> to,
                                 rt::Stream stream) {
  rt::Status done = from ? arrive(number, *from, stream) : rt::Status();
  if (done && to)
    done = driver->waitEvent(stream, moved[number]);
  if (!done || captured || !from)
    return done;
  rt::Result<rt::Event> mark = recordMark(stream);
  if (!mark)
    return mark.error();
  current.arrivals.push_back({*mark, fmt::format("{} from rank {}", names->exchange(number), *from)});
  return {};
}

rt::Status StreamTransport::finish(rt::Stream stream) {
  if (hasPosted) {
    rt::Status done = driver->record(posted, communication);
    if (done)
      done = driver->waitEvent(stream, posted);
    if (!done)
      return done;
  }
  if (captured)
    return {};
  if (rt::Status done = driver->record(last, stream); !done)
    return done;
  lastStream = stream, hasRun = true;
  rt::Result<rt::Event> ended = recordMark(stream);
  if (!ended)
    return ended.error();
  current.ended = *ended;
  {
    std::lock_guard<std::mutex> lock(mutex);
    running.push_back(std::move(current));
  }
  changed.notify_all();
  return {};
}

void StreamTransport::abandon(const rt::Error &error) {
  (void)setFailure(error);
  auto inside = rt::StreamContext::enter(*driver, communication, context);
  tellOthers();
  { // what is on the streams already goes on
    std::lock_guard<std::mutex> lock(mutex);
    if (rt::Result<rt::Event> ended = driver->createUntimedEvent(); ended && current.began) {
      (void)driver->record(*ended, currentStream); // which may wait for other ranks
      current.ended = *ended;
      running.push_back(std::move(current));
    }
  }
  current = {};
  changed.notify_all();
}

/// Is it? Returns its events if so. Called with `mutex` held.
bool StreamTransport::isComplete(Run &run) {
  auto reached = [&](rt::Event event) {
    rt::Result<bool> is = driver->isReached(event);
    if (!is && !failure)
      failure = is.error();
    return !is || *is;
  };
  if (reached(run.ended)) {
    free.insert(free.end(), {run.began, run.ended});
    for (const auto &marks : {run.arrivals, run.departures})
      for (const Mark &mark : marks)
        free.push_back(mark.event);
    return true;
  }
  if (!run.since && reached(run.began))
    run.since = Clock::now();
  if (!failure && run.since && Clock::now() - *run.since > std::chrono::duration<double>(timeout)) {
    std::string what = "a run to end";
    for (const auto &marks : {run.departures, run.arrivals})
      for (const Mark &mark : llvm::reverse(marks))
        if (!reached(mark.event))
          what = mark.what;
    failure = timedOut(what);
  }
  return false;
}

void StreamTransport::watch() {
  rt::CapturesUntouched untouched(*driver);
  auto inside = rt::StreamContext::enter(*driver, communication, context);
  std::optional<Clock::time_point> closingSince;
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return isClosing || !running.empty(); });
    if (running.empty())
      return;
    changed.wait_for(lock, interval, [&] { return false; });
    while (!running.empty() && isComplete(running.front()))
      running.pop_front();
    if (running.empty())
      continue;
    bool hasFailed = failure.has_value();
    if (isClosing && hasFailed) { // nobody may release a communicator of the caller
      if (!closingSince)
        closingSince = Clock::now();
      if (Clock::now() - *closingSince > grace)
        return;
    }
    lock.unlock();
    if (!hasFailed)
      if (std::optional<rt::Error> told = hearOthers())
        (void)setFailure(*told), hasFailed = true;
    if (hasFailed)
      release();
    lock.lock();
  }
}
