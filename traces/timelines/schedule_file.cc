// Reads schedules and the schedules of timelines.
#include "traces/timelines/schedule_file.h"

#include <fmt/format.h>

#include <utility>

#include "sim/ir/error.h"
#include "traces/files/file.h"
#include "traces/files/format.h"
#include "traces/files/looks_like_trace.h"
#include "traces/timelines/timeline_file.h"

namespace bubblescope::traces {

ScheduleFile read_schedule_file(const std::string& path) {
  const std::string text = read_file(path);
  const std::string file = name_input(path);
  if (is_timeline(text)) return {std::move(parse_timeline(text, file).schedule).take(), true};
  if (text.starts_with("\xEF\xBB\xBF"))
    throw Error(fmt::format("{} begins with a byte order mark; save it as plain UTF-8", file));
  if (looks_like_trace(text))
    throw Error(file + " is a trace of a run, with times; 'bubblescope analyze' reads it");
  std::string readable;
  for (const ScheduleFormat& format : Registry<ScheduleFormat>::instance().all()) {
    if (format.recognize && format.recognize(text)) return {format.read(text, file), false};
    if (format.read) readable += (readable.empty() ? "" : ", ") + format.name;
  }
  throw Error(fmt::format("{} is in no format that holds schedules; those are {}", file, readable));
}

}  // namespace bubblescope::traces
