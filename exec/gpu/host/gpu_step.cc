// Enqueues, polls and aborts steps.
#include "exec/gpu/host/gpu_step.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "exec/gpu/host/gpu_activity.h"
#include "exec/gpu/host/gpu_environment.h"
#include "exec/gpu/host/gpu_label.h"
#include "exec/runtime/step_clock.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kPollInterval{100};
/// A stream holds about a thousand commands before enqueueing blocks. It must not block on a gate
/// that the same host thread has to open.
constexpr std::int64_t kMaxQueuedCommands = 400;
/// The streams of a device besides those of the plan: of the gate, weights and reductions.
constexpr std::size_t kOwnStreams = 3;

}  // namespace

GpuStep::GpuStep(const GpuMachine& machine, const Program& program, const BackendRequest& request,
                 GpuStepWork work)
    : machine_(machine),
      program_(program),
      request_(request),
      work_(std::move(work)),
      faults_(machine, program, request),
      lanes_(machine, program),
      start_(machine),
      progress_(lanes_, program),
      graph_end_(machine.gpu().create_event(lanes_.device_of(0), EventUse::kOrderOnly)),
      blocking_tool_(find_blocking_tool()) {
  names_.reserve(program.size());
  for (const Instruction& instruction : program.instructions)
    names_.push_back(to_string(instruction.op));
}

std::string GpuStep::describe_limits() const {
  std::string text;
  if (!blocking_tool_.empty())
    text += "; steps are not held back until they are enqueued (" + blocking_tool_ +
            "), so times say nothing of the schedule";
  if (work_.uses_graph)
    text += "; steps are CUDA graphs, in which a rank can wait for another without need";
  std::size_t max_streams = 0;
  for (std::int32_t device = 0; device < machine_.device_count(); ++device)
    max_streams = std::max(max_streams, lanes_.count_streams(device) + kOwnStreams);
  if (max_streams > kMaxQueues)
    text += "; " + counted(max_streams, "stream") + " of a device share its " +
            counted(kMaxQueues, "queue") + ", so lanes may wait for each other";
  return text;
}

RankResult GpuStep::result(std::int32_t rank) const {
  RankResult result;
  result.reason = reason_;
  if (rank == failed_rank_) result.failure = failure_;
  for (const InstructionId id : progress_.ids()) {
    if (program_.instructions[id].rank != rank) continue;
    if (const std::optional<Span> span = span_of(id)) result.spans.push_back(*span);
  }
  result.blocked = progress_.find_blocked(rank);
  return result;
}

void GpuStep::run() {
  begin();
  try {
    if (work_.begin) work_.begin();
    const bool holds_back = steps_ > 0 && blocking_tool_.empty();
    if (!holds_back) begin_with_others();
    in_graph_ ? launch_graph() : enqueue_behind_gate();
    if (holds_back) begin_with_others();
    start_.await_zero();
    watch();
  } catch (const Error&) {
    failure_ = std::current_exception();
    abort(AbortReason::kFailure);
  }
  if (reason_ == AbortReason::kNone) progress_.record_completion();
  ++steps_;
}

/// Resets what the step before has left. If the first step loads kernels, faults begin with the
/// second one.
void GpuStep::begin() {
  const std::vector<InstructionId>& ids = progress_.ids();
  reason_ = AbortReason::kNone;
  failure_ = nullptr;
  failed_rank_ = ids.empty() ? 0 : program_.instructions[ids[0]].rank;
  in_graph_ = work_.uses_graph && steps_ > 0;
  if (steps_ > 0 || !work_.loads_kernels) faults_.arm();
  progress_.reset();
  faults_.reset();
  start_.reset();
}

void GpuStep::enqueue_behind_gate() {
  start_.hold_back();
  lanes_.begin(start_.zero_events());
  for (const InstructionId id : progress_.ids()) enqueue_one(id);
}

void GpuStep::enqueue_one(InstructionId id) {
  failed_rank_ = program_.instructions[id].rank;
  void* const stream = lanes_.start(id, !start_.is_open());
  {
    const GpuRuntime& gpu = machine_.gpu();
    const GpuLabel label(gpu, names_[id].c_str());
    std::optional<ActivityTag> tag;
    if (work_.has_tags) tag.emplace(gpu.calls(), activity_tag(steps_, id, program_.size()));
    faults_.enqueue_before(id, stream);
    work_.enqueue(id, stream);
    faults_.enqueue_after(id, stream);
    if (tag) tag->remove();
  }
  lanes_.end(id);
  progress_.note_enqueued(id);
  if (lanes_.max_pending() > kMaxQueuedCommands) open_gate();
}

