// Sums every rank's changes in time order.
#include "sim/analysis/memory_curve.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/analysis/held_buffers.h"
#include "sim/analysis/memory_sum.h"
#include "sim/ir/depend.h"
#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

MemoryAmount negative(const MemoryAmount& held) {
  return {-held.chunk_millionths, -held.unit_millionths, -held.bytes};
}

/// Chunks cannot be so many that their sum wraps.
MemoryAmount add(MemoryAmount held, const MemoryAmount& change) {
  held.chunk_millionths += change.chunk_millionths;
  const bool units_wrap =
      __builtin_add_overflow(held.unit_millionths, change.unit_millionths, &held.unit_millionths);
  const bool bytes_wrap = __builtin_add_overflow(held.bytes, change.bytes, &held.bytes);
  if (units_wrap || bytes_wrap) refuse_memory();
  return held;
}

bool allocates(const MemoryAmount& change) {
  return change.chunk_millionths > 0 || change.unit_millionths > 0 || change.bytes > 0;
}

/// The amounts that ops add to memory, with regard to what their stages recompute.
class Amounts {
 public:
  Amounts(const Schedule& schedule, const MemoryModel& memory)
      : schedule_(schedule), memory_(memory), index_(schedule) {
    const MemoryDelta chunk = chunk_millionths(memory.release);
    whole_.reserve(static_cast<std::size_t>(schedule.stages()) * kComputeKinds);
    for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
      for (int kind = 0; kind < kComputeKinds; ++kind)
        whole_.push_back(
            whole_of(chunk, static_cast<std::size_t>(stage), static_cast<OpKind>(kind)));
    for (const RankOrder& ops : schedule.order)
      for (const Op& op : ops)
        if (op.kind == OpKind::kRecompute) mark_recomputed(op);
    if (recomputed_.empty() || !memory.by_microbatch.empty()) return;
    for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
      saved_.push_back(saved_of({.stage = stage}));
  }

  /// The amount that a compute op adds to its rank's memory.
  MemoryAmount of(const Op& op) const {
    if (recomputed_.empty()) return whole(op, op.kind);
    if (op.kind == OpKind::kForward) return saved(op);
    if (op.kind == OpKind::kRecompute) {
      MemoryAmount rest = whole(op, OpKind::kForward);
      return rest += negative(saved(op));
    }
    return whole(op, op.kind);
  }

  /// The amount that the forward of an op's stage and micro-batch saves.
  MemoryAmount saved(const Op& op) const {
    if (recomputed_.empty() || !recomputed_[forward_of(op)]) return whole(op, OpKind::kForward);
    return saved_.empty() ? saved_of(op) : saved_[static_cast<std::size_t>(op.stage)];
  }

 private:
  void mark_recomputed(const Op& op) {
    if (recomputed_.empty()) recomputed_.resize(index_.size(), false);
    recomputed_[forward_of(op)] = true;
  }

  /// The amount that a forward saves if the rest is recomputed.
  MemoryAmount saved_of(const Op& op) const {
    MemoryAmount held = whole(op, OpKind::kForward);
    const std::optional<Bytes> bytes = checkpoint_bytes(op);
    const Millionths share = share_of(op.stage, held.bytes, bytes);
    held.chunk_millionths = scale(held.chunk_millionths, share);
    held.unit_millionths = scale(held.unit_millionths, share);
    held.bytes = bytes ? *bytes : scale(held.bytes, share);
    return held;
  }

  std::size_t forward_of(const Op& op) const {
    return index_(Value{ValueKind::kActivation, op.stage, op.microbatch, op.slice});
  }

  /// Chunks and units count the chain's activations; those of side stages count in bytes alone.
  MemoryAmount whole_of(const MemoryDelta& chunk, std::size_t stage, OpKind kind) const {
    const Bytes bytes =
        memory_.activation_bytes.empty() ? 0 : memory_.activation_bytes[stage](kind);
    if (schedule_.is_side_stage(static_cast<std::int32_t>(stage))) return {0, 0, bytes};
    return {chunk(kind), memory_.unit(kind), bytes};
  }

