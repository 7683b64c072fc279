// The head-body-tail bound of one-machine scheduling, per rank.
#include "sim/analysis/lower_bound.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "sim/analysis/rank_bound.h"
#include "sim/analysis/repeats.h"
#include "sim/ir/after_edges.h"
#include "sim/ir/lane_order.h"

namespace bubblescope::inline sim {

namespace {

bool is_gradient(OpKind kind) { return gives_input_grad(kind) || kind == OpKind::kSendBackward; }
bool is_activation(OpKind kind) { return kind == OpKind::kForward || kind == OpKind::kSendForward; }

/// Whether one op or message needs the value that another produced or carried; true if either is
/// neither. Copies also wait to keep memory in bounds, which another order would do differently:
/// only copies of the same activations count as data.
bool needs(const Op& op, const Op& producer) {
  if (producer.kind == OpKind::kIdle) return true;
  const bool copies = is_copy(op.kind) || is_copy(producer.kind);
  if (!copies && !is_compute(op.kind) && !is_send(op.kind)) return true;
  if (op.microbatch != producer.microbatch) return false;
  const bool same = producer.stage == op.stage && producer.slice == op.slice;
  if (copies) return same;
  if (op.kind == OpKind::kForward)
    return is_activation(producer.kind) &&
           (producer.stage != op.stage || producer.slice + 1 == op.slice);
  if (gives_input_grad(op.kind)) {
    if (!is_gradient(producer.kind)) return same;
    return producer.stage != op.stage || producer.slice == op.slice + 1;
  }
  if (op.kind == OpKind::kWeightGrad || op.kind == OpKind::kSendBackward)
    return same && is_gradient(producer.kind);
  return same && is_activation(producer.kind);  // a recomputation, or an activation's message
}

/// An after edge between compute ops, which every order must keep.
bool is_kept_edge(const Instruction& waiting, const Instruction& awaited) {
  return is_after_edge(waiting, awaited) && is_compute(waiting.op.kind) &&
         is_compute(awaited.op.kind);
}

/// Distinguishes data dependencies from those of the order, which another order would not have:
/// those by which a pair starts or ends together, those of posts and waits, and waits for sends.
class DataEdges {
 public:
  explicit DataEdges(const Program& program) : program_(program) {}

  /// The producer of the data for which one instruction waits for another, or kNoInstruction. In a
  /// fused pair all consumers of the first half wait for the second, but the producer is the first.
  InstructionId source(InstructionId to, InstructionId from) {
    const Instruction& waiting = program_.instructions[to];
    const Instruction& awaited = program_.instructions[from];
    if (is_end_of_message(waiting) || is_end_of_message(awaited)) return kNoInstruction;
    // A rank waits for a message of its own only to free memory.
    if (is_message(awaited) && awaited.rank == waiting.rank) return kNoInstruction;
    if (is_kept_edge(waiting, awaited)) {
      // A pair starts and ends together, so the edge may be that of its other half.
      const bool is_exact =
          waiting.op.pairing != Pairing::kFirst && awaited.op.pairing != Pairing::kSecond;
      return is_exact ? from : kNoInstruction;
    }
    if (needs(waiting.op, awaited.op)) return from;
    if (awaited.op.pairing != Pairing::kSecond) return kNoInstruction;
    if (previous_in_lane_.empty()) previous_in_lane_ = find_previous_in_lane(program_);
    const InstructionId first = previous_in_lane_[from];
    const bool gives =
        first != kNoInstruction && needs(waiting.op, program_.instructions[first].op);
    return gives ? first : kNoInstruction;
  }

 private:
  static bool is_end_of_message(const Instruction& instruction) {
    return instruction.role != Role::kWork && is_message(instruction.op.kind);
  }

