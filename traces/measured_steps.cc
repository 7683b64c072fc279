// Dealing observed ops to ranks and steps, and making a Program and a Timeline of every step.
#include "traces/measured_steps.h"

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
#include "sim/ir/validate.h"
#include "traces/infer_schedule.h"
#include "traces/message_times.h"

namespace bubblescope {

namespace {

using StepKey = std::pair<std::int32_t, std::int64_t>;  ///< replica, step

/// All ops of one step; their `recorder` is their rank.
struct StepOps {
  std::vector<ObservedOp> computes;
  std::vector<ObservedOp> messages;
};

bool earlier(const ObservedOp& left, const ObservedOp& right) {
  return std::tie(left.start, left.end) < std::tie(right.start, right.end);
}

/// The pipeline rank of every recorder: by the ranks that they say, else by the first stage that
/// they run, else in the order of the files.
std::vector<std::int32_t> rank_recorders(const ObservedTrace& trace) {
  using Place = std::tuple<std::int32_t, std::int32_t, std::size_t>;
  const auto nowhere = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int32_t> first_stage(trace.recorders.size(), nowhere);
  for (const ObservedOp& observed : trace.ops) {
    std::int32_t& stage = first_stage[observed.recorder];
    if (!observed.chunk && is_compute(observed.op.kind))
      stage = std::min(stage, observed.op.stage);
  }
  std::vector<Place> places;
  for (std::size_t at = 0; at < trace.recorders.size(); ++at) {
    const std::optional<std::int32_t> rank = trace.recorders[at].rank;
    places.push_back({rank.value_or(nowhere), rank ? 0 : first_stage[at], rank ? 0 : at});
  }
  const std::set<Place> ordered(places.begin(), places.end());
  std::vector<std::int32_t> ranks;
  for (const Place& place : places)
    ranks.push_back(
        static_cast<std::int32_t>(std::distance(ordered.begin(), ordered.find(place))));
  return ranks;
}

std::map<StepKey, StepOps> deal_to_steps(std::vector<ObservedOp> ops,
                                         const std::vector<std::int32_t>& rank_of_recorder) {
  std::int32_t ranks = 0;
  for (const std::int32_t rank : rank_of_recorder) ranks = std::max(ranks, rank + 1);
  std::map<StepKey, StepOps> steps;
  for (ObservedOp& observed : ops) {
    observed.recorder = rank_of_recorder[observed.recorder];
    if (observed.chunk) observed.op.stage = *observed.chunk * ranks + observed.recorder;
    StepOps& step = steps[{observed.replica, observed.step}];
    (is_compute(observed.op.kind) ? step.computes : step.messages).push_back(observed);
  }
  std::erase_if(steps, [](const auto& step) { return step.second.computes.empty(); });
  return steps;
}

/// The most ops that a step has; steps with fewer were cut off.
std::size_t fullest(const std::map<StepKey, StepOps>& steps) {
  std::size_t most = 0;
  for (const auto& [_, step] : steps) most = std::max(most, step.computes.size());
  return most;
}

/// Micro-batches count from 0 in every step, whatever the trace calls them; ops without a number
/// get theirs by order.
void number_microbatches(std::vector<ObservedOp>& computes) {
  std::set<std::int32_t> seen;
  std::map<std::tuple<std::int32_t, OpKind>, std::int32_t> next;  // stage, kind
  for (ObservedOp& observed : computes) {
    if (!observed.numbered)
      observed.op.microbatch = next[{observed.op.stage, observed.op.kind}]++;
    seen.insert(observed.op.microbatch);
  }
  for (ObservedOp& observed : computes)
    observed.op.microbatch =
        static_cast<std::int32_t>(std::distance(seen.begin(), seen.find(observed.op.microbatch)));
}

/// What had to be corrected in all steps together.
struct Corrections {
  std::size_t cut = 0;
  Nanos most_cut = 0;
};

class StepBuilder {
 public:
  StepBuilder(const ObservedTrace& trace, Corrections& corrections)
      : trace_(trace), corrections_(corrections) {}

  MeasuredStep build(std::string label, StepOps ops, std::int32_t ranks) {
    std::stable_sort(ops.computes.begin(), ops.computes.end(), earlier);
    number_microbatches(ops.computes);
    std::vector<std::vector<ObservedOp>> lanes(static_cast<std::size_t>(ranks));
    for (const ObservedOp& observed : ops.computes) lanes[observed.recorder].push_back(observed);
    for (std::vector<ObservedOp>& lane : lanes) cut_overlaps(lane);
    MeasuredStep step;
    step.label = std::move(label);
    step.schedule = order_of(lanes, step.label);
    step.program = lower_measured(step.schedule, step.label);
    step.timeline = time(step, lanes, std::move(ops.messages));
    return step;
  }

