// The idle cells that torch.distributed.pipelining puts between the ops of its orders.
#include "schedules/pytorch_cells.h"

namespace bubblescope::schedules {

namespace {

/// The forwards that have run, by stage and micro-batch.
class Forwards {
 public:
  Forwards(std::int32_t stages, std::int32_t microbatches)
      : microbatches_(microbatches),
        seen_(static_cast<std::size_t>(std::int64_t{stages} * microbatches), false) {}

  void add(const Op& op) { seen_[at(op.stage, op.microbatch)] = true; }
  bool lack_input_of(const Op& op) const {
    return op.kind == OpKind::kForward && op.stage > 0 && !seen_[at(op.stage - 1, op.microbatch)];
  }

 private:
  std::size_t at(std::int32_t stage, std::int32_t microbatch) const {
    return static_cast<std::size_t>(std::int64_t{stage} * microbatches_ + microbatch);
  }

  std::int64_t microbatches_;
  std::vector<bool> seen_;
};

}  // namespace

RankOrder with_idle_cells(const RankOrder& ops, const IdleCells& idle) {
  RankOrder cells(static_cast<std::size_t>(idle.lead), kIdleCell);
  for (std::int64_t at = 0; at < std::ssize(ops); ++at) {
    if (at == idle.warmup && at > 0)
      for (std::int64_t cell = 0; cell < idle.gap; ++cell) cells.push_back(kIdleCell);
    if (idle.cooldown && at >= *idle.cooldown) cells.push_back(kIdleCell);
    cells.push_back(ops[static_cast<std::size_t>(at)]);
  }
  return cells;
}

std::vector<RankOrder> with_forwards_in_step(const std::vector<RankOrder>& cells,
                                             std::int32_t stages, std::int32_t microbatches) {
  Forwards forwards(stages, microbatches);
  std::vector<RankOrder> spread(cells.size());
  std::vector<std::size_t> next(cells.size(), 0);
  for (bool done = false; !done;) {
    done = true;
    std::vector<Op> run;
    for (std::size_t rank = 0; rank < cells.size(); ++rank) {
      if (next[rank] == cells[rank].size()) continue;
      done = false;
      const Op& op = cells[rank][next[rank]];
      const bool early = forwards.lack_input_of(op);
      spread[rank].push_back(early ? kIdleCell : op);
      if (early) continue;
      ++next[rank];
      if (op.kind == OpKind::kForward) run.push_back(op);
    }
    for (const Op& op : run) forwards.add(op);
  }
  return spread;
}

}  // namespace bubblescope::schedules
