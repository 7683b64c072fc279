// The files that a step is written to: --trace, --svg, --save and so on.
#pragma once

#include "tools/options.h"
#include "tools/predict.h"

namespace bubblescope {

/// Throws Error where a file cannot be created because its folder is not there: said before the
/// work, not after it.
void expect_folder(const std::string& path);

/// Throws Error for a file name that is empty, is given twice, is of no folder, or has another
/// format's ending.
/// `stdout_is_taken`: the report itself goes there in a form that nothing else may stand in.
void expect_sound(const ExportOptions& exports, bool stdout_is_taken);

/// Writes a file and says so, on stderr; not of stdout, which is "-".
void write_and_say(const std::string& path, const std::string& content,
                   const std::string& remark = "");

/// Writes the files that were asked for.
void write_exports(const Step& step, const ExportOptions& exports);

}  // namespace bubblescope
