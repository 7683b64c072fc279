// Groups observed ops by rank and step, and makes a Program and a Timeline of every step.
#include "traces/measured/assemble_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "sim/ir/error.h"
#include "traces/measured/align_clocks.h"
#include "traces/measured/complete_ops.h"
#include "traces/measured/empty_ops.h"
#include "traces/measured/group_steps.h"
#include "traces/measured/missing_neighbours.h"
#include "traces/measured/missing_ranks.h"
#include "traces/measured/outer_works.h"
#include "traces/measured/rank_clocks.h"
#include "traces/measured/separate_replicas.h"
#include "traces/measured/settle_step.h"
#include "traces/measured/step_builder.h"
#include "traces/measured/step_marks.h"
#include "traces/measured/time_span.h"
#include "traces/measured/whole_steps.h"

namespace bubblescope::traces {

namespace {

/// Ops that begin long before their inputs make the steps unreliable.
void report_corrections(const Corrections& corrections, ObservedTrace& trace) {
  constexpr double kMinNotedFraction = 0.002;
  constexpr double kMaxTrustedFraction = 0.05;
  if (corrections.cut > 0)
    trace.notes.push_back(
        fmt::format("{} op(s) ended where the next one of their rank starts: they overlapped by up "
                    "to {}",
                    corrections.cut, to_text(corrections.max_cut)));
  if (corrections.trimmed.largest > kClocksExact)
    trace.notes.push_back(fmt::format(
        "{} op(s) begin where their input ends, up to {} into their range: they waited before",
        corrections.trimmed.ops, to_text(corrections.trimmed.largest)));
  if (corrections.max_fraction > kMaxTrustedFraction)
    trace.faults.push_back(corrections.largest_text);
  else if (corrections.max_fraction > kMinNotedFraction)
    trace.doubts.push_back(corrections.largest_text);
}

/// Labels such as "replica 1 step 7", with only the parts that distinguish the steps of a trace.
class StepLabels {
 public:
  explicit StepLabels(const std::map<StepKey, StepOps>& steps) {
    for (const auto& [key, _] : steps) {
      replicas_.insert(key.first);
      numbers_.insert(key.second);
    }
  }

  std::string of_replica(std::int32_t replica) const {
    return replicas_.size() > 1 ? fmt::format("replica {}", replica) : "";
  }

  std::string of_step(const StepKey& key) const {
    const std::string label = of_replica(key.first);
    if (numbers_.size() == 1) return label;
    return fmt::format("{}{}step {}", label, label.empty() ? "" : " ", key.second);
  }

