// Enqueues, polls and stops steps.
#include "exec/gpu/host/gpu_step.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "exec/gpu/host/gpu_activity.h"
#include "exec/gpu/host/gpu_environment.h"
#include "exec/runtime/find_awaited.h"
#include "exec/runtime/step_clock.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kPollInterval{100};
/// The time that running kernels have to finish after a stop, if the step's own timeout is longer.
constexpr std::chrono::seconds kDrainTimeout{20};
/// A stream holds about a thousand commands before enqueueing blocks. It must not block on a gate
/// that the same host thread has to open.
constexpr std::int64_t kMaxQueuedCommands = 400;
/// The streams of a device besides those of the plan: of the gate, weights and reductions.
constexpr std::size_t kOwnStreams = 3;
/// The longest time for which the host polls for the opening of the gate.
constexpr Nanos kMaxGatePoll = 5'000'000;

/// On a stream, faults can only be injected before or after an op.
const Injections& expect_possible(const Injections& injections) {
  using Kind = Injection::Kind;
  for (const Injection& injection : injections)
    if (injection.kind != Kind::kDelay && injection.kind != Kind::kDie &&
        injection.kind != Kind::kHang)
      throw Error("`inject` " + to_string(injection) +
                  ": on GPUs only delay, die and hang can be injected; use `backend` cpu");
  return injections;
}

}  // namespace

GpuStep::GpuStep(const GpuMachine& machine, const Program& program, const BackendRequest& request,
                 GpuStepWork work)
    : machine_(machine),
      program_(program),
      request_(request),
      work_(std::move(work)),
      injections_(expect_possible(request.injections), program),
      lanes_(machine, program),
      gate_(machine.gpu()),
      stop_(machine.gpu().calls()),
      queues_(lanes_.plan().streams.size()),
      enqueued_(queues_.size(), 0),
      ended_(queues_.size(), 0),
      state_(program.size(), State::kWaits),
      blocking_tool_(find_blocking_tool()) {
  for (std::int32_t device = 0; device < machine.device_count(); ++device) {
    gate_streams_.push_back(machine.gpu().create_stream(device, nullptr));
    zero_.push_back(machine.gpu().create_event(device, true));
  }
  graph_end_ = machine.gpu().create_event(lanes_.device_of(0), false);
  arrange();
}

std::string GpuStep::describe_limits() const {
  std::string text;
  if (!blocking_tool_.empty())
    text += "; steps are not held back until they are enqueued (" + blocking_tool_ +
            "), so times say nothing of the schedule";
  std::size_t most = 0;
  for (std::int32_t device = 0; device < machine_.device_count(); ++device)
    most = std::max(most, lanes_.count_streams(device) + kOwnStreams);
  if (most > kMaxQueues)
    text += "; " + std::to_string(most) + " streams of a device share its " +
            std::to_string(kMaxQueues) + " queues, so lanes may wait for each other";
  return text;
}

RankResult GpuStep::result(std::int32_t rank) const {
  RankResult result;
  result.reason = reason_;
  if (rank == failed_rank_) result.failure = failure_;
  for (const InstructionId id : ids_) {
    if (program_.instructions[id].rank != rank) continue;
    if (const std::optional<Span> span = span_of(id)) result.spans.push_back(*span);
  }
  for (std::size_t lane = 0; lane < program_.lanes.size(); ++lane) {
    if (program_.lanes[lane].rank != rank) continue;
    const auto& queue = queues_[lane];
    const auto is_blocked_by_fault = std::find_if(
        queue.begin(), queue.end(), [&](InstructionId id) { return state_[id] != State::kEnded; });
    if (is_blocked_by_fault != queue.end()) result.stopped.push_back(explain(*is_blocked_by_fault));
  }
  return result;
}

void GpuStep::run() {
  reason_ = AbortReason::kNone;
  failure_ = nullptr;
  failed_rank_ = ids_.empty() ? 0 : program_.instructions[ids_[0]].rank;
  std::fill(enqueued_.begin(), enqueued_.end(), 0);
  std::fill(ended_.begin(), ended_.end(), 0);
  std::fill(state_.begin(), state_.end(), State::kWaits);
  // A graph cannot be stopped at an op, so faults are injected without a graph.
  in_graph_ = work_.uses_graph && steps_ > 0 && request_.injections.empty();
  stop_.set(0);
  gate_.close();
  gate_is_open_ = false;
  is_held_ = false;
  try {
    if (work_.begin) work_.begin();
    const bool holds_back = steps_ > 0 && blocking_tool_.empty();
    if (!holds_back) begin_with_others();
    in_graph_ ? launch() : enqueue_behind_gate();
    if (holds_back) begin_with_others();
    while (read_monotonic_clock() < zero_time_.earliest + kMaxGatePoll &&
           !machine_.gpu().has_ended(zero_[0])) {
    }
    zero_time_.latest = read_monotonic_clock();
    watch();
  } catch (const Error&) {
    failure_ = std::current_exception();
    stop(AbortReason::kFailure);
  }
  if (reason_ == AbortReason::kNone)
    for (const InstructionId id : ids_) state_[id] = State::kEnded;
  ++steps_;
}

