// Predicts a step again with serial pairs.
#include "sim/predict/serial_step.h"

#include "sim/ir/timeline.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/departures.h"
#include "sim/predict/predict.h"

namespace bubblescope::inline sim {

std::optional<Nanos> find_serial_step(const ValidSchedule& schedule, const Config& config) {
  if (!interleaves_pairs(schedule, config) || config.policy || !config.arrivals.empty()) return {};
  Config serial = config;
  serial.lower.overlap = Overlap::kSerial;
  serial.detail = Detail::kBrief;  // includes peaks, on which gradients depend
  const Program program = lower_or_refuse(schedule, choose_lowering(schedule, serial));
  return find_step_bounds(predict_step(schedule, program, serial).timeline).end;
}

}  // namespace bubblescope::inline sim
