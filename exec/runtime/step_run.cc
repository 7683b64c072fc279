// Runs each instruction when no dependency is left, and notes its times.
#include "exec/runtime/step_run.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <utility>

#include "exec/runtime/find_awaited.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

StepRun::StepRun(const BackendRequest& request, const Program& program,
                 std::optional<RemoteHooks> remote)
    : request_(request),
      program_(program),
      remote_(std::move(remote)),
      injections_(request.injections, program),
      ready_(request.policy, program),
      pending_(program, [this](InstructionId dependency,
                               InstructionId id) { return precedes_anyway(dependency, id); }),
      times_(program.size()),
      lanes_(std::make_unique<LaneState[]>(program.lanes.size())) {}

/// Dependencies in an instruction's own lane need not be counted where the lane keeps its order.
/// Within a pair they never are.
bool StepRun::precedes_anyway(InstructionId dependency, InstructionId id) const {
  const std::uint32_t lane = program_.instructions[id].lane;
  if (lane == kNoLane || program_.instructions[dependency].lane != lane) return false;
  return !chooses(lane) || ready_.are_paired(dependency, id);
}

void StepRun::reset() {
  pending_.reset();
  std::fill(times_.begin(), times_.end(), InstructionTimes{});
  for (std::size_t lane = 0; lane < program_.lanes.size(); ++lane)
    lanes_[lane].end = lanes_[lane].recorded = 0;
  ready_.rewind();
  for (InstructionId id = 0; id < program_.size(); ++id)
    if (pending_.has_none(id)) ready_.add_ready_op(id);
  failure_.forget();
}

void StepRun::start(Nanos begin) {
  reset();
  clock_.start(begin);
  for (InstructionId id = 0; id < program_.size(); ++id)
    if (program_.instructions[id].lane == kNoLane && pending_.has_none(id) && is_here(id))
      perform(id);
}

void StepRun::record_remote_end(InstructionId id, Nanos end) {
  times_[id] = {end, clock_.now(), end, State::kEnded};
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
  return times_[id].has_ended();
}

bool StepRun::await(InstructionId id) {
  if (remote_) return await_polling(id);
  const WakeSignal& signal = lanes_[program_.instructions[id].lane].signal;
  while (!pending_.have_ended(id)) {
    const std::uint32_t seen = signal.count();
    if (aborted()) return false;
    if (pending_.have_ended(id)) break;
    signal.wait(seen);
  }
  return !aborted();
}

/// A waiting thread receives messages itself, so that no other thread has to wake it.
bool StepRun::await_polling(InstructionId id) {
  const PollBackoff backoff;
  while (!pending_.have_ended(id)) {
    if (aborted()) return false;
    if (!remote_->poll()) backoff.wait();
  }
  return !aborted();
}

/// A thread that waits for messages of other processes receives them itself.
std::optional<ReadyUnit> StepRun::choose(std::uint32_t lane) {
  WakeSignal& signal = lanes_[lane].signal;
  Nanos& lane_end = lanes_[lane].end;
  const Nanos tie_wait = ready_.tie_wait();
  const PollBackoff backoff;
  while (true) {
    const std::uint32_t seen = signal.count();
    const bool received = remote_ && remote_->poll();
    if (aborted()) return std::nullopt;
    ReadyQueue& queue =
        ready_.update(lane, [this](InstructionId id) { return find_inputs_time(id); });
    const Nanos now = clock_.now();
    const Nanos free = tie_wait > 0 ? lane_end : std::max(lane_end, now);
    const std::optional<ReadyQueue::Choice> choice = queue.find(free);
    Nanos begin = choice ? choice->time : 0;
    if (choice && tie_wait > 0 && queue.prefers_another(choice->place)) begin += tie_wait;
    if (choice && begin <= now) {
      lane_end = choice->time;  // a pair waits for the inputs of both of its ops
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
    if (!precedes_anyway(dependency, id)) time = std::max(time, times_[dependency].effective_end);
  return time;
}

Nanos StepRun::find_ready(InstructionId id) const {
  const std::uint32_t lane = program_.instructions[id].lane;
  Nanos ready = lane == kNoLane ? 0 : lanes_[lane].end;
  for (const InstructionId dependency : program_.dependencies_of(id))
    ready = std::max(ready, times_[dependency].effective_end);
  return ready;
}

/// Under a tie wait, an op starts when it could have, not when the wait ended.
Nanos StepRun::find_start(const WorkItem& item) const {
  const std::uint32_t lane = program_.instructions[item.id].lane;
  if (!chooses(lane) || ready_.tie_wait() == 0) return clock_.now();
  Nanos start = std::max(item.ready, lanes_[lane].recorded);
  for (const InstructionId dependency : program_.dependencies_of(item.id))
    start = std::max(start, times_[dependency].end);
  return start;
}

void StepRun::perform(InstructionId id) {
  const std::uint32_t lane = program_.instructions[id].lane;
  const Injection* injection = injections_.find(id);
  const WorkItem item{id, find_ready(id), clock_, injections_.damage(id)};
  InstructionTimes& times = times_[id];
  times.start = find_start(item);
  times.state = State::kStarted;
  if (injection != nullptr) inject_fault(*injection, id);
  if (remote_ && is_copy(program_.instructions[id].op.kind)) remote_->copy_remote(id);
  if (aborted()) return;
  times.effective_end = request_.work(item);
  if (injection != nullptr) {
    times.effective_end += injection->extra(times.effective_end - item.ready);
    clock_.wait_until(times.effective_end);
  }
  times.end = lane == kNoLane ? std::max(times.effective_end, times.start) : clock_.now();
  if (lane != kNoLane) {
    lanes_[lane].end = times.effective_end;
    lanes_[lane].recorded = times.end;
  }
  if (aborted()) return;
  times.state = State::kEnded;
  if (remote_) remote_->notify(id, times.effective_end);
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
  for (const InstructionId dependent : pending_.dependents_of(id)) {
    if (!is_here(dependent) || !pending_.end_one(dependent)) continue;
    const std::uint32_t lane = program_.instructions[dependent].lane;
    ready_.add_ready_op(dependent);
    if (lane == kNoLane)
      perform(dependent);
    else
      lanes_[lane].signal.wake();
  }
}

void StepRun::fail(std::int32_t rank) {
  failure_.note(rank);
  abort();
}

void StepRun::abort() {
  clock_.stop();
  for (std::uint32_t lane = 0; lane < program_.lanes.size(); ++lane) lanes_[lane].signal.wake();
}

std::optional<Span> StepRun::span(InstructionId id) const {
  const InstructionTimes& times = times_[id];
  if (times.state == State::kNotStarted) return std::nullopt;
  return Span{id, times.start, times.has_ended() ? times.end : clock_.now()};
}

BlockedAt StepRun::explain(InstructionId id) const {
  BlockedAt blocked{id, times_[id].state == State::kStarted, std::nullopt};
  if (blocked.started) return blocked;
  blocked.awaited = find_awaited(
      program_, id, [&](InstructionId dependency) { return times_[dependency].has_ended(); });
  return blocked;
}

std::exception_ptr StepRun::failure(std::int32_t rank) const { return failure_.of(rank); }

}  // namespace bubblescope::exec
