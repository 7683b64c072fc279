// Counts the missing dependencies of every instruction; it may start when none is left.
#include "exec/runtime/step_run.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <utility>

#include "exec/runtime/find_awaited.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

enum InstructionState : std::uint8_t { kNotStarted, kStarted, kEnded };

}  // namespace

StepRun::StepRun(const BackendRequest& request, const Program& program,
                 std::optional<RemoteHooks> remote)
    : request_(request),
      program_(program),
      remote_(std::move(remote)),
      injections_(request.injections, program),
      ready_(request.policy, program),
      dependent_begin_(program.size() + 1, 0),
      needed_(program.size(), 0),
      missing_(std::make_unique<std::atomic<std::int32_t>[]>(program.size())),
      start_(program.size()),
      end_(program.size()),
      effective_end_(program.size()),
      state_(program.size()),
      lane_end_(program.lanes.size()),
      lane_recorded_(program.lanes.size()),
      wake_signals_(std::make_unique<WakeSignal[]>(program.lanes.size())) {
  find_dependents();
}

/// Dependencies in an instruction's own lane need not be counted where the lane keeps its order.
/// Within a pair they never are.
bool StepRun::precedes_anyway(InstructionId dependency, InstructionId id) const {
  const std::uint32_t lane = program_.instructions[id].lane;
  if (lane == kNoLane || program_.instructions[dependency].lane != lane) return false;
  return !chooses(lane) || ready_.are_paired(dependency, id);
}

void StepRun::find_dependents() {
  for (InstructionId id = 0; id < program_.size(); ++id)
    for (const InstructionId dependency : program_.dependencies_of(id))
      if (!precedes_anyway(dependency, id)) {
        ++needed_[id];
        ++dependent_begin_[dependency + 1];
      }
  for (InstructionId id = 0; id < program_.size(); ++id)
    dependent_begin_[id + 1] += dependent_begin_[id];
  dependents_.resize(dependent_begin_.back());
  std::vector<std::uint32_t> next(dependent_begin_.begin(), dependent_begin_.end() - 1);
  for (InstructionId id = 0; id < program_.size(); ++id)
    for (const InstructionId dependency : program_.dependencies_of(id))
      if (!precedes_anyway(dependency, id)) dependents_[next[dependency]++] = id;
}

void StepRun::reset() {
  for (InstructionId id = 0; id < program_.size(); ++id)
    missing_[id].store(needed_[id], std::memory_order_relaxed);
  std::fill(state_.begin(), state_.end(), kNotStarted);
  std::fill(lane_end_.begin(), lane_end_.end(), 0);
  std::fill(lane_recorded_.begin(), lane_recorded_.end(), 0);
  ready_.rewind();
  for (InstructionId id = 0; id < program_.size(); ++id)
    if (needed_[id] == 0) ready_.add_ready_op(id);
  failure_ = nullptr;
}

void StepRun::start(Nanos begin) {
  reset();
  clock_.start(begin);
  for (InstructionId id = 0; id < program_.size(); ++id)
    if (program_.instructions[id].lane == kNoLane && needed_[id] == 0 && is_here(id)) perform(id);
}

void StepRun::record_remote_end(InstructionId id, Nanos end) {
  start_[id] = end;
  end_[id] = clock_.now();
  effective_end_[id] = end;
  state_[id] = kEnded;
  progress_.fetch_add(1, std::memory_order_relaxed);
  release_dependents(id);
}

void StepRun::poll() {
  if (remote_) remote_->poll();
}

bool StepRun::run(InstructionId id) {
  if (!await(id)) return false;
  try {
    clock_.wait_until(find_ready(id));
    if (aborted()) return false;
    perform(id);
  } catch (...) {
    fail(program_.instructions[id].rank);
    return false;
  }
  progress_.fetch_add(1, std::memory_order_relaxed);
  return state_[id] == kEnded;
}

bool StepRun::await(InstructionId id) {
  if (remote_) return await_polling(id);
  const WakeSignal& signal = wake_signals_[program_.instructions[id].lane];
  while (missing_[id].load(std::memory_order_acquire) != 0) {
    const std::uint32_t seen = signal.count();
    if (aborted()) return false;
    if (missing_[id].load(std::memory_order_acquire) == 0) break;
    signal.wait(seen);
  }
  return !aborted();
}

/// A waiting thread receives messages itself, so that no other thread has to wake it.
bool StepRun::await_polling(InstructionId id) {
  const PollBackoff backoff;
  while (missing_[id].load(std::memory_order_acquire) != 0) {
    if (aborted()) return false;
    if (!remote_->poll()) backoff.wait();
  }
  return !aborted();
}

/// A thread that waits for messages of other processes receives them itself.
std::optional<ReadyUnit> StepRun::choose(std::uint32_t lane) {
  WakeSignal& signal = wake_signals_[lane];
  const Nanos tie_wait = ready_.tie_wait();
  const PollBackoff backoff;
  while (true) {
    const std::uint32_t seen = signal.count();
    const bool received = remote_ && remote_->poll();
    if (aborted()) return std::nullopt;
    ReadyQueue& queue =
        ready_.update(lane, [this](InstructionId id) { return find_inputs_time(id); });
    const Nanos now = clock_.now();
    const Nanos free = tie_wait > 0 ? lane_end_[lane] : std::max(lane_end_[lane], now);
    const std::optional<ReadyQueue::Choice> choice = queue.find(free);
    Nanos begin = choice ? choice->time : 0;
    if (choice && tie_wait > 0 && queue.prefers_another(choice->place)) begin += tie_wait;
    if (choice && begin <= now) {
      lane_end_[lane] = choice->time;  // a pair waits for the inputs of both of its ops
      return queue.take(choice->place);
    }
    if (received) continue;
    if (remote_)
      backoff.wait();
    else if (choice)
      signal.wait_until(seen, clock_.at(begin));
    else
      signal.wait(seen);
  }
}

