// Writes the table, the JSON object and the warning of a model.
#include "tools/inputs/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sim/ir/bytes_text.h"
#include "sim/ir/counted.h"
#include "sim/model/balance_layers.h"
#include "sim/model/known_errors.h"
#include "sim/predict/model_fit.h"
#include "tools/flags/field_names.h"
#include "tools/flags/model_options.h"
#include "tools/inputs/assumed_defaults.h"
#include "tools/inputs/model_headline.h"
#include "tools/inputs/resolve_model.h"
#include "tools/print.h"
#include "traces/text/fit_table.h"

namespace bubblescope::tools {

namespace {

/// A rank's memory at its peak, by category.
struct RankNeeds {
  StateBytes states;
  Bytes activations = 0;
  Bytes peak = 0;
};

struct Part {
  const char* name;
  int importance;  ///< the least important is left out first
  Bytes (*bytes)(const RankNeeds&);
};

constexpr std::array<Part, 6> kParts{{
    {"weights", 20, [](const RankNeeds& rank) { return rank.states.weights; }},
    {"gradients", 21, [](const RankNeeds& rank) { return rank.states.gradients; }},
    {"optimizer", 22, [](const RankNeeds& rank) { return rank.states.optimizer; }},
    {"buffers", 2, [](const RankNeeds& rank) { return rank.states.buffers; }},
    {"context", 1, [](const RankNeeds& rank) { return rank.states.context; }},
    {"activations", 30, [](const RankNeeds& rank) { return rank.activations; }},
}};

constexpr std::size_t kMaxRows = 16;

std::vector<RankNeeds> memory_of(const PlacedModel& placed, const BubbleReport& report) {
  std::vector<RankNeeds> ranks;
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    const StateBytes& states = placed.step.states[rank];
    const Bytes peak = report.ranks[rank].peak.bytes.value_or(states.total());
    ranks.push_back({states, peak - states.total(), peak});
  }
  return ranks;
}

/// Returns the layers of every stage, with repeated values written once as in Megatron's layouts:
/// "9 8*30 7".
std::string layers_text(const LayerCounts& counts) {
  std::string text;
  for (std::size_t stage = 0; stage < counts.size();) {
    std::size_t end = stage + 1;
    while (end < counts.size() && counts[end] == counts[stage]) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : " ", counts[stage]);
    if (end - stage > 1) text += fmt::format("*{}", end - stage);
    stage = end;
  }
  return text;
}

template <class Cell>
traces::TableColumn rank_column(std::string head, std::size_t ranks, const Cell& cell) {
  traces::TableColumn column;
  column.head = std::move(head);
  for (std::size_t rank = 0; rank < std::min(ranks, kMaxRows); ++rank)
    column.cells.push_back(cell(rank));
  return column;
}

/// The sum of the parts with these names, as one column.
traces::TableColumn other_parts(const std::vector<RankNeeds>& ranks,
                                const std::vector<std::string>& names) {
  return rank_column("other", ranks.size(), [&](std::size_t rank) {
    Bytes sum = 0;
    for (const Part& part : kParts)
      if (std::find(names.begin(), names.end(), part.name) != names.end())
        sum += part.bytes(ranks[rank]);
    return gibibytes_text(sum);
  });
}

/// Returns the columns of the memory table: each rank's parts, its peak, and the peak as a
/// percentage of the usable memory.
std::vector<traces::TableColumn> memory_columns(const std::vector<RankNeeds>& ranks,
                                                const ModelOnDevices& on) {
  std::vector<traces::TableColumn> columns;
  const auto add = [&](std::string head, int importance, auto&& cell) {
    columns.push_back(rank_column(std::move(head), ranks.size(), cell));
    columns.back().importance = importance;
  };
  add("GiB", traces::kAlwaysShown, [](std::size_t rank) { return fmt::format("rank {}", rank); });
  columns.back().left = true;
  for (const Part& part : kParts) {
    add(part.name, part.importance,
        [&](std::size_t rank) { return gibibytes_text(part.bytes(ranks[rank])); });
    columns.back().is_part = true;
  }
  add("peak", traces::kAlwaysShown,
      [&](std::size_t rank) { return gibibytes_text(ranks[rank].peak); });
  const std::string limit =
      on.rank_gpus.empty() ? gibibytes_text(on.usable_memory(0)) : std::string("its own");
  add("of " + limit, 50, [&](std::size_t rank) {
    const Bytes usable = on.usable_memory(static_cast<std::int32_t>(rank));
    return fmt::format("{:.0f} %",
                       100 * static_cast<double>(ranks[rank].peak) / static_cast<double>(usable));
  });
  return columns;
}

