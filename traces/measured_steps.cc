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
#include "traces/align_clocks.h"
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
    if (!observed.chunk && is_compute(observed.op.kind)) stage = std::min(stage, observed.op.stage);
  }
  std::vector<Place> places;
  for (std::size_t at = 0; at < trace.recorders.size(); ++at) {
    const std::optional<std::int32_t> rank = trace.recorders[at].rank;
    places.push_back({rank.value_or(nowhere), rank ? 0 : first_stage[at], rank ? 0 : at});
  }
  std::vector<Place> ordered = places;
  std::sort(ordered.begin(), ordered.end());
  ordered.erase(std::unique(ordered.begin(), ordered.end()), ordered.end());
  std::vector<std::int32_t> ranks;
  for (const Place& place : places)
    ranks.push_back(static_cast<std::int32_t>(
        std::lower_bound(ordered.begin(), ordered.end(), place) - ordered.begin()));
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
    if (!observed.numbered) observed.op.microbatch = next[{observed.op.stage, observed.op.kind}]++;
    seen.insert(observed.op.microbatch);
  }
  for (ObservedOp& observed : computes)
    observed.op.microbatch =
        static_cast<std::int32_t>(std::distance(seen.begin(), seen.find(observed.op.microbatch)));
}

/// A step whose order is known, before its clocks are.
struct DraftStep {
  MeasuredStep step;                           ///< with the times of its compute ops
  std::vector<std::vector<ObservedOp>> lanes;  ///< [rank], in order
  std::vector<ObservedOp> messages;
};

/// What had to be corrected in all steps together.
struct Corrections {
  std::size_t cut = 0;
  Nanos most_cut = 0;
};

class StepBuilder {
 public:
  StepBuilder(const ObservedTrace& trace, Corrections& corrections)
      : trace_(trace), corrections_(corrections) {}

  /// The order of a step, and its ops as they lie in it: all but the messages' times.
  DraftStep order(std::string label, StepOps ops, std::int32_t ranks) {
    std::stable_sort(ops.computes.begin(), ops.computes.end(), earlier);
    number_microbatches(ops.computes);
    DraftStep draft;
    draft.lanes.resize(static_cast<std::size_t>(ranks));
    for (const ObservedOp& observed : ops.computes)
      draft.lanes[observed.recorder].push_back(observed);
    for (std::vector<ObservedOp>& lane : draft.lanes) cut_overlaps(lane);
    draft.messages = std::move(ops.messages);
    draft.step.label = std::move(label);
    draft.step.timeline.source = trace_.source;
    draft.step.schedule = order_of(draft.lanes, draft.step.label);
    draft.step.program = lower_measured(draft.step.schedule, draft.step.label);
    time_computes(draft);
    return draft;
  }

  /// The step itself, with rank r's clock set forward by `shift[r]`.
  static MeasuredStep finish(DraftStep draft, const std::vector<Nanos>& shift) {
    for (std::vector<ObservedOp>& lane : draft.lanes) set_clocks(lane, shift);
    set_clocks(draft.messages, shift);
    time_computes(draft);
    const Program& program = draft.step.program;
    Timeline& timeline = draft.step.timeline;
    Nanos origin = std::numeric_limits<Nanos>::max();
    for (InstructionId id = 0; id < program.size(); ++id)
      if (is_compute(program.instructions[id].op.kind))
        origin = std::min(origin, timeline.start[id]);
    time_messages(draft.step.schedule, program, std::move(draft.messages), timeline);
    for (Nanos& start : timeline.start) start -= origin;
    for (Nanos& end : timeline.end) end -= origin;
    return std::move(draft.step);
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

  static void set_clocks(std::vector<ObservedOp>& ops, const std::vector<Nanos>& shift) {
    for (ObservedOp& observed : ops) {
      observed.start += shift[observed.recorder];
      observed.end += shift[observed.recorder];
    }
  }

  /// The ops of a rank stand in its lane as they stand in its order.
  static void time_computes(DraftStep& draft) {
    const Program& program = draft.step.program;
    Timeline& timeline = draft.step.timeline;
    timeline.start.assign(program.size(), 0);
    timeline.end.assign(program.size(), 0);
    std::vector<std::size_t> next(draft.lanes.size(), 0);
    for (InstructionId id = 0; id < program.size(); ++id) {
      const Instruction& instruction = program.instructions[id];
      if (!is_compute(instruction.op.kind)) continue;
      const ObservedOp& observed = draft.lanes[instruction.rank][next[instruction.rank]++];
      timeline.start[id] = observed.start;
      timeline.end[id] = observed.end;
    }
  }

  const ObservedTrace& trace_;
  Corrections& corrections_;
};

/// The clocks of every replica of the pipeline, found from all its steps.
std::map<std::int32_t, ClockCorrection> find_clocks(const std::map<StepKey, DraftStep>& drafts,
                                                    std::int32_t ranks) {
  std::map<std::int32_t, ClockGaps> gaps;
  for (const auto& [key, draft] : drafts)
    gaps.try_emplace(key.first, ranks).first->second.add(draft.step.program, draft.step.timeline);
  std::map<std::int32_t, ClockCorrection> corrections;
  for (const auto& [replica, of_replica] : gaps)
    corrections.emplace(replica, align_clocks(of_replica));
  return corrections;
}

/// "dp 1 step 7", of what tells the steps of a trace apart.
class StepLabels {
 public:
  explicit StepLabels(const std::map<StepKey, StepOps>& steps) {
    for (const auto& [key, _] : steps) {
      replicas_.insert(key.first);
      numbers_.insert(key.second);
    }
  }