  MemoryAmount whole(const Op& op, OpKind kind) const {
    MemoryAmount amount =
        whole_[static_cast<std::size_t>(op.stage) * kComputeKinds + static_cast<std::size_t>(kind)];
    if (!memory_.by_microbatch.empty()) amount.bytes = memory_.by_microbatch(op).activations(kind);
    return amount;
  }

  /// The bytes that a forward saves if the rest is recomputed; nullopt where no cost file says it.
  std::optional<Bytes> checkpoint_bytes(const Op& op) const {
    if (!memory_.by_microbatch.empty()) return memory_.by_microbatch(op).checkpoint;
    if (memory_.checkpoint_bytes.empty()) return {};
    return memory_.checkpoint_bytes[static_cast<std::size_t>(op.stage)];
  }

  /// The fraction that a forward saves; from the bytes of a cost file if it gives them.
  Millionths share_of(std::int32_t stage, Bytes all, const std::optional<Bytes>& saved) const {
    if (!saved || all == 0) return memory_.saved.of(schedule_.recompute(stage));
    return std::llround(static_cast<double>(*saved) / static_cast<double>(all) * kWhole);
  }

  const Schedule& schedule_;
  const MemoryModel& memory_;
  ValueIndex index_;
  std::vector<MemoryAmount> whole_;  ///< [stage * kComputeKinds + kind]
  std::vector<MemoryAmount> saved_;  ///< [stage], where all micro-batches take the same
  std::vector<bool> recomputed_;     ///< by a forward's index; empty: none
};

struct Change {
  Nanos time = 0;
  ChangeOrder order = ChangeOrder::kCompute;
  InstructionId by = 0;
  MemoryAmount amount;
};

/// A copy allocates at its destination and releases at its source. Host memory is not counted.
void add_copy(std::vector<std::vector<Change>>& changes, const Instruction& copy,
              const Timeline& timeline, const Change& saved) {
  Change allocated = saved;
  Change released = saved;
  allocated.time = timeline.start[saved.by];
  allocated.order = ChangeOrder::kCopyAllocates;
  released.time = timeline.end[saved.by];
  released.order = ChangeOrder::kCopyReleases;
  released.amount = negative(saved.amount);
  const bool evicts = copy.op.kind == OpKind::kEvict;
  const bool by_host = copy.peer == copy.rank;
  const auto own = static_cast<std::size_t>(copy.rank);
  const auto offload_target = static_cast<std::size_t>(copy.peer);
  if (!evicts || !by_host) changes[evicts ? offload_target : own].push_back(allocated);
  if (evicts || !by_host) changes[evicts ? own : offload_target].push_back(released);
}

Change change_of(const BufferChange& buffer) {
  const Bytes bytes = buffer.allocates ? buffer.bytes : -buffer.bytes;
  return {buffer.time, order_of(buffer), buffer.by, {0, 0, bytes}};
}

