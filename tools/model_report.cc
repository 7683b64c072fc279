// Writes the model's table, json object and warning.
#include "tools/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "sim/model/known_errors.h"
#include "tools/model_fit.h"
#include "tools/say.h"
#include "traces/fit_table.h"
#include "traces/json_string.h"
#include "traces/time_axis.h"

namespace bubblescope {

namespace {

/// A rank's memory at its peak, by category.
struct RankMemory {
  StateBytes states;
  Bytes activations = 0;
  Bytes peak = 0;
};

struct Part {
  const char* name;
  int importance;  ///< the least important is left out first
  Bytes (*bytes)(const RankMemory&);
};

constexpr std::array<Part, 6> kParts{{
    {"weights", 20, [](const RankMemory& rank) { return rank.states.weights; }},
    {"gradients", 21, [](const RankMemory& rank) { return rank.states.gradients; }},
    {"optimizer", 22, [](const RankMemory& rank) { return rank.states.optimizer; }},
    {"buffers", 2, [](const RankMemory& rank) { return rank.states.buffers; }},
    {"context", 1, [](const RankMemory& rank) { return rank.states.context; }},
    {"activations", 30, [](const RankMemory& rank) { return rank.activations; }},
}};

constexpr std::size_t kMostRows = 16;

std::vector<RankMemory> memory_of(const PlacedModel& placed, const BubbleReport& report) {
  std::vector<RankMemory> ranks;
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    const StateBytes& states = placed.step.states[rank];
    const Bytes peak = report.ranks[rank].peak.bytes.value_or(states.total());
    ranks.push_back({states, peak - states.total(), peak});
  }
  return ranks;
}

double gibibytes(Bytes bytes) { return static_cast<double>(bytes) / (1 << 30); }

/// Writes equal neighbours once, as in Megatron's layouts: "9 8*30 7".
std::string layers_text(const std::vector<std::int64_t>& first_layer) {
  std::string text;
  for (std::size_t stage = 0; stage + 1 < first_layer.size();) {
    const auto layers = [&](std::size_t at) { return first_layer[at + 1] - first_layer[at]; };
    std::size_t end = stage + 1;
    while (end + 1 < first_layer.size() && layers(end) == layers(stage)) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : " ", layers(stage));
    if (end - stage > 1) text += fmt::format("*{}", end - stage);
    stage = end;
  }
  return text;
}

/// Per rank the parts of its memory, its peak, and its share of the usable memory.
std::vector<TableColumn> memory_columns(const std::vector<RankMemory>& ranks, Bytes limit) {
  const std::size_t rows = std::min(ranks.size(), kMostRows);
  std::vector<TableColumn> columns;
  const auto add = [&](std::string head, int importance, auto&& cell) {
    TableColumn& next = columns.emplace_back();
    next.head = std::move(head);
    next.importance = importance;
    for (std::size_t rank = 0; rank < rows; ++rank) next.cells.push_back(cell(rank));
  };
  add("GiB", kAlwaysShown, [](std::size_t rank) { return fmt::format("rank {}", rank); });
  columns.back().left = true;
  for (const Part& part : kParts)
    add(part.name, part.importance, [&](std::size_t rank) {
      return fmt::format("{:.1f}", gibibytes(part.bytes(ranks[rank])));
    });
  add("peak", kAlwaysShown,
      [&](std::size_t rank) { return fmt::format("{:.1f}", gibibytes(ranks[rank].peak)); });
  add(fmt::format("of {:.1f}", gibibytes(limit)), 50, [&](std::size_t rank) {
    return fmt::format("{:.0f} %", 100 * gibibytes(ranks[rank].peak) / gibibytes(limit));
  });
  return columns;
}

/// Suggests how to shrink the largest parts, largest first.
std::string remedy(const PlacedModel& placed, const RankMemory& rank) {
  const Parallelism& parallel = placed.on.parallel;
  const bool shardable = parallel.data * parallel.context > 1;
  std::string less_activations = parallel.recompute == Recompute::kFull ? "" : "--recompute full, ";
  if (parallel.micro_batch_size > 1) less_activations += "a smaller --micro-batch-size, ";
  less_activations += "a schedule that holds fewer micro-batches, more --tp or --cp";
  std::string less_states = "more --pp or --tp";
  if (parallel.zero_stage < 3)
    less_states += shardable ? fmt::format(", --zero {}", parallel.zero_stage + 1)
                             : ", more --dp (which shards the optimizer's states)";
  const bool activations_first = rank.activations > rank.states.total() / 2;
  if (rank.states.total() > placed.on.usable_memory())
    return "the states alone are too much: " + less_states;
  return activations_first ? less_activations + "; or " + less_states
                           : less_states + "; or " + less_activations;
}

}  // namespace

