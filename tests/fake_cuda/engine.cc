// The thread that simulates all devices.
//
// BUBBLESCOPE_FAKE_CUDA_SEED selects its order of tasks. BUBBLESCOPE_FAKE_CUDA_FAIL=task:N lets
// task N break the devices for good, like a kernel that accesses memory of others.
#include "tests/fake_cuda/engine.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "tests/fake_cuda/calls.h"

namespace bubblescope::tests::fake_cuda {

struct PendingTask {
  Task task;
  std::int32_t device = 0;
  Nanos begin = 0;
  Nanos end = 0;
  std::size_t awaited = 0;
  std::vector<Ticket> dependents;
  bool has_ended = false;
};

namespace {

constexpr std::chrono::microseconds kPollInterval{20};
constexpr std::chrono::seconds kMaxWait{40};

struct Engine {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Ticket> ready;
  std::vector<Ticket> spinning;
  std::map<std::int32_t, std::int64_t> pending;  ///< [device]
  std::mt19937 random;
  cudaError_t error = cudaSuccess;
};

Nanos now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void end(Engine& engine, const Ticket& ticket, Nanos time) {
  ticket->end = time;
  ticket->has_ended = true;
  --engine.pending[ticket->device];
  for (const Ticket& dependent : ticket->dependents) {
    dependent->begin = std::max(dependent->begin, time);
    if (--dependent->awaited == 0) engine.ready.push_back(dependent);
  }
  ticket->dependents.clear();
  ticket->task.work = nullptr;
  if (ticket->task.ended) ticket->task.ended(ticket->begin, time);
  engine.changed.notify_all();
}

/// Ends spinning tasks whose time is over or that the host stops.
void end_finished_spins(Engine& engine) {
  for (std::size_t at = 0; at < engine.spinning.size();) {
    const Ticket ticket = engine.spinning[at];
    const Spin& spin = *ticket->task.spin;
    const Nanos time = now();
    const bool stops = (spin.stop != nullptr && *spin.stop != 0) || engine.error != cudaSuccess;
    const bool is_over = time - ticket->begin >= spin.nanos;
    if (!stops && !is_over) {
      ++at;
      continue;
    }
    engine.spinning.erase(engine.spinning.begin() + static_cast<std::ptrdiff_t>(at));
    end(engine, ticket, is_over ? ticket->begin + spin.nanos : time);
  }
}

Ticket take_any(Engine& engine) {
  std::swap(engine.ready[engine.random() % engine.ready.size()], engine.ready.back());
  Ticket ticket = std::move(engine.ready.back());
  engine.ready.pop_back();
  return ticket;
}

void perform(const Task& task) {
  try {
    task.work();
  } catch (const std::exception& error) {
    refuse(task.name + ": " + error.what());
  }
}

void run(Engine& engine, const Ticket& ticket, std::unique_lock<std::mutex>& lock) {
  const bool has_work = ticket->task.spin || ticket->task.work;
  if (has_work && counts_as_failure("task")) engine.error = cudaErrorIllegalAddress;
  if (engine.error == cudaSuccess && ticket->task.spin) {
    engine.spinning.push_back(ticket);
    return;
  }
  Nanos duration = 0;
  if (engine.error == cudaSuccess && ticket->task.work) {
    lock.unlock();
    const Nanos begin = now();
    perform(ticket->task);
    duration = now() - begin;
    lock.lock();
  }
  end(engine, ticket, ticket->begin + duration);
}

void live(Engine& engine) {
  std::unique_lock lock(engine.mutex);
  for (;;) {
    if (engine.ready.empty() && engine.spinning.empty()) engine.changed.wait(lock);
    if (engine.ready.empty() && !engine.spinning.empty()) {
      lock.unlock();
      std::this_thread::sleep_for(kPollInterval);
      lock.lock();
    }
    end_finished_spins(engine);
    if (!engine.ready.empty()) run(engine, take_any(engine), lock);
  }
}

/// Never destroyed: device work may outlive the code that enqueued it.
Engine& open_engine() {
  auto& engine = *new Engine;
  const char* const seed = std::getenv("BUBBLESCOPE_FAKE_CUDA_SEED");
  engine.random.seed(seed != nullptr ? static_cast<unsigned int>(std::stoul(seed)) : 1);
  std::thread([&engine] { live(engine); }).detach();
  return engine;
}

Engine& engine() {
  static Engine& opened = open_engine();
  return opened;
}

template <class Condition>
void await_until(const Condition& condition, const std::string& call) {
  std::unique_lock lock(engine().mutex);
  if (!engine().changed.wait_for(lock, kMaxWait, condition))
    refuse(call + " waits for what never ends");
}

}  // namespace

Ticket start(Task task, std::int32_t device, const std::vector<Ticket>& after) {
  auto ticket = std::make_shared<PendingTask>();
  ticket->task = std::move(task);
  ticket->device = device;
  ticket->begin = now();
  const std::lock_guard lock(engine().mutex);
  ++engine().pending[device];
  for (const Ticket& before : after) {
    if (before == nullptr) continue;
    if (before->has_ended) {
      ticket->begin = std::max(ticket->begin, before->end);
      continue;
    }
    before->dependents.push_back(ticket);
    ++ticket->awaited;
  }
  if (ticket->awaited == 0) engine().ready.push_back(ticket);
  engine().changed.notify_all();
  return ticket;
}

bool has_ended(const Ticket& ticket) {
  const std::lock_guard lock(engine().mutex);
  return ticket == nullptr || ticket->has_ended;
}

Nanos end_of(const Ticket& ticket) {
  const std::lock_guard lock(engine().mutex);
  return ticket->end;
}

void await(const std::vector<Ticket>& tickets, const std::string& call) {
  await_until(
      [&] {
        return std::all_of(tickets.begin(), tickets.end(), [](const Ticket& ticket) {
          return ticket == nullptr || ticket->has_ended;
        });
      },
      call);
}

void await_device(std::int32_t device, const std::string& call) {
  await_until([&] { return engine().pending[device] == 0; }, call);
}

cudaError_t device_error() {
  const std::lock_guard lock(engine().mutex);
  return engine().error;
}

}  // namespace bubblescope::tests::fake_cuda