  const Program& program_;
  std::vector<InstructionId> previous_in_lane_;  ///< empty until a pair asks for it
};

/// Numbers the (stage, rank) pairs that can occur: the replicas of a stage are on consecutive
/// ranks.
class StageRanks {
 public:
  void add(const Instruction& instruction) {
    const auto stage = static_cast<std::size_t>(instruction.op.stage);
    if (stage >= ranges_.size()) ranges_.resize(stage + 1);
    ranges_[stage].first_rank = std::min(ranges_[stage].first_rank, instruction.rank);
    ranges_[stage].last_rank = std::max(ranges_[stage].last_rank, instruction.rank);
  }

  /// Assigns the numbers, once all instructions have been added.
  void number() {
    for (StageRankRange& entry : ranges_) {
      entry.begin = size_;
      if (entry.last_rank >= entry.first_rank)
        size_ += static_cast<std::size_t>(entry.last_rank - entry.first_rank + 1);
    }
  }

  std::size_t size() const { return size_; }
  std::size_t operator()(const Instruction& instruction) const {
    const StageRankRange& entry = ranges_[static_cast<std::size_t>(instruction.op.stage)];
    return entry.begin + static_cast<std::size_t>(instruction.rank - entry.first_rank);
  }

 private:
  struct StageRankRange {
    std::int32_t first_rank = std::numeric_limits<std::int32_t>::max();
    std::int32_t last_rank = 0;
    std::size_t begin = 0;
  };
  std::vector<StageRankRange> ranges_;
  std::size_t size_ = 0;
};

/// How long a rank rests between any two ops, in every order of them: 0 where that depends on the
/// order, because pairs or waits for messages need no rest.
Nanos find_rest(const Program& program, const Timeline& timeline) {
  if (timeline.gaps.empty()) return 0;
  const Nanos rest = *std::max_element(timeline.gaps.begin(), timeline.gaps.end());
  std::vector<bool> has_run(static_cast<std::size_t>(program.ranks), false);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (instruction.lane >= has_run.size() || !is_compute(instruction.op.kind)) continue;
    if (has_run[instruction.lane] && timeline.gaps[id] != rest) return 0;
    has_run[instruction.lane] = true;
  }
  return rest;
}

/// Compute ops and messages are the first kinds of the enum.
constexpr std::size_t kUniformKinds = 9;

/// One stage's ops of one kind, if all micro-batches behave the same on it.
struct UniformOps {
  Nanos duration = 0;
  Nanos count = 0;
  Nanos head = 0;  ///< the longest chain before one of them
  Nanos tail = 0;  ///< the longest chain from its start
};

struct UniformStage {
  bool is_known = false;
  std::int32_t rank = 0;
  std::int32_t microbatch = 0;  ///< the representative one
};

/// If every micro-batch takes the same path at the same speed, all have the same chains, so one
/// micro-batch per stage represents all.
class UniformMicrobatches {
 public:
  UniformMicrobatches(const Program& program, const Timeline& timeline, const Repeats& repeats,
                      Nanos rest)
      : program_(program), timeline_(timeline), repeats_(repeats), rest_(rest) {
    for (InstructionId id = 0; id < program.size() && is_uniform_; ++id) is_uniform_ = add(id);
    is_uniform_ = is_uniform_ && !sample_.empty() && have_same_count(ops_of(sample_.front()).count);
  }

  /// Returns the bound that all chains together give; nullopt if micro-batches differ.
  std::optional<Nanos> bound() {
    if (!is_uniform_ || !find_chains()) return {};
    std::vector<std::vector<OpClass>> of_rank(static_cast<std::size_t>(program_.ranks));
    Nanos bound = 0;
    for (const InstructionId id : sample_) {
      const Instruction& instruction = program_.instructions[id];
      const UniformOps& ops = ops_of(id);
      bound = std::max(bound, ops.head + ops.tail);
      const bool computes = instruction.lane < static_cast<std::uint32_t>(program_.ranks);
      if (!computes || ops.duration == 0) continue;
      of_rank[static_cast<std::size_t>(instruction.rank)].push_back(
          {ops.head, ops.tail - ops.duration, (ops.duration + rest_) * ops.count});
    }
    for (std::vector<OpClass>& classes : of_rank)
      bound = std::max(bound, bound_of_rank(std::move(classes), rest_));
    return bound;
  }

