// Derives the costs of messages from measured copies.
#include "tools/commands/calibrate_messages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "exec/gpu/host/device_backend.h"
#include "exec/gpu/host/precision.h"
#include "tools/commands/calibrate_contention.h"

namespace bubblescope::tools {

namespace {

using MeasuredTimes = std::vector<std::optional<exec::Estimate>>;

MeasuredTimes copies_of(const MessageEvidence& evidence) {
  const MeasuredTimes in_turns =
      exec::find_message_costs(evidence.turns, evidence.ranks_per_device);
  return choose_estimates(exec::find_message_costs(evidence.schedules, evidence.ranks_per_device),
                          in_turns);
}

/// The bandwidth of a link in the form that cost files use, from the time by which larger copies
/// exceed the smallest one.
LinkSpeed speed_of(const std::vector<exec::MessageTime>& by_size) {
  LinkSpeed speed;
  const auto quickest = std::min_element(
      by_size.begin(), by_size.end(),
      [](const auto& left, const auto& right) { return left.nanos < right.nanos; });
  for (const exec::MessageTime& time : by_size)
    if (time.nanos > quickest->nanos)
      speed.points.push_back(
          {time.bytes, std::clamp(8.0 * static_cast<double>(time.bytes) /
                                      static_cast<double>(time.nanos - quickest->nanos),
                                  0.001, 1e6)});
  return speed;
}

/// The size of a message in training; 0 if nothing is trained.
Bytes message_bytes(const Schedule& schedule, const RunOptions& run) {
  if (run.work != WorkKind::kTransformer) return 0;
  const Bytes bytes_per_entry = exec::entry_bytes(exec::dtype_of(run.device.precision));
  const exec::TransformerShape& model = run.training.model;
  return bytes_per_entry * model.rows() * model.width / schedule.shape.slices;
}

}  // namespace

CostTable with_message(CostTable table, const MessageEvidence& evidence) {
  std::vector<Nanos> copies;
  if (!evidence.turns.empty()) copies = exec::fill_contention(copies_of(evidence));
  const std::optional<exec::Estimate> usual = exec::find_message_time(evidence.schedules);
  const Nanos copy = usual ? usual->mean : 0;
  const Nanos beside = std::max<Nanos>(0, evidence.effective - copy);
  Nanos alone = beside + (copies.empty() ? copy : copies[0]);
  const LinkSpeed speed = speed_of(evidence.by_size);
  table.message = {alone, 0, {}};
  if (evidence.bytes > 0 && !speed.points.empty()) {
    const double bits = 8.0 * static_cast<double>(evidence.bytes);
    const auto transfer =
        static_cast<Nanos>(std::ceil(bits / speed.bandwidth_gbps(evidence.bytes)));
    table.message = {std::max<Nanos>(0, alone - transfer), evidence.bytes, speed.points};
    alone = table.message.latency + transfer;
  }
  table.contended_message.clear();
  for (std::size_t busy = 1; busy < copies.size(); ++busy)
    table.contended_message.push_back(alone + copies[busy] - copies[0]);
  return table;
}

CalibratedCosts with_messages(CalibratedCosts costs, MessageEvidence evidence,
                              const Schedule& schedule, const RunOptions& run) {
  const exec::DeviceBackendDef* const backend = exec::find_device_backend(run.backend);
  evidence.bytes = message_bytes(schedule, run);
  if (backend != nullptr && backend->time_messages && evidence.bytes > 0 &&
      schedule.shape.ranks > 1)
    evidence.by_size = backend->time_messages(schedule.shape.ranks, run.device);
  costs.table = with_message(std::move(costs.table), evidence);
  MessageSamples& samples = costs.measured.messages.emplace();
  samples.by_size = evidence.by_size;
  if (!evidence.turns.empty()) samples.by_busy_ranks = count_samples(copies_of(evidence));
  return costs;
}

}  // namespace bubblescope::tools
