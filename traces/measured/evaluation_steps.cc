// Looks for forwards to which no backward belongs.
#include "traces/measured/evaluation_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/ir/quantile.h"
#include "sim/ir/units.h"
#include "traces/measured/number_ranges.h"

namespace bubblescope::traces {

namespace {

/// Backwards that take less than this part of the forwards' time compute nothing.
constexpr double kEmpty = 0.01;
/// Those of training take more than this part, and usually twice the time.
constexpr double kComputing = 0.25;

/// Returns the time of all backwards as a part of the forwards' time; 0 without any forward.
double measure_backwards(const StepOps& step) {
  Nanos forwards = 0;
  Nanos backwards = 0;
  for (const ObservedOp& observed : step.computes)
    (observed.op.kind == OpKind::kForward ? forwards : backwards) += observed.end - observed.start;
  return forwards <= 0 ? 0 : static_cast<double>(backwards) / static_cast<double>(forwards);
}

bool is_forward(const ObservedOp& observed) { return observed.op.kind == OpKind::kForward; }
bool is_backward(const ObservedOp& observed) { return gives_input_grad(observed.op.kind); }

/// Whether all stages, of which there are so many, ran equally many forwards: a step in which the
/// recording ends has fewer.
bool has_all_forwards(const StepOps& step, std::size_t stages) {
  std::map<std::int32_t, std::size_t> counts;
  for (const ObservedOp& observed : step.computes)
    if (is_forward(observed)) ++counts[observed.op.stage];
  return counts.size() == stages && std::all_of(counts.begin(), counts.end(), [&](const auto& one) {
           return one.second == counts.begin()->second;
         });
}

std::set<std::int64_t> remove_evaluation_steps(std::map<StepKey, StepOps>& steps) {
  std::set<std::int64_t> removed;
  std::set<std::int32_t> stages;  // of steps that train
  for (const auto& [_, step] : steps)
    if (measure_backwards(step) > kComputing)
      for (const ObservedOp& observed : step.computes) stages.insert(observed.op.stage);
  if (stages.empty()) return removed;
  std::erase_if(steps, [&](const auto& step) {
    const bool is_evaluation =
        measure_backwards(step.second) < kEmpty && has_all_forwards(step.second, stages.size());
    if (is_evaluation) removed.insert(step.first.second);
    return is_evaluation;
  });
  return removed;
}

using Lane = std::vector<const ObservedOp*>;  // the ops of a rank by start

/// The ops of a rank, by start.
struct SplitLane {
  Lane trains;
  Lane evaluates;
};

std::map<std::int32_t, Lane> list_lanes(const StepOps& step) {
  std::map<std::int32_t, Lane> lanes;
  for (const ObservedOp& observed : step.computes) lanes[observed.recorder].push_back(&observed);
  for (auto& [_, lane] : lanes)
    std::stable_sort(lane.begin(), lane.end(), [](const ObservedOp* left, const ObservedOp* right) {
      return left->start < right->start;
    });
  return lanes;
}

Nanos find_usual_forward(const Lane& lane) {
  std::vector<Nanos> times;
  for (const ObservedOp* op : lane)
    if (is_forward(*op)) times.push_back(op->end - op->start);
  return times.empty() ? 0 : quantile(std::move(times), 50);
}

/// Goes back in time: a forward is of an evaluation if there are no more backwards than forwards
/// from there on.
SplitLane split_lane(const Lane& lane) {
  const double least = kEmpty * static_cast<double>(find_usual_forward(lane));
  SplitLane split;
  std::size_t open = 0;
  for (auto at = lane.rbegin(); at != lane.rend(); ++at) {
    const ObservedOp& op = **at;
    const bool is_empty = !is_forward(op) && static_cast<double>(op.end - op.start) < least;
    const bool evaluates = is_forward(op) ? open == 0 : is_empty;
    if (!evaluates && is_backward(op)) ++open;
    if (!evaluates && is_forward(op)) --open;
    (evaluates ? split.evaluates : split.trains).push_back(&op);
  }
  std::reverse(split.trains.begin(), split.trains.end());
  std::reverse(split.evaluates.begin(), split.evaluates.end());
  return split;
}

Nanos find_end(const Lane& lane) {
  Nanos end = lane.front()->end;
  for (const ObservedOp* op : lane) end = std::max(end, op->end);
  return end;
}

/// The time around the training in which nothing is evaluated; nullopt where an evaluation is not
/// before or after all of it.
std::optional<TimeSpan> find_training_span(const SplitLane& lane) {
  if (lane.trains.empty() || lane.evaluates.empty()) return {};
  const Nanos start = lane.trains.front()->start;
  const Nanos end = find_end(lane.trains);
  TimeSpan span{std::numeric_limits<Nanos>::min(), std::numeric_limits<Nanos>::max()};
  for (const ObservedOp* op : lane.evaluates) {
    if (op->end > start && op->start < end) return {};
    if (op->end <= start)
      span.start = std::max(span.start, op->end);
    else
      span.end = std::min(span.end, op->start);
  }
  return span;
}

/// A stage of a rank.
using Place = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
/// The micro-batches and slices of the ops of each, sorted.
using RunsOfPlace = std::vector<std::pair<std::int32_t, std::int16_t>>;
using Runs = std::map<Place, RunsOfPlace>;

template <class Counts>
Runs collect_runs(const Lane& lane, Counts counts) {
  Runs runs;
  for (const ObservedOp* op : lane)
    if (counts(*op))
      runs[{op->recorder, op->op.stage, op->chunk.value_or(-1)}].emplace_back(
          op->numbered ? op->op.microbatch : 0, op->op.slice);
  for (auto& [_, ops] : runs) std::sort(ops.begin(), ops.end());
  return runs;
}

/// Whether a micro-batch ran both times: the backward of one that ran once may be lost instead.
bool share_a_run(const RunsOfPlace& left, const RunsOfPlace& right) {
  return std::any_of(left.begin(), left.end(), [&](const auto& run) {
    return std::binary_search(right.begin(), right.end(), run);
  });
}

/// Whether two forwards follow each other: the first is not run again only for its own backward.
bool runs_ahead(const Lane& trains) {
  return std::adjacent_find(trains.begin(), trains.end(),
                            [](const ObservedOp* left, const ObservedOp* right) {
                              return is_forward(*left) && is_forward(*right);
                            }) != trains.end();
}

/// The ops of a step, which may be of an evaluation where `evaluates` is set.
struct SplitStep {
  std::map<std::int32_t, SplitLane> lanes;
  std::size_t trained = 0;  ///< number of ops
  bool evaluates = false;
  bool is_numbered = true;
};

SplitStep split_step(const StepOps& step) {
  SplitStep split;
  for (const auto& [rank, lane] : list_lanes(step)) {
    const SplitLane& own = split.lanes[rank] = split_lane(lane);
    split.trained += own.trains.size();
    split.evaluates = split.evaluates || !own.evaluates.empty();
    for (const ObservedOp* op : lane) split.is_numbered = split.is_numbered && op->numbered;
  }
  return split;
}

/// The spans of a step in which every rank trained and evaluated; empty if it is no such step.
std::map<std::int32_t, TimeSpan> find_training_spans(const SplitStep& step) {
  std::map<std::int32_t, TimeSpan> spans;
  Runs trained;
  Runs evaluated;
  bool is_last = true;  // on every rank, the evaluation
  bool is_ahead = false;
  for (const auto& [rank, lane] : step.lanes) {
    const std::optional<TimeSpan> span = find_training_span(lane);
    if (!span) return {};
    spans.emplace(rank, *span);
    Runs forwards = collect_runs(lane.trains, is_forward);
    if (forwards != collect_runs(lane.trains, is_backward)) return {};
    trained.merge(forwards);
    evaluated.merge(collect_runs(lane.evaluates, is_forward));
    is_last = is_last && span->start == std::numeric_limits<Nanos>::min();
    is_ahead = is_ahead || runs_ahead(lane.trains);
  }
  if (!is_last && !is_ahead) return {};
  if (evaluated.empty() || evaluated.size() != trained.size()) return {};
  const std::size_t count = evaluated.begin()->second.size();
  for (const auto& [place, runs] : evaluated) {
    const auto own = trained.find(place);
    if (own == trained.end() || runs.size() != count || !share_a_run(runs, own->second)) return {};
  }
  return spans;
}

/// A forward of a rank.
struct ObservedForward {
  const ObservedOp* op = nullptr;
  bool evaluates = false;
};

std::vector<ObservedForward> list_forwards(const SplitLane& lane) {
  std::vector<ObservedForward> forwards;
  for (const Lane* ops : {&lane.trains, &lane.evaluates})
    for (const ObservedOp* op : *ops)
      if (is_forward(*op)) forwards.push_back({op, ops == &lane.evaluates});
  std::sort(forwards.begin(), forwards.end(),
            [](const ObservedForward& left, const ObservedForward& right) {
              return left.op->start < right.op->start;
            });
  return forwards;
}

/// Whether a message is of an evaluated micro-batch: a receive comes before the forward that it is
/// for, a send after the one whose result it is. An evaluation sends nothing back.
bool is_of_evaluation(const ObservedOp& message, const std::vector<ObservedForward>& forwards) {
  const bool sends = message.op.kind == OpKind::kSendForward;
  if (!sends && message.op.kind != OpKind::kRecvForward) return false;
  bool found = false;
  for (const auto& [op, evaluates] : forwards) {
    const bool has_numbers = message.numbered && op->numbered;
    if (has_numbers && op->op.microbatch != message.op.microbatch) continue;
    if (sends && op->start >= message.start) break;
    found = evaluates;
    if (!sends && op->end > message.end) break;
  }
  return found;
}

StepOps without_evaluation(const StepOps& step, const SplitStep& split) {
  StepOps trained;
  for (const auto& [_, lane] : split.lanes)
    for (const ObservedOp* op : lane.trains) trained.computes.push_back(*op);
  std::map<std::int32_t, std::vector<ObservedForward>> forwards;
  for (const auto& [rank, lane] : split.lanes) forwards[rank] = list_forwards(lane);
  for (const ObservedOp& message : step.messages)
    if (!is_of_evaluation(message, forwards[message.recorder])) trained.messages.push_back(message);
  return trained;
}

TrainingSpans remove_evaluation_runs(std::map<StepKey, StepOps>& steps) {
  std::set<std::size_t> sizes_without;  // numbers of ops in steps without any evaluation
  std::map<StepKey, SplitStep> splits;
  for (const auto& [key, step] : steps) {
    SplitStep split = split_step(step);
    if (split.evaluates)
      splits.emplace(key, std::move(split));
    else
      sizes_without.insert(split.trained);
  }
  TrainingSpans removed;
  for (const auto& [key, split] : splits) {
    if (!split.is_numbered && !sizes_without.contains(split.trained)) continue;
    std::map<std::int32_t, TimeSpan> spans = find_training_spans(split);
    if (spans.empty()) continue;
    StepOps& step = steps.at(key);
    step = without_evaluation(step, split);
    removed.emplace(key, std::move(spans));
  }
  return removed;
}

}  // namespace

Evaluations remove_evaluations(std::map<StepKey, StepOps>& steps) {
  Evaluations removed;
  removed.within = remove_evaluation_runs(steps);
  removed.steps = remove_evaluation_steps(steps);
  return removed;
}

bool remove_empty_backwards(std::map<StepKey, StepOps>& steps) {
  bool any = false;
  for (const auto& [_, step] : steps) {
    if (measure_backwards(step) >= kEmpty) return false;
    if (std::none_of(step.computes.begin(), step.computes.end(), is_forward)) return false;
    any = any || std::any_of(step.computes.begin(), step.computes.end(), is_backward);
  }
  if (!any) return false;
  for (auto& [_, step] : steps) {
    std::erase_if(step.computes, [](const ObservedOp& observed) { return !is_forward(observed); });
    std::erase_if(step.messages, [](const ObservedOp& observed) {
      return observed.op.kind == OpKind::kSendBackward || observed.op.kind == OpKind::kRecvBackward;
    });
  }
  return true;
}

std::vector<ObservedActivity> without_evaluations(
    std::vector<ObservedActivity> activities, const TrainingSpans& within,
    const std::vector<std::int32_t>& rank_of_recorder) {
  std::erase_if(activities, [&](const ObservedActivity& activity) {
    const auto step = within.find({activity.replica, activity.step});
    if (step == within.end()) return false;
    if (activity.is_whole_step) return true;
    const auto span =
        step->second.find(rank_of_recorder[static_cast<std::size_t>(activity.recorder)]);
    return span != step->second.end() &&
           (activity.start < span->second.start || activity.end > span->second.end);
  });
  return activities;
}

std::vector<std::string> describe_evaluations(const Evaluations& evaluations) {
  std::vector<std::string> sentences;
  const std::vector<std::int64_t> whole(evaluations.steps.begin(), evaluations.steps.end());
  if (!whole.empty())
    sentences.push_back(
        fmt::format("left out: {}, as evaluations: their backwards compute nothing, or there are "
                    "none",
                    list_steps(whole)));
  std::set<std::int64_t> mixed;
  for (const auto& [key, _] : evaluations.within) mixed.insert(key.second);
  if (!mixed.empty())
    sentences.push_back(fmt::format(
        "left out: the evaluation in {}, forwards without backwards beside the training; a step "
        "counts without it",
        list_steps({mixed.begin(), mixed.end()})));
  return sentences;
}

}  // namespace bubblescope::traces
