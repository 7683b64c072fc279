// The files that a step is written to: --trace, --svg, --save and so on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/options.h"
#include "tools/predict.h"

namespace bubblescope {

/// Throws Error where a file cannot be created because its folder is not there: said before the
/// work, not after it.
void expect_folder(const std::string& path);

enum class Steps : std::uint8_t { kOne, kSeveral };

/// Throws Error for a file name that is empty, is given twice, is of no folder, or has another
/// format's ending, and for stdout where that cannot hold several steps.
/// `stdout_is_taken`: the report itself goes there in a form that nothing else may stand in.
void expect_sound(const ExportOptions& exports, bool stdout_is_taken, Steps steps = Steps::kOne);

/// Writes a file and says so, on stderr; not of stdout, which is "-".
void write_and_say(const std::string& path, const std::string& content,
                   const std::string& remark = "");

/// A step under the name that it has beside others.
struct NamedStep {
  std::string name;
  const Step& step;
  std::optional<std::size_t> predicted_by = {};  ///< of a measured one: which other, from 0
};

/// Writes the files that were asked for, which say the command line that made them. Several steps
/// stand in one file where its format can hold them; else each has its own, with the step's name
/// before the ending.
void write_exports(const std::vector<NamedStep>& steps, const ExportOptions& exports,
                   const std::string& command);

/// The same of the only step of a command.
void write_exports(const Step& step, const ExportOptions& exports, const std::string& command);

}  // namespace bubblescope