/// When the last dependency ended that does not precede the instruction anyway.
Nanos StepRun::find_inputs_time(InstructionId id) const {
  Nanos time = 0;
  for (const InstructionId dependency : program_.dependencies_of(id))
    if (!precedes_anyway(dependency, id)) time = std::max(time, effective_end_[dependency]);
  return time;
}

Nanos StepRun::find_ready(InstructionId id) const {
  const std::uint32_t lane = program_.instructions[id].lane;
  Nanos ready = lane == kNoLane ? 0 : lane_end_[lane];
  for (const InstructionId dependency : program_.dependencies_of(id))
    ready = std::max(ready, effective_end_[dependency]);
  return ready;
}

/// Under a tie wait, an op starts when it could have, not when the wait ended.
Nanos StepRun::find_start(const WorkItem& item) const {
  const std::uint32_t lane = program_.instructions[item.id].lane;
  if (!chooses(lane) || ready_.tie_wait() == 0) return clock_.now();
  Nanos start = std::max(item.ready, lane_recorded_[lane]);
  for (const InstructionId dependency : program_.dependencies_of(item.id))
    start = std::max(start, end_[dependency]);
  return start;
}

void StepRun::perform(InstructionId id) {
  const std::uint32_t lane = program_.instructions[id].lane;
  const Injection* injection = injections_.find(id);
  const WorkItem item{id, find_ready(id), clock_, injections_.damage(id)};
  start_[id] = find_start(item);
  state_[id] = kStarted;
  if (injection != nullptr) inject_fault(*injection, id);
  if (remote_ && is_copy(program_.instructions[id].op.kind)) remote_->copy_remote(id);
  if (aborted()) return;
  effective_end_[id] = request_.work(item);
  if (injection != nullptr) {
    effective_end_[id] += injection->extra(effective_end_[id] - item.ready);
    clock_.wait_until(effective_end_[id]);
  }
  end_[id] = lane == kNoLane ? std::max(effective_end_[id], start_[id]) : clock_.now();
  if (lane != kNoLane) {
    lane_end_[lane] = effective_end_[id];
    lane_recorded_[lane] = end_[id];
  }
  if (aborted()) return;
  state_[id] = kEnded;
  if (remote_) remote_->notify(id, effective_end_[id]);
  release_dependents(id);
}

/// The thread's name shows the op to observers outside the process: "hangs at 0B5".
void StepRun::hang_at(const Op& op) {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  const std::string thread_name = "hangs at " + to_string(op);
  pthread_setname_np(pthread_self(), thread_name.substr(0, name.size() - 1).c_str());
  while (!aborted()) clock_.wait_until(clock_.now() + 1'000'000'000);
  pthread_setname_np(pthread_self(), name.data());
}

/// Deaths and hangs come before the work; delays come after it.
void StepRun::inject_fault(const Injection& injection, InstructionId id) {
  if (injection.kind == Injection::Kind::kDie)
    throw Error(Fault::kMachine, "rank " + std::to_string(injection.rank) + " died at " +
                                     to_string(program_.instructions[id].op) +
                                     ", as `inject` says");
  if (injection.kind == Injection::Kind::kHang) hang_at(program_.instructions[id].op);
}

void StepRun::release_dependents(InstructionId id) {
  for (std::uint32_t at = dependent_begin_[id]; at < dependent_begin_[id + 1]; ++at) {
    const InstructionId dependent = dependents_[at];
    if (!is_here(dependent)) continue;
    if (missing_[dependent].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    const std::uint32_t lane = program_.instructions[dependent].lane;
    ready_.add_ready_op(dependent);
    if (lane == kNoLane)
      perform(dependent);
    else
      wake(lane);
  }
}

void StepRun::wake(std::uint32_t lane) { wake_signals_[lane].wake(); }

/// Keeps only the first failure; later ones are its consequences.
void StepRun::fail(std::int32_t rank) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_ == nullptr) {
      failure_ = std::current_exception();
      failed_rank_ = rank;
    }
  }
  abort();
}

void StepRun::abort() {
  clock_.stop();
  for (std::uint32_t lane = 0; lane < program_.lanes.size(); ++lane) wake(lane);
}

std::optional<Span> StepRun::span(InstructionId id) const {
  if (state_[id] == kNotStarted) return std::nullopt;
  return Span{id, start_[id], state_[id] == kEnded ? end_[id] : clock_.now()};
}

BlockedAt StepRun::explain(InstructionId id) const {
  BlockedAt blocked{id, state_[id] == kStarted, std::nullopt};
  if (blocked.started) return blocked;
  blocked.awaited = find_awaited(
      program_, id, [&](InstructionId dependency) { return state_[dependency] == kEnded; });
  return blocked;
}

std::exception_ptr StepRun::failure(std::int32_t rank) const {
  return rank == failed_rank_ ? failure_ : nullptr;
}

}  // namespace bubblescope::exec
