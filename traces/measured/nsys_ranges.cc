// Counts ops, and finds those without a range by their launches.
#include "traces/measured/nsys_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "traces/measured/counted_steps.h"

namespace bubblescope::traces {

namespace {

std::string name_of(const OpRange& op) {
  return fmt::format("{} {} {}", to_string(op.named.op), op.named.chunk.value_or(-1),
                     op.second ? to_string(*op.second) : "");
}

bool is_backward(const OpRange& op) { return gives_input_grad(op.named.op.kind); }

bool is_forward(const OpRange& op) {
  return op.named.op.kind == OpKind::kForward && !op.second && is_unnumbered(op);
}

/// Whether every step runs the same micro-batches, 0, 1, 2 ..., in each of its kinds of ops: then
/// steps have different numbers of micro-batches, and none lacks an op.
bool are_whole_steps(const std::vector<OpRange>& ops) {
  using Kind = std::tuple<OpKind, std::int32_t, std::int32_t>;  // stage, chunk
  std::map<std::int64_t, std::map<Kind, std::set<std::int32_t>>> steps;
  std::set<Kind> kinds;
  for (const OpRange& op : ops) {
    if (!is_compute(op.named.op.kind)) continue;
    if (op.second || op.named.op.slice != 0) return false;
    const Kind kind{op.named.op.kind, op.named.op.stage, op.named.chunk.value_or(-1)};
    steps[op.step][kind].insert(op.named.op.microbatch);
    kinds.insert(kind);
  }
  return std::all_of(steps.begin(), steps.end(), [&](const auto& step) {
    const std::set<std::int32_t>& first = step.second.begin()->second;
    return step.second.size() == kinds.size() && *first.begin() == 0 &&
           *first.rbegin() + 1 == std::ssize(first) &&
           std::all_of(step.second.begin(), step.second.end(),
                       [&](const auto& of_kind) { return of_kind.second == first; });
  });
}

/// The activity that a call leads to; null where there is none.
const NsysActivity* find_activity(const NsysRecording& recording, std::int64_t process,
                                  const CudaCall& call) {
  const auto activities = recording.activities.find(process);
  if (activities == recording.activities.end()) return nullptr;
  const auto found = activities->second.find(call.correlation);
  return found == activities->second.end() ? nullptr : &found->second;
}

/// Collects stretches of launches.
class Stretches {
 public:
  void extend(Nanos launch) {
    if (!open_) found_.push_back({launch, launch});
    open_ = true;
    found_.back().end = launch;
  }
  void close() { open_ = false; }
  std::vector<TimeSpan> take() && { return std::move(found_); }