 private:
  UniformOps& ops_of(const Op& op) {
    return ops_[static_cast<std::size_t>(op.stage) * kUniformKinds +
                static_cast<std::size_t>(op.kind)];
  }
  UniformOps& ops_of(InstructionId id) { return ops_of(program_.instructions[id].op); }

  /// Whether every kind of op occurs once per micro-batch, or not at all.
  bool have_same_count(Nanos count) const {
    return std::all_of(ops_.begin(), ops_.end(), [count](const UniformOps& ops) {
      return ops.count == 0 || ops.count == count;
    });
  }

  bool add(InstructionId id) {
    const Instruction& instruction = program_.instructions[id];
    const Op& op = instruction.op;
    if ((!is_compute(op.kind) && !is_send(op.kind)) || instruction.role != Role::kWork ||
        op.pairing != Pairing::kAlone || op.slice != 0 || crosses_microbatches(id) ||
        has_kept_edge(id))
      return false;
    const auto at = static_cast<std::size_t>(op.stage);
    if (at >= stages_.size()) {
      stages_.resize(at + 1);
      ops_.resize((at + 1) * kUniformKinds);
    }
    UniformStage& stage = stages_[at];
    if (!stage.is_known) stage = {true, instruction.rank, op.microbatch};
    UniformOps& ops = ops_of(op);
    const Nanos duration = timeline_.uncontended_duration(id);
    if (ops.count == 0) ops.duration = duration;
    ops.count += repeats_.count(timeline_.start[id]);
    if (op.microbatch == stage.microbatch) sample_.push_back(id);
    return stage.rank == instruction.rank && ops.duration == duration;
  }

  bool has_kept_edge(InstructionId id) const {
    const auto awaited = program_.dependencies_of(id);
    return std::any_of(awaited.begin(), awaited.end(), [&](InstructionId from) {
      return is_kept_edge(program_.instructions[id], program_.instructions[from]);
    });
  }

  /// True if forwards are fused, so that a message waits for another micro-batch's forward.
  bool crosses_microbatches(InstructionId id) const {
    const Op& op = program_.instructions[id].op;
    if (!is_send(op.kind)) return false;
    const auto producers = program_.dependencies_of(id);
    return producers.empty() || program_.instructions[producers[0]].op.microbatch != op.microbatch;
  }

  /// Heads exclude, tails include the instruction's own duration. False if the stages are not
  /// represented by the same micro-batch.
  bool find_chains() {
    for (const InstructionId id : sample_) {
      const Op& op = program_.instructions[id].op;
      UniformOps& ops = ops_of(id);
      for (const InstructionId from : program_.dependencies_of(id)) {
        const Op& producer = program_.instructions[from].op;
        if (!needs(op, producer)) continue;
        if (producer.microbatch != stages_[static_cast<std::size_t>(producer.stage)].microbatch)
          return false;
        const UniformOps& before = ops_of(producer);
        ops.head = std::max(ops.head, before.head + before.duration);
      }
    }
    for (std::size_t at = sample_.size(); at-- > 0;) {
      const Op& op = program_.instructions[sample_[at]].op;
      UniformOps& ops = ops_of(op);
      ops.tail += ops.duration;
      for (const InstructionId from : program_.dependencies_of(sample_[at])) {
        const Op& producer = program_.instructions[from].op;
        if (needs(op, producer)) ops_of(producer).tail = std::max(ops_of(producer).tail, ops.tail);
      }
    }
    return true;
  }

  const Program& program_;
  const Timeline& timeline_;
  Repeats repeats_;
  Nanos rest_;
  std::vector<UniformStage> stages_;
  std::vector<UniformOps> ops_;        ///< [stage * kUniformKinds + kind]
  std::vector<InstructionId> sample_;  ///< in the order of the Program
  bool is_uniform_ = true;
};

/// The bound by longest chains of dependencies, as if every rank could run all its ops at once, and
/// by the work of each rank between the shortest of them. One pass forwards finds the chains that
/// end with an instruction, one backwards those that begin after it.
class GeneralBound {
 public:
  GeneralBound(const Program& program, const Timeline& timeline, const Repeats& repeats, Nanos rest)
      : program_(program), timeline_(timeline), repeats_(repeats), rest_(rest) {}

