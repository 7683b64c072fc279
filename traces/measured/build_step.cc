// Determines the order of ops, removes overlaps, aligns clocks and removes waiting.
#include "traces/measured/build_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/lower_dataflow.h"
#include "traces/measured/align_clocks.h"
#include "traces/measured/device_queues.h"
#include "traces/measured/message_times.h"
#include "traces/measured/rank_numbers.h"
#include "traces/measured/repeated_ops.h"
#include "traces/measured/stand_ins.h"
#include "traces/measured/trim_waiting.h"
#include "traces/schedules/infer_schedule.h"

namespace bubblescope::traces {

namespace {

/// The remedy where ops of several ranks do not make one step.
constexpr const char* kOnePipeline =
    "; do the ranks belong to one pipeline? Of a job with data-parallel or tensor-parallel ranks, "
    "give those of one pipeline, one rank per stage";

/// The remedies where ranks or stages may be out of order because the trace leaves these open.
std::string explain_order(const ObservedTrace& trace, const StepOps& ops) {
  std::string remedies;
  if (are_of_processes(trace.recorders))
    remedies +=
        "; nothing states the ranks, so the numbers of the processes gave their order: name "
        "processes by their ranks, or give the ops args.pp_rank";
  if (std::any_of(ops.computes.begin(), ops.computes.end(),
                  [](const ObservedOp& observed) { return observed.chunk.value_or(0) > 0; }))
    remedies +=
        "; chunks count as placed in a loop over the ranks, or two of them in a V: where they are "
        "placed otherwise, as in waves, state the stage of every op instead of its chunk (names "
        "such as 5F0)";
  return remedies;
}

bool earlier(const ObservedOp& left, const ObservedOp& right) {
  return std::tie(left.start, left.end) < std::tie(right.start, right.end);
}

/// Whether the forward of every overlapped pair is sent after the pair, as far as its send was
/// observed: PyTorch's runtime posts messages between its actions. The lanes are those of a valid
/// schedule, so that the first op of a pair is a forward and the next one its backward.
bool sends_after_pairs(const std::vector<std::vector<ObservedOp>>& lanes,
                       const std::vector<ObservedOp>& messages) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int16_t>, Nanos> pair_end;
  const auto identify = [](const Op& op) { return std::tuple(op.stage, op.microbatch, op.slice); };
  for (const std::vector<ObservedOp>& lane : lanes)
    for (std::size_t at = 0; at + 1 < lane.size(); ++at)
      if (lane[at].op.pairing == Pairing::kFirst)
        pair_end[identify(lane[at].op)] = lane[at + 1].end;
  bool any = false;
  for (const ObservedOp& message : messages) {
    if (message.op.kind != OpKind::kSendForward || !message.numbered) continue;
    const auto pair = pair_end.find(identify(message.op));
    if (pair == pair_end.end()) continue;
    if (message.start + kClockTolerance < pair->second) return false;
    any = true;
  }
  return any;
}

/// Calls visit(id, observed) for every compute op. A rank's ops have the same order in its lane and
/// in its schedule.
template <class Visit>
void for_each_compute(const DraftStep& draft, Visit visit) {
  const Program& program = draft.step.program;
  std::vector<std::size_t> next(draft.lanes.size(), 0);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (is_compute(instruction.op.kind))
      visit(id, draft.lanes[instruction.rank][next[instruction.rank]++]);
  }
}

/// The times of compute ops; others have none.
Timeline time_computes(const DraftStep& draft) {
  Timeline timeline = draft.step.timeline;
  timeline.start.assign(draft.step.program.size(), 0);
  timeline.end.assign(draft.step.program.size(), 0);
  for_each_compute(draft, [&](InstructionId id, const ObservedOp& observed) {
    timeline.start[id] = observed.start;
    timeline.end[id] = observed.end;
  });
  return timeline;
}

/// Throws Error where a rank without an op has messages: a trace that is missing has nothing.
void expect_ops_beside_messages(const std::vector<ObservedOp>& messages,
                                const StagesByRank& missing, const std::string& where) {
  for (const ObservedOp& message : messages)
    if (missing.contains(message.recorder))
      throw Error(
          fmt::format("{}: rank {} has {} and no op in this step: its ops are missing, or "
                      "the message is another rank's",
                      where, message.recorder, to_string(message.op)));
}

