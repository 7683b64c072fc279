// Reports on logs.
#include "tools/commands/timer_logs.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "traces/files/format.h"
#include "traces/measured/timer_log.h"

namespace bubblescope::tools {

std::optional<std::string> report_timer_log(const std::vector<std::string>& paths,
                                            const std::string& format) {
  std::error_code ignored;
  // A stream can be read only once, and traces are too large to be read twice.
  if (paths.size() != 1 || !std::filesystem::is_regular_file(paths[0], ignored)) return {};
  const std::filesystem::path name(paths[0]);
  for (const char* ending : {".json", ".gz", ".sqlite", ".csv", ".jsonl"})
    if (name.extension() == ending) return {};
  std::ifstream file(name, std::ios::binary);
  const int first = file.get();
  if (first == '{' || first == 'S') return {};  // json, or "SQLite format 3"
  const std::string text = traces::read_file(paths[0]);
  if (!traces::is_timer_log(text)) return {};
  const traces::TimerLog log = traces::read_timer_log(text, paths[0]);
  if (format == "json") return traces::write_timer_log_json(log);
  if (format == "csv") return traces::write_timer_log_csv(log);
  return traces::write_timer_log_text(log);
}

}  // namespace bubblescope::tools
