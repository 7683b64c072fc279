// Alternates between programs.
#include "tools/commands/measure_together.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <memory>
#include <utility>

#include "exec/runtime/blob.h"
#include "tools/commands/measured_job.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

using Clock = std::chrono::steady_clock;

/// Returns the number of steps in the first of two blocks.
std::int32_t first_half(const RunOptions& run) { return (run.steps + 1) / 2; }

/// Decides when everything is warm: after some steps, some time, and until the device's clock is
/// steady. Processes of one run must take equal decisions, so they follow the lowest rank.
class WarmUp {
 public:
  explicit WarmUp(const RunContext& context) : context_(context) {}

  /// Whether a program that has run this many steps has to run another one. `sm_mhz` is the clock
  /// now, if it is known.
  bool wants(std::int32_t steps, std::optional<double> sm_mhz) {
    if (steps < context_.run.warmup) return true;
    if (context_.run.warmup_time == 0) return false;
    const bool is_cold = is_cold_here(sm_mhz);
    if (!context_.processes.here()) return is_cold;
    const std::vector<exec::Blob> all = context_.processes.gather(exec::blob_of(is_cold));
    return exec::BlobReader(all[0]).read<bool>();
  }

 private:
  static constexpr int kMaxExtension = 2;  ///< times the warm-up time, at most
  static constexpr double kSteady = 0.01;

  bool is_cold_here(std::optional<double> sm_mhz) {
    const std::chrono::nanoseconds min_time(context_.run.warmup_time);
    const Clock::time_point now = Clock::now();
    if (sm_mhz) clocks_.emplace_back(now, *sm_mhz);
    while (clocks_.size() > 1 && clocks_[1].first + min_time / 4 < now) clocks_.pop_front();
    if (now - begin_ < min_time) return true;
    return !is_steady() && now - begin_ < kMaxExtension * min_time;
  }

  /// Whether the clock has not moved in the last quarter of the time.
  bool is_steady() const {
    double low = std::numeric_limits<double>::infinity();
    double high = 0;
    for (const auto& [time, mhz] : clocks_) {
      low = std::min(low, mhz);
      high = std::max(high, mhz);
    }
    return clocks_.empty() || high - low <= kSteady * high;
  }

  const RunContext& context_;
  Clock::time_point begin_ = Clock::now();
  std::deque<std::pair<Clock::time_point, double>> clocks_;
};

/// All programs exist at once; a round runs a step of each.
class Rounds {
 public:
  explicit Rounds(std::span<const Measurable> programs) : programs_(programs) {
    for (const Measurable& each : programs)
      jobs_.push_back(std::make_unique<MeasuredJob>(each.schedule, each.program, each.context));
  }

  /// Returns false if a run broke down, which is then the last one.
  bool run(bool is_measured, bool backwards) {
    for (std::size_t at = 0; at < jobs_.size(); ++at) {
      const std::size_t index = backwards ? jobs_.size() - 1 - at : at;
      if (jobs_[index]->run_step(is_measured)) continue;
      broken_ = index;
      return false;
    }
    ++complete_;
    return true;
  }

  std::optional<double> read_sm_mhz() const { return jobs_[0]->read_sm_mhz(); }

  /// The message of a device that cannot hold all programs; null otherwise. The first step
  /// allocates activations, and the second one a graph, so the first two rounds decide.
  const std::string* find_lack_of_memory() const {
    if (!broken_ || complete_ > 1) return nullptr;
    const exec::Breakdown& breakdown = *jobs_[*broken_]->breakdown();
    return breakdown.fault == Fault::kMemory ? &breakdown.message : nullptr;
  }

  void report_first_block(const OnMeasured& on_measured) {
    for (std::size_t index = 0; index < jobs_.size(); ++index)
      on_measured(index, jobs_[index]->report_so_far());
  }

  std::vector<Measurement> finish(const OnMeasured& on_measured, std::size_t first_block) {
    exec::SerialReferences references;
    std::vector<Measurement> measurements;
    if (broken_) {
      measurements.push_back(std::move(*jobs_[*broken_]).finish(nullptr));
      report_step(measurements.back(), policy_of(*broken_));
      return measurements;
    }
    for (std::unique_ptr<MeasuredJob>& job : jobs_) {
      measurements.push_back(std::move(*job).finish(&references));
      report_step(measurements.back(), policy_of(measurements.size() - 1));
      job.reset();
      measurements.back().first_block = first_block;
      on_measured(measurements.size() - 1, measurements.back());
    }
    return measurements;
  }

 private:
  std::optional<ReadyPriority> policy_of(std::size_t index) const {
    return programs_[index].context.inputs.config().policy;
  }

  std::span<const Measurable> programs_;
  std::vector<std::unique_ptr<MeasuredJob>> jobs_;
  std::optional<std::size_t> broken_;
  std::int64_t complete_ = 0;  ///< rounds
};

