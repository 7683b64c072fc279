// Sums the durations of every op over its slices.
#include "sim/analysis/op_samples.h"

#include <map>
#include <tuple>

namespace bubblescope::inline sim {

std::vector<OpSample> collect_samples(std::span<const ReplicatedStep> steps, std::int32_t stages) {
  std::vector<OpSample> samples;
  for (std::size_t step = 0; step < steps.size(); ++step)
    for (std::size_t replica = 0; replica < steps[step].size(); ++replica) {
      const ObservedStep& observed = steps[step][replica];
      std::map<std::tuple<std::int32_t, std::int32_t, OpKind>, OpSample> found;
      observed.for_each_compute([&](InstructionId id, const Instruction& one) {
        OpSample& sample = found[{one.op.stage, one.op.microbatch, one.op.kind}];
        sample = {step,        replica,    one.rank, one.op.stage % stages, one.op.microbatch,
                  one.op.kind, sample.time};
        sample.time += static_cast<double>(observed.duration_of(id));
      });
      for (const auto& [_, sample] : found) samples.push_back(sample);
    }
  return samples;
}

}  // namespace bubblescope::inline sim