/// Puts the Program's instructions into the order of the plan.
void GpuStep::arrange() {
  const StreamPlan& plan = lanes_.plan();
  ids_.resize(program_.size());
  std::iota(ids_.begin(), ids_.end(), InstructionId{0});
  std::sort(ids_.begin(), ids_.end(), [&](InstructionId left, InstructionId right) {
    return plan.place[left] < plan.place[right];
  });
  for (const InstructionId id : ids_) queues_[plan.stream_of[id]].push_back(id);
}

void GpuStep::enqueue_behind_gate() {
  for (std::size_t device = 0; device < zero_.size(); ++device) close_gate(device);
  is_held_ = !gate_is_open_;
  lanes_.begin(zero_);
  for (const InstructionId id : ids_) enqueue_one(id);
}

void GpuStep::enqueue_one(InstructionId id) {
  failed_rank_ = program_.instructions[id].rank;
  lanes_.enqueue(id, [this](InstructionId at, void* stream) { do_work(at, stream); });
  ++enqueued_[lanes_.plan().stream_of[id]];
  if (lanes_.max_pending() > kMaxQueuedCommands) open_gate();
}

void GpuStep::begin_with_others() {
  if (work_.remote.await_begin) work_.remote.await_begin();
  open_gate();
}

void GpuStep::open_gate() {
  if (std::exchange(gate_is_open_, true)) return;
  if (is_held_) expect_held_back();
  zero_time_.earliest = read_monotonic_clock();
  gate_.open();
}

/// Enqueues a device's gate, and the zero event after it.
void GpuStep::close_gate(std::size_t device) {
  gate_.hold(gate_streams_[device]);
  machine_.gpu().record(zero_[device], gate_streams_[device]);
}

/// A gate that ended by itself let the step begin before it was enqueued, so its times are wrong.
void GpuStep::expect_held_back() const {
  const std::size_t done = std::accumulate(enqueued_.begin(), enqueued_.end(), std::size_t{0});
  const std::string progress =
      in_graph_ ? "before the step's graph was launched"
                : "when " + std::to_string(done) + " of " + std::to_string(ids_.size()) +
                      " instructions were enqueued" +
                      (work_.remote.await_begin ? " and other processes were awaited" : "");
  for (const GpuHandle& zero : zero_) gate_.expect_held_back(zero, progress);
}

/// The graph waits for the zero events of all devices, so that no instruction starts before them.
void GpuStep::launch() {
  if (!graph_) graph_ = lanes_.capture(ids_, work_.enqueue);
  const GpuRuntime& gpu = machine_.gpu();
  for (std::size_t device = 0; device < zero_.size(); ++device) {
    close_gate(device);
    gpu.wait(lanes_.launch_stream(), zero_[device]);
  }
  is_held_ = !gate_is_open_;
  gpu.launch_graph(graph_, lanes_.launch_stream());
  gpu.record(graph_end_, lanes_.launch_stream());
}

/// If the first step loads kernels, faults begin with the second step.
bool GpuStep::is_blocked_by_fault(InstructionId id) const {
  const Injection* const injection = injections_.find(id);
  return injection != nullptr && (steps_ > 0 || !work_.loads_kernels) &&
         (injection->kind == Injection::Kind::kDie || injection->kind == Injection::Kind::kHang);
}

void GpuStep::do_work(InstructionId id, void* stream) {
  if (!work_.has_tags) return do_injected_work(id, stream);
  tag_activity(machine_.gpu().calls(), activity_tag(steps_, id, program_.size()),
               [&] { do_injected_work(id, stream); });
}

/// A rank that dies or hangs is blocked at its op until the step is stopped. A delay follows the
/// op's work.
void GpuStep::do_injected_work(InstructionId id, void* stream) {
  const Injection* const injection = injections_.find(id);
  const Nanos bound = request_.timeout + std::chrono::nanoseconds(kDrainTimeout).count();
  if (is_blocked_by_fault(id)) machine_.gpu().spin({bound, 0, stop_.on_device(), 1}, stream);
  work_.enqueue(id, stream);
  if (injection != nullptr && injection->delay > 0)
    machine_.gpu().spin({injection->delay, 0, stop_.on_device(), 0}, stream);
}