  std::string of_replica(std::int32_t replica) const {
    return replicas_.size() > 1 ? fmt::format("dp {}", replica) : "";
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

/// The steps that have as many ops as any.
std::map<StepKey, DraftStep> order_whole(std::map<StepKey, StepOps> steps, StepBuilder& builder,
                                         const StepLabels& labels, std::int32_t ranks) {
  const std::size_t whole = fullest(steps);
  std::map<StepKey, DraftStep> drafts;
  for (auto& [key, ops] : steps)
    if (ops.computes.size() == whole)
      drafts.emplace(key, builder.order(labels.of_step(key), std::move(ops), ranks));
  return drafts;
}

/// The last stage has nobody to send to, unless the trace of a further rank is missing.
std::optional<std::string> tell_missing_rank(const DraftStep& draft) {
  const std::int32_t last = draft.step.schedule.stages() - 1;
  const auto leads_on = [&](const ObservedOp& message) {
    const OpKind kind = message.op.kind;
    return !message.chunk && message.numbered && message.op.stage == last &&
           (kind == OpKind::kSendForward || kind == OpKind::kRecvBackward);
  };
  const auto found = std::find_if(draft.messages.begin(), draft.messages.end(), leads_on);
  if (found == draft.messages.end()) return {};
  return fmt::format(
      "{} is a message with stage {}, which no trace runs: the trace of its rank is missing, and "
      "what waits for it is told as if it waited for nobody",
      to_string(found->op), last + 1);
}

/// Whole steps are taken as they are; what cannot have been so is told.
std::optional<std::string> tell_disorder(const MeasuredStep& step) {
  const Program& program = step.program;
  if (!step.timeline.breakdown.empty()) return {};
  for (InstructionId id = 0; id < program.size(); ++id)
    for (const InstructionId awaited : program.dependencies_of(id)) {
      const Nanos early = step.timeline.end[awaited] - step.timeline.start[id];
      if (early <= kClocksExact) continue;
      return fmt::format(
          "{} on rank {} begins {} before {} on rank {}, which it needs, has ended: clocks that "
          "are apart, or a file that was changed; times are taken as they are",
          to_string(program.instructions[id].op), program.instructions[id].rank, to_text(early),
          to_string(program.instructions[awaited].op), program.instructions[awaited].rank);
    }
  return {};
}

}  // namespace

std::vector<MeasuredStep> measured_steps(ObservedTrace& trace) {
  std::vector<MeasuredStep> built = std::move(trace.steps);
  for (const MeasuredStep& step : built)
    if (std::optional<std::string> disorder = tell_disorder(step))
      trace.notes.push_back((step.label.empty() ? "" : step.label + ": ") + *disorder);
  if (trace.ops.empty()) return built;
  const std::vector<std::int32_t> rank_of_recorder = rank_recorders(trace);
  const std::int32_t ranks =
      1 + *std::max_element(rank_of_recorder.begin(), rank_of_recorder.end());
  std::map<StepKey, StepOps> steps = deal_to_steps(std::move(trace.ops), rank_of_recorder);
  trace.ops.clear();
  if (steps.empty())
    throw Error(trace.recorders.front().where +
                ": there are messages, but no compute op such as 0F0 on any rank");
  const StepLabels labels(steps);
  const std::size_t count = steps.size();
  Corrections corrections;
  StepBuilder builder(trace, corrections);
  std::map<StepKey, DraftStep> drafts = order_whole(std::move(steps), builder, labels, ranks);
  if (drafts.size() < count)
    trace.notes.push_back(
        fmt::format("{} step(s) left out: they have fewer than the {} ops of a whole one",
                    count - drafts.size(), drafts.begin()->second.step.schedule.op_count()));
  if (std::optional<std::string> missing = tell_missing_rank(drafts.begin()->second))
    trace.notes.push_back(*std::move(missing));
  if (corrections.cut > 0)
    trace.notes.push_back(
        fmt::format("{} op(s) ended where the next one of their rank starts: they overlapped by up "
                    "to {}",
                    corrections.cut, to_text(corrections.most_cut)));
  const std::map<std::int32_t, ClockCorrection> clocks = find_clocks(drafts, ranks);
  for (const auto& [replica, correction] : clocks) {
    const std::string where = labels.of_replica(replica);
    for (const std::string& note : correction.notes)
      trace.notes.push_back(where.empty() ? note : where + ": " + note);
  }
  for (auto& [key, draft] : drafts)
    built.push_back(StepBuilder::finish(std::move(draft), clocks.at(key.first).shift));
  return built;
}

}  // namespace bubblescope
