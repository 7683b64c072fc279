// Predicts the rows of compare.
#include "tools/commands/compare_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/shape.h"
#include "sim/ir/size_limits.h"
#include "sim/model/schedule_refusal.h"
#include "sim/predict/memory_caps.h"
#include "sim/predict/readiness.h"
#include "tools/errors.h"
#include "tools/flags/field_names.h"
#include "tools/flags/schedule_list.h"
#include "tools/flags/words.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/predict.h"
#include "tools/inputs/schedule_request.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

/// Parses "8x32" or "8x32x2": ranks, micro-batches and, where given, chunks.
std::vector<std::int32_t> parse_shape(const std::string& text) {
  constexpr std::array<std::int32_t, 3> kLimits{kMaxRanks, kMaxMicrobatches, kMaxChunks};
  std::vector<std::int32_t> numbers;
  for (const std::string& word : split(text, 'x'))
    numbers.push_back(parse_number<std::int32_t>(word).value_or(0));
  const auto is_size = [](std::int32_t number, std::int32_t limit) {
    return number >= 1 && number <= limit;
  };
  if ((numbers.size() != 2 && numbers.size() != 3) ||
      !std::equal(numbers.begin(), numbers.end(), kLimits.begin(), is_size))
    throw Error(
        fmt::format("--shapes: '{}' is not a shape; write PPxM or PPxMxVPP, such as 4x8,8x32x2, "
                    "with at most {}x{}x{}",
                    text, kLimits[0], kLimits[1], kLimits[2]));
  return numbers;
}

PredictOptions with_shape(PredictOptions flags, const std::string& text) {
  const std::vector<std::int32_t> numbers = parse_shape(text);
  flags.shape.ranks = numbers[0];
  flags.shape.microbatches = numbers[1];
  if (numbers.size() == 3) flags.shape.chunks = numbers[2];
  return flags;
}

TimedStep predict_step(const std::string& name, const PredictInputs& inputs, RowDetail detail,
                       std::span<const Note> noted) {
  if (detail == RowDetail::kOps) return predict_timed_step(name, inputs, noted);
  return predict_report(
      name, inputs, [](const BubbleReport&) { return std::vector<std::int32_t>{}; }, noted);
}

ComparedRow predict_row(const std::string& name, PredictOptions flags, const InputFiles& files,
                        RowDetail detail, std::span<const Note> noted) {
  try {
    TimedStep step = predict_step(name, PredictInputs(std::move(flags), files), detail, noted);
    std::string over;
    for (const Problem& problem :
         find_ranks_over_cap(collect_peaks(step.report), step.models.memory))
      over = over.empty() ? name_flags(to_string(problem)) : over;
    return {name, std::move(step), over};
  } catch (const Error& error) {
    if (is_of_machine(error.fault())) throw;
    return {name, {}, name_flags(error.what()), error.fault()};
  }
}

ExpandedList expand(const std::string& list) {
  ExpandedList expanded = expand_all(list);
  if (expanded.names.empty()) throw Error("compare needs schedules, such as gpipe,1f1b");
  return expanded;
}

}  // namespace

std::vector<std::string> names_of(const std::string& list) { return expand(list).names; }

std::vector<ComparedRow> predict_rows(const std::string& list,
                                      const std::vector<std::string>& shapes,
                                      const PredictInputs& inputs, RowDetail detail) {
  for (const std::string& shape : shapes) parse_shape(shape);  // before any is predicted
  const ExpandedList expanded = expand(list);
  const std::vector<std::string>& names = expanded.names;
  std::vector<ComparedRow> rows;
  const auto is_asked = [&](const std::string& name) {
    return std::any_of(expanded.asked.begin(), expanded.asked.end(),
                       [&](const std::string& one) { return is_same_schedule(one, name); });
  };
  const auto add_row = [&](std::string name, ComparedRow row, const std::string& shape) {
    row.name = row.schedule = std::move(name);
    if (row.of_all && !row.refusal.empty()) return;
    if (shapes.size() > 1) row.name += " " + shape;
    rows.push_back(std::move(row));
  };
  std::vector<Note> noted;
  const auto predict_next = [&](const std::string& name, PredictOptions mine) {
    mine.shape = is_schedule_file(name) ? leave_to_names(mine.shape, names)
                                        : drop_unused_flags(mine.shape, find_schedule(name));
    ComparedRow row = predict_row(name, std::move(mine), inputs.files(), detail, noted);
    row.of_all = !is_asked(name);
    // Two files may have one stem.
    if (row.step && is_schedule_file(name)) row.step->report.schedule = name;
    if (row.step) noted = {Note::kCapInUnits};  // which says the same of all schedules
    return row;
  };
  const auto add = [&](const PredictOptions& mine, const std::string& shape) {
    PredictOptions fixed = mine;
    fixed.policy.reset();
    for (const std::string& name : names) {
      ComparedRow row = predict_next(name, fixed);
      std::optional<ValidSchedule> hint;
      if (mine.policy && row.step) hint = make_hint(row.step->schedule, mine.cost.lower.overlap);
      add_row(name, std::move(row), shape);
      if (!mine.policy) continue;
      row = predict_next(name, mine);
      row.hint = std::move(hint);
      add_row(name + " ready", std::move(row), shape);
    }
  };
  const PredictOptions& flags = inputs.flags();
  if (shapes.empty()) add(flags, "");
  for (auto shape = shapes.begin(); shape != shapes.end(); ++shape)
    if (std::find(shapes.begin(), shape, *shape) == shape) add(with_shape(flags, *shape), *shape);
  return rows;
}

void expect_sizes_once(const std::vector<std::string>& shapes, const ShapeOptions& shape) {
  if (shapes.empty()) return;
  std::vector<std::string> given;
  if (shape.ranks) given.emplace_back("--pp");
  if (shape.microbatches) given.emplace_back("-m");
  if (shape.chunks) given.emplace_back("--vpp");
  if (!given.empty())
    throw Error(
        fmt::format("--shapes gives the shapes, PPxM or PPxMxVPP each; write them all there, and "
                    "leave out {}",
                    fmt::join(given, ", ")));
}

int status_of(const std::vector<ComparedRow>& rows) {
  int status = 0;
  for (const ComparedRow& row : rows)
    if (!row.refusal.empty()) status = std::max(status, exit_status(row.fault));
  return status;
}

void warn_of_unused_chunks(const std::vector<std::string>& shapes,
                           const std::vector<std::string>& names) {
  const bool are_files = std::all_of(names.begin(), names.end(), is_schedule_file);
  const bool is_taken =
      are_files || std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return !is_schedule_file(name) && takes_chunks(find_schedule(name));
      });
  for (const std::string& shape : shapes)
    if (!is_taken && parse_shape(shape).size() == 3)
      print_message(
          "bubblescope: the chunks of --shapes {} change nothing: none of these schedules takes "
          "them\n",
          shape);
}

}  // namespace bubblescope::tools
