// Reads each table in one pass, without joins: exports have no indexes.
#include "traces/measured/nsys_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/ir/error.h"
#include "traces/files/sqlite.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// Times are relative to the start of a recording, which lasts less than a year.
constexpr Nanos kMaxTime = std::int64_t{1} << 55;

bool is_message_kernel(std::string_view name) {
  return name.starts_with("nccl") && name.find("SendRecv") != name.npos;
}

bool is_kernel_launch(std::string_view name) {
  return name.find("LaunchKernel") != name.npos ||
         name.find("LaunchCooperativeKernel") != name.npos;
}

class Reader {
 public:
  Reader(const std::string& path, const std::function<bool(std::string_view)>& keep)
      : path_(path), keep_(keep), database_(path) {}

  NsysRecording read() && {
    read_strings();
    read_epoch();
    read_ranges();
    read_launches();
    read_kernels();
    return std::move(recording_);
  }

 private:
  bool has(const std::string& table, const std::vector<std::string>& wanted) const {
    const std::vector<std::string> columns = database_.columns(table);
    return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& column) {
      return std::find(columns.begin(), columns.end(), column) != columns.end();
    });
  }

  Nanos time_of(const SqliteRow& row, int column) const {
    const Nanos time = row.integer(column).value_or(0);
    if (time < -kMaxTime || time > kMaxTime)
      throw Error(fmt::format("{}: has the time {} ns, which is out of range; export it again",
                              path_, time));
    return time + epoch_;
  }

  void read_strings() {
    if (!has("StringIds", {"id", "value"})) return;
    database_.query("SELECT id, value FROM StringIds", [&](const SqliteRow& row) {
      strings_[row.integer(0).value_or(-1)] = row.text(1);
    });
  }

  /// Recordings of several processes are relative to the start of each.
  void read_epoch() {
    if (!has("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"})) return;
    database_.query("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME LIMIT 1",
                    [&](const SqliteRow& row) {
                      const Nanos epoch = row.integer(0).value_or(0);
                      const bool is_plausible = epoch > 0 && epoch < (std::int64_t{1} << 62);
                      if (is_plausible) epoch_ = epoch;
                    });
  }

  std::string string_of(std::optional<std::int64_t> id) const {
    if (!id) return {};
    const auto found = strings_.find(*id);
    return found == strings_.end() ? "" : found->second;
  }

  /// Keeps a range if its name matters.
  void take_range(const SqliteRow& row) {
    std::string name = row.text(3);
    if (name.empty()) name = string_of(row.integer(4));
    if (!keep_(name)) return;
    if (!row.integer(1)) {
      ++recording_.unclosed;
      return;
    }
    const auto [index, is_new] =
        indexes_.emplace(name, static_cast<std::uint32_t>(recording_.names.size()));
    if (is_new) recording_.names.push_back(name);
    const Nanos start = time_of(row, 0);
    recording_.ranges.push_back(
        {row.integer(2).value_or(0), start, std::max(start, time_of(row, 1)), index->second});
  }

  void read_ranges() {
    if (!has("NVTX_EVENTS", {"start", "end", "globalTid"})) return;
    const bool has_text = has("NVTX_EVENTS", {"text"});
    const bool has_id = has("NVTX_EVENTS", {"textId"});
    // Push-pop (59) and start-end (60) events are ranges; marks (34) are not.
    const bool has_kind = has("NVTX_EVENTS", {"eventType"});
    database_.query(
        fmt::format("SELECT start, end, globalTid, {}, {} FROM NVTX_EVENTS {}",
                    has_text ? "text" : "NULL", has_id ? "textId" : "NULL",
                    has_kind ? "WHERE eventType IN (59, 60, 70, 71)" : "WHERE end IS NOT NULL"),
        [&](const SqliteRow& row) { take_range(row); });
    // SQLite would sort them on disk, or hold all columns in memory.
    std::stable_sort(recording_.ranges.begin(), recording_.ranges.end(),
                     [](const HostRange& left, const HostRange& right) {
                       return std::tuple(left.start, -left.end) <
                              std::tuple(right.start, -right.end);
                     });
  }

  void read_launches() {
    if (!has("CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "correlationId", "globalTid"})) return;
    const bool has_name = has("CUPTI_ACTIVITY_KIND_RUNTIME", {"nameId"});
    database_.query(fmt::format("SELECT start, correlationId, globalTid, {} FROM "
                                "CUPTI_ACTIVITY_KIND_RUNTIME",
                                has_name ? "nameId" : "NULL"),
                    [&](const SqliteRow& row) {
                      const std::int64_t thread = row.integer(2).value_or(0);
                      recording_.launches[process_of(thread)].push_back(
                          {thread, time_of(row, 0), row.integer(1).value_or(0),
                           is_kernel_launch(string_of(row.integer(3)))});
                    });
    for (auto& [_, launches] : recording_.launches) sort_by_start(launches);
  }

  void read_kernels() {
    for (const char* table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                              "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"}) {
      if (!has(table, {"start", "end", "correlationId", "globalPid"})) continue;
      const bool has_name = has(table, {"shortName"});
      const bool has_stream = has(table, {"deviceId", "streamId"});
      database_.query(fmt::format("SELECT start, end, correlationId, globalPid, {}, {} FROM {}",
                                  has_name ? "shortName" : "NULL",
                                  has_stream ? "deviceId, streamId" : "NULL, NULL", table),
                      [&](const SqliteRow& row) { take_kernel(row, has_name, table); });
    }
  }

  /// The nodes of a graph share the correlation id of its launch.
  void take_kernel(const SqliteRow& row, bool has_name, std::string_view table) {
    const Nanos start = time_of(row, 0);
    const std::string name = string_of(row.integer(4));
    NsysActivity activity{start, std::max(start, time_of(row, 1)), is_message_kernel(name)};
    activity.is_graph = table.ends_with("GRAPH_TRACE");
    activity.is_transfer =
        !activity.is_graph && (!has_name || (name.starts_with("nccl") && !activity.is_message));
    if (name.starts_with("nccl") && !activity.is_message)
      activity.collective = classify_collective(name);
    activity.stream = (row.integer(5).value_or(0) << 32) + row.integer(6).value_or(0);
    auto& activities = recording_.activities[process_of(row.integer(3).value_or(0))];
    const auto [found, is_new] = activities.emplace(row.integer(2).value_or(0), activity);
    if (is_new) return;
    widen(found->second, activity);
    found->second.is_graph = true;
  }

  const std::string& path_;
  const std::function<bool(std::string_view)>& keep_;
  SqliteDatabase database_;
  Nanos epoch_ = 0;
  std::unordered_map<std::int64_t, std::string> strings_;
  std::unordered_map<std::string, std::uint32_t> indexes_;
  NsysRecording recording_;
};

}  // namespace

NsysRecording read_nsys(const std::string& path,
                        const std::function<bool(std::string_view name)>& keep) {
  return Reader(path, keep).read();
}

}  // namespace bubblescope::traces