/// A block that leaves layers out could have more of them, and groups of several could be smaller.
std::string advise_recomputed_layers(const Parallelism& parallel) {
  if (parallel.recompute != Recompute::kFull) return {};
  const RecomputedLayers& recomputed = parallel.recomputed;
  const std::vector<std::int64_t>& stages = parallel.layers_of_stage;
  const bool leaves_out = parallel.keeps_layers() &&
                          std::any_of(stages.begin(), stages.end(),
                                      [&](auto layers) { return layers > recomputed.number; });
  if (leaves_out) return "more --recompute-num-layers, ";
  const bool groups = recomputed.method == RecomputeMethod::kUniform && recomputed.number > 1;
  return groups ? "fewer --recompute-num-layers, " : "";
}

/// Suggests how to shrink the largest parts, largest first.
std::string remedy(const PlacedModel& placed, const RankNeeds& rank, const BubbleReport& report,
                   Bytes limit) {
  const Parallelism& parallel = placed.on.parallel;
  const bool shardable = parallel.copies() > 1;
  // Where backwards are split, what I computes again is kept until W, which may be more than
  // before.
  const bool splits = std::any_of(report.ranks.begin(), report.ranks.end(), [](const auto& one) {
    return one.busy_by_kind[static_cast<std::size_t>(BusyKind::kW)] > 0;
  });
  const bool can_recompute = parallel.recompute != Recompute::kFull && !splits;
  std::string less_activations = can_recompute ? "--recompute full, " : "";
  if (!splits) less_activations += advise_recomputed_layers(parallel);
  if (parallel.micro_batch_size > 1) less_activations += "a smaller --micro-batch-size, ";
  less_activations += "a schedule that holds fewer micro-batches, more --tp or --cp";
  std::string less_states = "more --pp or --tp";
  if (parallel.zero_stage < 3)
    less_states += shardable                  ? fmt::format(", --zero {}", parallel.zero_stage + 1)
                   : parallel.zero_stage == 0 ? ", --zero 1 with more --dp"
                                              : ", more --dp (which shards the optimizer's states)";
  const bool activations_first = rank.activations > rank.states.total() / 2;
  const Bytes states = rank.states.total() - rank.states.buffers;
  if (rank.states.buffers > limit)
    return "the buffers alone are too large, as those of messages: more --tp or --cp";
  if (states > limit) return "the states alone are too large: " + less_states;
  less_activations.insert(0, "for smaller activations: ");
  less_states.insert(0, "for smaller states: ");
  return activations_first ? less_activations + "; " + less_states
                           : less_states + "; " + less_activations;
}

/// Returns the line below the table: "with 32-bit gradients; 79.1 GiB of the device for a program,
/// 0.50 GiB of it reserved".
std::string basis_text(const ModelOnDevices& on) {
  const std::string with =
      on.trains ? "with " + describe_gradients(on.parallel.gradients) + "; " : "";
  if (!on.rank_gpus.empty())
    return fmt::format("{}{} of every device's memory for a program reserved\n", with,
                       format_bytes(on.reserved_memory));
  return fmt::format("{}{} of the device for a program, {} of it reserved\n", with,
                     format_bytes(on.gpu.memory), format_bytes(on.reserved_memory));
}

}  // namespace

std::string write_model_text(const PlacedModel& placed, const BubbleReport& report,
                             const traces::DrawOptions& draw) {
  const std::vector<RankNeeds> ranks = memory_of(placed, report);
  const std::optional<int> width = draw.fit ? std::optional(draw.width) : std::nullopt;
  const traces::FittedTable table = traces::draw_table(
      memory_columns(ranks, placed.on), width,
      [&](const std::vector<std::string>& names) { return other_parts(ranks, names); });
  std::string text = fmt::format(
      "\nlayers per stage  {}; {}\n\n{}{}", layers_text(count_layers(placed.step.first_layer)),
      placed.step.splits_vocabulary ? "embedding and head split over all ranks"
                                    : "embedding on the first, head on the last",
      table.text, name_flags(traces::describe_hidden(table.hidden)));
  if (ranks.size() > kMaxRows)
    text += fmt::format("... and {} more; --format json has them all\n",
                        counted(ranks.size() - kMaxRows, "rank"));
  text += basis_text(placed.on);
  return draw.fit ? traces::fold_lines(text, draw.width) : text;
}

