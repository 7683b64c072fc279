// Walks through the ops of a process, and finds what its device ran for each.
#include "traces/measured/nsys_op_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "traces/measured/nsys_messages.h"
#include "traces/measured/nsys_ops.h"

namespace bubblescope::traces {

namespace {

ObservedOp observe(const OpRange& range) {
  ObservedOp observed;
  observed.op = range.named.op;
  if (!range.named.has_stage) observed.chunk = range.named.chunk.value_or(0);
  observed.chunk_is_assumed = range.named.may_have_chunk;
  observed.numbered = range.named.has_microbatch;
  observed.step = range.step;
  observed.step_is_counted = range.step_is_counted;
  observed.has_step = range.has_step;
  observed.mark = range.mark;
  return observed;
}

void set_times(ObservedOp& observed, const TimeSpan& span) {
  observed.start = span.start;
  observed.end = std::max(span.start, span.end);
}

class OpTimer {
 public:
  OpTimer(const NsysRecording& recording, std::int64_t process, const NsysProcessOps& found,
          const std::string& path)
      : ops_(found.ops),
        path_(path),
        device_(recording, process),
        messages_(recording, process, found.ops, found.calls) {}

  std::vector<NsysTimedOp> time() && {
    for (std::size_t at = 0; at < ops_.size(); ++at) {
      if (ops_[at].second)
        add_pair(at);
      else
        add_one(at);
    }
    return std::move(timed_);
  }

 private:
  void add_one(std::size_t at) {
    const OpRange& range = ops_[at];
    const bool computes = is_compute(range.named.op.kind);
    const std::optional<TimeSpan> span =
        computes ? device_.find_work(range.host) : device_.find_messages(range.host);
    // Nothing shows when such a message was in transit.
    if (!span && !computes && device_.has_activities()) return;
    ObservedOp observed = observe(range);
    observed.may_hold_waiting = !span && computes;
    set_times(observed, span.value_or(range.host));
    timed_.push_back({observed, at});
    if (span && computes) add_arrival(observed, at);
  }

  /// Splits a pair at the first launch of the autograd engine, which runs the backward.
  void add_pair(std::size_t at) {
    const OpRange& range = ops_[at];
    const auto split = device_.first_launch_by_others(range.host, range.thread);
    const auto forward =
        split ? device_.find_work({range.host.start, *split}, LaunchedBy::kOwn, range.thread)
              : std::nullopt;
    const auto backward = device_.find_work(range.host, LaunchedBy::kOthers, range.thread);
    if (!forward || !backward)
      throw Error(fmt::format(
          "{}: '({};{})' is one range for two ops, and no launch within it shows where the forward "
          "ends and the backward begins; give each op a range of its own",
          path_, to_string(range.named.op), to_string(*range.second)));
    ObservedOp observed = observe(range);
    set_times(observed, *forward);
    timed_.push_back({observed, at});
    add_arrival(observed, at);
    observed.op = *range.second;
    set_times(observed, *backward);
    timed_.push_back({observed, at});
    free_ = observed.end;
  }

  /// Adds the message that brought an op's input: as its call says, or the device waited for it.
  void add_arrival(const ObservedOp& op, std::size_t at) {
    const OpRange& range = ops_[at];
    const TimeSpan waiting{std::exchange(free_, op.end), op.start};
    const std::optional<OpKind> receive = find_receive(op.op.kind);
    if (!receive) return;
    ObservedOp arrival = op;
    arrival.op.kind = *receive;
    arrival.is_arrival = true;
    const bool has_call = range.received.end > range.received.start;
    if (const auto message = has_call ? device_.find_messages(range.received) : std::nullopt) {
      set_times(arrival, *message);
    } else if (const auto awaited = messages_.find_awaited(at, waiting)) {
      set_times(arrival, awaited->span);
      arrival.is_inferred = awaited->is_inferred;
    } else {
      return;
    }
    timed_.push_back({arrival, at});
  }

  const std::vector<OpRange>& ops_;
  const std::string& path_;
  NsysProcess device_;
  NsysMessages messages_;
  Nanos free_ = std::numeric_limits<Nanos>::min();  ///< when the device has run the op before
  std::vector<NsysTimedOp> timed_;
};

}  // namespace

std::vector<NsysTimedOp> time_ops(const NsysRecording& recording, std::int64_t process,
                                  const NsysProcessOps& found, const std::string& path) {
  return OpTimer(recording, process, found, path).time();
}

}  // namespace bubblescope::traces
