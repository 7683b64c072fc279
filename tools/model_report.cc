// A table, an object, a warning.
#include "tools/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "tools/say.h"
#include "traces/json_string.h"

namespace bubblescope {

namespace {

/// A rank's memory at its worst moment, by part.
struct RankMemory {
  StateBytes states;
  Bytes activations = 0;
  Bytes peak = 0;
};

struct Part {
  const char* name;
  Bytes (*bytes)(const RankMemory&);
};

constexpr std::array<Part, 6> kParts{{
    {"weights", [](const RankMemory& rank) { return rank.states.weights; }},
    {"gradients", [](const RankMemory& rank) { return rank.states.gradients; }},
    {"optimizer", [](const RankMemory& rank) { return rank.states.optimizer; }},
    {"buffers", [](const RankMemory& rank) { return rank.states.buffers; }},
    {"context", [](const RankMemory& rank) { return rank.states.context; }},
    {"activations", [](const RankMemory& rank) { return rank.activations; }},
}};

constexpr std::size_t kMostRows = 16;

/// A column's: its name, or a number such as 1234.5, behind a space.
std::size_t width_of(const Part& part) {
  return std::max<std::size_t>(std::string_view(part.name).size(), 7) + 1;
}

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

/// "9 8*30 7": equal neighbours once, as Megatron's layouts repeat.
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

std::string row_text(std::size_t rank, const RankMemory& memory, Bytes limit) {
  std::string row = fmt::format("{:<9}", fmt::format("rank {}", rank));
  for (const Part& part : kParts)
    row += fmt::format("{:>{}.1f}", gibibytes(part.bytes(memory)), width_of(part));
  return row + fmt::format("{:>7.1f}{:>6.0f} %\n", gibibytes(memory.peak),
                           100 * gibibytes(memory.peak) / gibibytes(limit));
}

/// What would make the largest parts smaller, largest first.
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

std::string write_model_text(const PlacedModel& placed, const BubbleReport& report) {
  const std::vector<RankMemory> ranks = memory_of(placed, report);
  const Bytes limit = placed.on.usable_memory();
  std::string text =
      fmt::format("\n{}\nlayers per stage  {}; embedding on the first, head on the last\n\n{:<9}",
                  in_words(placed.on), layers_text(placed.step.first_layer), "GiB");
  for (const Part& part : kParts) text += fmt::format("{:>{}}", part.name, width_of(part));
  text += fmt::format("{:>7}{:>8}\n", "peak", fmt::format("of {:.0f}", gibibytes(limit)));
  for (std::size_t rank = 0; rank < std::min(ranks.size(), kMostRows); ++rank)
    text += row_text(rank, ranks[rank], limit);
  if (ranks.size() > kMostRows)
    text += fmt::format("... and {} ranks more; --format json has them all\n",
                        ranks.size() - kMostRows);
  return text;
}

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
      "\"memory_bytes\":[{}]}}",
      json_string(in_words(placed.on)), layers, placed.on.gpu.memory, ranks);
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