 private:
  std::set<std::int32_t> replicas_;
  std::set<std::int64_t> numbers_;
};

/// Orders the steps that have the maximum number of ops, if they lack no other ranks than the first
/// of them.
std::map<StepKey, DraftStep> order_complete_steps(std::map<StepKey, StepOps> steps,
                                                  StepBuilder& builder, const StepLabels& labels,
                                                  std::int32_t ranks) {
  const std::size_t whole = find_whole_count(steps);
  std::map<StepKey, DraftStep> drafts;
  for (auto& [key, ops] : steps)
    if (ops.computes.size() == whole)
      drafts.emplace(key, builder.order(labels.of_step(key), std::move(ops), ranks));
  const std::vector<std::int32_t> missing = drafts.begin()->second.step.missing_ranks;
  std::erase_if(drafts,
                [&](const auto& draft) { return draft.second.step.missing_ranks != missing; });
  return drafts;
}

/// The last stage sends to no one, unless the trace of a further rank is missing.
std::optional<std::string> describe_missing_rank(const DraftStep& draft,
                                                 const std::string& source) {
  const std::int32_t last = draft.step.schedule->stages() - 1;
  const auto leaves_last_rank = [&](const ObservedOp& message) {
    const OpKind kind = message.op.kind;
    // Waiting for a message was inferred, not observed. Megatron-LM's calls include those of the
    // last stage, which send nothing; StragglerAnalysis' slices do not.
    const bool was_sent = source == "chrome" || (!message.chunk && message.numbered);
    return was_sent && !message.may_hold_waiting && !message.is_inferred &&
           message.op.stage == last &&
           (kind == OpKind::kSendForward || kind == OpKind::kRecvBackward);
  };
  const auto found = std::find_if(draft.messages.begin(), draft.messages.end(), leaves_last_rank);
  if (found == draft.messages.end()) return {};
  return fmt::format(
      "{} is a message with stage {}, which no trace runs: the trace of its rank is missing, and "
      "what waits for it is reported as waiting for no rank",
      to_string(found->op), last + 1);
}

/// Clocks may start anywhere, but the ops of one trace lie within days.
void expect_times(const ObservedTrace& trace) {
  constexpr Nanos kMaxTraceDuration = Nanos{100} * 24 * 3600 * 1'000'000'000;
  if (trace.ops.empty()) return;
  const Nanos origin = trace.ops.front().start;
  const auto is_within_days = [origin](Nanos time) {
    Nanos apart = 0;
    return !__builtin_sub_overflow(time, origin, &apart) && apart <= kMaxTraceDuration &&
           apart >= -kMaxTraceDuration;
  };
  for (const ObservedOp& observed : trace.ops)
    if (!is_within_days(observed.start) || !is_within_days(observed.end))
      throw Error(
          fmt::format("{}: {} lies from {} ns to {} ns, over 100 days from the first op, at {} ns; "
                      "correct its times, or leave it out",
                      trace.recorders.at(static_cast<std::size_t>(observed.recorder)).where,
                      to_string(observed.op), observed.start, observed.end, origin));
}

/// Reports the steps and ranks that were left out: of `count` steps, `others` have another number
/// of micro-batches.
void report_left_out(const std::map<StepKey, DraftStep>& drafts, std::size_t count,
                     std::size_t others, std::optional<std::string> missing_ranks,
                     ObservedTrace& trace) {
  if (others > 0)
    trace.notes.push_back(fmt::format(
        "{} step(s) left out: they have another number of micro-batches, or other kinds of ops, "
        "than those shown",
        others));
  if (drafts.size() + others < count)
    trace.notes.push_back(fmt::format(
        "{} step(s) left out: they do not have the {} ops of a whole one",
        count - others - drafts.size(), drafts.begin()->second.step.schedule->op_count()));
  std::optional<std::string> missing = describe_missing_rank(drafts.begin()->second, trace.source);
  if (missing) trace.notes.push_back(*missing);
  if (missing_ranks) missing = describe_report_of_some(*missing_ranks);
  if (missing) trace.faults.insert(trace.faults.begin(), *std::move(missing));
}

void report_clocks(const ReplicaClocks& clocks, const StepLabels& labels, ObservedTrace& trace) {
  for (const auto& [replica, correction] : clocks) {
    const std::string where = labels.of_replica(replica);
    for (const std::string& note : correction.notes)
      trace.notes.push_back(where.empty() ? note : where + ": " + note);
  }
}

/// Throws Error where two recorders have the same op of one rank, as the files of two runs do.
void expect_one_run(const ObservedTrace& trace, const RankNumbers& numbers) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::set<std::int32_t>> recorders;
  for (const ObservedOp& observed : trace.ops)
    recorders[{observed.replica, numbers.of_recorder[observed.recorder]}].insert(observed.recorder);
  const auto is_single = [](const auto& of_rank) { return of_rank.second.size() == 1; };
  if (std::all_of(recorders.begin(), recorders.end(), is_single)) return;
  using Place = std::tuple<std::int32_t, std::int32_t, std::int64_t, OpKind, std::int32_t,
                           std::int32_t, std::int32_t>;
  std::map<Place, std::int32_t> recorder_of;
  for (const ObservedOp& observed : trace.ops) {
    if (!is_compute(observed.op.kind)) continue;
    const Op& op = observed.op;
    const std::int32_t rank = numbers.of_recorder[observed.recorder];
    const Place place{
        observed.replica, rank,    observed.step, op.kind, observed.chunk.value_or(op.stage),
        op.microbatch,    op.slice};
    const auto [found, is_new] = recorder_of.emplace(place, observed.recorder);
    if (is_new || found->second == observed.recorder) continue;
    const auto where = [&](std::int32_t recorder) -> const std::string& {
      return trace.recorders[static_cast<std::size_t>(recorder)].where;
    };
    throw Error(fmt::format(
        "{} and {} both record rank {}, and both have its {} of the same step: they are of two "
        "runs of a job, or of one rank twice; give one trace of each rank of one run",
        where(found->second), where(observed.recorder), rank, to_string(op)));
  }
}

/// Throws Error where replicas of one host never run at the same time.
void expect_replicas_together(const ObservedTrace& trace) {
  struct Extent {
    TimeSpan times;
    std::int32_t recorder = 0;
  };
  std::map<std::pair<std::string, std::int32_t>, Extent> extents;  // by host and replica
  for (const ObservedOp& observed : trace.ops) {
    const std::string& host = trace.recorders[static_cast<std::size_t>(observed.recorder)].host;
    if (host.empty()) continue;
    const Extent own{{observed.start, observed.end}, observed.recorder};
    widen(extents.emplace(std::pair(host, observed.replica), own).first->second.times, observed);
  }
  for (auto next = extents.begin(); next != extents.end(); ++next) {
    const auto one = next == extents.begin() ? next : std::prev(next);
    if (one == next || one->first.first != next->first.first) continue;
    const Extent& left = one->second;
    const Extent& right = next->second;
    if (left.times.end > right.times.start && right.times.end > left.times.start) continue;
    throw Error(fmt::format(
        "{} and {} are of pipelines that never run at the same time, so they are no data-parallel "
        "replicas but two runs; give the traces of one run",
        trace.recorders[static_cast<std::size_t>(left.recorder)].where,
        trace.recorders[static_cast<std::size_t>(right.recorder)].where));
  }
}

void note_left_out(const LeftOutReplicas& left_out, ObservedTrace& trace) {
  if (left_out.count == 0) return;
  trace.lacks_replicas = true;
  trace.doubts.insert(trace.doubts.begin(), left_out.text);
}

/// Assembles the single ops. `missing_ranks` says which ranks have no trace, if that is known.
void assemble_ops(ObservedTrace& trace, std::optional<std::string> missing_ranks,
                  std::vector<MeasuredStep>& built) {
  use_step_marks(trace);
  split_steps(trace);
  place_works(trace);
  const bool assigns_ranks = rank_recorders(trace);
  separate_replicas(trace);
  number_replicas(trace);
  const RankNumbers numbers = number_ranks(trace);
  expect_one_run(trace, numbers);
  expect_replicas_together(trace);
  const std::vector<std::int32_t>& rank_of_recorder = numbers.of_recorder;
  const std::int32_t ranks = numbers.ranks;
  std::map<StepKey, StepOps> steps = group_by_step(std::move(trace.ops), numbers);
  trace.ops.clear();
  if (steps.empty())
    throw Error(trace.recorders.front().where +
                ": there are messages, but no compute op such as 0F0 on any rank");
  const StepLabels labels(steps);
  if (!missing_ranks) note_left_out(leave_out_incomplete_replicas(steps), trace);
  const std::size_t count = steps.size();
  const std::size_t others = count_other_microbatches(steps);
  Corrections corrections;
  StepBuilder builder(trace, corrections);
  std::map<StepKey, DraftStep> drafts =
      order_complete_steps(std::move(steps), builder, labels, ranks);
  report_left_out(drafts, count, others, std::move(missing_ranks), trace);
  const ReplicaClocks clocks = find_clocks(drafts, ranks, trace);
  report_clocks(clocks, labels, trace);
  report_large_shifts(clocks, drafts, trace);
  set_clocks(clocks, numbers, drafts, trace);
  StepExtents extents;
  for (const auto& [key, draft] : drafts) extents[key] = extent_of(draft.lanes);
  trace.whole_steps = find_whole_steps(trace.works, extents);
  trace.outer_works = find_outer_works(trace.works, extents, rank_of_recorder);
  for (auto& [key, draft] : drafts) {
    MeasuredStep& step = built.emplace_back(builder.finish(std::move(draft)));
    step.replica = key.first;
    step.number = key.second;
  }
  if (assigns_ranks)
    if (std::optional<std::string> missing = describe_missing_neighbours(built))
      trace.doubts.push_back(*std::move(missing));
  if (trace.source != "csv")  // which is what was simulated
    if (std::optional<std::string> empty = describe_empty_op(built))
      trace.doubts.push_back(*std::move(empty));
  report_corrections(corrections, trace);
}

}  // namespace