namespace {

std::string states_text(Gradients gradients) {
  switch (gradients) {
    case Gradients::kFp32: return "32-bit gradients";
    case Gradients::kBf16: return "16-bit gradients";
    case Gradients::kLean: return "16-bit gradients and lean master weights";
  }
  return "";
}

/// Writes "head room 3.1 GiB on rank 0 with 32-bit gradients: 79.1 GiB of the device, 0.5 GiB kept
/// free".
std::string fit_text(const PlacedModel& placed, const BubbleReport& report) {
  const ModelFit fit = fit_of(placed, report);
  const ModelOnDevices& on = placed.on;
  return fmt::format(
      "{} {:.1f} GiB on rank {}, with {}\n{:.1f} GiB of the device for a program, {:.1f} GiB of it "
      "reserved\n",
      fit.fits() ? "head room" : "lacking", gibibytes(std::abs(fit.head_room)), fit.rank,
      states_text(on.parallel.gradients), gibibytes(on.gpu.memory), gibibytes(on.kept_free));
}

/// States how far to trust the step's time, judged by the nearest published runs.
std::string errors_text(const PlacedModel& placed, const BubbleReport& report) {
  const KnownErrors* errors = nearest_errors(placed.on);
  if (errors == nullptr) return "";
  const StepInterval interval = interval_of(report.makespan, *errors);
  return fmt::format(
      "between {} and {} by {} published runs of {} models on {}, predicted {:+.0f} to {:+.0f} % "
      "off\n",
      short_text(interval.low), short_text(interval.high), errors->runs,
      errors->experts ? "expert" : "dense", errors->device, 100 * errors->lowest,
      100 * errors->highest);
}

}  // namespace

std::string write_model_text(const PlacedModel& placed, const BubbleReport& report,
                             const DrawOptions& draw) {
  const std::vector<RankMemory> ranks = memory_of(placed, report);
  const std::optional<int> width = draw.fit ? std::optional(draw.width) : std::nullopt;
  const FittedTable table = draw_table(memory_columns(ranks, placed.on.usable_memory()), width);
  std::string text =
      fmt::format("\n{}\nlayers per stage  {}; embedding on the first, head on the last\n\n{}{}",
                  in_words(placed.on), layers_text(placed.step.first_layer), table.text,
                  hidden_note(table.hidden));
  if (ranks.size() > kMostRows)
    text += fmt::format("... and {} ranks more; --format json has them all\n",
                        ranks.size() - kMostRows);
  text += fit_text(placed, report) + errors_text(placed, report);
  return draw.fit ? fold_lines(text, draw.width) : text;
}

namespace {

/// Writes how well the devices are used, and whether all ranks fit.
std::string rates_json(const PlacedModel& placed, const BubbleReport& report) {
  const ModelFit fit = fit_of(placed, report);
  const ModelRates rates = model_rates(placed.on, report.shape, report.makespan);
  std::string interval = "null";
  if (const KnownErrors* errors = nearest_errors(placed.on)) {
    const StepInterval bounds = interval_of(report.makespan, *errors);
    interval = fmt::format("{{\"low_ns\":{},\"high_ns\":{},\"from\":{}}}", bounds.low, bounds.high,
                           json_string(errors->from()));
  }
  return fmt::format(
      "\"fits\":{},\"head_room_bytes\":{},\"mfu\":{},\"tokens_per_second_per_gpu\":{},"
      "\"interval\":{}",
      fit.fits(), fit.head_room, rates.mfu, rates.tokens_per_second / rates.devices, interval);
}

}  // namespace

std::string write_model_json(const PlacedModel& placed, const BubbleReport& report) {
  std::string layers;
  const std::vector<std::int64_t>& first_layer = placed.step.first_layer;
  for (std::size_t stage = 0; stage + 1 < first_layer.size(); ++stage)
    layers +=
        fmt::format("{}{}", layers.empty() ? "" : ",", first_layer[stage + 1] - first_layer[stage]);
  std::string ranks;
  for (const RankMemory& memory : memory_of(placed, report)) {
    std::string parts;
    for (const Part& part : kParts)
      parts += fmt::format("{}\"{}\":{}", parts.empty() ? "" : ",", part.name, part.bytes(memory));
    ranks += fmt::format("{}{{{}}}", ranks.empty() ? "" : ",", parts);
  }
  return fmt::format(
      "\"model\":{{\"name\":{},\"layers_per_stage\":[{}],\"gpu_memory_bytes\":{},"
      "\"memory_bytes\":[{}],\"gradients\":{}}},{}",
      json_string(in_words(placed.on)), layers, placed.on.gpu.memory, ranks,
      json_string(name_of(kGradientFormats, placed.on.parallel.gradients)),
      rates_json(placed, report));
}

std::string memory_warning(const PlacedModel& placed, const BubbleReport& report) {
  const std::vector<RankMemory> ranks = memory_of(placed, report);
  const auto fullest = std::max_element(
      ranks.begin(), ranks.end(),
      [](const RankMemory& left, const RankMemory& right) { return left.peak < right.peak; });
  const Bytes limit = placed.on.usable_memory();
  if (fullest == ranks.end() || fullest->peak <= limit) return {};
  const auto over = std::count_if(ranks.begin(), ranks.end(),
                                  [&](const RankMemory& rank) { return rank.peak > limit; });
  return fmt::format(
      "{} of {} ranks do not fit: rank {} needs {:.1f} GiB of {:.1f} ({:.1f} of states, {:.1f} of "
      "activations); what would hold less: {}",
      over, ranks.size(), fullest - ranks.begin(), gibibytes(fullest->peak), gibibytes(limit),
      gibibytes(fullest->states.total()), gibibytes(fullest->activations),
      remedy(placed, *fullest));
}

void comment_on_model(const PlacedModel& placed, const BubbleReport& report, bool explain) {
  if (explain) print_assumptions(placed.on);
  const std::string warning = memory_warning(placed, report);
  if (!warning.empty()) say("bubblescope: {}\n", warning);
}

}  // namespace bubblescope
