// Adds the flags that say how long a runtime holds outputs and gathered weights.
#include <optional>
#include <string>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/send_budget.h"
#include "tools/flags/choice.h"
#include "tools/flags/heading.h"
#include "tools/flags/options.h"
#include "tools/flags/words.h"

namespace bubblescope::tools {

std::optional<UnshardLookahead> find_lookahead(const std::string& text) {
  const std::string name = normalize_name(text);
  if (name == "auto") return UnshardLookahead{};
  if (name == "full") return UnshardLookahead{{static_cast<std::int32_t>(kMaxGatheredStages)}};
  const auto stages = parse_number<std::int32_t>(text);
  return stages ? std::optional(UnshardLookahead{{*stages}}) : std::nullopt;
}

namespace {

UnshardLookahead parse_lookahead(const std::string& text) {
  if (const auto of_all = find_lookahead(text)) return *of_all;
  UnshardLookahead lookahead;
  for (const std::string& part : split(text, ',')) {
    const auto stages = parse_number<std::int32_t>(part);
    if (!stages)
      throw Error("'" + text +
                  "' is not a number of stages; write full, auto, 2 or one per rank, 1,2,2");
    lookahead.stages.push_back(*stages);
  }
  return lookahead;
}

}  // namespace

std::int32_t parse_send_budget(const std::string& text) {
  if (normalize_name(text) == "none") return kUnlimitedSends;
  const auto sends = parse_number<std::int32_t>(text);
  if (!sends || *sends < 1)
    throw Error("'" + text + "' is not a number of sends from 1 on; write 4, or none for no limit");
  return *sends;
}

void add_held_memory_options(CommandFlags& app, PredictOptions& options) {
  const Heading heading(app, kMemoryHeading);
  add_parsed(app,
             {"--send-budget",
              "ranks hold outputs until their sends end, and wait before they post one send more "
              "than this (PyTorch 2.15); none: no limit",
              "K|none"},
             [&options](const std::string& text) {
               options.cost.lower.send_budget = parse_send_budget(text);
             });
  add_parsed(
      app,
      {"--unshard-lookahead",
       "with --fsdp: how many of its next stages a rank gathers, which are held until "
       "they are dropped",
       "N|auto|full"},
      [&options](const std::string& text) { options.shape.lookahead = parse_lookahead(text); });
}

}  // namespace bubblescope::tools
