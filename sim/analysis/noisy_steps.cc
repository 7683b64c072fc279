// Draws the scenarios of the noise and simulates them in batches.
#include "sim/analysis/noisy_steps.h"

#include <functional>

#include "sim/analysis/step_times.h"
#include "sim/engine/simulate_batch.h"

namespace bubblescope::inline sim {

StepTimes simulate_noise(const Program& program, const Timing& timing, const CostModel& costs,
                         const Noise& noise, std::size_t scenarios) {
  const NoiseModel model(program, timing.fixed(), noise, price_bytes(program, costs));
  const auto batch = [&](std::size_t block) { return NoisyBatch(model, block); };
  if (!timing.traffic) return summarize(simulate_batches(program, scenarios, batch, timing.gaps));
  std::function<BatchDurations(std::size_t)> lengths;
  if (noise.sequence_length_jitter > 0)
    lengths = [&](std::size_t block) {
      return [batch = NoisyBatch(model, block)](InstructionId id) { return batch.length(id); };
    };
  return summarize(
      simulate_batches(program, *timing.traffic, scenarios, batch, lengths, timing.gaps));
}

}  // namespace bubblescope::inline sim
