// Puts together the steps of all ranks, and says what was left out.
#include "traces/measured/assemble_steps.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "traces/measured/accumulated_runs.h"
#include "traces/measured/build_step.h"
#include "traces/measured/complete_ops.h"
#include "traces/measured/empty_ops.h"
#include "traces/measured/evaluation_steps.h"
#include "traces/measured/expect_one_run.h"
#include "traces/measured/group_steps.h"
#include "traces/measured/microbatch_gaps.h"
#include "traces/measured/missing_ends.h"
#include "traces/measured/missing_neighbours.h"
#include "traces/measured/missing_ranks.h"
#include "traces/measured/open_chunks.h"
#include "traces/measured/outer_activities.h"
#include "traces/measured/rank_clocks.h"
#include "traces/measured/replica_ranks.h"
#include "traces/measured/replica_starts.h"
#include "traces/measured/running_microbatches.h"
#include "traces/measured/runs_of_step.h"
#include "traces/measured/separate_replicas.h"
#include "traces/measured/settle_step.h"
#include "traces/measured/step_marks.h"
#include "traces/measured/steps_of_files.h"
#include "traces/measured/stray_work.h"
#include "traces/measured/tensor_peers.h"
#include "traces/measured/unnamed_pipelines.h"
#include "traces/measured/whole_steps.h"

