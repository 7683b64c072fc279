// Computes times to first token, from arrivals and the ends of last forwards, and the throughput.
#include "sim/analysis/serving.h"

#include <algorithm>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

ServingReport measure_serving(const ValidSchedule& schedule, const Program& program,
                              const Timeline& timeline, std::span<const Nanos> arrivals) {
  std::vector<Nanos> end(arrivals.size(), 0);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Op& op = program.instructions[id].op;
    if (op.kind != OpKind::kForward || !schedule->is_last(op.stage)) continue;
    Nanos& last = end[static_cast<std::size_t>(op.microbatch)];
    last = std::max(last, timeline.end[id]);
  }
  ServingReport serving;
  double sum = 0;
  for (std::size_t microbatch = 0; microbatch < end.size(); ++microbatch) {
    serving.first_token.push_back(end[microbatch] - arrivals[microbatch]);
    sum += static_cast<double>(serving.first_token.back());
  }
  serving.first_token_p50 = quantile(serving.first_token, 50);
  serving.first_token_p95 = quantile(serving.first_token, 95);
  serving.first_token_max = quantile(serving.first_token, 100);
  serving.first_token_mean = sum / static_cast<double>(end.size());
  const Nanos first = *std::min_element(arrivals.begin(), arrivals.end());
  const Nanos time = *std::max_element(end.begin(), end.end()) - first;
  serving.microbatches_per_second =
      time == 0 ? 0 : static_cast<double>(end.size()) * 1e9 / static_cast<double>(time);
  return serving;
}

}  // namespace bubblescope::inline sim