void tell_why_apart(const std::string& failure) {
  print_message(
      "bubblescope: the device cannot hold all schedules at once ({}), so they do not alternate "
      "step by step but in two blocks each\n",
      failure);
}

/// Empty if the programs are on a device that cannot hold all of them; says so.
std::optional<Rounds> make_rounds(std::span<const Measurable> programs) {
  try {
    return std::optional<Rounds>(std::in_place, programs);
  } catch (const Error& error) {
    if (programs.size() == 1 || error.fault() != Fault::kMemory) throw;
    tell_why_apart(error.what());
    return std::nullopt;
  }
}

/// Empty if the programs are on a device that cannot hold all of them; says so.
std::optional<std::vector<Measurement>> alternate_steps(std::span<const Measurable> programs,
                                                        const OnMeasured& on_measured) {
  const RunContext& context = programs[0].context;
  std::optional<Rounds> rounds = make_rounds(programs);
  if (!rounds) return std::nullopt;
  WarmUp warm_up(context);
  bool runs = true;
  for (std::int32_t step = 0; runs && warm_up.wants(step, rounds->read_sm_mhz()); ++step)
    runs = rounds->run(false, false);
  const std::int32_t first_block = first_half(context.run);
  const bool has_two = first_block < context.run.steps;
  for (std::int32_t step = 0; runs && step < context.run.steps; ++step) {
    if (step == first_block) rounds->report_first_block(on_measured);
    runs = rounds->run(true, step >= first_block);
  }
  if (const std::string* const lack = rounds->find_lack_of_memory(); lack && programs.size() > 1) {
    tell_why_apart(*lack);
    return std::nullopt;
  }
  return rounds->finish(on_measured, has_two ? static_cast<std::size_t>(first_block) : 0);
}

/// Runs one block of a program. Its measurement has no report yet.
Measurement measure_block(const Measurable& program, WarmUp& warm_up, std::int32_t steps,
                          exec::SerialReferences* references) {
  MeasuredJob job(program.schedule, program.program, program.context);
  bool runs = true;
  for (std::int32_t step = 0; runs && warm_up.wants(step, job.read_sm_mhz()); ++step)
    runs = job.run_step(false);
  for (std::int32_t step = 0; runs && step < steps; ++step) runs = job.run_step(true);
  return std::move(job).finish(references);
}

/// Adds the steps of a second block to those of the first, and shows the median of all. Neither has
/// a report yet: under a policy, each report renumbers the steps.
void append(Measurement& measurement, Measurement second) {
  if (second.breakdown) {
    measurement = std::move(second);
    return;
  }
  measurement.first_block = measurement.steps.size();
  std::move(second.steps.begin(), second.steps.end(), std::back_inserter(measurement.steps));
  measurement.makespans.insert(measurement.makespans.end(), second.makespans.begin(),
                               second.makespans.end());
  measurement.step.timeline = exec::median_step(measurement.steps);
  measurement.devices = exec::join(std::move(measurement.devices), second.devices);
}

std::vector<Measurement> alternate_blocks(std::span<const Measurable> programs,
                                          const OnMeasured& on_measured) {
  const RunContext& context = programs[0].context;
  const std::int32_t first_block = first_half(context.run);
  WarmUp warm_up(context);
  exec::SerialReferences references;
  const auto reported = [&](std::size_t index, Measurement measurement) {
    report_step(measurement, programs[index].context.inputs.config().policy);
    return measurement;
  };
  std::vector<Measurement> measurements;  // without reports until they are complete
  for (std::size_t index = 0; index < programs.size(); ++index) {
    measurements.push_back(measure_block(programs[index], warm_up, first_block, &references));
    const Measurement so_far = reported(index, measurements.back());
    if (so_far.breakdown) return {so_far};
    on_measured(index, so_far);
    if (first_block == context.run.steps) measurements.back() = so_far;
  }
  if (first_block == context.run.steps) return measurements;
  for (std::size_t index = 0; index < programs.size(); ++index) {
    Measurement& all = measurements[index];
    append(all, measure_block(programs[index], warm_up, context.run.steps - first_block, nullptr));
    all = reported(index, std::move(all));
    if (all.breakdown) return {std::move(all)};
    on_measured(index, all);
  }
  return measurements;
}

}  // namespace

std::vector<Measurement> measure_together(std::span<const Measurable> programs,
                                          const OnMeasured& on_measured) {
  const exec::BackendDef& def = exec::find_backend(programs[0].context.run.backend);
  if (def.join) return alternate_blocks(programs, on_measured);
  if (auto measurements = alternate_steps(programs, on_measured)) return *std::move(measurements);
  return alternate_blocks(programs, on_measured);
}

}  // namespace bubblescope::tools
