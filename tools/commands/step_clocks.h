// Brings measurements at different clocks together. A device lowers the clock of its
// multiprocessors when it is hot or draws too much power, and every op takes as many cycles as
// before:
//
//   step 1 at 1980 MHz: 10.0 ms    at the median clock, 1900 MHz: 10.42 ms
//   step 2 at 1900 MHz: 10.4 ms                                   10.40 ms
//   step 3 at 1800 MHz: 11.0 ms                                   10.42 ms
#pragma once

#include <optional>
#include <vector>

#include "tools/commands/measure.h"

namespace bubblescope::tools {

/// The mean SM clock of the measured steps; empty if it is not known of every step and device.
std::optional<double> find_sm_mhz(const Measurement& measurement);

/// The median SM clock over the steps of all measurements; empty if it is not known of each.
std::optional<double> find_median_sm_mhz(const std::vector<const Measurement*>& measurements);

/// Scales the times of every step to this clock. Steps of an unknown clock stay as they are.
void scale_to_clock(std::vector<Timeline>& steps, const exec::MonitoredDevices& devices,
                    double sm_mhz);

/// Returns the inputs with the op times of these ranks scaled to this clock; empty if the clock of
/// the costs is unknown or within a thousandth of it.
std::optional<PredictInputs> at_clock(const PredictInputs& inputs, std::int32_t ranks,
                                      double sm_mhz);

}  // namespace bubblescope::tools
