// Writes the predicted step, the expected range and the memory of the fullest rank.
#include "tools/inputs/model_headline.h"

#include <fmt/format.h>

#include "sim/ir/bytes_text.h"
#include "sim/model/known_errors.h"
#include "sim/predict/model_fit.h"
#include "traces/reports/known_errors_text.h"
#include "traces/text/time_axis.h"

namespace bubblescope::tools {

namespace {

std::string rate_text(double rate) {
  return rate < 100 ? fmt::format("{:.3g}", rate) : fmt::format("{:.0f}", rate);
}

/// The range in which the step is expected, and why the predicted step may lie outside it.
std::string expected_line(const PlacedModel& placed, Nanos step, double mfu) {
  const NearestErrors errors = find_nearest_errors(placed.on);
  if (!errors.known) return "expect       unknown: " + errors.why_none + "\n";
  const StepInterval interval = compute_interval(step, *errors.known);
  const auto mfu_of = [&](Nanos time) {
    return 100 * mfu * static_cast<double>(step) / static_cast<double>(time);
  };
  return fmt::format("expect       {} to {}, MFU {:.1f} to {:.1f} %: {}\n",
                     traces::format_time(interval.low), traces::format_time(interval.high),
                     mfu_of(interval.high), mfu_of(interval.low),
                     traces::known_errors_text(*errors.known, errors.unpublished_schedule));
}

std::string memory_line(const PlacedModel& placed, const BubbleReport& report) {
  const ModelFit fit = find_fit(placed, report);
  const Bytes usable = placed.on.usable_memory(static_cast<std::int32_t>(fit.rank));
  if (!placed.on.trains)
    return fmt::format(
        "memory       weights and buffers: {} of {} on rank {}; what forwards keep, such as keys "
        "and values, is not counted\n",
        format_bytes(fit.peak), format_bytes(usable), fit.rank);
  const std::string held =
      fmt::format("rank {} {} {} of {}", fit.rank, fit.fits() ? "holds" : "needs",
                  format_bytes(fit.peak), format_bytes(usable));
  const Gradients gradients = placed.on.parallel.gradients;
  const std::string with =
      gradients == Gradients::kFp32 ? "" : " with " + describe_gradients(gradients);
  if (!fit.fits())
    return fmt::format("memory       DOES NOT FIT{}: {}, {} too much\n", with, held,
                       format_bytes(-fit.head_room));
  return fmt::format("memory       fits{}: {}, which leaves {}{}\n", with, held,
                     format_bytes(fit.head_room),
                     is_tight(fit.peak, fit.head_room)
                         ? fmt::format("; predicted memory is off by {:.1f} % on published "
                                       "runs, so that it may not fit",
                                       100 * kMemoryError)
                         : "");
}

}  // namespace

std::string describe_gradients(Gradients gradients) {
  switch (gradients) {
    case Gradients::kFp32: return "32-bit gradients";
    case Gradients::kBf16: return "16-bit gradients";
    case Gradients::kLean: return "16-bit gradients and lean master weights";
    case Gradients::kPure: return "16-bit gradients and moments, and no master weights";
  }
  return "";
}

std::string write_model_headline(const PlacedModel& placed, const BubbleReport& report) {
  const ModelRates rates = compute_model_rates(placed.on, report.shape, report.makespan);
  // 8-bit GEMMs can exceed it.
  const char* const peak = placed.on.matrices == MatrixType::kFp8 ? " of the 16-bit peak" : "";
  return fmt::format("{}\npredicted    {} per step, MFU {:.1f} %{}, {} tokens/s per device\n",
                     describe_model(placed.on), traces::format_time(report.makespan),
                     100 * rates.mfu, peak, rate_text(rates.tokens_per_second / rates.devices)) +
         expected_line(placed, report.makespan, rates.mfu) + memory_line(placed, report);
}

}  // namespace bubblescope::tools