void GpuStep::watch() {
  Clock::time_point seen_at = Clock::now();
  std::vector<std::size_t> seen = ended_;
  while (!poll_streams()) {
    const bool has_news = poll_remote();  // always called: it also tells the others of our progress
    if (std::exchange(seen, ended_) != ended_ || has_news) seen_at = Clock::now();
    if (reason_ != AbortReason::kNone) return;
    if (const std::optional<InstructionId> dead = find_dead()) {
      failed_rank_ = program_.instructions[*dead].rank;
      throw Error(Fault::kMachine, "rank " + std::to_string(failed_rank_) + " died at " +
                                       to_string(program_.instructions[*dead].op) +
                                       ", as `inject` says");
    }
    if (request_.interrupted != nullptr && request_.interrupted->load())
      return stop(AbortReason::kInterrupt);
    if (Clock::now() - seen_at > std::chrono::nanoseconds(request_.timeout))
      return stop(AbortReason::kTimeout);
    std::this_thread::sleep_for(kPollInterval);
  }
}

/// Returns whether other processes made progress; if one has stopped, stops this one too.
bool GpuStep::poll_remote() {
  if (!work_.remote.poll) return false;
  const StepNews news =
      work_.remote.poll(std::accumulate(ended_.begin(), ended_.end(), std::size_t{0}));
  if (news.stop != AbortReason::kNone) stop(news.stop);
  return news.progressed;
}

/// Returns whether all enqueued work has ended.
bool GpuStep::poll_streams() {
  if (in_graph_) return machine_.gpu().has_ended(graph_end_);
  bool all = true;
  for (std::size_t stream = 0; stream < queues_.size(); ++stream) {
    std::size_t& ended = ended_[stream];
    while (ended < enqueued_[stream] && lanes_.has_ended(queues_[stream][ended])) ++ended;
    all = all && ended == enqueued_[stream];
  }
  return all;
}

std::optional<InstructionId> GpuStep::find_dead() const {
  for (std::size_t stream = 0; stream < queues_.size() && !in_graph_; ++stream) {
    if (ended_[stream] == enqueued_[stream]) continue;
    const InstructionId id = queues_[stream][ended_[stream]];
    if (is_blocked_by_fault(id) && injections_.find(id)->kind == Injection::Kind::kDie &&
        lanes_.has_started(id))
      return id;
  }
  return std::nullopt;
}

void GpuStep::stop(AbortReason reason) {
  reason_ = reason;
  try {
    record_states();
    stop_.set(1);
    gate_.open();
    if (work_.remote.abort_messages) work_.remote.abort_messages();
    drain();
  } catch (const Error&) {
    if (failure_ == nullptr) failure_ = std::current_exception();
    is_broken_ = true;
    machine_.gpu().calls().abandon();
  }
}

void GpuStep::record_states() {
  if (in_graph_) return;  // the progress within a graph is unknown
  poll_streams();
  for (std::size_t stream = 0; stream < queues_.size(); ++stream) {
    const auto& queue = queues_[stream];
    for (std::size_t at = 0; at < ended_[stream]; ++at) state_[queue[at]] = State::kEnded;
    if (ended_[stream] < enqueued_[stream] && lanes_.has_started(queue[ended_[stream]]))
      state_[queue[ended_[stream]]] = State::kRuns;
  }
}

/// Waits for the work that is still on the device; nothing may be released before.
void GpuStep::drain() {
  const Clock::time_point begin = Clock::now();
  const Clock::duration bound =
      std::min<Clock::duration>(kDrainTimeout, std::chrono::nanoseconds(request_.timeout));
  while (!poll_streams()) {
    if (Clock::now() - begin > bound) return machine_.gpu().calls().abandon();
    std::this_thread::sleep_for(kPollInterval);
  }
}

/// The work that a stop interrupted ends when it was released.
std::optional<Span> GpuStep::span_of(InstructionId id) const {
  const std::uint32_t stream = lanes_.plan().stream_of[id];
  const bool has_times = state_[id] == State::kEnded ||
                         (state_[id] == State::kRuns && !is_broken_ && lanes_.has_ended(id));
  if (!has_times || is_broken_) return std::nullopt;
  const GpuHandle& zero = zero_[static_cast<std::size_t>(lanes_.device_of(stream))];
  const Nanos start = lanes_.start_of(id, zero);
  return Span{id, start, std::max(start, lanes_.end_of(id, zero))};
}

BlockedAt GpuStep::explain(InstructionId id) const {
  BlockedAt blocked{id, state_[id] == State::kRuns, std::nullopt};
  if (blocked.started) return blocked;
  blocked.awaited = find_awaited(
      program_, id, [&](InstructionId dependency) { return state_[dependency] == State::kEnded; });
  return blocked;
}

}  // namespace bubblescope::exec