/// Calls visit(rank, change) for every change, each rank's in time order.
template <class Visit>
void for_each_change(const Schedule& schedule, const Program& program, const Timeline& timeline,
                     const MemoryModel& memory, const std::vector<BufferChange>& buffers,
                     Visit visit) {
  const Amounts amounts(schedule, memory);
  const auto compute_change = [&](InstructionId id) {
    const MemoryAmount amount = amounts.of(program.instructions[id].op);
    const Nanos time = allocates(amount) ? timeline.start[id] : timeline.end[id];
    return Change{time, ChangeOrder::kCompute, id, amount};
  };
  // No backward needs what a forward of inference computes, so it is released with its op.
  const auto visit_compute = [&](InstructionId id, const auto& visit_change) {
    const Change change = compute_change(id);
    visit_change(change);
    if (schedule.forward_only)
      visit_change(Change{timeline.end[id], change.order, id, negative(change.amount)});
  };
  // Without copies and buffers a rank's changes are those of its compute lane, in time order.
  if (schedule.offload_target_of_rank.empty() && buffers.empty()) {
    for (InstructionId id = 0; id < program.size(); ++id) {
      if (!is_compute(program.instructions[id].op.kind)) continue;
      const auto rank = static_cast<std::size_t>(program.instructions[id].rank);
      visit_compute(id, [&](const Change& change) { visit(rank, change); });
    }
    return;
  }
  std::vector<std::vector<Change>> changes(static_cast<std::size_t>(program.ranks));
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const auto rank = static_cast<std::size_t>(instruction.rank);
    if (is_copy(instruction.op.kind))
      add_copy(changes, instruction, timeline, {0, {}, id, amounts.saved(instruction.op)});
    else if (is_compute(instruction.op.kind))
      visit_compute(id, [&](const Change& change) { changes[rank].push_back(change); });
  }
  for (const BufferChange& buffer : buffers)
    changes[static_cast<std::size_t>(buffer.rank)].push_back(change_of(buffer));
  for (std::size_t rank = 0; rank < changes.size(); ++rank) {
    std::stable_sort(changes[rank].begin(), changes[rank].end(),
                     [](const Change& left, const Change& right) {
                       return std::pair(left.time, left.order) < std::pair(right.time, right.order);
                     });
    for (const Change& change : changes[rank]) visit(rank, change);
  }
}

}  // namespace

std::vector<MemoryPoint> compute_memory_curve(const ValidSchedule& schedule, const Program& program,
                                              const Timeline& timeline, const MemoryModel& memory) {
  std::vector<MemoryAmount> held(static_cast<std::size_t>(program.ranks));
  std::vector<MemoryPoint> curve;
  const auto buffers = find_buffer_changes(program, timeline, memory);
  for_each_change(
      schedule, program, timeline, memory, buffers, [&](std::size_t rank, const Change& change) {
        held[rank] = add(held[rank], change.amount);
        curve.push_back({change.time, static_cast<std::int32_t>(rank), change.by, held[rank]});
      });
  return curve;
}

namespace {

/// A rank's current memory, and its maximum in each unit.
struct RankPeak {
  MemoryAmount now;
  MemoryAmount highest;
  std::optional<InstructionId> at;  ///< the first op that reaches the peak in chunks

  void change(const MemoryAmount& amount, InstructionId by) {
    now = add(now, amount);
    if (now.chunk_millionths > highest.chunk_millionths) {
      highest.chunk_millionths = now.chunk_millionths;
      at = by;
    }
    highest.unit_millionths = std::max(highest.unit_millionths, now.unit_millionths);
    highest.bytes = std::max(highest.bytes, now.bytes);
  }
};

}  // namespace

std::vector<Peak> find_peaks(const ValidSchedule& schedule, const Program& program,
                             const Timeline& timeline, const MemoryModel& memory) {
  std::vector<RankPeak> rank_peaks(static_cast<std::size_t>(program.ranks));
  const auto buffers = find_buffer_changes(program, timeline, memory);
  for_each_change(schedule, program, timeline, memory, buffers,
                  [&](std::size_t rank, const Change& change) {
                    rank_peaks[rank].change(change.amount, change.by);
                  });
  std::vector<Peak> peaks(rank_peaks.size());
  const double slices = schedule->shape.slices;
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    Peak& peak = peaks[rank];
    const MemoryAmount& highest = rank_peaks[rank].highest;
    peak.at = rank_peaks[rank].at;
    peak.chunks = static_cast<double>(highest.chunk_millionths) / (1e6 * slices);
    peak.activations = peak.chunks / schedule->shape.chunks;
    peak.units = static_cast<double>(highest.unit_millionths) / (1e6 * memory.unit_parts);
    if (!memory.activation_bytes.empty() || !memory.static_bytes.empty())
      peak.bytes = expect_countable(
          add_memory(highest.bytes, memory.static_bytes.empty() ? 0 : memory.static_bytes[rank]));
  }
  set_buffer_peaks(peaks, buffers, memory);
  return peaks;
}

}  // namespace bubblescope::inline sim
