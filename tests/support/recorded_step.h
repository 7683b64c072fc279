// A step with all that is known of it, for tests of what draws and writes it.
#pragma once

#include <string>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/model/cost_model.h"
#include "traces/files/format.h"

namespace bubblescope::tests {

struct RecordedStep {
  ValidSchedule schedule;
  Program program = {};
  Timeline timeline = {};
  BubbleReport report = {};
  traces::MadeWith made = {};

  traces::StepRecord record() const { return {schedule, program, timeline, report, made}; }
};

/// A Shape that can be written in a line.
struct StepShape {
  std::int32_t ranks = 1;
  std::int32_t chunks = 1;
  std::int32_t microbatches = 1;
};

/// Lowers, simulates and analyzes. Throws Error when there is a deadlock.
RecordedStep record_step(const Schedule& schedule, const UniformCost& cost = {},
                         const LowerOptions& options = {});

/// The same for a registered schedule: `record_step("1f1b", {.ranks = 4, .microbatches = 8})`.
RecordedStep record_step(const std::string& name, const StepShape& shape,
                         const UniformCost& cost = {}, const LowerOptions& options = {});

/// The same for the text form: `record_text("0F0 0B0 | 1F0 1B0")`.
RecordedStep record_text(const std::string& text, const UniformCost& cost = {},
                         const LowerOptions& options = {});

/// Odd times, of which none is a multiple of another, so that stages differ and ranks wait for ops
/// and for messages; with 2.5 ms there are several messages on one link at a time.
UniformCost uneven_cost(Nanos message = 250'011);

/// Every registered schedule that takes it, with 4 ranks and 8 micro-batches; sequences are cut
/// into `slices` where the schedule cuts them.
std::vector<RecordedStep> every_schedule(const UniformCost& cost, const LowerOptions& options = {},
                                         std::int32_t slices = 1);

/// Every registered schedule, 1F1B in some message modes, and random ones.
std::vector<RecordedStep> many_steps(const UniformCost& cost);

/// The file that a registered timeline format writes; `file` is the name it is asked to write for.
std::string write_as(const std::string& format, const RecordedStep& step,
                     const std::string& file = "file");

/// The whole output of a format that streams.
std::string write_report_set(const std::string& format, const traces::ReportSet& report_set);

}  // namespace bubblescope::tests
