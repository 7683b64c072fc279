// Builds the Program of the step in which a rank dies, and runs it.
#include "sim/predict/interrupted_step.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "sim/analysis/memory_curve.h"
#include "sim/engine/ready_run.h"
#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/ir/lane_order.h"
#include "sim/ir/lower_update.h"
#include "sim/ir/reorder_ranks.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/find_timing.h"
#include "sim/predict/loss_policies.h"
#include "sim/predict/readiness.h"

namespace bubblescope::inline sim {

namespace {

/// The op of one replica that an op of the job is a copy of.
using OpKey = std::tuple<std::int32_t, std::int32_t, std::int16_t, OpKind>;

OpKey replica_op(const Op& op) { return {op.stage, op.microbatch, op.slice, op.kind}; }

/// An op or message in one replica's step without a loss.
struct Past {
  Nanos start = 0;
  bool has_begun = false;  ///< before the loss is known, though the rank is lost
};

class PastStep {
 public:
  PastStep(const Prediction& healthy, const RankLoss& loss) : loss_(loss) {
    const Program& program = healthy.program;
    const Nanos known = *loss.at + loss.detection;
    std::vector<bool> stops(program.size(), false);
    const std::vector<InstructionId> previous = find_previous_in_lane(program);
    for (InstructionId id = 0; id < program.size(); ++id) {
      const Instruction& instruction = program.instructions[id];
      const bool is_lost = instruction.rank == loss.lost.rank;
      const bool computes = is_compute(instruction.op.kind);
      const Nanos start = healthy.timeline.start[id];
      const Nanos end = healthy.timeline.end[id];
      stops[id] = is_lost && (computes ? end : start) > *loss.at;
      for (const InstructionId awaited : program.dependencies_of(id))
        stops[id] = stops[id] || stops[awaited];
      const InstructionId before = previous[id];
      stops[id] = stops[id] || (before != kNoInstruction && stops[before]);
      Past past{start, start < known};
      if (instruction.op.pairing == Pairing::kSecond)
        past.has_begun = whole_[replica_op(program.instructions[before].op)].has_begun;
      whole_[replica_op(instruction.op)] = past;
      past.has_begun = past.has_begun && !stops[id];
      damaged_[replica_op(instruction.op)] = past;
      if (!is_lost || !computes) continue;
      begun_ += whole_[replica_op(instruction.op)].has_begun ? 1 : 0;
      lost_work_ += std::max<Nanos>(0, std::min(end, *loss.at) - start);
    }
  }

  /// Returns the past of an instruction of the job that no peer repeats.
  const Past& of(Op op) const {
    const auto& pasts = loss_.lost.is_damaged(op.microbatch) ? damaged_ : whole_;
    op.microbatch /= loss_.lost.replicas;
    return pasts.at(replica_op(op));
  }
  /// Returns when the lost rank sent a value, if it did.
  std::optional<Nanos> find_sent(Op op) const {
    op.microbatch /= loss_.lost.replicas;
    const Nanos start = whole_.at(replica_op(op)).start;
    return start <= *loss_.at ? std::optional(start) : std::nullopt;
  }
  /// Returns the number of ops that each peer has begun.
  std::size_t begun() const { return begun_; }
  Nanos lost_work() const { return lost_work_; }

 private:
  const RankLoss& loss_;
  std::map<OpKey, Past> whole_;    ///< in the other replicas
  std::map<OpKey, Past> damaged_;  ///< in the damaged one
  std::size_t begun_ = 0;
  Nanos lost_work_ = 0;
};

/// A Program whose first instructions are waits, which last as long as `waits` says.
struct PastAndRest {
  Program program;
  std::vector<Nanos> waits;
};

class RestOfStep {
 public:
  RestOfStep(const Program& rerouted, const RankLoss& loss, const PastStep& past)
      : given_(rerouted),
        pipeline_ranks_(loss.lost.replicas_of(loss.lost.rank)),
        first_peer_(loss.lost.first_replica(loss.lost.rank)),
        loss_(loss),
        past_(past),
        sent_(given_.size(), kNoInstruction) {}

  PastAndRest make() && {
    add_wait(*loss_.at + loss_.detection);
    for (InstructionId id = 0; id < given_.size(); ++id) {
      const Instruction& instruction = given_.instructions[id];
      if (!is_message(instruction) || !is_repeated(instruction.op, instruction.rank)) continue;
      if (const auto sent = past_.find_sent(instruction.op)) {
        sent_[id] = made_.program.size();
        add_wait(*sent);
      }
    }
    const auto waits = made_.program.size();
    made_.program.ranks = given_.ranks;
    made_.program.lanes = given_.lanes;
    std::vector<InstructionId> begun(given_.lanes.size(), kNoInstruction);
    for (InstructionId id = 0; id < given_.size(); ++id) {
      const Instruction& instruction = given_.instructions[id];
      made_.program.dependency_begin.push_back(
          static_cast<std::uint32_t>(made_.program.dependencies.size()));
      made_.program.instructions.push_back(instruction);
      if (sent_[id] != kNoInstruction) {
        made_.program.dependencies.push_back(sent_[id]);
        continue;
      }
      for (const InstructionId awaited : given_.dependencies_of(id))
        made_.program.dependencies.push_back(awaited + waits);
      if (is_message(instruction) && is_repeated(instruction.op, instruction.peer)) wait_to_know();
      if (is_compute(instruction.op.kind)) keep_past(id, begun[instruction.lane], waits);
    }
    made_.program.dependency_begin.push_back(
        static_cast<std::uint32_t>(made_.program.dependencies.size()));
    return std::move(made_);
  }