struct CutLanes {
  std::vector<std::vector<ObservedOp>> lanes;
  Corrections corrections = {};
};

/// Removes overlaps, because one rank computes one op at a time: clocks of devices are exact only
/// to about a microsecond.
CutLanes cut_overlaps(std::vector<std::vector<ObservedOp>> lanes, const std::string& where) {
  CutLanes cut{std::move(lanes)};
  for (std::size_t rank = 0; rank < cut.lanes.size(); ++rank) {
    std::vector<ObservedOp>& lane = cut.lanes[rank];
    if (lane.empty())
      throw Error(fmt::format("{}: rank {} has no op in this step{}", where, rank, kOnePipeline));
    Nanos largest = 0;
    for (std::size_t at = 0; at + 1 < lane.size(); ++at) {
      const Nanos overlap = lane[at].end - lane[at + 1].start;
      if (overlap <= 0) continue;
      ++cut.corrections.cut;
      largest = std::max(largest, overlap);
      lane[at].end = lane[at + 1].start;
    }
    cut.corrections.max_cut = std::max(cut.corrections.max_cut, largest);
    cut.corrections.note_largest(
        largest, extent_of(cut.lanes),
        fmt::format("ops of rank {} overlap by {}, though a rank computes one at a time", rank,
                    to_text(largest)));
  }
  return cut;
}

/// Says why ops make no whole step, and what to do about a recording. A fault of the trace, such as
/// slices that are ops by another name, is the better explanation.
std::string explain_problem(const Problem& problem, const ObservedTrace& trace,
                            const StagesByRank& missing) {
  if (problem.rank && problem.position && missing.contains(*problem.rank))
    return fmt::format(
        "rank {} has no trace, and the times of the others do not show when it ran its ops: their "
        "clocks may differ",
        *problem.rank);
  if (!trace.remarks.faults.empty()) return trace.remarks.faults.front();
  return "the recording begins or ends within the step, or lacks ops of it or the launches that "
         "show when they ran; record whole steps";
}

/// Throws Error for the first problem of a step.
[[noreturn]] void refuse_step(const Problem& problem, const ObservedTrace& trace,
                              const StagesByRank& missing, const std::string& where) {
  const std::vector<std::string>& doubts = trace.remarks.doubts;
  throw Error(fmt::format("{}: this is not a complete step of a pipeline: {}: {}{}", where,
                          problem.what, explain_problem(problem, trace, missing),
                          doubts.empty() ? "" : "; " + doubts.front()));
}

ValidSchedule order_of(const std::vector<std::vector<ObservedOp>>& lanes,
                       const ObservedTrace& trace, const StagesByRank& missing,
                       const std::string& where) {
  std::vector<RankOrder> lists;
  for (const std::vector<ObservedOp>& lane : lanes) {
    RankOrder& list = lists.emplace_back();
    for (const ObservedOp& observed : lane) list.push_back(observed.op);
  }
  Schedule schedule =
      infer_schedule(trace.source.name, std::move(lists), [&](std::int32_t rank, std::size_t cell) {
        return fmt::format("{}: rank {}, position {}", where, rank, cell);
      });
  auto validated = validate_schedule(std::move(schedule));
  if (const auto* invalid = std::get_if<InvalidSchedule>(&validated))
    refuse_step(invalid->problems[0], trace, missing, where);
  return std::get<ValidSchedule>(std::move(validated));
}

Program lower_measured(const ValidSchedule& schedule, bool has_late_results,
                       const std::string& remedies, const std::string& where) {
  // The forward of an overlapped pair may have begun before the input of its backward arrived.
  LowerOptions options;
  options.overlap = Overlap::kSerial;
  std::variant<Program, Deadlock> lowered =
      has_late_results ? lower_with_late_results(schedule) : lower(schedule, options);
  if (const auto* deadlock = std::get_if<Deadlock>(&lowered))
    throw Error(fmt::format("{}: no step can have run in this order, {}{}{}", where,
                            to_string(*deadlock), remedies, kOnePipeline));
  return std::get<Program>(std::move(lowered));
}

}  // namespace

TimeSpan extent_of(const std::vector<std::vector<ObservedOp>>& lanes) {
  TimeSpan extent{std::numeric_limits<Nanos>::max(), std::numeric_limits<Nanos>::min()};
  for (const std::vector<ObservedOp>& lane : lanes)
    for (const ObservedOp& observed : lane) widen(extent, observed);
  return extent;
}

