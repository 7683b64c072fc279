// One schedule on a backend, ready to run steps: its work, its results and its verification.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "exec/training/serial_references.h"
#include "tools/commands/measure.h"

namespace bubblescope::tools {

class MeasuredJob {
 public:
  /// `context` is not copied. Throws Error if the backend cannot run the program.
  MeasuredJob(const ValidSchedule& schedule, const Program& program, const RunContext& context);
  ~MeasuredJob();
  MeasuredJob(const MeasuredJob&) = delete;
  MeasuredJob& operator=(const MeasuredJob&) = delete;

  /// Runs a step, and keeps it if it is measured. Returns false if the run broke down; then no
  /// other step may run.
  bool run_step(bool is_measured);

  /// The SM clock of the devices now; empty if it is not known.
  std::optional<double> read_sm_mhz() const {
    return monitor_ ? monitor_->read_sm_mhz() : std::nullopt;
  }
  /// Why the last step broke down; empty if it did not.
  const std::optional<exec::Breakdown>& breakdown() const { return series_->execution().breakdown; }

  /// The results so far, without a verification and the state of devices. At least one step must
  /// have been measured.
  Measurement report_so_far() const;

  /// Requires a training.
  const exec::ResumableTraining& resumable() const { return *resumable_; }
  /// The settings on which the training's numbers depend. Requires a training.
  exec::TrainingIdentity identity() const;

  /// Ends the run and collects its results, without a report (report_step()); without a
  /// verification if `references` is null. At least one step must have been measured, or have
  /// broken down.
  Measurement finish(exec::SerialReferences* references) &&;

 private:
  exec::Execution take_steps();
  void fill_in(Measurement& measurement, exec::Execution execution) const;
  void collect_weights(exec::SerialReferences* references);
  void verify(exec::SerialReferences* references, std::int32_t replicas);
  /// Counts the steps with those of the run that was resumed.
  std::int32_t steps_trained() const {
    return resumable_ ? resumable_->steps() : warmups_ + measured_;
  }

  const RunContext& context_;
  Measurement measurement_;
  std::vector<Nanos> durations_;  ///< of ops that only take their time
  std::unique_ptr<exec::Training> training_;
  std::optional<exec::Job> job_;
  std::optional<exec::ResumableTraining> resumable_;
  std::unique_ptr<exec::Backend> own_backend_;
  std::optional<exec::DeviceMonitor> monitor_;
  std::optional<exec::StepSeries> series_;
  std::int32_t warmups_ = 0;
  std::int32_t measured_ = 0;
};

/// Reports on the step that is shown, once all steps of a measurement are known. Under a policy its
/// Program is then the one in whose order that step ran.
void report_step(Measurement& measurement, std::optional<ReadyPriority> policy);

}  // namespace bubblescope::tools
