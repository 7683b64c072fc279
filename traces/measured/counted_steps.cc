// Compares how often ops ran, and when.
#include "traces/measured/counted_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "traces/measured/step_orders.h"

namespace bubblescope::traces {

namespace {

/// Indices of ops of one rank, by start.
struct Lane {
  LaneOps computes;
  LaneOps messages;
  CountedSteps counted;  ///< of the computes
};

using Lanes = std::map<std::int32_t, Lane>;  // by recorder

/// When some op ran on a stage, and in which step.
using Runs = std::vector<std::pair<Nanos, std::int64_t>>;
using RunsByStage = std::map<std::optional<std::int32_t>, Runs>;  // none where ops do not state it
using RunsOfOps = std::map<std::tuple<OpKind, std::int32_t, std::int16_t>, RunsByStage>;

std::tuple<OpKind, std::int32_t, std::int16_t> identify(const Op& op, OpKind kind) {
  return {kind, op.microbatch, op.slice};
}

std::optional<std::int32_t> stage_of(const ObservedOp& observed) {
  if (observed.chunk) return {};
  return observed.op.stage;
}

CountedOp name_op(const ObservedOp& observed) {
  const Op& op = observed.op;
  const std::int32_t chunk = observed.chunk.value_or(-1);
  CountedOp named{fmt::format("{} {}", to_string(op), chunk)};
  named.is_forward = op.kind == OpKind::kForward;
  if (named.is_forward || gives_input_grad(op.kind))
    named.pass = fmt::format("{} {} {} {}", op.stage, op.microbatch, op.slice, chunk);
  return named;
}

CountedSteps count_lane(std::vector<ObservedOp>& ops, const std::vector<std::size_t>& lane) {
  std::vector<CountedOp> named;
  for (const std::size_t at : lane) named.push_back(name_op(ops[at]));
  CountedSteps counted = count_steps(named);
  for (std::size_t at = 0; at < lane.size(); ++at) ops[lane[at]].step = counted.step_of[at];
  return counted;
}

/// Returns the lanes of every replica.
std::map<std::int32_t, Lanes> list_lanes(const std::vector<ObservedOp>& ops,
                                         std::vector<std::size_t> counted) {
  std::stable_sort(counted.begin(), counted.end(), [&](std::size_t left, std::size_t right) {
    return ops[left].start < ops[right].start;
  });
  std::map<std::int32_t, Lanes> replicas;
  for (const std::size_t at : counted) {
    Lane& lane = replicas[ops[at].replica][ops[at].recorder];
    (is_compute(ops[at].op.kind) ? lane.computes : lane.messages).push_back(at);
  }
  return replicas;
}

/// Returns the step of the run that is next to `time`.
std::int64_t find_nearest(const Runs& runs, Nanos time) {
  const auto after = std::lower_bound(runs.begin(), runs.end(), std::pair(time, std::int64_t{0}));
  if (after == runs.begin()) return after->second;
  const auto before = std::prev(after);
  if (after == runs.end() || time - before->first <= after->first - time) return before->second;
  return after->second;
}

/// The step of the last run that begins no later than `time`, or the one before all runs.
std::int64_t find_last_before(const Runs& runs, Nanos time) {
  const auto after = std::partition_point(runs.begin(), runs.end(),
                                          [time](const auto& run) { return run.first <= time; });
  return after == runs.begin() ? after->second - 1 : std::prev(after)->second;
}

/// The step of the first run that begins no earlier than `time`, or the one after all runs.
std::int64_t find_first_after(const Runs& runs, Nanos time) {
  const auto after = std::partition_point(runs.begin(), runs.end(),
                                          [time](const auto& run) { return run.first < time; });
  return after == runs.end() ? std::prev(after)->second + 1 : after->second;
}

/// The step of an op by the runs of its micro-batch on other stages; nullopt without any. In a step
/// a micro-batch passes all stages forward, and then all backward. So a forward follows those of
/// earlier stages and a backward those of later ones; what is no part of this, such as a weight
/// gradient, follows all forwards. Where the stages are unknown, the next run in time decides.
std::optional<std::int64_t> find_step(const ObservedOp& observed, const RunsOfOps& runs) {
  const OpKind kind = observed.op.kind;
  const std::optional<std::int32_t> stage = stage_of(observed);
  const bool is_forward = kind == OpKind::kForward;
  const bool is_of_pass = is_forward || gives_input_grad(kind);
  const auto found =
      runs.find(identify(observed.op, stage && !is_of_pass ? OpKind::kForward : kind));
  if (found == runs.end()) return {};
  const RunsByStage& by_stage = found->second;
  if (by_stage.begin()->first.has_value() != stage.has_value()) return {};
  if (!stage) return find_nearest(by_stage.begin()->second, observed.start);
  const auto later = by_stage.upper_bound(stage);
  if (is_forward)
    return later == by_stage.begin() ? find_first_after(later->second, observed.start)
                                     : find_last_before(std::prev(later)->second, observed.start);
  const auto own_or_later = by_stage.lower_bound(stage);
  if (own_or_later != by_stage.end()) return find_last_before(own_or_later->second, observed.start);
  const Runs& earlier = std::prev(own_or_later)->second;
  return is_of_pass ? find_first_after(earlier, observed.start)
                    : find_last_before(earlier, observed.start);
}

/// Gives a message the step of its neighbour among the compute ops.
void place_message(ObservedOp& message, const std::vector<ObservedOp>& ops,
                   const std::vector<std::size_t>& computes) {
  const bool is_sent = is_send(message.op.kind);
  const Nanos time = is_sent ? message.start : message.end - 1;
  const auto after =
      std::upper_bound(computes.begin(), computes.end(), time,
                       [&](Nanos wanted, std::size_t at) { return wanted < ops[at].start; });
  const bool takes_before = after == computes.end() || (is_sent && after != computes.begin());
  message.step = ops[takes_before ? *std::prev(after) : *after].step;
}

void set_steps(std::vector<ObservedOp>& ops, const LaneOps& lane, const LaneSteps& steps) {
  for (std::size_t at = 0; at < lane.size(); ++at) ops[lane[at]].step = steps[at];
}

/// Takes the steps of a lane from the runs of the same micro-batches on other ranks; false where
/// these did not run one of its ops, or where its steps would then go back in time.
bool follow_others(std::vector<ObservedOp>& ops, const Lane& lane, const RunsOfOps& runs) {
  std::vector<std::int64_t> steps;
  for (const std::size_t at : lane.computes) {
    const std::optional<std::int64_t> step = find_step(ops[at], runs);
    if (!step || (!steps.empty() && *step < steps.back())) return false;
    steps.push_back(*step);
  }
  set_steps(ops, lane.computes, steps);
  return true;
}

void place_messages(std::vector<ObservedOp>& ops, const Lane& lane) {
  for (const std::size_t at : lane.messages) place_message(ops[at], ops, lane.computes);
}

/// Whether each rank ran all its ops equally often, and in an order that its steps can have.
bool are_all_whole(const std::vector<ObservedOp>& ops, const Lanes& lanes) {
  const CountedSteps& first = lanes.begin()->second.counted;
  return std::all_of(lanes.begin(), lanes.end(), [&](const auto& entry) {
    const Lane& lane = entry.second;
    return lane.counted.are_even && lane.counted.steps == first.steps &&
           !contradict_order(ops, lane.computes, lane.counted.step_of);
  });
}

/// Whether all ops are forwards of numbered micro-batches, of one stage on each rank.
bool are_plain_forwards(const std::vector<ObservedOp>& ops, const std::vector<LaneOps>& lanes) {
  return std::all_of(lanes.begin(), lanes.end(), [&](const LaneOps& lane) {
    return !lane.empty() && std::all_of(lane.begin(), lane.end(), [&](std::size_t at) {
      return ops[at].op.kind == OpKind::kForward && ops[at].numbered &&
             ops[at].op.stage == ops[lane.front()].op.stage &&
             ops[at].chunk == ops[lane.front()].chunk;
    });
  });
}

/// Takes the steps of a recording that begins within one from its end, or if it has only forwards
/// from the numbers of their micro-batches, if those from its start contradict the order of the
/// pipeline and these do not. Forwards may have run equally often on each rank, and others on each
/// in a step.
bool follow_end(std::vector<ObservedOp>& ops, const Lanes& lanes, bool are_whole) {
  std::vector<LaneOps> computes;
  for (const auto& [_, lane] : lanes) computes.push_back(lane.computes);
  const bool are_forwards = are_plain_forwards(ops, computes);
  if (are_whole && !are_forwards) return false;
  if (!contradict_order(ops, computes, count_from_start(ops, computes))) return false;
  std::vector<LaneSteps> steps = count_from_end(ops, computes);
  if (contradict_order(ops, computes, steps)) {
    if (!are_forwards) return false;
    std::stable_sort(computes.begin(), computes.end(), [&](const LaneOps& a, const LaneOps& b) {
      return ops[a.front()].op.stage < ops[b.front()].op.stage;
    });
    steps = count_by_falls(ops, computes);
    if (steps.empty() || contradict_order(ops, computes, steps)) return false;
  }
  for (std::size_t at = 0; at < computes.size(); ++at) set_steps(ops, computes[at], steps[at]);
  return true;
}

/// The ranks whose steps the others follow: those that ran all ops equally often, and most often.
std::set<std::int32_t> find_whole_lanes(const std::vector<ObservedOp>& ops, const Lanes& lanes) {
  std::int64_t most = 0;
  std::set<std::int32_t> whole;
  for (const auto& [recorder, lane] : lanes) {
    if (!lane.counted.are_even || lane.counted.steps < most || lane.computes.empty()) continue;
    if (contradict_order(ops, lane.computes, lane.counted.step_of)) return {};  // by chance even
    if (lane.counted.steps > most) whole.clear();
    most = lane.counted.steps;
    whole.insert(recorder);
  }
  return whole;
}

/// Sets the steps of the first rank that shows them where it has no micro-batch in flight.
std::optional<std::int32_t> set_steps_between_flights(std::vector<ObservedOp>& ops,
                                                      const Lanes& lanes) {
  for (const auto& [recorder, lane] : lanes)
    if (const std::optional<LaneSteps> steps = count_between_flights(ops, lane.computes)) {
      set_steps(ops, lane.computes, *steps);
      return recorder;
    }
  return {};
}

RunsOfOps list_runs(const std::vector<ObservedOp>& ops, const Lanes& lanes,
                    const std::set<std::int32_t>& recorders) {
  RunsOfOps runs;
  for (const std::int32_t recorder : recorders)
    for (const std::size_t at : lanes.at(recorder).computes)
      runs[identify(ops[at].op, ops[at].op.kind)][stage_of(ops[at])].emplace_back(ops[at].start,
                                                                                  ops[at].step);
  for (auto& [_, by_stage] : runs)
    for (auto& [stage, of_op] : by_stage) std::sort(of_op.begin(), of_op.end());
  return runs;
}

void count_replica(std::vector<ObservedOp>& ops, Lanes lanes) {
  for (auto& [_, lane] : lanes) lane.counted = count_lane(ops, lane.computes);
  const bool are_whole = are_all_whole(ops, lanes);
  if (follow_end(ops, lanes, are_whole)) {
    for (const auto& [_, lane] : lanes)
      if (lane.computes.empty())
        count_lane(ops, lane.messages);
      else
        place_messages(ops, lane);
    return;
  }
  std::set<std::int32_t> whole = find_whole_lanes(ops, lanes);
  std::optional<std::int32_t> between_flights;
  if (whole.empty()) between_flights = set_steps_between_flights(ops, lanes);
  if (between_flights) whole.insert(*between_flights);
  const RunsOfOps runs = list_runs(ops, lanes, whole);
  for (const auto& [recorder, lane] : lanes) {
    const bool follows = !whole.contains(recorder) && follow_others(ops, lane, runs);
    const bool is_counted = lane.counted.are_even && !follows && recorder != between_flights;
    if (lane.computes.empty() || is_counted)
      count_lane(ops, lane.messages);
    else
      place_messages(ops, lane);
  }
}

/// Ops that precede the first step of the ranks that others follow are of step 0.
void begin_at_zero(std::vector<ObservedOp>& ops, const std::vector<std::size_t>& counted) {
  std::int64_t first = 0;
  for (const std::size_t at : counted) first = std::min(first, ops[at].step);
  for (const std::size_t at : counted) ops[at].step -= first;
}

}  // namespace

CountedSteps count_steps(const std::vector<CountedOp>& ops) {
  CountedSteps counted;
  std::map<std::string, std::int64_t> times;
  for (const CountedOp& op : ops) {
    counted.step_of.push_back(times[op.name]++);
    counted.steps = std::max(counted.steps, counted.step_of.back() + 1);
  }
  counted.are_even = std::all_of(times.begin(), times.end(),
                                 [&](const auto& count) { return count.second == counted.steps; });
  if (counted.are_even) return counted;
  std::set<std::string> ran;     // in this step
  std::set<std::string> passed;  // backward
  std::int64_t step = 0;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const CountedOp& op = ops[at];
    if (ran.contains(op.name) || (op.is_forward && passed.contains(op.pass))) {
      ran.clear();
      passed.clear();
      ++step;
    }
    ran.insert(op.name);
    if (!op.is_forward && !op.pass.empty()) passed.insert(op.pass);
    counted.step_of[at] = step;
  }
  counted.steps = step + 1;
  return counted;
}

std::vector<ObservedOp> with_counted_steps(std::vector<ObservedOp> ops,
                                           const std::vector<std::size_t>& counted) {
  for (const std::size_t at : counted) ops[at].step_is_counted = true;
  std::map<std::int32_t, Lanes> replicas = list_lanes(ops, counted);
  for (auto& [_, lanes] : replicas) count_replica(ops, std::move(lanes));
  begin_at_zero(ops, counted);
  return ops;
}

}  // namespace bubblescope::traces