namespace {

/// Writes how well the devices are used, and whether all ranks fit.
void write_rates(traces::JsonWriter& json, const PlacedModel& placed, const BubbleReport& report) {
  const ModelFit fit = find_fit(placed, report);
  const ModelRates rates = compute_model_rates(placed.on, report.shape, report.makespan);
  json.member("fits", fit.fits()).member("head_room_bytes", fit.head_room);
  json.key("mfu").shortest(rates.mfu).key("tokens_per_second_per_gpu");
  json.shortest(rates.tokens_per_second / rates.devices).key("interval");
  const NearestErrors errors = find_nearest_errors(placed.on);
  if (!errors.known) {
    json.null().member("no_interval", errors.why_none);
    return;
  }
  const StepInterval bounds = compute_interval(report.makespan, *errors.known);
  json.begin_object().member("low_ns", bounds.low).member("high_ns", bounds.high);
  json.member("from", errors.known->from());
  if (!errors.unpublished_schedule.empty())
    json.member("unpublished_schedule", errors.unpublished_schedule);
  json.end_object();
}

}  // namespace

void write_model_json(traces::JsonWriter& json, const PlacedModel& placed,
                      const BubbleReport& report) {
  json.key("model").begin_object().member("name", describe_model(placed.on));
  json.key("layers_per_stage").begin_array();
  for (const std::int64_t count : count_layers(placed.step.first_layer)) json.value(count);
  json.end_array().member("gpu_memory_bytes", placed.on.gpu.memory);
  json.key("memory_bytes").begin_array();
  for (const RankNeeds& memory : memory_of(placed, report)) {
    json.begin_object();
    for (const Part& part : kParts) json.member(part.name, part.bytes(memory));
    json.end_object();
  }
  json.end_array();
  json.member("gradients", name_of(kGradientFormats, placed.on.parallel.gradients)).end_object();
  write_rates(json, placed, report);
}

std::string describe_memory_problem(const PlacedModel& placed, const BubbleReport& report) {
  const std::vector<RankNeeds> ranks = memory_of(placed, report);
  const ModelFit fit = find_fit(placed, report);
  if (ranks.empty() || fit.fits()) return {};
  const RankNeeds& fullest = ranks[fit.rank];
  const Bytes limit = placed.on.usable_memory(static_cast<std::int32_t>(fit.rank));
  std::int64_t over = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    over += ranks[rank].peak > placed.on.usable_memory(static_cast<std::int32_t>(rank)) ? 1 : 0;
  const StateBytes& held = fullest.states;
  const bool has_large_buffers = held.buffers > (held.total() - held.buffers) / 4;
  const Bytes states = held.total() - (has_large_buffers ? held.buffers : 0);
  const std::string buffers =
      has_large_buffers ? fmt::format(", {} of buffers", gibibytes_text(held.buffers)) : "";
  return fmt::format(
      "{} of {} {} not fit: rank {} needs {} GiB of {}, {} too much ({} of states{}, {} of "
      "activations); {}",
      over, counted(ranks.size(), "rank"), over == 1 ? "does" : "do", fit.rank,
      gibibytes_text(fullest.peak), gibibytes_text(limit), format_bytes(fullest.peak - limit),
      gibibytes_text(states), buffers, gibibytes_text(fullest.activations),
      remedy(placed, fullest, report, limit));
}

void report_model_notes(const PlacedModel& placed, const BubbleReport& report,
                        const ModelOptions& options) {
  if (options.explain) print_assumptions(placed.on);
  note_heads(placed.on);
  const std::string gradients = describe_assumed_gradients(options.unstated, placed, report);
  if (!gradients.empty()) print_message("bubblescope: {}\n", gradients);
  const std::string warning = describe_memory_problem(placed, report);
  if (!warning.empty()) print_message("bubblescope: {}\n", warning);
}

std::map<std::string, double> model_metrics(const PlacedModel& placed, const BubbleReport& report) {
  const ModelRates rates = compute_model_rates(placed.on, report.shape, report.makespan);
  std::map<std::string, double> metrics{
      {"mfu", rates.mfu},
      {"tokens_per_second_per_gpu", rates.tokens_per_second / rates.devices},
      {"head_room_bytes", static_cast<double>(find_fit(placed, report).head_room)}};
  const NearestErrors errors = find_nearest_errors(placed.on);
  if (!errors.known) return metrics;
  const StepInterval interval = compute_interval(report.makespan, *errors.known);
  metrics["interval_low_ns"] = static_cast<double>(interval.low);
  metrics["interval_high_ns"] = static_cast<double>(interval.high);
  return metrics;
}

}  // namespace bubblescope::tools