namespace bubblescope::traces {

namespace {

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

void add_sentence(std::vector<std::string>& sentences, std::optional<std::string> sentence) {
  if (sentence) sentences.push_back(*std::move(sentence));
}

/// Returns the sentence with the label of its step before it.
std::optional<std::string> with_label(const std::string& label,
                                      std::optional<std::string> sentence) {
  if (!sentence || label.empty()) return sentence;
  return label + ": " + *sentence;
}

Remarks with_first_doubt(Remarks remarks, const std::string& doubt) {
  if (!doubt.empty()) remarks.doubts.insert(remarks.doubts.begin(), doubt);
  return remarks;
}

/// Ops in their steps.
struct PlacedOps {
  ObservedTrace trace;  ///< without these ops
  RankNumbers numbers;
  bool has_assigned_ranks = false;
  std::map<StepKey, StepOps> steps = {};
  bool lacks_replicas = false;    ///< some are left out
  bool has_open_chunks = false;   ///< a fault says that the number of chunks per rank is open
  bool evaluated_within = false;  ///< evaluations within steps are left out
};

PlacedOps place_ops(ObservedTrace trace) {
  trace = count_over_files(split_steps(use_step_marks(std::move(trace))));
  trace = split_running_microbatches(std::move(trace));
  StrayWork stray = describe_stray_work(trace);
  add_sentence(trace.remarks.faults, std::move(stray.fault));
  add_sentence(trace.remarks.doubts, std::move(stray.doubt));
  trace = place_activities(std::move(trace));
  RankedTrace ranked = rank_recorders(std::move(trace));
  trace = number_replicas(separate_replicas(std::move(ranked.trace)));
  const RankNumbers numbers = number_ranks(trace);
  if (trace.source.has_any_slices && !ranked.has_assigned) {
    std::optional<std::string> open = describe_open_chunks(trace, numbers.of_recorder);
    ranked.has_open_chunks = open.has_value();
    add_sentence(trace.remarks.faults, std::move(open));
  }
  expect_one_run(trace, numbers);
  expect_common_step(trace, numbers);
  if (const std::optional<std::string> apart = expect_replicas_together(trace))
    trace.remarks = with_first_doubt(std::move(trace.remarks), *apart);
  trace.remarks = with_first_doubt(std::move(trace.remarks), describe_ranks_apart(trace));
  std::map<StepKey, StepOps> steps = group_by_step(std::exchange(trace.ops, {}), numbers);
  if (steps.empty())
    throw Error(trace.recorders.front().where +
                ": there are messages, but no compute op such as 0F0 on any rank");
  const Evaluations evaluations = remove_evaluations(steps);
  trace.activities =
      without_evaluations(std::move(trace.activities), evaluations.within, numbers.of_recorder);
  for (std::string& sentence : describe_evaluations(evaluations))
    trace.remarks.left_out.push_back(std::move(sentence));
  if (!trace.source.has_true_zeros && remove_empty_backwards(steps))
    trace.remarks.doubts.emplace_back(
        "no backward computes anything, as in an evaluation: this report is on the forwards alone");
  add_sentence(trace.remarks.doubts,
               describe_runs_without_optimizer(steps, trace.activities, numbers.of_recorder));
  number_accumulated_runs(steps);
  PlacedOps placed{std::move(trace), numbers, ranked.has_assigned, std::move(steps)};
  placed.has_open_chunks = ranked.has_open_chunks;
  placed.evaluated_within = !evaluations.within.empty();
  return placed;
}

/// Leaves out the steps of replicas that lack ranks which others have.
PlacedOps without_incomplete_replicas(PlacedOps placed) {
  const IncompleteReplicas incomplete = find_incomplete_replicas(placed.steps);
  std::erase_if(placed.steps,
                [&](const auto& step) { return incomplete.numbers.contains(step.first.first); });
  placed.trace.remarks = with_first_doubt(std::move(placed.trace.remarks), incomplete.text);
  placed.lacks_replicas = !incomplete.text.empty();
  return placed;
}

/// Sentences and corrections that came up on the way from ops to steps, for gather_remarks().
struct Findings {
  std::vector<std::string> left_out = {};                ///< steps
  std::optional<std::string> missing_microbatches = {};  ///< of the first step that lacks any
  std::optional<std::string> unrun_stage = {};  ///< a message with a stage that no trace runs
  std::vector<std::string> clocks = {};         ///< how they were corrected
  std::optional<std::string> large_shift = {};  ///< of a clock
  std::optional<std::string> missing_neighbour = {};
  std::optional<std::string> empty_op = {};
  std::optional<std::string> short_ops = {};
  std::vector<std::string> other_ranges = {};
  std::optional<std::string> runs_of_step = {};
  Corrections corrections = {};  ///< in all steps, also in those that are left out
};

/// Adds what was found to the remarks of a trace. If a rank has no trace, the report covers only
/// some ranks: `missing_ranks` names it if it is known, and otherwise the stage that no rank runs.
Remarks gather_remarks(Remarks remarks, const Findings& found,
                       const std::optional<std::string>& missing_ranks) {
  const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& sentences) {
    to.insert(to.end(), sentences.begin(), sentences.end());
  };
  append(remarks.notes, found.left_out);
  add_sentence(remarks.notes, found.unrun_stage);
  append(remarks.notes, found.clocks);
  append(remarks.doubts, found.other_ranges);
  add_sentence(remarks.notes, found.runs_of_step);
  add_sentence(remarks.doubts, found.large_shift);
  add_sentence(remarks.doubts, found.missing_neighbour);
  add_sentence(remarks.doubts, found.empty_op);
  add_sentence(remarks.doubts, found.short_ops);
  add_sentence(remarks.faults, found.missing_microbatches);
  if (missing_ranks)
    remarks.faults.insert(remarks.faults.begin(), describe_report_of_some(*missing_ranks));
  else if (found.unrun_stage)
    remarks.faults.insert(remarks.faults.begin(), *found.unrun_stage);
  return with_corrections(std::move(remarks), found.corrections);
}

/// Steps in their order.
struct OrderedSteps {
  DraftSteps drafts;
  Findings found;
};

/// Orders the steps that have the maximum number of ops, if they lack no other ranks than the first
/// of them.
OrderedSteps order_complete_steps(std::map<StepKey, StepOps> steps, const ObservedTrace& trace,
                                  const StepLabels& labels, std::int32_t ranks) {
  const std::size_t whole = find_whole_count(steps);
  const std::size_t others = count_other_microbatches(steps);
  OrderedSteps ordered;
  for (auto& [key, ops] : steps) {
    if (ops.computes.size() != whole) continue;
    const std::string label = labels.of_step(key);
    if (!ordered.found.missing_microbatches)
      ordered.found.missing_microbatches = with_label(label, describe_missing_microbatches(ops));
    DraftStep draft = order_step(trace, label, std::move(ops), ranks);
    ordered.found.corrections.add(draft.corrections);
    ordered.drafts.emplace(key, std::move(draft));
  }
  if (ordered.drafts.size() == steps.size())  // no step lacks ops that another may have
    for (auto& [_, draft] : ordered.drafts) draft.step.may_mix_steps = false;
  const DraftStep& first = ordered.drafts.begin()->second;
  const std::vector<std::int32_t> missing = first.step.missing_ranks;
  std::erase_if(ordered.drafts,
                [&](const auto& draft) { return draft.second.step.missing_ranks != missing; });
  if (others > 0)
    ordered.found.left_out.push_back(
        fmt::format("{} left out, with another number of micro-batches, or other kinds of ops, "
                    "than those shown",
                    counted(static_cast<std::int64_t>(others), "step")));
  if (ordered.drafts.size() + others < steps.size())
    ordered.found.left_out.push_back(fmt::format(
        "{} left out, without the {} ops of a whole one",
        counted(static_cast<std::int64_t>(steps.size() - others - ordered.drafts.size()), "step"),
        first.step.schedule->op_count()));
  return ordered;
}

std::vector<std::string> describe_clocks(const ReplicaClocks& clocks, const StepLabels& labels) {
  std::vector<std::string> notes;
  for (const auto& [replica, correction] : clocks) {
    const std::string where = labels.of_replica(replica);
    for (const std::string& note : correction.notes)
      notes.push_back(where.empty() ? note : where + ": " + note);
  }
  return notes;
}

/// Adds what the steps show before their clocks are set. With an open number of chunks, a message
/// of the last rank may be one with the first rank.
Findings with_drafts(Findings found, const DraftSteps& drafts, const ReplicaClocks& clocks,
                     const StepLabels& labels, const PlacedOps& placed) {
  const TraceSource& source = placed.trace.source;
  if (!placed.has_open_chunks)
    found.unrun_stage = describe_unrun_last_stage(drafts.begin()->second, source);
  found.clocks = describe_clocks(clocks, labels);
  if (source.may_begin_apart) found.large_shift = describe_large_shift(clocks, drafts);
  return found;
}

/// Adds what the times of all steps show.
Findings with_times(Findings found, const std::vector<MeasuredStep>& steps,
                    const PlacedOps& placed) {
  if (placed.has_assigned_ranks) found.missing_neighbour = describe_missing_neighbours(steps);
  found.runs_of_step = describe_runs_of_step(steps.front());
  if (!placed.trace.source.has_true_zeros) found.empty_op = describe_empty_op(steps);
  if (placed.trace.source.has_micros) found.short_ops = describe_short_ops(steps);
  return found;
}

/// Returns the recorders of ranks that wait for their first input.
std::set<std::int32_t> find_waiting_recorders(const DraftStep& draft, const RankNumbers& numbers) {
  const std::set<std::int32_t> ranks = find_waiting_ranks(draft);
  std::set<std::int32_t> recorders;
  for (std::int32_t recorder = 0; recorder < std::ssize(numbers.of_recorder); ++recorder)
    if (ranks.contains(numbers.of_recorder[static_cast<std::size_t>(recorder)]))
      recorders.insert(recorder);
  return recorders;
}

struct TimedDrafts {
  AssembledSteps assembled;
  Corrections corrections = {};
};

/// Whole steps of other files are iterations of their own: gives them numbers that no draft has.
std::vector<MeasuredStep> number_beside(std::vector<MeasuredStep> whole, const DraftSteps& drafts) {
  std::set<std::int64_t> taken;
  for (const auto& [key, _] : drafts) taken.insert(key.second);
  std::int64_t number = 0;
  for (MeasuredStep& step : whole) {
    while (taken.contains(number)) ++number;
    step.number = number++;
  }
  return whole;
}

/// Times the drafts, after the steps that are assembled, and finds the activities around them.
TimedDrafts time_drafts(AssembledSteps assembled, DraftSteps drafts, const RankNumbers& numbers) {
  PipelineExtents extents;
  for (const auto& [key, draft] : drafts)
    extents[key] = {extent_of(draft.lanes), find_waiting_recorders(draft, numbers)};
  assembled.whole_steps = find_whole_steps(assembled.activities, extents);
  assembled.outer_activities =
      find_outer_activities(assembled.activities, extents, numbers.of_recorder);
  TimedDrafts timed{std::move(assembled)};
  for (auto& [key, draft] : drafts) {
    SettledStep settled = time_step(std::move(draft));
    settled.step.replica = key.first;
    settled.step.number = key.second;
    timed.corrections.add(settled.corrections);
    timed.assembled.steps.push_back(std::move(settled.step));
  }
  return timed;
}

/// Assembles single ops, after the steps that are whole. `missing_ranks` says which ranks have no
/// trace, if that is known.
AssembledSteps assemble_ops(PlacedOps placed, std::vector<MeasuredStep> whole,
                            const std::optional<std::string>& missing_ranks) {
  const StepLabels labels(placed.steps);
  if (!missing_ranks) placed = without_incomplete_replicas(std::move(placed));
  const ObservedTrace& trace = placed.trace;
  const RankNumbers& numbers = placed.numbers;
  OrderedSteps ordered =
      order_complete_steps(std::move(placed.steps), trace, labels, numbers.ranks);
  const ReplicaClocks clocks = find_clocks(ordered.drafts, numbers.ranks, trace);
  Findings found = with_drafts(std::move(ordered.found), ordered.drafts, clocks, labels, placed);
  AssembledSteps assembled{number_beside(std::move(whole), ordered.drafts)};
  assembled.lacks_replicas = placed.lacks_replicas;
  assembled.evaluated_within = placed.evaluated_within;
  assembled.activities = set_clocks(std::move(placed.trace.activities), clocks, numbers);
  TimedDrafts timed =
      time_drafts(std::move(assembled), set_clocks(std::move(ordered.drafts), clocks), numbers);
  found.corrections.add(timed.corrections);
  found = with_times(std::move(found), timed.assembled.steps, placed);
  found.other_ranges = describe_other_ranges(timed.assembled.whole_steps);
  timed.assembled.remarks = gather_remarks(std::move(placed.trace.remarks), found, missing_ranks);
  return std::move(timed.assembled);
}

/// Settles the steps that files have whole.
AssembledSteps settle_whole_steps(std::vector<MeasuredStep> steps, Remarks remarks) {
  AssembledSteps settled;
  Corrections corrections;
  for (MeasuredStep& step : steps) {
    SettledStep one = settle_whole_step(std::move(step));
    corrections.add(one.corrections);
    // Whole steps of several files are iterations, not replicas of one step.
    one.step.number = std::ssize(settled.steps);
    settled.steps.push_back(std::move(one.step));
  }
  settled.remarks = with_corrections(std::move(remarks), corrections);
  for (const MeasuredStep& step : settled.steps)
    if (!step.missing_ranks.empty())
      settled.remarks.faults.push_back(
          describe_report_of_some(describe_stand_ins(step.missing_ranks)));
  return settled;
}

/// Assembles single ops after the steps that are whole.
AssembledSteps assemble_single_ops(AssembledSteps whole, ObservedTrace trace) {
  expect_times(trace);
  trace.remarks = std::move(whole.remarks);
  trace = without_tensor_peers(place_in_unnamed_pipelines(std::move(trace)));
  trace = number_within_replicas(std::move(trace));
  const IncompleteReplicas incomplete = find_incomplete_replicas(trace);
  trace = without_replicas(std::move(trace), incomplete.numbers);
  const std::optional<std::string> missing_ranks = describe_missing_ranks(trace);
  const std::optional<std::string> missing_replicas =
      describe_missing_replicas(trace, std::ssize(incomplete.numbers));
  trace.remarks = with_first_doubt(std::move(trace.remarks), incomplete.text);
  trace.remarks = with_first_doubt(std::move(trace.remarks), missing_replicas.value_or(""));
  try {
    AssembledSteps assembled =
        assemble_ops(place_ops(std::move(trace)), std::move(whole.steps), missing_ranks);
    assembled.lacks_replicas |= missing_replicas || !incomplete.numbers.empty();
    return assembled;
  } catch (const Error& error) {
    if (!missing_ranks) throw;
    throw Error(error.fault(), describe_refusal_of_some(*missing_ranks, error.what()));
  }
}

}  // namespace

AssembledSteps assemble_steps(ObservedTrace trace) {
  AssembledSteps assembled = settle_whole_steps(std::move(trace.steps), std::move(trace.remarks));
  if (trace.ops.empty())
    assembled.activities = std::move(trace.activities);
  else
    assembled = assemble_single_ops(std::move(assembled), std::move(trace));
  if (!assembled.lacks_replicas)
    assembled.late = find_late_replicas(find_replica_starts(assembled.activities, assembled.steps));
  return assembled;
}

}  // namespace bubblescope::traces