 private:
  std::vector<TimeSpan> found_;
  bool open_ = false;
};

/// The stretches of launches by other threads than `main`.
std::vector<TimeSpan> find_stretches(const NsysRecording& recording, std::int64_t process,
                                     std::int64_t main, const std::vector<TimeSpan>& forwards) {
  Stretches stretches;
  const auto launches = recording.launches.find(process);
  if (launches == recording.launches.end()) return {};
  auto next = forwards.begin();
  for (const CudaCall& call : launches->second) {
    if (call.start < forwards.front().start) continue;
    while (next != forwards.end() && next->start <= call.start) {
      stretches.close();
      ++next;
    }
    const NsysActivity* const activity = find_activity(recording, process, call);
    if (activity == nullptr) continue;
    if (call.thread == main && activity->is_message) stretches.close();
    if (call.thread != main && !activity->is_message) stretches.extend(call.start);
  }
  return std::move(stretches).take();
}

}  // namespace

std::vector<StepRange> mark_steps(const NsysRecording& recording,
                                  const std::vector<HostRange>& ranges, std::vector<OpRange>& ops) {
  std::vector<StepRange> marks;
  std::set<std::int64_t> numbers;
  for (const HostRange& range : ranges) {
    const std::optional<std::int64_t> number = parse_step_mark(recording.names[range.name]);
    if (!number) continue;
    const bool overlaps = !marks.empty() && range.start < marks.back().host.end;
    if (overlaps || !numbers.insert(*number).second) return {};
    marks.push_back({{range.start, range.end}, *number});
  }
  std::vector<std::int64_t> of_op;
  for (const OpRange& op : ops) {
    const auto after =
        std::upper_bound(marks.begin(), marks.end(), op.host.start,
                         [](Nanos time, const StepRange& mark) { return time < mark.host.start; });
    if (after == marks.begin() || std::prev(after)->host.end < op.host.start) return {};
    of_op.push_back(std::prev(after)->number);
  }
  for (std::size_t at = 0; at < ops.size(); ++at) ops[at].mark = of_op[at];
  return marks;
}

bool is_same_op(const OpRange& left, const OpRange& right) {
  return left.named.op == right.named.op && left.named.chunk == right.named.chunk &&
         left.second == right.second;
}

void set_kinds(std::vector<OpRange>& ops) {
  const bool has_weight_grads = std::any_of(ops.begin(), ops.end(), [](const OpRange& op) {
    return op.named.op.kind == OpKind::kWeightGrad;
  });
  for (OpRange& op : ops) op.named.op.kind = kind_in_trace(op.named, has_weight_grads);
}

bool find_unnamed_backwards(const NsysRecording& recording, std::int64_t process,
                            std::vector<OpRange>& ops) {
  if (std::any_of(ops.begin(), ops.end(), is_backward)) return false;
  std::vector<TimeSpan> forwards;
  std::int64_t main = 0;
  for (const OpRange& op : ops) {
    if (!is_forward(op)) continue;
    forwards.push_back(op.host);
    main = op.thread;
  }
  if (forwards.empty()) return false;
  const std::vector<TimeSpan> stretches = find_stretches(recording, process, main, forwards);
  if (stretches.size() != forwards.size()) return false;
  for (const TimeSpan& stretch : stretches) {
    OpRange op{main, stretch, {{}, false, false}};
    op.named.op.kind = OpKind::kBackward;
    ops.push_back(op);
  }
  std::stable_sort(ops.begin(), ops.end(), [](const OpRange& left, const OpRange& right) {
    return left.host.start < right.host.start;
  });
  return true;
}

void count_unnumbered(std::vector<OpRange>& ops) {
  std::map<OpKind, std::int32_t> next;
  for (OpRange& op : ops) {
    op.named.op.microbatch = next[op.named.op.kind]++;
    op.has_step = false;
  }
}

bool count_occurrences(std::vector<OpRange>& ops) {
  std::vector<CountedOp> named;
  for (const OpRange& op : ops) named.push_back({name_of(op)});
  const CountedSteps counted = count_steps(named);
  for (std::size_t at = 0; at < ops.size(); ++at) {
    ops[at].step = counted.step_of[at];
    ops[at].step_is_counted = true;
  }
  return counted.are_even || are_whole_steps(ops);
}

std::vector<OpSpan> find_op_spans(const std::vector<OpRange>& ops) {
  std::vector<OpSpan> spans;
  std::int64_t unnumbered_step = 0;
  std::int64_t in_flight = 0;
  for (const OpRange& op : ops) {
    if (!is_compute(op.named.op.kind)) continue;
    OpSpan span;
    span.span = op.host;
    span.step = op.has_step ? op.step : unnumbered_step;
    span.op_class =
        2 * (op_class_of(op.named.op) + std::int64_t{kOpKinds} * op.named.chunk.value_or(0)) +
        (op.second ? 1 : 0);
    spans.push_back(span);
    in_flight += op.named.op.kind == OpKind::kForward ? 1 : 0;
    in_flight -= gives_input_grad(op.named.op.kind) ? 1 : 0;
    if (in_flight <= 0) ++unnumbered_step;
  }
  return spans;
}

}  // namespace bubblescope::traces
