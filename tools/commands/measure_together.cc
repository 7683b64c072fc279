// Alternates between programs.
#include "tools/commands/measure_together.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "exec/runtime/blob.h"
#include "sim/analysis/analyze.h"
#include "tools/commands/measured_job.h"

namespace bubblescope::tools {

namespace {

using Clock = std::chrono::steady_clock;

/// The steps of the first of two blocks.
std::int32_t first_half(const RunOptions& run) { return (run.steps + 1) / 2; }

/// Decides when everything is warm. Processes of one run must take equal decisions, so they follow
/// the lowest rank.
class WarmUp {
 public:
  explicit WarmUp(const RunContext& context) : context_(context) {}

  /// Whether a program that has run this many steps has to run another one.
  bool wants(std::int32_t steps) const {
    if (steps < context_.run.warmup) return true;
    if (context_.run.warmup_time == 0) return false;
    const bool is_cold = Clock::now() - begin_ < std::chrono::nanoseconds(context_.run.warmup_time);
    if (!context_.processes.here()) return is_cold;
    exec::BlobWriter writer;
    writer.write(is_cold);
    const std::vector<exec::Blob> all = context_.processes.gather(writer.take());
    return exec::BlobReader(all[0]).read<bool>();
  }

 private:
  const RunContext& context_;
  Clock::time_point begin_ = Clock::now();
};

/// All programs exist at once; a round runs a step of each.
class Rounds {
 public:
  explicit Rounds(std::span<const Measurable> programs) {
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
    return true;
  }

  std::vector<Measurement> finish(const OnMeasured& on_measured, std::size_t first_block) {
    exec::SerialReferences references;
    std::vector<Measurement> measurements;
    if (broken_) {
      measurements.push_back(std::move(*jobs_[*broken_]).finish(nullptr));
      return measurements;
    }
    for (std::unique_ptr<MeasuredJob>& job : jobs_) {
      measurements.push_back(std::move(*job).finish(&references));
      job.reset();
      measurements.back().first_block = first_block;
      on_measured(measurements.size() - 1, measurements.back());
    }
    return measurements;
  }

 private:
  std::vector<std::unique_ptr<MeasuredJob>> jobs_;
  std::optional<std::size_t> broken_;
};

std::vector<Measurement> alternate_steps(std::span<const Measurable> programs,
                                         const OnMeasured& on_measured) {
  const RunContext& context = programs[0].context;
  Rounds rounds(programs);
  const WarmUp warm_up(context);
  bool runs = true;
  for (std::int32_t step = 0; runs && warm_up.wants(step); ++step) runs = rounds.run(false, false);
  const std::int32_t first_block = first_half(context.run);
  for (std::int32_t step = 0; runs && step < context.run.steps; ++step)
    runs = rounds.run(true, step >= first_block);
  return rounds.finish(on_measured,
                       first_block < context.run.steps ? static_cast<std::size_t>(first_block) : 0);
}

/// Runs one block of a program.
Measurement measure_block(const Measurable& program, const WarmUp& warm_up, std::int32_t steps,
                          exec::SerialReferences* references) {
  MeasuredJob job(program.schedule, program.program, program.context);
  bool runs = true;
  for (std::int32_t step = 0; runs && warm_up.wants(step); ++step) runs = job.run_step(false);
  for (std::int32_t step = 0; runs && step < steps; ++step) runs = job.run_step(true);
  return std::move(job).finish(references);
}

/// Adds the steps of a second block to those of the first, and shows the median of all.
void append(Measurement& measurement, Measurement second) {
  if (second.breakdown) {
    measurement = std::move(second);
    return;
  }
  measurement.first_block = measurement.steps.size();
  std::move(second.steps.begin(), second.steps.end(), std::back_inserter(measurement.steps));
  measurement.makespans.insert(measurement.makespans.end(), second.makespans.begin(),
                               second.makespans.end());
  const Timeline& shown = exec::median_step(measurement.steps);
  const bool is_new =
      static_cast<std::size_t>(&shown - measurement.steps.data()) >= measurement.first_block;
  measurement.step.timeline = shown;
  TimedStep& step = measurement.step;
  step.report = analyze(step.schedule, step.program, step.timeline, step.models.memory);
  for (std::size_t rank = 0; rank < measurement.peak_bytes.size(); ++rank)
    step.report.ranks[rank].peak.bytes = measurement.peak_bytes[rank];
  if (is_new) measurement.devices = std::move(second.devices);
}

std::vector<Measurement> alternate_blocks(std::span<const Measurable> programs,
                                          const OnMeasured& on_measured) {
  const RunOptions& run = programs[0].context.run;
  const WarmUp warm_up(programs[0].context);
  exec::SerialReferences references;
  std::vector<Measurement> measurements;
  for (std::size_t index = 0; index < programs.size(); ++index) {
    measurements.push_back(measure_block(programs[index], warm_up, first_half(run), &references));
    if (measurements.back().breakdown) return {std::move(measurements.back())};
    on_measured(index, measurements.back());
  }
  if (run.steps < 2) return measurements;
  for (std::size_t index = 0; index < programs.size(); ++index) {
    append(measurements[index],
           measure_block(programs[index], warm_up, run.steps - first_half(run), nullptr));
    if (measurements[index].breakdown) return {std::move(measurements[index])};
    on_measured(index, measurements[index]);
  }
  return measurements;
}

}  // namespace

std::vector<Measurement> measure_together(std::span<const Measurable> programs,
                                          const OnMeasured& on_measured) {
  const exec::BackendDef& def = exec::find_backend(programs[0].context.run.backend);
  const bool is_one_process_of_the_host = !def.start && !def.join;
  return is_one_process_of_the_host ? alternate_steps(programs, on_measured)
                                    : alternate_blocks(programs, on_measured);
}

}  // namespace bubblescope::tools
