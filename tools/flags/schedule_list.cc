// Compares schedules by what their names stand for.
#include "tools/flags/schedule_list.h"

#include <algorithm>
#include <utility>

#include "sim/ir/registry.h"
#include "sim/model/schedule_def.h"
#include "tools/flags/words.h"

namespace bubblescope::tools {

namespace {

/// The registered name; the word itself where it is a path or not known.
std::string meaning_of(const std::string& name) {
  const ScheduleDef* const def = Registry<ScheduleDef>::instance().find(name);
  return def == nullptr ? name : def->name;
}

}  // namespace

std::vector<std::string> without_repeats(std::vector<std::string> names) {
  std::vector<std::string> seen;
  std::erase_if(names, [&](const std::string& name) {
    std::string meaning = meaning_of(name);
    if (std::find(seen.begin(), seen.end(), meaning) != seen.end()) return true;
    seen.push_back(std::move(meaning));
    return false;
  });
  return names;
}

bool is_same_schedule(const std::string& name, const std::string& other) {
  return meaning_of(name) == meaning_of(other);
}

std::vector<std::string> list_schedules(const std::string& list) {
  std::vector<std::string> names;
  for (const std::string& word : split(list, ','))
    if (std::string name = trim(word); !name.empty()) names.push_back(std::move(name));
  return without_repeats(std::move(names));
}

bool is_all(const std::string& name) { return normalize_name(name) == "all"; }

ExpandedList expand_all(const std::string& list, const std::vector<std::string>& all) {
  ExpandedList expanded;
  for (std::string& word : list_schedules(list)) {
    if (is_all(word)) {
      expanded.names.insert(expanded.names.end(), all.begin(), all.end());
      continue;
    }
    expanded.names.push_back(word);
    expanded.asked.push_back(std::move(word));
  }
  expanded.names = without_repeats(std::move(expanded.names));
  return expanded;
}

std::vector<std::string> list_trained_schedules() {
  std::vector<std::string> names;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    if (def.trains) names.push_back(def.name);
  return names;
}

}  // namespace bubblescope::tools
