// Counts how often each rank has run its ops, from both ends.
#include "traces/measured/step_orders.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace bubblescope::traces {

namespace {

/// A micro-batch in one stage: stage, micro-batch, slice, chunk.
using Pass = std::tuple<std::int32_t, std::int32_t, std::int16_t, std::int32_t>;
using OpOfPass = std::pair<OpKind, Pass>;

Pass pass_of(const ObservedOp& observed) {
  const Op& op = observed.op;
  return {op.stage, op.microbatch, op.slice, observed.chunk.value_or(-1)};
}

OpOfPass identify(const ObservedOp& observed) { return {observed.op.kind, pass_of(observed)}; }

/// [op]: how often its rank has run the same op before.
template <class Iterator>
LaneSteps count_runs(const std::vector<ObservedOp>& ops, Iterator first, Iterator last) {
  std::map<OpOfPass, std::int64_t> runs;
  LaneSteps counted;
  for (; first != last; ++first) counted.push_back(runs[identify(ops[*first])]++);
  return counted;
}

/// A rank's stage or chunk.
using PlaceOfPass = std::tuple<std::size_t, std::int32_t, std::int32_t>;
/// A micro-batch that passes the ranks in a step.
using PassOfStep = std::tuple<OpKind, std::int32_t, std::int16_t, std::int64_t>;
/// When a micro-batch came to which place.
using Arrivals = std::vector<std::pair<Nanos, PlaceOfPass>>;

std::map<PassOfStep, Arrivals> list_arrivals(const std::vector<ObservedOp>& ops,
                                             const std::vector<LaneOps>& lanes,
                                             const std::vector<LaneSteps>& steps) {
  std::map<PassOfStep, Arrivals> arrivals;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane)
    for (std::size_t at = 0; at < lanes[lane].size(); ++at) {
      const ObservedOp& observed = ops[lanes[lane][at]];
      const Op& op = observed.op;
      if (op.kind != OpKind::kForward && !gives_input_grad(op.kind)) continue;
      arrivals[{op.kind, op.microbatch, op.slice, steps[lane][at]}].emplace_back(
          observed.start, PlaceOfPass{lane, op.stage, observed.chunk.value_or(-1)});
    }
  for (auto& [_, own] : arrivals) std::sort(own.begin(), own.end());
  return arrivals;
}

/// The turn of each place, in which forwards pass it. Backwards pass it in the opposite order.
using Turns = std::map<PlaceOfPass, std::int32_t>;

/// The turns by stages, or where ops do not state these, of the forward that passes most places.
Turns find_turns(const std::map<PassOfStep, Arrivals>& arrivals) {
  Turns turns;
  bool are_stages = true;
  const Arrivals* longest = nullptr;
  for (const auto& [pass, own] : arrivals) {
    for (const auto& [_, place] : own) {
      const auto& [lane, stage, chunk] = place;
      are_stages = are_stages && chunk < 0;
      turns[place] = stage;
    }
    const bool is_forward = std::get<OpKind>(pass) == OpKind::kForward;
    if (is_forward && (longest == nullptr || own.size() > longest->size())) longest = &own;
  }
  if (are_stages) return turns;
  turns.clear();
  if (longest == nullptr) return turns;
  for (const auto& [_, place] : *longest)
    turns.emplace(place, static_cast<std::int32_t>(turns.size()));
  return turns;
}

/// Whether a micro-batch came to its places in turn: forwards in order, backwards in reverse.
bool came_in_turn(const Arrivals& arrivals, const Turns& turns, bool is_forward) {
  std::optional<std::int32_t> before;
  for (const auto& [_, place] : arrivals) {
    const auto turn = turns.find(place);
    if (turn == turns.end()) continue;
    const std::int32_t own = is_forward ? turn->second : -turn->second;
    if (before && own < *before) return false;
    before = own;
  }
  return true;
}

/// The forwards of a rank, with their steps.
struct CountedLane {
  const std::vector<ObservedOp>& ops;
  const LaneOps& lane;
  const LaneSteps& steps;

  const ObservedOp& op(std::size_t at) const { return ops[lane[at]]; }
};

/// The number to add to the steps of a rank so that its first forward that the rank before it has
/// run as well is of the step of the last one there; nullopt without such a forward.
std::optional<std::int64_t> find_shift(const CountedLane& before, const CountedLane& own) {
  for (std::size_t at = 0; at < own.lane.size(); ++at) {
    std::optional<std::int64_t> step;
    for (std::size_t other = 0; other < before.lane.size(); ++other) {
      if (before.op(other).start > own.op(at).start) break;
      if (before.op(other).op.microbatch == own.op(at).op.microbatch) step = before.steps[other];
    }
    if (step) return *step - own.steps[at];
  }
  return {};
}

}  // namespace