 private:
  void add_wait(Nanos until) {
    made_.program.instructions.push_back({{0, 0, 0, OpKind::kIdle}, kNoLane, 0, 0});
    made_.program.dependency_begin.push_back(0);
    made_.waits.push_back(until);
  }

  void wait_to_know() { made_.program.dependencies.push_back(0); }

  /// Whether a rank runs this in place of the lost one.
  bool is_repeated(const Op& op, std::int32_t rank) const {
    return loss_.lost.is_damaged(op.microbatch) && rank >= first_peer_ &&
           rank < first_peer_ + pipeline_ranks_;
  }

  /// Ops that had begun run in their order, and all others once the loss is known.
  void keep_past(InstructionId id, InstructionId& before, InstructionId waits) {
    const Instruction& instruction = given_.instructions[id];
    if (is_repeated(instruction.op, instruction.rank) || !past_.of(instruction.op).has_begun)
      return wait_to_know();
    if (before != kNoInstruction && instruction.op.pairing != Pairing::kSecond)
      made_.program.dependencies.push_back(before + waits);
    before = id;
  }

  const Program& given_;
  std::int32_t pipeline_ranks_;
  std::int32_t first_peer_;
  const RankLoss& loss_;
  const PastStep& past_;
  std::vector<InstructionId> sent_;  ///< [message]: the wait until the lost rank sent it
  PastAndRest made_;
};

/// The same instructions, where ranks run their ops in these orders.
Program reorder(const Program& given, const std::vector<RankOrder>& orders) {
  std::map<OpKey, InstructionId> id_of;
  for (InstructionId id = 0; id < given.size(); ++id)
    if (is_compute(given.instructions[id].op.kind))
      id_of[replica_op(given.instructions[id].op)] = id;
  std::vector<std::vector<InstructionId>> ids;
  for (const RankOrder& order : orders) {
    std::vector<InstructionId>& rank = ids.emplace_back();
    for (const Op& op : order) rank.push_back(id_of.at(replica_op(op)));
  }
  return std::get<ReorderedProgram>(reorder_ranks(given, ids)).program;
}

/// Times a step that runs this Program and then updates its weights. The waits stay first: they
/// have no lane and wait for nothing.
void time_step(Prediction& step, Program program, const std::vector<Nanos>& waits,
               const UpdateOptions& update) {
  if (update.any()) program = std::get<Program>(lower_update(step.schedule, program, update));
  step.program = std::move(program);
  step.timing = find_timing(step.program, step.models);
  std::copy(waits.begin(), waits.end(), step.timing.durations.begin());
  step.timeline = simulate(step.program, step.timing).timeline;
}

StepCost cost_until_end(const Prediction& step) {
  StepCost cost{find_step_bounds(step.timeline).end, 0};
  for (const Peak& peak :
       find_peaks(step.schedule, step.program, step.timeline, step.models.memory))
    cost.peak = std::max(cost.peak, peak.activations);
  return cost;
}

}  // namespace

InterruptedStep interrupt_step(const Prediction& healthy, const RankLoss& loss,
                               const Config& config) {
  if (config.lower.waits_for_messages())
    throw Error(
        "`lose` times the step of the loss where messages need no posts; leave `p2p_mode` and "
        "`send_budget` out, or 'at'");
  if (*loss.at >= healthy.report.makespan)
    throw Error("`lose` says that the rank dies at " + to_text(*loss.at) +
                ", but the step ends at " + to_text(healthy.report.makespan) +
                "; give an earlier time");
  const PastStep past(healthy, loss);
  Prediction step{{}, lose_rank(healthy.schedule, loss.lost, past.begun())};
  step.models = find_models(step.schedule, config);
  LowerOptions lowering = choose_lowering(step.schedule, config);
  const UpdateOptions update = std::exchange(lowering.update, {});
  const PastAndRest rest = RestOfStep(lower_or_refuse(step.schedule, lowering), loss, past).make();
  time_step(step, rest.program, rest.waits, update);
  InterruptedStep interrupted{cost_until_end(step), past.lost_work()};
  UpdateOptions in_any_order = update;
  in_any_order.in_any_order = true;
  // Ranks choose from the ops of this program, whose updates have no order yet.
  time_step(step, rest.program, rest.waits, in_any_order);
  for (const ReadyPriority policy : kLossPolicies) {
    const std::vector<Nanos>& durations = step.timing.durations;
    const ReadyRules rules = make_ready_rules(
        {step.schedule, step.program, durations, step.models.memory, update}, policy);
    const ReadyRun run = ReadySimulator(step.program, rules).run(durations, step.timing.gaps);
    Prediction chosen{{}, step.schedule};
    chosen.models = step.models;
    time_step(chosen, reorder(rest.program, list_run_orders(step.program, run.order)), rest.waits,
              update);
    if (find_step_bounds(chosen.timeline).end < interrupted.cost.step)
      interrupted.cost = cost_until_end(chosen);
  }
  return interrupted;
}

}  // namespace bubblescope::inline sim
