// Nsight Systems' sqlite export: NVTX ranges that name ops, and the kernels launched inside them.
//
// A range is the time in which the host launches an op; the op itself runs from the first to the
// last of its kernels. They are joined as Nsight Systems records them: a runtime call lies in the
// range of its own thread (globalTid), and its kernel has the same correlation id in the same
// process. Tables and columns depend on what was recorded, so each one is optional.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "traces/files/no_pipeline.h"
#include "traces/files/sqlite.h"
#include "traces/files/trace_format.h"
#include "traces/measured/op_names.h"

namespace bubblescope::traces {

namespace {

/// The low 24 bits of a globalTid are the thread; the bits above are the process.
constexpr std::int64_t kThreadMask = 0xffffff;

/// Times are relative to the start of a recording, which lasts less than a year.
constexpr Nanos kLatest = std::int64_t{1} << 55;

std::int64_t process_of(std::int64_t global_tid) { return global_tid & ~kThreadMask; }

struct Range {
  std::int64_t thread = 0;
  Nanos start = 0;
  Nanos end = 0;
  NamedOp named;
};

struct Call {
  Nanos start = 0;
  std::int64_t correlation = 0;
};

struct Span {
  Nanos start = 0;
  Nanos end = 0;
};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), database_(path) {}

  ObservedTrace read() && {
    trace_.source = "nsys";
    const std::vector<Range> ranges = read_ranges();
    if (ranges.empty()) refuse();
    read_calls();
    read_kernels();
    for (const Range& range : ranges) add(range);
    if (on_host_ > 0)
      trace_.notes.push_back(fmt::format(
          "{} op(s) launched no kernel: shown is the time of their range on the host", on_host_));
    return std::move(trace_);
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
    if (time < -kLatest || time > kLatest)
      throw Error(fmt::format("{}: has the time {} ns, which is out of range; export it again",
                              path_, time));
    return time;
  }

  std::vector<Range> read_ranges() const {
    std::vector<Range> ranges;
    if (!has("NVTX_EVENTS", {"start", "end", "text", "globalTid"})) return ranges;
    const bool interned = has("NVTX_EVENTS", {"textId"}) && has("StringIds", {"id", "value"});
    const std::string name =
        interned ? "COALESCE(text, (SELECT value FROM StringIds WHERE id = textId))" : "text";
    database_.query(
        "SELECT start, end, globalTid, " + name + " FROM NVTX_EVENTS WHERE end IS NOT NULL",
        [&](const SqliteRow& row) {
          const std::optional<NamedOp> named = parse_op_name(row.text(3));
          if (!named || !named->has_microbatch) return;
          const Nanos start = time_of(row, 0);
          ranges.push_back(
              {row.integer(2).value_or(0), start, std::max(start, time_of(row, 1)), *named});
        });
    // SQLite would sort them on disk, or hold all columns in memory.
    std::stable_sort(ranges.begin(), ranges.end(), [](const Range& left, const Range& right) {
      return std::tuple(left.start, left.end) < std::tuple(right.start, right.end);
    });
    return ranges;
  }

  void read_calls() {
    if (!has("CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "correlationId", "globalTid"})) return;
    database_.query("SELECT start, correlationId, globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME",
                    [&](const SqliteRow& row) {
                      calls_[row.integer(2).value_or(0)].push_back(
                          {time_of(row, 0), row.integer(1).value_or(0)});
                    });
    for (auto& [thread, calls] : calls_)
      std::stable_sort(calls.begin(), calls.end(), [](const Call& left, const Call& right) {
        return left.start < right.start;
      });
  }

  void read_kernels() {
    for (const char* table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                              "CUPTI_ACTIVITY_KIND_MEMSET"}) {
      if (!has(table, {"start", "end", "correlationId", "globalPid"})) continue;
      database_.query(
          std::string("SELECT start, end, correlationId, globalPid FROM ") + table,
          [&](const SqliteRow& row) {
            kernels_[{process_of(row.integer(3).value_or(0)), row.integer(2).value_or(0)}] = {
                time_of(row, 0), time_of(row, 1)};
          });
    }
  }

  /// From the start of the first kernel of a range to the end of the last; empty if it launched
  /// none.
  std::optional<Span> device_span(const Range& range) const {
    const auto calls = calls_.find(range.thread);
    if (calls == calls_.end()) return {};
    const auto earlier = [](const Call& call, Nanos time) { return call.start < time; };
    auto call = std::lower_bound(calls->second.begin(), calls->second.end(), range.start, earlier);
    std::optional<Span> span;
    for (; call != calls->second.end() && call->start <= range.end; ++call) {
      const auto kernel = kernels_.find({process_of(range.thread), call->correlation});
      if (kernel == kernels_.end()) continue;
      if (!span) span = kernel->second;
      span->start = std::min(span->start, kernel->second.start);
      span->end = std::max(span->end, kernel->second.end);
    }
    return span;
  }

  void add(const Range& range) {
    const std::optional<Span> device = device_span(range);
    if (!device && !kernels_.empty()) ++on_host_;
    const Span span = device.value_or(Span{range.start, range.end});
    ObservedOp observed;
    observed.op = range.named.op;
    if (!range.named.has_stage) observed.chunk = 0;
    observed.recorder = recorder_of(process_of(range.thread));
    observed.start = span.start;
    observed.end = std::max(span.start, span.end);
    observed.step = occurrences_[{range.thread, to_string(observed.op)}]++;
    trace_.ops.push_back(observed);
  }

  /// A process is a rank.
  std::int32_t recorder_of(std::int64_t process) {
    const auto [found, is_new] =
        recorders_.emplace(process, static_cast<std::int32_t>(recorders_.size()));
    if (is_new) trace_.recorders.push_back({path_, {}});
    return found->second;
  }

  [[noreturn]] void refuse() const {
    throw NoPipeline(
        fmt::format("{}: there is no NVTX range that names a pipeline op; give each op a "
                    "range such as 'PP:0F3' and export it with 'nsys export --type sqlite'",
                    path_));
  }

  std::string path_;
  SqliteDatabase database_;
  std::map<std::int64_t, std::vector<Call>> calls_;                ///< [globalTid], by start
  std::map<std::pair<std::int64_t, std::int64_t>, Span> kernels_;  ///< [process, correlation]
  std::map<std::int64_t, std::int32_t> recorders_;                 ///< [process]
  std::map<std::pair<std::int64_t, std::string>, std::int64_t> occurrences_;
  std::size_t on_host_ = 0;
  ObservedTrace trace_;
};

const Registrar<TraceFormat> registrar{
    {"nsys",
     {"sqlite"},
     "Nsight Systems' sqlite export with NVTX ranges that name ops",
     [](std::string_view first_bytes) { return first_bytes.starts_with("SQLite format 3"); },
     [](const TraceInput& input) { return Reader(input.path).read(); }}};

}  // namespace

}  // namespace bubblescope::traces
