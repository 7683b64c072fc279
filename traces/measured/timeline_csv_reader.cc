// Reads back a timed step that was written as csv. The csv has times but no dependencies, so the
// step is assembled like any trace, with the messages of the file.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/range.h"
#include "traces/files/quote.h"
#include "traces/files/trace_format.h"
#include "traces/measured/op_names.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr std::string_view kHeader = "rank,lane,op,kind,stage,microbatch,start_ns,end_ns";
constexpr std::size_t kColumns = 8;
constexpr std::string_view kRankRows = "rank_rows";  ///< later versions write it
constexpr std::int64_t kMaxRank = 65'535;

/// A line being read, with its position.
struct Row {
  const std::string& file;
  std::size_t line = 0;
  std::vector<std::string_view> cells;

  [[noreturn]] void refuse(std::size_t column, const std::string& what) const {
    throw Error(
        fmt::format("{}:{}: column {}: {} {}", file, line, column + 1, quote(cells[column]), what));
  }

  std::int64_t number(std::size_t column, std::int64_t min_value, std::int64_t max_value) const {
    const auto value = parse_number<std::int64_t>(cells[column]);
    if (!value || *value < min_value || *value > max_value)
      refuse(column, fmt::format("must be a whole number from {} to {}", min_value, max_value));
    return *value;
  }
};

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t comma = 0; comma != line.npos; line.remove_prefix(comma + 1)) {
    comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == line.npos) break;
  }
  return cells;
}

Row read_row(std::string_view line, const std::vector<std::string_view>& header,
             const std::string& file, std::size_t number) {
  Row row{file, number, split(line)};
  if (row.cells.size() != header.size())
    throw Error(fmt::format(
        "{}:{}: has {} columns and the header {}, as where a file was cut; write it again with "
        "`timeline`",
        file, number, row.cells.size(), header.size()));
  return row;
}

/// Finds rows that a file lacks, by the number of rows of their rank that each states. Files of
/// earlier versions do not have it.
class RankRows {
 public:
  explicit RankRows(const std::vector<std::string_view>& header) {
    const auto found = std::find(header.begin(), header.end(), kRankRows);
    if (found != header.end()) column_ = static_cast<std::size_t>(found - header.begin());
  }

  void add(const Row& row, std::int32_t rank) {
    if (!column_) return;
    Counted& counted = ranks_[rank];
    const std::int64_t stated = row.number(*column_, 1, kMaxNanos);
    if (++counted.seen == 1) counted.stated = stated;
    if (stated != counted.stated) row.refuse(*column_, "differs from the rank's rows before it");
  }

  /// Throws Error if rows of a rank are missing, or are there twice.
  void expect_all(const std::string& file) const {
    for (const auto& [rank, rows] : ranks_)
      if (rows.seen != rows.stated)
        throw Error(fmt::format(
            "{}: has {} rows of rank {}, which had {}: the file was cut, or lines of it are "
            "missing or were repeated; write it again with `timeline`",
            file, rows.seen, rank, rows.stated));
  }

  /// Says that the last line has no end, where nothing else shows whether rows are missing.
  std::optional<std::string> describe_end(std::string_view text, const std::string& file) const {
    if (column_ || text.ends_with('\n')) return {};
    return fmt::format(
        "{}: its last line does not end, as where a file was cut: nothing shows whether ops "
        "followed",
        file);
  }

 private:
  struct Counted {
    std::int64_t seen = 0;
    std::int64_t stated = 0;
  };
  std::optional<std::size_t> column_;
  std::map<std::int32_t, Counted> ranks_;
};

/// Whether a row is an op or a message; posts and waits, which are in communication queues, are
/// not.
bool shows_work(const Row& row, const Op& op) {
  return is_compute(op.kind) || (is_send(op.kind) && row.cells[1].empty());
}

/// Whether a row is a reduction, an optimizer step, the arrival of a micro-batch or the like: the
/// file does not say what waits for these.
bool is_beside_ops(const Row& row) {
  if (row.cells[3] == "ARRIVE") return true;  // which no list of ops has
  const Cell cell = parse_cell(row.cells[2], CellGrammar::kOwn);
  return cell.sound() && cell.count == 1 && !is_compute(cell.ops[0].kind) &&
         !is_message(cell.ops[0].kind);
}