 private:
  /// One rank computes one op at a time: clocks of devices are exact to a microsecond or so.
  void cut_overlaps(std::vector<ObservedOp>& lane) {
    for (std::size_t at = 0; at + 1 < lane.size(); ++at) {
      const Nanos overlap = lane[at].end - lane[at + 1].start;
      if (overlap <= 0) continue;
      ++corrections_.cut;
      corrections_.most_cut = std::max(corrections_.most_cut, overlap);
      lane[at].end = lane[at + 1].start;
    }
  }

  std::string where(const std::string& label) const {
    const std::string& file = trace_.recorders.front().where;
    return label.empty() ? file : file + ": " + label;
  }

  Schedule order_of(const std::vector<std::vector<ObservedOp>>& lanes,
                    const std::string& label) const {
    std::vector<RankOrder> lists;
    for (const std::vector<ObservedOp>& lane : lanes) {
      RankOrder& list = lists.emplace_back();
      for (const ObservedOp& observed : lane) list.push_back(observed.op);
    }
    Schedule schedule =
        infer_schedule(trace_.source, std::move(lists), [&](std::int32_t rank, std::size_t cell) {
          return fmt::format("{}: rank {}, op {}", where(label), rank, cell);
        });
    const Problems problems = validate_ops(schedule);
    if (!problems.empty())
      throw Error(fmt::format("{}: this is no whole step of a pipeline: {}", where(label),
                              problems[0].message));
    return schedule;
  }

  Program lower_measured(const Schedule& schedule, const std::string& label) const {
    std::variant<Program, Deadlock> lowered = lower(schedule);
    if (const auto* deadlock = std::get_if<Deadlock>(&lowered))
      throw Error(fmt::format(
          "{}: no step can have run in this order, {}; do the ranks' ops belong together?",
          where(label), to_string(*deadlock)));
    return std::get<Program>(std::move(lowered));
  }

  Timeline time(const MeasuredStep& step, const std::vector<std::vector<ObservedOp>>& lanes,
                std::vector<ObservedOp> messages) const {
    const Program& program = step.program;
    Timeline timeline;
    timeline.source = trace_.source;
    timeline.start.resize(program.size());
    timeline.end.resize(program.size());
    std::vector<std::size_t> next(lanes.size(), 0);
    Nanos origin = std::numeric_limits<Nanos>::max();
    for (InstructionId id = 0; id < program.size(); ++id) {
      const Instruction& instruction = program.instructions[id];
      if (!is_compute(instruction.op.kind)) continue;
      const ObservedOp& observed = lanes[instruction.rank][next[instruction.rank]++];
      timeline.start[id] = observed.start;
      timeline.end[id] = observed.end;
      origin = std::min(origin, observed.start);
    }
    time_messages(step.schedule, program, std::move(messages), timeline);
    for (Nanos& start : timeline.start) start -= origin;
    for (Nanos& end : timeline.end) end -= origin;
    return timeline;
  }

  const ObservedTrace& trace_;
  Corrections& corrections_;
};

std::string label_of(const StepKey& key, bool several_replicas, bool several_steps) {
  std::string label;
  if (several_replicas) label = fmt::format("dp {}", key.first);
  if (several_steps) label += fmt::format("{}step {}", label.empty() ? "" : " ", key.second);
  return label;
}

}  // namespace

std::vector<MeasuredStep> measured_steps(ObservedTrace& trace) {
  std::vector<MeasuredStep> built = std::move(trace.steps);
  if (trace.ops.empty()) return built;
  const std::vector<std::int32_t> rank_of_recorder = rank_recorders(trace);
  const std::int32_t ranks =
      1 + *std::max_element(rank_of_recorder.begin(), rank_of_recorder.end());
  std::map<StepKey, StepOps> steps = deal_to_steps(std::move(trace.ops), rank_of_recorder);
  trace.ops.clear();
  const std::size_t whole = fullest(steps);
  std::set<std::int32_t> replicas;
  std::set<std::int64_t> numbers;
  for (const auto& [key, _] : steps) {
    replicas.insert(key.first);
    numbers.insert(key.second);
  }
  Corrections corrections;
  StepBuilder builder(trace, corrections);
  std::size_t cut_off = 0;
  for (auto& [key, ops] : steps) {
    if (ops.computes.size() < whole)
      ++cut_off;
    else
      built.push_back(builder.build(label_of(key, replicas.size() > 1, numbers.size() > 1),
                                    std::move(ops), ranks));
  }
  if (cut_off > 0)
    trace.notes.push_back(
        fmt::format("{} step(s) left out: they have fewer than the {} ops of a whole one", cut_off,
                    whole));
  if (corrections.cut > 0)
    trace.notes.push_back(
        fmt::format("{} op(s) ended where the next one of their rank starts: they overlapped by up "
                    "to {}",
                    corrections.cut, to_text(corrections.most_cut)));
  return built;
}

}  // namespace bubblescope
