// Adds up the starts and the ends of ops.
#include "exec/calibration/busy_ops.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace bubblescope::exec {

namespace {

double count_all(const KindCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), 0);
}

}  // namespace

BusyOps::BusyOps(const std::map<Nanos, KindCounts>& changes) {
  Moment now;
  for (const auto& [time, change] : changes) {
    now.busy_until += count_all(now.counts) * static_cast<double>(time - now.time);
    now.time = time;
    for (std::size_t kind = 0; kind < change.size(); ++kind) now.counts[kind] += change[kind];
    moments_.push_back(now);
  }
}

std::vector<BusyOps::Moment>::const_iterator BusyOps::find_next(Nanos time) const {
  return std::upper_bound(moments_.begin(), moments_.end(), time,
                          [](Nanos at, const Moment& moment) { return at < moment.time; });
}

double BusyOps::sum_until(Nanos time) const {
  const auto next = find_next(time);
  if (next == moments_.begin()) return 0;
  const Moment& moment = *std::prev(next);
  return moment.busy_until + count_all(moment.counts) * static_cast<double>(time - moment.time);
}

double BusyOps::mean_busy(Nanos start, Nanos end) const {
  return (sum_until(end) - sum_until(start)) / static_cast<double>(end - start);
}

void BusyOps::visit(Nanos start, Nanos end,
                    const std::function<void(Nanos nanos, const KindCounts& counts)>& visit) const {
  for (auto next = find_next(start); start < end; ++next) {
    const Nanos until = next == moments_.end() ? end : std::min(end, next->time);
    visit(until - start, next == moments_.begin() ? KindCounts{} : std::prev(next)->counts);
    if (next == moments_.end()) return;
    start = until;
  }
}

bool is_busy_op(const Program& program, const Timeline& timeline, InstructionId id) {
  const Instruction& instruction = program.instructions[id];
  return instruction.lane != kNoLane && is_compute(instruction.op.kind) &&
         timeline.end[id] > timeline.start[id];
}

std::map<std::int32_t, BusyOps> find_busy_ops(const Program& program, const Timeline& timeline,
                                              std::int32_t ranks_per_device) {
  std::map<std::int32_t, std::map<Nanos, KindCounts>> changes;
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!is_busy_op(program, timeline, id)) continue;
    const Instruction& instruction = program.instructions[id];
    auto& of_device = changes[instruction.rank / ranks_per_device];
    const auto kind = static_cast<std::size_t>(instruction.op.kind);
    ++of_device[timeline.start[id]][kind];
    --of_device[timeline.end[id]][kind];
  }
  std::map<std::int32_t, BusyOps> busy;
  for (const auto& [device, of_device] : changes) busy.emplace(device, of_device);
  return busy;
}

}  // namespace bubblescope::exec