std::vector<MeasuredStep> assemble_steps(ObservedTrace& trace) {
  std::vector<MeasuredStep> built = std::move(trace.steps);
  // Whole steps of several files are iterations, not replicas of one step.
  for (std::size_t at = 0; at < built.size(); ++at)
    built[at].number = static_cast<std::int64_t>(at);
  Corrections corrections;
  for (MeasuredStep& step : built) settle_whole_step(step, corrections);
  report_corrections(corrections, trace);
  for (const MeasuredStep& step : built)
    if (!step.missing_ranks.empty())
      trace.faults.push_back(describe_report_of_some(describe_stand_ins(step.missing_ranks)));
  if (trace.ops.empty()) return built;
  expect_times(trace);
  const LeftOutReplicas left_out = leave_out_incomplete_replicas(trace);
  note_left_out(left_out, trace);
  const std::optional<std::string> missing_ranks = describe_missing_ranks(trace);
  if (std::optional<std::string> replicas = describe_missing_replicas(trace, left_out.count)) {
    trace.lacks_replicas = true;
    trace.doubts.insert(trace.doubts.begin(), *std::move(replicas));
  }
  try {
    assemble_ops(trace, missing_ranks, built);
  } catch (const Error& error) {
    if (!missing_ranks) throw;
    throw Error(error.fault(), describe_refusal_of_some(*missing_ranks, error.what()));
  }
  return built;
}

}  // namespace bubblescope::traces
