// Reads and writes PyTorch's schedule CSV. Quoting is that of Python's csv module.
#include "traces/schedules/pytorch_csv.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "sim/ir/after_edges.h"
#include "sim/ir/counted.h"
#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "traces/files/format.h"
#include "traces/files/quote.h"
#include "traces/schedules/cell.h"
#include "traces/schedules/infer_schedule.h"

namespace bubblescope::traces {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string place_of(const std::string& file, std::size_t row, std::size_t column) {
  return fmt::format("{}:{}:{}", file, row + 1, column + 1);
}

/// Splits the text into cells and keeps track of row and column.
class CsvCells {
 public:
  CsvCells(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  bool at_end() const { return rest_.empty(); }

  /// Reads one row; called only while there is one.
  RankOrder take_row() {
    column_ = 0;
    if (rest_.starts_with('\n') || rest_.starts_with("\r\n"))
      refuse("this row is empty; remove it, or write \"\" for a rank that has only an idle slot");
    RankOrder ops;
    for (;; ++column_) {
      const std::string_view text = strip(take_cell());
      const Cell cell = parse_cell(text, CellGrammar::kPytorch);
      if (!cell.sound()) refuse(fmt::format("{} {}", quote(text), cell.fault));
      ops.insert(ops.end(), cell.ops.begin(),
                 cell.ops.begin() + static_cast<std::ptrdiff_t>(cell.count));
      if (!take_comma()) break;
    }
    take_line_end();
    ++row_;
    return ops;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("{}: {}", place_of(file_, row_, column_), what));
  }

  std::string_view take_cell() {
    if (rest_.starts_with('"')) return take_quoted();
    const std::string_view cell = rest_.substr(0, rest_.find_first_of(",\r\n"));
    rest_.remove_prefix(cell.size());
    return cell;
  }

  std::string_view take_quoted() {
    const std::size_t close = rest_.find_first_of("\"\r\n", 1);
    if (close == rest_.npos || rest_[close] != '"')
      refuse("a quote is opened and not closed in this row; close or remove it");
    const std::string_view cell = rest_.substr(1, close - 1);
    rest_.remove_prefix(close + 1);
    if (!rest_.empty() && rest_.find_first_of(",\r\n") != 0)
      refuse(fmt::format("the cell continues after its closing quote with {}; remove that",
                         quote(rest_.substr(0, rest_.find_first_of(",\r\n")))));
    return cell;
  }

  bool take_comma() {
    if (!rest_.starts_with(',')) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void take_line_end() {
    if (rest_.empty()) return;
    const bool carriage_return = rest_.starts_with('\r');
    if (carriage_return && !rest_.starts_with("\r\n"))
      refuse("a carriage return without a line feed ends this cell; end rows with LF or CR LF");
    rest_.remove_prefix(carriage_return ? 2 : 1);
  }

  std::string_view rest_;
  const std::string& file_;
  std::size_t row_ = 0;
  std::size_t column_ = 0;
};

/// Before PyTorch 2.6, B meant today's I: in such files B and W of one micro-batch are adjacent.
void refuse_old_grammar(const Schedule& schedule, const std::string& file) {
  const ValueIndex index(schedule);
  std::vector<bool> has_full(index.size(), false);
  std::vector<bool> has_split(index.size(), false);
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops) {
      if (op.kind == OpKind::kBackward) has_full[index(op)] = true;
      if (op.kind == OpKind::kInputGrad) has_split[index(op)] = true;
    }
  const std::vector<RankOrder>& lists = get_lists(schedule);
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    for (std::size_t at = 0; at < lists[rank].size(); ++at) {
      const Op& op = lists[rank][at];
      if (op.kind != OpKind::kWeightGrad) continue;
      const Op input_gradient = input_grad(op.stage, op.microbatch);
      const std::size_t gradient = index(input_gradient);
      if (!has_full[gradient] || has_split[gradient]) continue;
      throw Error(fmt::format(
          "{}: '{}' is next to {}, as before PyTorch 2.6, when B was the input gradient; "
          "write {} for it",
          place_of(file, rank, count_cells(lists[rank], at)), to_string(op),
          to_string(backward(op.stage, op.microbatch)), to_string(input_gradient)));
    }
}

/// PyTorch's stages are one pipeline: its _validate_schedule counts every micro-batch in every
/// stage, and its _add_send_recv ends with "Malformed compute schedule" (2.15).
void expect_one_pipeline(const Schedule& schedule) {
  if (schedule.pipelines == 1) return;
  std::vector<std::int32_t> forwards(static_cast<std::size_t>(schedule.stages()), 0);
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kForward) ++forwards[static_cast<std::size_t>(op.stage)];
  for (std::size_t stage = 0; stage < forwards.size(); ++stage)
    if (forwards[stage] != schedule.shape.microbatches)
      throw Error(
          fmt::format("{} sends {} of {} through stage {}, and PyTorch's runtime refuses a "
                      "schedule whose stages are not one pipeline",
                      schedule.name, forwards[stage],
                      counted(schedule.shape.microbatches, "micro-batch"), stage));
}

