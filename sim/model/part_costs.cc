// Runs the parts of each op and pair once.
#include "sim/model/part_costs.h"

#include <algorithm>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/op_kinds.h"

namespace bubblescope::inline sim {

namespace {

constexpr std::array<OpKind, kComputeKinds> kKinds{OpKind::kForward, OpKind::kBackward,
                                                   OpKind::kInputGrad, OpKind::kWeightGrad,
                                                   OpKind::kRecompute};

class RunCollector {
 public:
  RunCollector(const PartTable& table, const Schedule& schedule)
      : table_(table), schedule_(schedule) {}

  PartCosts collect() && {
    if (has_kind(schedule_, OpKind::kBackward)) expect_whole_backwards();
    for (std::int32_t stage = 0; stage < schedule_.stages(); ++stage) add_stage(stage);
    for (const RankOrder& ops : schedule_.order)
      for (std::size_t at = 0; at + 1 < ops.size(); ++at)
        if (ops[at].pairing == Pairing::kFirst) add_pair(ops[at], ops[at + 1]);
    if (!costs_.has_pairs)
      for (const StageParts& stage : table_.stages) check_order(stage);
    return std::move(costs_);
  }

 private:
  /// The parts of I and W do not say how long each waits in a B of both.
  void expect_whole_backwards() const {
    for (const StageParts& stage : table_.stages)
      if (stage.of(OpKind::kBackward).empty() &&
          !(stage.of(OpKind::kInputGrad).empty() && stage.of(OpKind::kWeightGrad).empty()))
        throw Error(schedule_.name +
                    " has whole backwards, whose parts are missing while their halves have parts; "
                    "give them as well");
  }

  OpParts parts_of(const Op& op) const {
    const OpParts& given = table_.of_stage(op.stage).of(op.kind);
    if (table_.per_slice) return given;
    return divide_parts(given, schedule_.shape.slices, op.slice);
  }

  PartRun run_alone(const Op& op) const {
    OpParts parts = parts_of(op);
    if (table_.series_alone) parts = make_series(std::move(parts));
    return run_parts(parts, table_.contention);
  }

  void add(const RunKey& key, PartRun run) {
    costs_.run_of.emplace(key, costs_.runs.size());
    costs_.runs.push_back(std::move(run));
  }

  /// Stages that share an entry share its runs.
  void add_stage(std::int32_t stage) {
    const auto given = static_cast<std::int32_t>(table_.stages.size());
    for (const OpKind kind : kKinds) {
      if (table_.of_stage(stage).of(kind).empty()) continue;
      const bool is_partial = schedule_.recompute(stage) == Recompute::kSelective;
      if (kind == OpKind::kRecompute && is_partial) continue;
      for (std::int32_t slice = 0; slice < schedule_.shape.slices; ++slice) {
        const Op op{stage, 0, static_cast<std::int16_t>(slice), kind};
        Op same = op;
        same.stage %= given;
        const auto shared = costs_.run_of.find(key_of(same));
        if (shared == costs_.run_of.end())
          add(key_of(op), run_alone(op));
        else
          costs_.run_of.emplace(key_of(op), shared->second);
      }
    }
  }

  void add_pair(const Op& forward, const Op& backward) {
    const StageParts& stage = table_.of_stage(forward.stage);
    if (!stage.pair_order || costs_.find(key_of(forward, backward)) != nullptr) return;
    const std::string pair = table_.order_field + ": the order of " + to_string(forward) + " and " +
                             to_string(backward) + " ";
    if (table_.of_stage(backward.stage).of(backward.kind).empty())
      throw Error(pair + "needs the parts of both ops; give those of " + to_string(backward));
    try {
      add(key_of(forward, backward),
          run_pair(parts_of(forward), parts_of(backward), *stage.pair_order, table_.contention));
    } catch (const Error& error) {
      throw Error(pair + error.what());
    }
    costs_.has_pairs = true;
  }

  /// A wrong order is one in schedules without pairs, too. An order that must list what its ops
  /// have is for pairs of different stages, and can be told only with them.
  void check_order(const StageParts& stage) const {
    const bool is_known = stage.pair_order && stage.pair_order->skips_missing;
    if (!is_known || stage.of(OpKind::kForward).empty() || stage.of(OpKind::kBackward).empty())
      return;
    try {
      expect_order(stage.of(OpKind::kForward), stage.of(OpKind::kBackward), *stage.pair_order);
    } catch (const Error& error) {
      throw Error(table_.order_field + ": the order " + error.what());
    }
  }

  const PartTable& table_;
  const Schedule& schedule_;
  PartCosts costs_;
};

}  // namespace

bool StageParts::any() const {
  return std::any_of(of_kind.begin(), of_kind.end(),
                     [](const OpParts& parts) { return !parts.empty(); });
}

RunKey key_of(const Op& op) { return {op.stage, -1, op.slice, 0, op.kind, OpKind::kForward}; }

RunKey key_of(const Op& first, const Op& second) {
  return {first.stage, second.stage, first.slice, second.slice, first.kind, second.kind};
}

const PartRun* PartCosts::find(const RunKey& key) const {
  const auto found = run_of.find(key);
  return found == run_of.end() ? nullptr : &runs[found->second];
}

PartCosts run_all_parts(const PartTable& table, const Schedule& schedule) {
  if (table.stages.empty()) return {};
  return RunCollector(table, schedule).collect();
}

std::vector<PlacedRun> place_runs(const Program& program, const PartCosts& costs) {
  std::vector<PlacedRun> placed;
  if (costs.empty()) return placed;
  const auto add = [&](InstructionId first, InstructionId last, const RunKey& key) {
    const auto found = costs.run_of.find(key);
    if (found != costs.run_of.end()) placed.push_back({first, last, found->second});
    return found != costs.run_of.end();
  };
  std::vector<InstructionId> first_of_pair(static_cast<std::size_t>(program.ranks), kNoInstruction);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const Op& op = instruction.op;
    if (!is_compute(op.kind) || instruction.role != Role::kWork) continue;
    InstructionId& first = first_of_pair[static_cast<std::size_t>(instruction.rank)];
    if (op.pairing == Pairing::kFirst) {
      first = id;
      continue;
    }
    if (op.pairing == Pairing::kSecond) {
      const Op& forward = program.instructions[first].op;
      if (add(first, id, key_of(forward, op))) continue;
      add(first, first, key_of(forward));
    }
    add(id, id, key_of(op));
  }
  return placed;
}

void price_pairs(const Program& program, const PartCosts& costs, std::vector<Nanos>& durations) {
  if (!costs.has_pairs) return;
  for (const PlacedRun& placed : place_runs(program, costs)) {
    if (placed.first == placed.last) continue;
    const PartRun& run = costs.runs[placed.run];
    durations[placed.first] = run.first_end;
    durations[placed.last] = run.time - run.first_end;
  }
}

}  // namespace bubblescope::inline sim
