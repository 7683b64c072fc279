// Sorts measured times into samples.
#include "exec/calibration/calibrate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace bubblescope::exec {

namespace {

constexpr double kTrimmed = 0.1;
constexpr double kNormal95 = 1.96;

using KindSamples = std::array<std::vector<Nanos>, kComputeKinds>;

struct UpdateSamples {
  std::vector<Nanos> optimizer;
  std::vector<Nanos> reduce_grad;
};

struct Samples {
  std::vector<KindSamples> ops;        ///< [stage][kind]
  std::vector<UpdateSamples> updates;  ///< [stage]
  std::vector<Nanos> message;
  std::vector<Nanos> op_gap;
};

/// The last event that an instruction waited for: the end of its lane's previous instruction, or of
/// a dependency.
struct LastWait {
  Nanos end = 0;
  std::optional<InstructionId> message;  ///< the message whose producer ended at that time; else
                                         ///< nullopt
};

/// A message counts from its producer's end, so that its latency includes the handover.
LastWait find_last_wait(const Program& program, const Timeline& timeline, InstructionId id,
                        Nanos lane_end) {
  LastWait wait{lane_end, std::nullopt};
  for (const InstructionId dependency : program.dependencies_of(id)) {
    const bool follows_message = is_message(program.instructions[dependency]);
    Nanos end = timeline.end[dependency];
    if (follows_message)
      for (const InstructionId producer : program.dependencies_of(dependency))
        end = timeline.end[producer];
    if (end <= wait.end) continue;
    wait.end = end;
    wait.message = follows_message ? std::optional(dependency) : std::nullopt;
  }
  return wait;
}

/// Whether a message whose producer had ended was still in flight at that time.
bool is_awaited_then(const Program& program, const Timeline& timeline, InstructionId id,
                     Nanos time) {
  const auto dependencies = program.dependencies_of(id);
  return std::any_of(dependencies.begin(), dependencies.end(), [&](InstructionId dependency) {
    return is_message(program.instructions[dependency]) && timeline.end[dependency] > time;
  });
}

void collect_updates(Samples& samples, const Program& program, const Timeline& timeline) {
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (instruction.role != Role::kWork) continue;
    UpdateSamples& stage = samples.updates[static_cast<std::size_t>(instruction.op.stage)];
    const Nanos taken = timeline.end[id] - timeline.start[id];
    if (instruction.op.kind == OpKind::kOptimizer) stage.optimizer.push_back(taken);
    if (instruction.op.kind == OpKind::kReduceGrad) stage.reduce_grad.push_back(taken);
  }
}

void collect_samples(Samples& samples, const Program& program, const Timeline& timeline) {
  std::vector<Nanos> lane_end(program.lanes.size(), 0);
  std::vector<bool> lane_begun(program.lanes.size(), false);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const auto& [op, lane, rank, peer, role] = program.instructions[id];
    if (lane == kNoLane) continue;
    if (role == Role::kWork && op.kind == OpKind::kOptimizer) {
      lane_end[lane] = timeline.end[id];
      lane_begun[lane] = false;  // what follows an update is not an op gap
    }
    if (!is_compute(op.kind)) continue;
    samples.ops[static_cast<std::size_t>(op.stage)][static_cast<std::size_t>(op.kind)].push_back(
        timeline.end[id] - timeline.start[id]);
    const LastWait wait = find_last_wait(program, timeline, id, lane_end[lane]);
    const Nanos gap = timeline.start[id] - wait.end;
    if (wait.message)
      samples.message.push_back(gap);
    else if (lane_begun[lane] && wait.end == lane_end[lane] &&
             !is_awaited_then(program, timeline, id, lane_end[lane]))
      samples.op_gap.push_back(gap);
    lane_end[lane] = timeline.end[id];
    lane_begun[lane] = true;
  }
}

}  // namespace

std::optional<Estimate> estimate(std::vector<Nanos> samples) {
  if (samples.empty()) return std::nullopt;
  std::sort(samples.begin(), samples.end());
  const auto count = static_cast<double>(samples.size());
  const double plain =
      static_cast<double>(std::accumulate(samples.begin(), samples.end(), Nanos{0})) / count;
  double squares = 0;
  for (const Nanos sample : samples)
    squares += (static_cast<double>(sample) - plain) * (static_cast<double>(sample) - plain);
  const double deviation = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
  const auto trimmed = static_cast<std::ptrdiff_t>(kTrimmed * count);
  const Nanos kept = std::accumulate(samples.begin() + trimmed, samples.end() - trimmed, Nanos{0});
  Estimate result;
  result.mean = kept / (static_cast<Nanos>(samples.size()) - 2 * trimmed);
  result.half_width = static_cast<Nanos>(kNormal95 * deviation / std::sqrt(count));
  result.jitter = plain > 0 ? deviation / plain : 0;
  result.samples = static_cast<std::int64_t>(samples.size());
  return result;
}

Calibration calibrate(std::span<const Observation> observations, std::int32_t stages) {
  Samples samples;
  samples.ops.resize(static_cast<std::size_t>(stages));
  samples.updates.resize(static_cast<std::size_t>(stages));
  for (const Observation& observation : observations)
    for (const Timeline& timeline : observation.steps) {
      collect_samples(samples, observation.program, timeline);
      collect_updates(samples, observation.program, timeline);
    }
  Calibration calibration;
  for (KindSamples& stage : samples.ops) {
    auto& estimates = calibration.ops.emplace_back();
    for (std::size_t kind = 0; kind < stage.size(); ++kind)
      estimates[kind] = estimate(std::move(stage[kind]));
  }
  for (UpdateSamples& stage : samples.updates)
    calibration.updates.push_back(
        {estimate(std::move(stage.optimizer)), estimate(std::move(stage.reduce_grad))});
  calibration.message = estimate(std::move(samples.message));
  calibration.op_gap = estimate(std::move(samples.op_gap));
  return calibration;
}

}  // namespace bubblescope::exec