DraftStep order_step(const ObservedTrace& trace, std::string label, StepOps ops,
                     std::int32_t ranks) {
  const std::string& file = trace.recorders.front().where;
  const std::string where = label.empty() ? file : file + ": " + label;
  std::stable_sort(ops.computes.begin(), ops.computes.end(), earlier);
  const bool may_mix_steps =
      std::any_of(ops.computes.begin(), ops.computes.end(),
                  [](const ObservedOp& observed) { return observed.step_is_counted; });
  ops = number_microbatches(std::move(ops));
  const StagesByRank missing = find_unrecorded_stages(ops.computes, ranks);
  expect_ops_beside_messages(ops.messages, missing, where);
  const std::vector<ObservedOp> stand_ins = make_stand_ins(ops.computes, missing);
  ops.computes.insert(ops.computes.end(), stand_ins.begin(), stand_ins.end());
  const std::string remedies = explain_order(trace, ops);
  std::vector<std::vector<ObservedOp>> lanes(static_cast<std::size_t>(ranks));
  for (const ObservedOp& observed : ops.computes) lanes[observed.recorder].push_back(observed);
  expect_one_pipeline(lanes, where);  // overlaps show nested slices, until they are cut
  CutLanes cut = cut_overlaps(std::move(lanes), where);
  ValidSchedule schedule = order_of(cut.lanes, trace, missing, where);
  DraftStep draft{{std::move(label), std::move(schedule)}, std::move(cut.lanes)};
  draft.step.may_mix_steps = may_mix_steps;
  draft.messages = std::move(ops.messages);
  draft.corrections = std::move(cut.corrections);
  for (const auto& [rank, _] : missing) draft.step.missing_ranks.push_back(rank);
  draft.step.timeline.source = trace.source.name;
  draft.step.timeline.is_imported = true;
  draft.step.timeline.may_lack_messages = !trace.source.has_true_zeros;
  const bool has_late_results = sends_after_pairs(draft.lanes, draft.messages);
  draft.step.program = lower_measured(draft.step.schedule, has_late_results, remedies, where);
  draft.step.timeline = time_computes(draft);
  return draft;
}

std::set<std::int32_t> find_waiting_ranks(const DraftStep& draft) {
  const Program& program = draft.step.program;
  std::set<std::int32_t> seen;
  std::set<std::int32_t> waiting;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (!is_compute(instruction.op.kind) || !seen.insert(instruction.rank).second) continue;
    if (!program.dependencies_of(id).empty()) waiting.insert(instruction.rank);
  }
  return waiting;
}

SettledStep time_step(DraftStep draft) {
  MeasuredStep& step = draft.step;
  step.timeline = time_computes(draft);
  std::vector<bool> may_hold_waiting(step.program.size(), false);
  std::vector<bool> start_is_observed(step.program.size(), false);
  for_each_compute(draft, [&](InstructionId id, const ObservedOp& observed) {
    may_hold_waiting[id] = observed.may_hold_waiting;
    start_is_observed[id] = observed.start_is_observed || !observed.may_hold_waiting;
  });
  Corrections corrections;
  if (const auto early = find_earliest_op(step.program, step.timeline, start_is_observed))
    corrections.note_largest(early->early, extent_of(draft.lanes),
                             describe_early_op(*early, step.program));
  TrimmedWaiting trimmed = trim_waiting(step.program, may_hold_waiting, std::move(step.timeline));
  corrections.trimmed = trimmed.ops;
  corrections.max_trimmed = trimmed.largest;
  Nanos origin = std::numeric_limits<Nanos>::max();
  for_each_compute(draft, [&](InstructionId id, const ObservedOp&) {
    origin = std::min(origin, trimmed.timeline.start[id]);
  });
  step.timeline =
      time_messages(step.schedule, step.program, draft.messages, std::move(trimmed.timeline));
  if (auto queued = queue_messages(
          {*step.schedule, step.program, step.timeline, draft.lanes, draft.messages})) {
    step.program = std::move(queued->program);
    step.timeline = std::move(queued->timeline);
  }
  step.begin = origin;
  for (Nanos& start : step.timeline.start) start -= origin;
  for (Nanos& end : step.timeline.end) end -= origin;
  return {std::move(step), std::move(corrections)};
}

}  // namespace bubblescope::traces