std::vector<LaneSteps> count_from_start(const std::vector<ObservedOp>& ops,
                                        const std::vector<LaneOps>& lanes) {
  std::vector<LaneSteps> counted;
  for (const LaneOps& lane : lanes) counted.push_back(count_runs(ops, lane.begin(), lane.end()));
  return counted;
}

std::vector<LaneSteps> count_from_end(const std::vector<ObservedOp>& ops,
                                      const std::vector<LaneOps>& lanes) {
  std::vector<LaneSteps> counted;
  std::int64_t last = 0;
  for (const LaneOps& lane : lanes) {
    counted.push_back(count_runs(ops, lane.rbegin(), lane.rend()));
    std::reverse(counted.back().begin(), counted.back().end());
    for (const std::int64_t before_end : counted.back()) last = std::max(last, before_end);
  }
  for (LaneSteps& of_lane : counted)
    for (std::int64_t& step : of_lane) step = last - step;
  return counted;
}

std::vector<LaneSteps> count_by_falls(const std::vector<ObservedOp>& ops,
                                      const std::vector<LaneOps>& lanes) {
  std::vector<LaneSteps> counted;
  for (const LaneOps& lane : lanes) {
    LaneSteps steps;
    std::int64_t step = 0;
    for (std::size_t at = 0; at < lane.size(); ++at) {
      if (at > 0 && ops[lane[at]].op.microbatch <= ops[lane[at - 1]].op.microbatch) ++step;
      steps.push_back(step);
    }
    if (!counted.empty()) {
      const CountedLane before{ops, lanes[counted.size() - 1], counted.back()};
      const std::optional<std::int64_t> shift = find_shift(before, {ops, lane, steps});
      if (!shift) return {};
      for (std::int64_t& one : steps) one += *shift;
    }
    counted.push_back(std::move(steps));
  }
  return counted;
}

bool contradict_order(const std::vector<ObservedOp>& ops, const LaneOps& lane,
                      const LaneSteps& steps) {
  std::set<Pass> passed;  // backward in this step
  for (std::size_t at = 0; at < lane.size(); ++at) {
    if (at > 0 && steps[at] < steps[at - 1]) return true;
    if (at > 0 && steps[at] > steps[at - 1]) passed.clear();
    const ObservedOp& observed = ops[lane[at]];
    const Pass pass = pass_of(observed);
    if (observed.op.kind == OpKind::kForward && passed.contains(pass)) return true;
    if (gives_input_grad(observed.op.kind)) passed.insert(pass);
  }
  return false;
}

bool contradict_order(const std::vector<ObservedOp>& ops, const std::vector<LaneOps>& lanes,
                      const std::vector<LaneSteps>& steps) {
  for (std::size_t lane = 0; lane < lanes.size(); ++lane)
    if (contradict_order(ops, lanes[lane], steps[lane])) return true;
  const std::map<PassOfStep, Arrivals> arrivals = list_arrivals(ops, lanes, steps);
  const Turns turns = find_turns(arrivals);
  return std::any_of(arrivals.begin(), arrivals.end(), [&](const auto& entry) {
    return !came_in_turn(entry.second, turns, std::get<OpKind>(entry.first) == OpKind::kForward);
  });
}

std::optional<LaneSteps> count_between_flights(const std::vector<ObservedOp>& ops,
                                               const LaneOps& lane) {
  // Each entry is the change in the number of micro-batches in flight before the op with its index.
  std::vector<std::int64_t> change(lane.size() + 1, 0);
  std::map<Pass, std::pair<std::size_t, bool>> last_ops;  // of each pass, and if it is a forward
  std::set<OpOfPass> all;
  for (std::size_t at = 0; at < lane.size(); ++at) {
    const ObservedOp& observed = ops[lane[at]];
    const Pass pass = pass_of(observed);
    const bool is_forward = observed.op.kind == OpKind::kForward;
    if (!is_forward) {
      const auto before = last_ops.find(pass);
      ++change[before == last_ops.end() ? 0 : before->second.first + 1];
      --change[at + 1];
    }
    last_ops[pass] = {at, is_forward};
    all.insert(identify(observed));
  }
  for (const auto& [_, last] : last_ops)
    if (last.second) ++change[last.first + 1];
  LaneSteps steps;
  std::set<OpOfPass> of_step;
  std::int64_t in_flight = 0;
  std::int64_t step = 0;
  for (std::size_t at = 0; at < lane.size(); ++at) {
    in_flight += change[at];
    if (at > 0 && in_flight == 0) {
      if (step > 0 && of_step.size() < all.size()) return {};
      of_step.clear();
      ++step;
    }
    if (!of_step.insert(identify(ops[lane[at]])).second) return {};
    steps.push_back(step);
  }
  if (step < 2) return {};
  return steps;
}

}  // namespace bubblescope::traces