  Nanos find() {
    walk_forwards();
    stage_ranks_.number();
    classes_.resize(stage_ranks_.size() * kOpKinds);
    rank_of_entry_.resize(stage_ranks_.size(), 0);
    walk_backwards();
    std::vector<std::vector<OpClass>> of_rank(program_.ranks);
    for (std::size_t at = 0; at < classes_.size(); ++at)
      if (classes_[at].work > 0) of_rank[rank_of_entry_[at / kOpKinds]].push_back(classes_[at]);
    for (std::vector<OpClass>& rank_classes : of_rank)
      bound_ = std::max(bound_, bound_of_rank(std::move(rank_classes), rest_));
    return bound_;
  }

 private:
  void walk_forwards() {
    chain_.resize(program_.size());
    sources_.reserve(program_.dependencies.size());
    DataEdges edges(program_);
    for (InstructionId id = 0; id < program_.size(); ++id) {
      Nanos head = 0;
      for (const InstructionId from : program_.dependencies_of(id)) {
        const InstructionId source = edges.source(id, from);
        sources_.push_back(source);
        if (source != kNoInstruction) head = std::max(head, chain_[source]);
      }
      chain_[id] = head + timeline_.uncontended_duration(id);
      stage_ranks_.add(program_.instructions[id]);
    }
  }

  void walk_backwards() {
    std::vector<Nanos> tails(program_.size(), 0);  // the longest chain after each instruction
    for (InstructionId id = program_.size(); id-- > 0;) {
      const Nanos duration = timeline_.uncontended_duration(id);
      const Nanos tail = tails[id];
      bound_ = std::max(bound_, chain_[id] + tail);
      add_to_class(id, duration, tail);
      const std::uint32_t end = program_.dependency_begin[id + 1];
      for (std::uint32_t at = program_.dependency_begin[id]; at < end; ++at)
        if (sources_[at] != kNoInstruction)
          tails[sources_[at]] = std::max(tails[sources_[at]], tail + duration);
    }
  }

  void add_to_class(InstructionId id, Nanos duration, Nanos tail) {
    const Instruction& instruction = program_.instructions[id];
    if (instruction.lane >= static_cast<std::uint32_t>(program_.ranks)) return;
    const std::size_t entry = stage_ranks_(instruction);
    rank_of_entry_[entry] = instruction.rank;
    OpClass& op_class = classes_[entry * kOpKinds + static_cast<std::size_t>(instruction.op.kind)];
    op_class.head = std::min(op_class.head, chain_[id] - duration);
    op_class.tail = std::min(op_class.tail, tail);
    const Nanos with_rest = is_compute(instruction.op.kind) ? duration + rest_ : duration;
    op_class.work += repeats_.count(timeline_.start[id]) * with_rest;
  }

  const Program& program_;
  const Timeline& timeline_;
  Repeats repeats_;
  Nanos rest_;
  std::vector<Nanos> chain_;            ///< per instruction: the longest chain that ends with it
  std::vector<InstructionId> sources_;  ///< parallel to the dependencies: producers of their data
  StageRanks stage_ranks_;
  std::vector<OpClass> classes_;  ///< [entry * kOpKinds + kind]
  std::vector<std::int32_t> rank_of_entry_;
  Nanos bound_ = 0;
};

}  // namespace

Nanos lower_bound(const Program& program, const Timeline& timeline) {
  return lower_bound(program, timeline, {});
}

Nanos lower_bound(const Program& program, const Timeline& timeline, const Repeats& repeats) {
  const Nanos rest = find_rest(program, timeline);
  if (const auto bound = UniformMicrobatches(program, timeline, repeats, rest).bound())
    return *bound;
  return GeneralBound(program, timeline, repeats, rest).find();
}

}  // namespace bubblescope::inline sim