void expect_expressible(const Schedule& schedule) {
  refuse_after_edges(schedule, "PyTorch's CSV");
  refuse_graph(schedule, "PyTorch's CSV");
  if (schedule.shape.slices > 1)
    throw Error(
        fmt::format("{} cuts its sequences into {}, which PyTorch's CSV has no words for; convert "
                    "it to native or text",
                    schedule.name, counted(schedule.shape.slices, "slice")));
  if (schedule.fused_forwards > 1)
    throw Error(
        fmt::format("{} runs {} forwards as one, which PyTorch's CSV has no words for; convert it "
                    "to native",
                    schedule.name, schedule.fused_forwards));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    if (schedule.replicas(stage) > 1)
      throw Error(fmt::format(
          "{} shares stage {} among {}, which PyTorch's CSV has no words for; convert it to native",
          schedule.name, stage, counted(schedule.replicas(stage), "rank")));
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kRecompute || is_copy(op.kind))
        throw Error(fmt::format(
            "{} {} ({}), which PyTorch's CSV has no words for; convert "
            "it to native or text",
            schedule.name, is_copy(op.kind) ? "moves activations" : "recomputes", to_string(op)));
}

/// Removes from the lists what lowering adds.
std::vector<RankOrder> drop_lowered(std::vector<RankOrder> lists) {
  for (RankOrder& list : lists)
    std::erase_if(list,
                  [](const Op& op) { return !is_compute(op.kind) && op.kind != OpKind::kIdle; });
  return lists;
}

std::string write_rows(const std::vector<RankOrder>& lists) {
  std::string out;
  for (const RankOrder& list : lists) {
    const std::size_t row_begin = out.size();
    for (std::size_t at = 0; at < list.size();) {
      if (at > 0) out += ',';
      at = append_cell(out, list, at, CellGrammar::kPytorch);
    }
    if (out.size() == row_begin) out += "\"\"";  // csv's form of a single blank cell
    out += '\n';
  }
  return out;
}

/// Recognizes whatever begins like no other format, so that its faults are reported cell by cell.
bool recognize_csv(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::string_view cells = strip(line.substr(0, line.find('#')));
  if (cells.starts_with('{') || cells.starts_with('[') || line.starts_with('#')) return false;
  return cells.find(',') != cells.npos || cells.find_first_of(" \t|_") == cells.npos;
}

const Registrar<ScheduleFormat> pytorch_csv_registrar{[] {
  return ScheduleFormat{"pytorch-csv",
                        {"csv", "compute-only"},
                        "PyTorch's schedule CSV: compute ops and idle slots",
                        write_pytorch_csv,
                        read_pytorch_csv,
                        recognize_csv,
                        true};
}};

const Registrar<ScheduleFormat> pytorch_csv_comms_registrar{[] {
  return ScheduleFormat{
      "pytorch-csv-comms",
      {"csv-comms", "compute-comms"},
      "PyTorch's schedule CSV with sends, receives and waits, as PyTorch 2.15 places them "
      "(`profile` pytorch: 2.6 to 2.14)",
      {},
      read_pytorch_csv,
      {},
      true,
      {},
      write_pytorch_csv_comms};
}};

}  // namespace

Schedule read_pytorch_csv(std::string_view text, const std::string& file) {
  if (text.starts_with(kByteOrderMark))
    throw Error(fmt::format("{} begins with a byte order mark; save it as plain UTF-8", file));
  if (text.empty()) throw Error(fmt::format("{} is empty; write one row per rank", file));
  CsvCells cells(text, file);
  std::vector<RankOrder> lists;
  while (!cells.at_end()) lists.push_back(cells.take_row());
  Schedule schedule = infer_schedule(std::filesystem::path(file).stem().string(), std::move(lists),
                                     [&](std::int32_t rank, std::size_t cell) {
                                       return place_of(file, static_cast<std::size_t>(rank), cell);
                                     });
  refuse_old_grammar(schedule, file);
  return schedule;
}

std::string why_not_pytorch_csv(const Schedule& schedule) {
  try {
    expect_expressible(schedule);
    expect_one_pipeline(schedule);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string write_pytorch_csv(const Schedule& schedule) {
  expect_expressible(schedule);
  return write_rows(drop_lowered(get_lists(schedule)));
}

std::string write_pytorch_csv_comms(const ValidSchedule& schedule,
                                    const PytorchListOptions& options) {
  expect_expressible(schedule);
  return write_rows(make_pytorch_lists(schedule, options));
}

}  // namespace bubblescope::traces