/// Whether the stages are not a chain, in which each stage sends every micro-batch once, to the
/// next one. Two pipelines are two chains of the same length.
bool has_other_readers(const std::vector<ObservedOp>& ops) {
  std::map<std::int32_t, std::set<std::int32_t>> ranks;
  std::map<std::int32_t, std::map<std::pair<std::int32_t, std::int16_t>, int>> sent;
  for (const ObservedOp& observed : ops) {
    const Op& op = observed.op;
    if (op.kind == OpKind::kForward) ranks[op.stage].insert(observed.recorder);
    if (op.kind == OpKind::kSendForward && ++sent[op.stage][{op.microbatch, op.slice}] > 1)
      return true;
  }
  if (sent.empty()) return false;  // all on one rank, or the file has no messages
  const std::int32_t half = static_cast<std::int32_t>(ranks.size()) / 2;
  for (const auto& [stage, own] : ranks) {
    const auto next = ranks.find(stage + 1);
    if (next == ranks.end() || stage + 1 == half || sent.contains(stage)) continue;
    if (std::none_of(own.begin(), own.end(),
                     [&](std::int32_t rank) { return next->second.contains(rank); }))
      return true;
  }
  return false;
}

ObservedTrace read_timeline_csv(const TraceInput& input) {
  ObservedTrace trace;
  trace.source = {.name = kCsvSource, .has_true_zeros = true};
  std::set<std::string_view> left_out;
  std::map<std::int32_t, std::int32_t> recorder_of_rank;
  std::string_view rest = input.text;
  const std::vector<std::string_view> header = split(strip(rest.substr(0, rest.find('\n'))));
  RankRows rank_rows(header);
  for (std::size_t line = 1; !rest.empty(); ++line) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (line == 1 || strip(text).empty()) continue;
    const Row row = read_row(strip(text), header, input.path, line);
    const auto rank = static_cast<std::int32_t>(row.number(0, 0, kMaxRank));
    rank_rows.add(row, rank);
    if (is_beside_ops(row)) {
      left_out.insert(row.cells[3]);
      continue;
    }
    const std::optional<NamedOp> named = parse_op_name(row.cells[2]);
    if (!named || !named->has_stage || !named->has_microbatch)
      row.refuse(2, "must be an op, such as 0F0");
    ObservedOp observed;
    observed.op = named->op;
    const auto [recorder, is_new] =
        recorder_of_rank.emplace(rank, static_cast<std::int32_t>(trace.recorders.size()));
    if (is_new) trace.recorders.push_back({input.path, rank});
    observed.recorder = recorder->second;
    observed.start = row.number(6, -kMaxNanos, kMaxNanos);
    observed.end = row.number(7, observed.start, kMaxNanos);
    if (shows_work(row, observed.op)) trace.ops.push_back(observed);
  }
  rank_rows.expect_all(input.path);
  if (std::optional<std::string> doubt = rank_rows.describe_end(input.text, input.path))
    trace.remarks.doubts.push_back(*std::move(doubt));
  if (trace.ops.empty())
    throw Error(input.path + " has no op below its header; write it again with `timeline`");
  if (has_other_readers(trace.ops))
    throw Error(input.path +
                ": its stages are not a chain: a stage is read by several others, such as shards "
                "of an output layer, or by another one than the next, and a csv does not say by "
                "which; write the step as json, with `save`");
  if (!left_out.empty())
    trace.remarks.notes.push_back(fmt::format(
        "{}: {} left out, because a csv does not say what waits for them; steps that are "
        "saved as json do",
        input.path, fmt::join(left_out, ", ")));
  return trace;
}

const Registrar<TraceFormat> timeline_csv_trace_registrar{[] {
  return TraceFormat{"timeline-csv",
                     {},
                     "what `timeline` wrote: times without what waits for what",
                     [](std::string_view text) { return text.starts_with(kHeader); },
                     read_timeline_csv};
}};

}  // namespace

}  // namespace bubblescope::traces
