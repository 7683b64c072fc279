// Converts the assumptions to names and values, and back.
#include "traces/timelines/made_with.h"

#include <fmt/format.h>

#include <array>

#include "sim/ir/error.h"
#include "sim/ir/named.h"
#include "sim/ir/number.h"
#include "sim/ir/send_budget.h"
#include "traces/files/quote.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

[[noreturn]] void refuse(const std::string& where, const char* key, const std::string& value) {
  throw Error(
      fmt::format("{}/{}: {} is unknown to this program; update it", where, key, quote(value)));
}

using Described = std::map<std::string, std::string>;

/// Returns the file's value of this key, or the default.
template <class Choice, std::size_t count>
Choice read_choice(const Described& described, const char* key,
                   const std::array<Named<Choice>, count>& names, Choice otherwise,
                   const std::string& where) {
  const auto given = described.find(key);
  if (given == described.end()) return otherwise;
  const Named<Choice>* const found = find_named(names, given->second);
  if (!found) refuse(where, key, given->second);
  return found->choice;
}

constexpr const char* kInPlace = "in place";

std::int32_t read_send_budget(const std::string& value, const std::string& where) {
  if (value == "none") return kUnlimitedSends;
  const auto sends = parse_number<std::int32_t>(value);
  if (!sends || *sends < 1) refuse(where, "send_budget", value);
  return *sends;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe(const MadeWith& made) {
  std::vector<std::pair<std::string, std::string>> described;
  if (!made.costs.empty()) described.emplace_back("costs", made.costs);
  described.emplace_back("p2p_mode", to_string(made.lower.mode, made.lower.eager_slots));
  described.emplace_back("lowering", name_of(kReceivePostings, made.lower.posting));
  described.emplace_back("overlap", name_of(kOverlaps, made.lower.overlap));
  const UpdateOptions& update = made.lower.update;
  if (update.optimizer != OptimizerMode::kNone)
    described.emplace_back("optimizer", name_of(kOptimizerModes, update.optimizer));
  if (update.reduction != GradReduction::kNone)
    described.emplace_back("grad_reduction", name_of(kGradReductions, update.reduction));
  if (made.lower.ranks_per_host_link > 1)
    described.emplace_back("ranks_per_host_link", std::to_string(made.lower.ranks_per_host_link));
  if (made.lower.send_budget)
    described.emplace_back("send_budget", budget_text(*made.lower.send_budget));
  if (made.lower.gathers_in_place) described.emplace_back("unshard", kInPlace);
  if (!made.profile.empty()) described.emplace_back("profile", made.profile);
  described.insert(described.end(), made.conditions.begin(), made.conditions.end());
  return described;
}

std::string conditions_text(const MadeWith& made) {
  std::string text;
  for (const auto& [field, value] : made.conditions)
    text += (text.empty() ? " with " : ", ") + field + " " + value;
  return text;
}

void write_made_with_json(JsonWriter& json, const MadeWith& made) {
  json.key("made_with").begin_object();
  for (const auto& [key, value] : describe(made)) json.member(key, value);
  json.end_object();
}

LowerOptions read_lowering(const Described& described, const std::string& where) {
  LowerOptions options;
  if (const auto mode = described.find("p2p_mode"); mode != described.end()) {
    const auto rule = parse_p2p_rule(mode->second);
    if (!rule) refuse(where, "p2p_mode", mode->second);
    options.mode = rule->mode;
    options.eager_slots = rule->eager_slots;
  }
  options.posting = read_choice(described, "lowering", kReceivePostings, options.posting, where);
  options.overlap = read_choice(described, "overlap", kOverlaps, options.overlap, where);
  UpdateOptions& update = options.update;
  update.optimizer = read_choice(described, "optimizer", kOptimizerModes, update.optimizer, where);
  update.reduction =
      read_choice(described, "grad_reduction", kGradReductions, update.reduction, where);
  if (const auto given = described.find("ranks_per_host_link"); given != described.end()) {
    const auto ranks = parse_number<std::int32_t>(given->second);
    if (!ranks || *ranks < 1) refuse(where, "ranks_per_host_link", given->second);
    options.ranks_per_host_link = *ranks;
  }
  if (const auto given = described.find("send_budget"); given != described.end())
    options.send_budget = read_send_budget(given->second, where);
  if (const auto given = described.find("unshard"); given != described.end()) {
    if (given->second != kInPlace) refuse(where, "unshard", given->second);
    options.gathers_in_place = true;
  }
  return options;
}

}  // namespace bubblescope::traces
