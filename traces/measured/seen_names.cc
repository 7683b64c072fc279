// Counts names, and chooses those that a refusal shows.
#include "traces/measured/seen_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/number.h"
#include "traces/files/quote.h"
#include "traces/json/json_writer.h"
#include "traces/measured/code_names.h"
#include "traces/measured/name_guesses.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kMaxGroups = 10'000;
constexpr std::size_t kShown = 8;
constexpr std::size_t kMaxName = 200;
constexpr const char* kProfilerItself = "PyTorch Profiler (0)";  ///< the whole recording

std::string without_numbers(std::string_view name) {
  std::string general;
  for (std::size_t at = 0; at < name.size(); ++at)
    if (!is_digit(name[at]))
      general += name[at];
    else if (at == 0 || !is_digit(name[at - 1]))
      general += '#';
  return general;
}

}  // namespace

void SeenNames::add(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) return;
  const std::string general = without_numbers(name);
  const auto found = groups_.find(general);
  if (found != groups_.end()) {
    ++found->second.count;
  } else if (groups_.size() < kMaxGroups) {
    groups_.emplace(general, Group{std::string(name), 1});
  }
}

std::vector<const SeenNames::Group*> SeenNames::sort_groups() const {
  std::vector<const Group*> order;
  for (const auto& [_, group] : groups_) order.push_back(&group);
  std::stable_sort(order.begin(), order.end(), [](const Group* left, const Group* right) {
    return left->count > right->count;
  });
  return order;
}

bool SeenNames::has_code_locations() const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const auto& group) { return names_code_location(group.second.example); });
}

std::string as_rules_file(const std::string& rules) {
  std::string file;
  JsonWriter json(file);
  json.begin_object().member("format", "bubblescope-rules/1").key("rules").begin_array();
  json.raw(rules).end_array().end_object();
  return file;
}

std::string SeenNames::suggest_op_rules() const {
  // Names that speak of a kind are the best examples, if there are any: one of each kind.
  const std::vector<const Group*> order = sort_groups();
  const bool has_code = has_code_locations();
  std::string rules;
  for (const char* const kind : {"F", "B", "I", "W", "R"}) {
    const auto of_kind = std::find_if(order.begin(), order.end(), [&](const Group* group) {
      const char* const own = guess_kind(lower(group->example));
      return own != nullptr && std::string_view(own) == kind && may_be_op(group->example) &&
             (!has_code || !make_pattern(group->example).numbers.empty());
    });
    if (of_kind != order.end())
      rules += (rules.empty() ? "" : ", ") + suggest_rule((*of_kind)->example);
  }
  return rules;
}

std::string SeenNames::suggest_step_rule() const {
  const Group* found = nullptr;
  for (const auto& [_, group] : groups_) {
    if (!is_step_marker(group.example) || is_communication(group.example)) continue;
    if (found != nullptr) return {};
    found = &group;
  }
  if (found == nullptr) return {};
  std::string rule;
  JsonWriter json(rule);
  json.begin_object().member("match", make_pattern(found->example).text);
  json.member("kind", "step").member("step", "$1").end_object();
  return rule;
}

std::string SeenNames::list() const {
  if (empty()) return {};
  const std::vector<const Group*> order = sort_groups();
  std::string text = "; its names: ";
  for (std::size_t at = 0; at < std::min(order.size(), kShown); ++at)
    text += fmt::format("{}{} ({} like it)", at == 0 ? "" : ", ", quote(order[at]->example),
                        order[at]->count);
  if (order.size() > kShown)
    text += fmt::format(" and {}", counted(std::ssize(order) - std::ptrdiff_t{kShown}, "other"));
  return text;
}

std::string SeenNames::describe_deepspeed() const {
  constexpr std::size_t kMaxNamed = 3;
  std::vector<std::string> names;
  for (const Group* group : sort_groups())
    if (names.size() < kMaxNamed && names_deepspeed_function(group->example))
      names.push_back(quote(group->example));
  if (names.empty()) return {};
  return fmt::format(
      "; DeepSpeed's own ranges, here {}, are those of functions, which state neither a stage nor "
      "a micro-batch, and its pipelines give none to forwards and backwards: annotate_deepspeed() "
      "in "
      "tools/hooks/bubblescope_hooks.py names them",
      fmt::join(names, ", "));
}

std::string SeenNames::describe() const {
  std::string text = list();
  if (text.empty()) return {};
  text += describe_deepspeed();
  std::string rules = suggest_op_rules();
  const bool has_kind = !rules.empty();
  if (!has_kind) {
    const std::vector<const Group*> order = sort_groups();
    const bool has_code = has_code_locations();
    const auto other = std::find_if(order.begin(), order.end(), [&](const Group* group) {
      return !is_step_marker(group->example) && may_be_op(group->example) &&
             group->example != kProfilerItself &&
             (!has_code || !make_pattern(group->example).numbers.empty());
    });
    if (other == order.end())
      return text + "; none of its names is that of an op, so `rules` cannot read them";
    rules = suggest_rule((*other)->example);
  }
  text += "; a file for `rules` can say what they mean";
  if (!has_kind) text += ", with F, B, I, W or R for their kind";
  if (rules.find(kOpenGroup) != rules.npos)
    text += fmt::format("; replace {} with the group that is the micro-batch ($1, $2, ...)",
                        kOpenGroup);
  return text + ": " + as_rules_file(rules);
}

}  // namespace bubblescope::traces
