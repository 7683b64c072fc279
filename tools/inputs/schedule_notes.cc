// Detects names that differ only in hyphens, and sizes that were not given.
#include "tools/inputs/schedule_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/ir/bytes_text.h"
#include "sim/ir/counted.h"
#include "sim/model/full_groups.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

std::string remove_hyphens(const std::string& name) {
  std::string text = normalize_name(name);
  std::erase(text, '-');
  return text;
}

}  // namespace

std::vector<std::string> find_similar_names(const std::string& name) {
  const std::string found = find_schedule(name).name;
  const std::string wanted = remove_hyphens(name);
  const auto is_similar = [&](const std::string& known) { return remove_hyphens(known) == wanted; };
  std::vector<std::string> similar;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    if (def.name != found &&
        (is_similar(def.name) || std::any_of(def.aliases.begin(), def.aliases.end(), is_similar)))
      similar.push_back(def.name);
  return similar;
}

void note_similar_names(const std::string& name) {
  const ScheduleDef& def = find_schedule(name);
  if (normalize_name(name) == def.name) return;
  const std::vector<std::string> similar = find_similar_names(name);
  if (!similar.empty())
    print_message("bubblescope: {} is {}; {} is another schedule\n", name, def.name,
                  fmt::join(similar, ", "));
}

std::int32_t default_chunks(const ScheduleDef& def, const ShapeOptions& given) {
  return given.profile == Profile::kNone ? def.default_chunks : 1;
}

std::int32_t default_slices(const ScheduleDef& def, const ShapeOptions& given) {
  return given.profile == Profile::kNone ? def.default_slices : 1;
}

void note_default_sizes(const ScheduleDef& def, const ShapeOptions& given) {
  const auto note_default_size = [&](const char* flag, std::int32_t usual, bool is_given) {
    if (usual > 1 && !is_given)
      print_message("bubblescope: {} uses {} {} by default\n", def.name, flag, usual);
  };
  note_default_size("--vpp", default_chunks(def, given), given.chunks || !given.layout.empty());
  note_default_size("--slices", default_slices(def, given), given.slices.has_value());
}

void note_larger_bubble(const ScheduleDef& def, const ScheduleRequest& request) {
  if (!def.is_at_most_1f1b || def.is_at_most_1f1b(request)) return;
  const Shape& shape = request.shape;
  print_message(
      "bubblescope: on {} {} has at most the bubble of 1f1b with up to {}, and with {} where "
      "forwards and backwards differ by a factor of 2 at most; with {}, 1f1b may have less\n",
      counted(shape.ranks, "rank"), def.name, counted(shape.ranks, "micro-batch"),
      2 * std::int64_t{shape.ranks}, shape.microbatches);
}

void note_short_group(const ScheduleDef& def, const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const auto full = find_full_groups(def, shape, request.profile);
  if (!full) return;
  const std::int32_t size = shape.group_size.value_or(shape.ranks);
  print_message(
      "bubblescope: {0}: {1} in groups of {2} leave a last group of {3}, which is "
      "fewer than the {4} and delays them all; --microbatch-group-size {5} does not\n",
      def.name, counted(shape.microbatches, "micro-batch"), size, shape.microbatches % size,
      counted(shape.ranks, "rank"), *full);
}

void note_device_cap(const ScheduleDef& def, const ScheduleRequest& request,
                     const UniformMemory& memory) {
  const std::vector<Bytes>& caps = request.memory.cap_bytes;
  const bool is_given = !memory.cap.empty() || !memory.cap_bytes.empty();
  if (!def.reads_costs || is_given || caps.empty()) return;
  print_message(
      "bubblescope: {} keeps within the {} of a device, which is its cap; --cap gives another\n",
      def.name, format_bytes(*std::min_element(caps.begin(), caps.end())));
}

void note_uneven_ranks(const Schedule& schedule, const PredictOptions& options) {
  const bool is_per_rank = options.cost.uniform.per == UniformCost::Per::kRank;
  if (!is_per_rank || options.model.given() || !options.cost.file.empty() ||
      !options.shape.layout.empty() || !schedule.replicas_of_stage.empty() ||
      schedule.side_stages > 0 || schedule.pipelines > 1)
    return;
  std::vector<std::int32_t> stages(static_cast<std::size_t>(schedule.shape.ranks), 0);
  for (const std::int32_t rank : schedule.rank_of_stage) ++stages[static_cast<std::size_t>(rank)];
  const auto [fewest, most] = std::minmax_element(stages.begin(), stages.end());
  if (*fewest == *most) return;
  print_message(
      "bubblescope: ranks of {} have {} to {}; times per rank are for {}, and every stage takes an "
      "equal part of them (--costs-per chunk gives the time of a stage)\n",
      schedule.name, *fewest, counted(*most, "stage"), schedule.shape.chunks);
}

void note_last_messages(const CostTable& table, const std::string& file) {
  if (table.same_stages || table.stages.empty()) return;
  const StageEntry& last = table.stages.back();
  const char* key = last.message_latency ? "message_latency"
                    : last.message_bytes ? "message_bytes"
                                         : nullptr;
  if (key == nullptr) return;
  print_message(
      "bubblescope: {}: '{}' of the last stage changes nothing: it is of messages between a stage "
      "and the next one\n",
      file, key);
}

void note_recompute_order(const PredictOptions& options) {
  const Profile profile = options.shape.profile;
  const std::vector<Recompute>& recompute = options.moves.recompute;
  const auto recomputes = [](Recompute one) { return one != Recompute::kNone; };
  if (profile == Profile::kNone || options.model.given() ||
      std::none_of(recompute.begin(), recompute.end(), recomputes))
    return;
  print_message(
      "bubblescope: R is an op of its own here and may run before its gradient arrives; {} "
      "recomputes within the backward. To model that, leave --recompute out and add R's time to "
      "{}\n",
      to_string(profile),
      options.cost.file.empty() ? "--b" : "the backward in " + options.cost.file);
}

void note_output_layer(const ScheduleDef& def, const PredictOptions& options) {
  if (!def.splits_output_layer || options.model.given()) return;
  if (options.cost.file.empty() && options.cost.uniform.output_layer == 0)
    print_message(
        "bubblescope: {} splits an output layer that takes no time here; give --output-layer\n",
        def.name);
}

}  // namespace bubblescope::tools