/// The graph waits for the zero events of all devices, so that no instruction starts before them.
void GpuStep::launch_graph() {
  failed_as_graph_ = true;
  if (!graph_) graph_ = lanes_.capture(progress_.ids(), work_.enqueue);
  const GpuRuntime& gpu = machine_.gpu();
  start_.hold_back();
  for (const GpuHandle& zero : start_.zero_events()) gpu.wait(lanes_.launch_stream(), zero);
  gpu.launch_graph(graph_, lanes_.launch_stream());
  gpu.record(graph_end_, lanes_.launch_stream());
  failed_as_graph_ = false;
}

void GpuStep::begin_with_others() {
  if (work_.remote.await_begin) work_.remote.await_begin();
  open_gate();
}

void GpuStep::open_gate() {
  if (start_.is_open()) return;
  start_.open(in_graph_
                  ? "before the step's graph was launched"
                  : "when " + std::to_string(progress_.enqueued()) + " of " +
                        counted(progress_.ids().size(), "instruction") + " were enqueued" +
                        (work_.remote.await_begin ? " and other processes were awaited" : ""));
}

void GpuStep::watch() {
  Clock::time_point seen_at = Clock::now();
  std::size_t seen = progress_.ended();
  while (!has_ended()) {
    // Always called, because it also sends this process's progress to the others.
    const bool peers_progressed = poll_remote();
    if (std::exchange(seen, progress_.ended()) != progress_.ended() || peers_progressed)
      seen_at = Clock::now();
    if (reason_ != AbortReason::kNone) return;
    expect_all_alive();
    if (request_.limits.is_interrupted()) return abort(AbortReason::kInterrupt);
    if (Clock::now() - seen_at > std::chrono::nanoseconds(request_.limits.timeout))
      return abort(AbortReason::kTimeout);
    std::this_thread::sleep_for(kPollInterval);
  }
}

/// Returns whether other processes made progress; if one has aborted, aborts this one too.
bool GpuStep::poll_remote() {
  if (!work_.remote.poll) return false;
  const PeerUpdate update = work_.remote.poll(progress_.ended());
  if (update.abort_reason != AbortReason::kNone) abort(update.abort_reason);
  return update.progressed;
}

/// Returns whether all enqueued work has ended.
bool GpuStep::has_ended() {
  return in_graph_ ? machine_.gpu().has_ended(graph_end_) : progress_.poll();
}

/// Throws Error if a rank is at an op at which it dies.
void GpuStep::expect_all_alive() {
  if (in_graph_) return;
  for (const InstructionId id : progress_.at_heads()) {
    if (!faults_.kills(id) || !lanes_.has_started(id)) continue;
    failed_rank_ = program_.instructions[id].rank;
    throw Error(Fault::kMachine, "rank " + std::to_string(failed_rank_) + " died at " +
                                     to_string(program_.instructions[id].op) +
                                     ", as `inject` says");
  }
}

void GpuStep::abort(AbortReason reason) {
  reason_ = reason;
  try {
    if (!in_graph_) progress_.record_states();  // the progress within a graph is unknown
    faults_.release();
    start_.abandon();
    if (work_.remote.abort_messages) work_.remote.abort_messages();
    drain();
  } catch (const Error&) {
    if (failure_ == nullptr) failure_ = std::current_exception();
    is_broken_ = true;
    machine_.gpu().calls().abandon();
  }
}

/// Waits for the work that is still on the device; nothing may be released before.
void GpuStep::drain() {
  const Nanos begin = read_monotonic_clock();
  const Nanos bound = std::min(kDrainTimeout, request_.limits.timeout);
  while (!has_ended()) {
    if (read_monotonic_clock() - begin > bound) return machine_.gpu().calls().abandon();
    std::this_thread::sleep_for(kPollInterval);
  }
}

/// The work that an abort interrupted ends when it was released.
std::optional<Span> GpuStep::span_of(InstructionId id) const {
  using State = StepProgress::State;
  const State state = progress_.state(id);
  const bool has_times =
      state == State::kEnded || (state == State::kRuns && !is_broken_ && lanes_.has_ended(id));
  if (!has_times || is_broken_) return std::nullopt;
  const std::int32_t device = lanes_.device_of(lanes_.plan().stream_of[id]);
  const GpuHandle& zero = start_.zero_events()[static_cast<std::size_t>(device)];
  const Nanos start = lanes_.start_of(id, zero);
  return Span{id, start, std::max(start, lanes_.end_of(id, zero))};
}

}  // namespace bubblescope::exec
