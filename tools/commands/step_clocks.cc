// Scales times by clocks.
#include "tools/commands/step_clocks.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "sim/ir/quantile.h"

namespace bubblescope::tools {

namespace {

constexpr double kEqual = 0.001;

}  // namespace

std::optional<double> find_sm_mhz(const Measurement& measurement) {
  const std::vector<double> clocks = exec::find_step_clocks(measurement.devices);
  if (clocks.empty() || clocks.size() != measurement.steps.size()) return std::nullopt;
  return std::accumulate(clocks.begin(), clocks.end(), 0.0) / static_cast<double>(clocks.size());
}

std::optional<double> find_median_sm_mhz(const std::vector<const Measurement*>& measurements) {
  std::vector<double> all;
  for (const Measurement* const measurement : measurements) {
    if (!find_sm_mhz(*measurement)) return std::nullopt;
    const std::vector<double> clocks = exec::find_step_clocks(measurement->devices);
    all.insert(all.end(), clocks.begin(), clocks.end());
  }
  if (all.empty()) return std::nullopt;
  return quantile(std::move(all), 50);
}

void scale_to_clock(std::vector<Timeline>& steps, const exec::MonitoredDevices& devices,
                    double sm_mhz) {
  const std::vector<double> clocks = exec::find_step_clocks(devices);
  if (clocks.size() != steps.size()) return;
  for (std::size_t step = 0; step < steps.size(); ++step)
    for (std::vector<Nanos>* const times : {&steps[step].start, &steps[step].end})
      for (Nanos& time : *times)
        time = std::llround(static_cast<double>(time) * clocks[step] / sm_mhz);
}

std::optional<PredictInputs> at_clock(const PredictInputs& inputs, std::int32_t ranks,
                                      double sm_mhz) {
  const std::optional<CostTable>& costs = inputs.files().costs;
  if (!costs || !costs->sm_mhz) return std::nullopt;
  const double factor = *costs->sm_mhz / sm_mhz;
  if (std::abs(factor - 1) <= kEqual) return std::nullopt;
  return inputs.with([&](PredictOptions& flags) {
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      flags.noise.slow_ranks.push_back({rank, factor});
  });
}

}  // namespace bubblescope::tools
