// File formats: one source file per format, found by name through the registry.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/program.h"
#include "sim/ir/pytorch_lists.h"
#include "sim/ir/registry.h"
#include "sim/ir/schedule.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/timing.h"
#include "traces/files/assumptions.h"
#include "traces/files/cause_words.h"
#include "traces/files/change_table.h"
#include "traces/files/file.h"
#include "traces/files/job_summary.h"
#include "traces/files/worker_map.h"

namespace bubblescope::traces {

/// Everything known about one step, for the formats that show it.
struct StepRecord {
  const ValidSchedule& schedule;
  const Program& program;
  const Timeline& timeline;
  const BubbleReport& report;
  MadeWith made = {};
  std::optional<JobSummary> job = {};  ///< of all measured steps, where this is their median one
};

/// A schedule with its program and the time of each instruction.
struct PricedSchedule {
  const ValidSchedule& schedule;
  const Program& program;
  const Timing& timing;
};

/// One of the files that a format writes: the suffix after the given name, and the content.
struct FilePart {
  std::string suffix;
  std::string content;
};

/// A way to write a schedule, which its name chooses.
struct ScheduleFormat {
  std::string name;
  std::vector<std::string> aliases;
  std::string summary;
  /// Writes any schedule, legal or not. Empty where only legal ones can be written.
  std::function<std::string(const Schedule&)> write;
  /// Reads it back; empty where the format is only written. Throws Error with file, row, column,
  /// text.
  std::function<Schedule(std::string_view text, const std::string& file)> read;
  /// Whether the first bytes of a file look like this format; empty where the format is only
  /// written.
  std::function<bool(std::string_view text)> recognize;
  bool for_runtimes = false;  ///< a runtime will load it: only legal schedules are written
  /// For formats that contain costs. Returns one part without suffix, or several files.
  std::function<std::vector<FilePart>(const PricedSchedule&)> write_priced = {};
  /// For PyTorch's action lists, of the given release and with the given receives.
  std::function<std::string(const ValidSchedule&, const PytorchListOptions&)> write_lists = {};
};

/// One of the steps that a file shows.
struct ShownStep {
  std::string label;  ///< "1f1b", "1f1b measured"
  StepRecord record;
  std::vector<Bytes> message_bytes = {};         ///< per instruction; empty where unknown
  std::optional<std::size_t> predicted_by = {};  ///< index of a measured step's prediction
};

/// The steps that a command shows: one, or several side by side.
struct ReportSet {
  std::string command;  ///< the command line that made it; empty where there is none
  std::vector<ShownStep> steps;
  WorkerMap workers = {};     ///< of the measured steps that a shown one stands for
  CausesInWords causes = {};  ///< of these steps; neither causes nor a remark: not known
  std::vector<ChangeTable> changes = {};  ///< from the first step's run to the second one's
};

/// A way to write a step that was timed: as a trace, a picture, a table and so on.
struct TimelineFormat {
  std::string name;  ///< the flag without its dashes
  std::vector<std::string> aliases;
  std::string summary;
  /// Empty for formats that stream.
  std::function<std::string(const StepRecord&, const std::string& file)> write;
  /// Its file endings (before .gz). A format with several endings chooses its output by the ending;
  /// a file with the ending of another format is refused.
  std::vector<std::string> endings = {};
  /// For formats with several steps in one file, which is never in memory as a whole.
  std::function<void(const ReportSet&, const Sink&)> stream = {};
};

}  // namespace bubblescope::traces
