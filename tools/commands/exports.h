// Writes the files of a step: --trace, --svg, --save and so on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/flags/options.h"
#include "tools/inputs/predict.h"
#include "traces/files/cause_words.h"
#include "traces/files/change_table.h"
#include "traces/files/worker_map.h"

namespace bubblescope::tools {

/// Throws Error where the folder of a file does not exist, before the work instead of after it.
void expect_folder(const std::string& path);

enum class Steps : std::uint8_t { kOne, kSeveral };

/// Whether any file was asked for.
bool writes_files(const ExportOptions& exports);

/// Throws Error for a file name that is empty, given twice, in a missing folder, or with another
/// format's ending, and for stdout where that cannot hold several steps. `stdout_is_taken`: the
/// report itself goes there in a form that allows nothing else.
void check_export_paths(const ExportOptions& exports, bool stdout_is_taken,
                        Steps steps = Steps::kOne);

/// Throws Error where a file that is read would be overwritten.
void expect_inputs_kept(const ExportOptions& exports, const std::vector<std::string>& inputs);

/// Writes a file and reports it on stderr, except for stdout ("-").
void write_and_report(const std::string& path, const std::string& content,
                      const std::string& remark = "");

/// A step with the name that tells it from others.
struct NamedStep {
  std::string name;
  const TimedStep& step;
  std::optional<std::size_t> predicted_by = {};  ///< index of a measured step's prediction
};

/// Findings on all measured steps, which formats show with the step that stands for them.
struct MeasuredFindings {
  traces::WorkerMap workers = {};
  traces::CausesInWords causes = {};
  std::vector<traces::ChangeTable> changes = {};
};

/// Writes the files that were asked for, with the command line in them, and the findings on
/// measured steps in formats that show them. Several steps share one file if its format can hold
/// them; else each has its own, with the step's name before the ending.
void write_exports(const std::vector<NamedStep>& steps, const ExportOptions& exports,
                   const std::string& command, const MeasuredFindings& findings = {});

/// The same for the only step of a command.
void write_exports(const TimedStep& step, const ExportOptions& exports, const std::string& command);

}  // namespace bubblescope::tools
