// Sends and receives control messages, and decides how long to wait for other processes.
#include "exec/runtime/step_protocol.h"

#include <algorithm>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// The time to wait for answers after other aborts. It must be short as well, because a launcher
/// soon kills the remaining processes after a death, too.
constexpr Nanos kAbortGrace = 2'000'000'000;
/// The most heartbeats that a process sends per timeout.
constexpr Nanos kHeartbeatsPerTimeout = 8;
/// The minimum timeout for the beginning of a step. On a busy machine the processes reach it at
/// different times.
constexpr Nanos kMinBeginTimeout = 5'000'000'000;

struct ControlHeader {
  std::uint32_t step = 0;
  AbortReason abort_reason = AbortReason::kNone;  ///< kNone: a heartbeat
};

struct Control {
  ControlHeader header;
  std::string failure;  ///< why the sender cannot continue
};

Blob to_bytes(const Control& control) {
  BlobWriter writer;
  writer.write(control.header);
  writer.write_text(control.failure.substr(0, kMaxFailureText));
  return writer.take();
}

std::string name_of(std::int32_t rank) { return "rank " + std::to_string(rank); }

/// Throws Error if the sender reports that it cannot continue.
ControlHeader read_control(const Message& message) {
  BlobReader reader(message.payload);
  const auto header = reader.read<ControlHeader>();
  const std::string failure = reader.read_text();
  if (failure.empty()) return header;
  throw Error(Fault::kMachine, name_of(message.from) + " cannot continue: " + failure);
}

Nanos grace_of(AbortReason reason) {
  return reason == AbortReason::kInterrupt ? kShortAbortGrace : kAbortGrace;
}

}  // namespace

void send_heartbeat(Transport& transport) {
  transport.send_all(MessageTag::kControl, to_bytes(Control{}));
}

StepProtocol::StepProtocol(Transport& transport, const Limits& limits)
    : transport_(transport), limits_(limits), last_update_at_(read_monotonic_clock()) {}

void StepProtocol::open_step() {
  ++step_;
  begin_.reset();
  abort_reason_ = AbortReason::kNone;
  deadline_.reset();
  last_update_at_ = read_monotonic_clock();
}

/// After an abort of another process this one does not wait any longer, because the others wait for
/// its answer.
const std::optional<StepBegin>& StepProtocol::agree_on_begin() {
  begin_ = bubblescope::exec::agree_on_begin(
      transport_, [this] { return should_abort(kMinBeginTimeout) || deadline_.has_value(); });
  if (begin_) return begin_;
  handle_control();
  if (limits_.is_interrupted())
    abort_reason_ = AbortReason::kInterrupt;
  else if (abort_reason_ == AbortReason::kNone)
    abort_reason_ = AbortReason::kTimeout;
  return begin_;
}

PeerUpdate StepProtocol::exchange_heartbeats(std::uint64_t progress) {
  const std::unique_lock lock(exchanging_, std::try_to_lock);
  if (!lock) return {};
  const PeerUpdate update = handle_control();
  if (const auto gone = transport_.first_gone())
    throw Error(Fault::kMachine, name_of(*gone) + " is gone: its process has died, or left");
  const Nanos now = read_monotonic_clock();
  if (progress == reported_ || now - reported_at_ < limits_.timeout / kHeartbeatsPerTimeout)
    return update;
  reported_ = progress;
  reported_at_ = now;
  transport_.send_all(MessageTag::kControl, to_bytes({{step_, AbortReason::kNone}, {}}));
  return update;
}

/// Aborts of an earlier step are leftovers; ignore them.
PeerUpdate StepProtocol::handle_control() {
  PeerUpdate update;
  for (const Message& message : transport_.poll(MessageTag::kControl)) {
    const ControlHeader header = read_control(message);
    update.progressed = true;
    last_update_at_ = read_monotonic_clock();
    if (header.abort_reason == AbortReason::kNone || header.step != step_) continue;
    abort_reason_ = update.abort_reason = header.abort_reason;
    if (!deadline_) deadline_ = last_update_at_ + grace(kAbortGrace);
  }
  return update;
}

void StepProtocol::watch() {
  if (exchange_heartbeats(reported_).abort_reason != AbortReason::kNone)
    throw Error(Fault::kMachine, "another rank stopped the step");
  if (limits_.is_interrupted()) {
    abort_reason_ = AbortReason::kInterrupt;
    throw Error(Fault::kMachine, "interrupted");
  }
  if (read_monotonic_clock() - last_update_at_ <= limits_.timeout) return;
  abort_reason_ = AbortReason::kTimeout;
  throw Error(Fault::kMachine, "the other ranks do not answer within `timeout`");
}

/// The second gather is a liveness check: a rank that had finished may have died since, and then
/// the launcher kills the others before they have named it.
std::vector<RankPart> StepProtocol::gather_parts(const RankPart& own,
                                                 const std::function<void()>& meanwhile) {
  const AbortReason reason = own.result.reason;
  last_update_at_ = read_monotonic_clock();
  if (reason != AbortReason::kNone) {
    transport_.send_all(MessageTag::kControl, to_bytes({{step_, reason}, {}}));
    deadline_ = last_update_at_ + grace(grace_of(reason));
  }
  const ShouldAbort is_over = [&] {
    if (meanwhile) meanwhile();
    return should_abort();
  };
  std::vector<RankPart> parts;
  for (const auto& bytes : transport_.gather(bubblescope::exec::to_bytes(own), is_over).payloads)
    parts.push_back(bytes ? read_part(*bytes)
                          : missing_part(static_cast<std::int32_t>(parts.size()), reason));
  const AbortReason abort_reason = find_abort_reason(parts);
  if (abort_reason == AbortReason::kNone) return parts;
  deadline_ = read_monotonic_clock() + grace(grace_of(abort_reason));
  return fail_gone_ranks(std::move(parts), transport_.gather({}, is_over).gone);
}

std::vector<Blob> StepProtocol::gather(Blob own) {
  last_update_at_ = read_monotonic_clock();
  std::vector<Blob> all;
  for (std::optional<Blob>& bytes :
       transport_.gather(std::move(own), [this] { return should_abort(); }).payloads) {
    if (!bytes)
      throw Error(Fault::kMachine, name_of(static_cast<std::int32_t>(all.size())) +
                                       " does not answer: its process has died or hangs");
    all.push_back(std::move(*bytes));
  }
  return all;
}

void StepProtocol::notify_failure(const std::string& what) {
  transport_.send_all(MessageTag::kControl, to_bytes({{step_, AbortReason::kFailure}, what}));
  const Nanos end = read_monotonic_clock() + kShortAbortGrace;
  transport_.flush([end] { return read_monotonic_clock() > end; });
}

/// If rank 0 relays messages, the other ranks wait longer: rank 0 needs its whole grace period
/// before it can forward what it has received.
Nanos StepProtocol::grace(Nanos of_first) const {
  return transport_.is_relayed() && transport_.self().rank != 0 ? of_first * 3 / 2 : of_first;
}

/// Whether to stop waiting for the answers of other processes.
bool StepProtocol::should_abort(Nanos min_timeout) {
  handle_control();
  const Nanos now = read_monotonic_clock();
  if (limits_.is_interrupted()) {
    const Nanos soon = now + grace(kShortAbortGrace);
    deadline_ = std::min(deadline_.value_or(soon), soon);
  }
  if (deadline_) return now > *deadline_;
  return now - last_update_at_ > std::max(limits_.timeout, min_timeout) + grace(kAbortGrace);
}

}  // namespace bubblescope::exec
