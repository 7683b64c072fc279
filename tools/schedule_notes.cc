// Detects names that differ only in hyphens, and sizes that were not given.
#include "tools/schedule_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/say.h"

namespace bubblescope {

namespace {

std::string without_hyphens(const std::string& name) {
  std::string text = normalize_name(name);
  std::erase(text, '-');
  return text;
}

}  // namespace

std::vector<std::string> similar_names(const std::string& name) {
  const std::string found = find_schedule(name).name;
  const std::string wanted = without_hyphens(name);
  const auto is_similar = [&](const std::string& known) {
    return without_hyphens(known) == wanted;
  };
  std::vector<std::string> similar;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    if (def.name != found &&
        (is_similar(def.name) || std::any_of(def.aliases.begin(), def.aliases.end(), is_similar)))
      similar.push_back(def.name);
  return similar;
}

void say_similar_names(const std::string& name) {
  const ScheduleDef& def = find_schedule(name);
  if (normalize_name(name) == def.name) return;
  const std::vector<std::string> similar = similar_names(name);
  if (!similar.empty())
    say("bubblescope: {} is {}; {} is another schedule\n", name, def.name,
        fmt::join(similar, ", "));
}

std::int32_t usual_chunks(const ScheduleDef& def, const ShapeOptions& given) {
  return given.profile == Profile::kNone ? def.usual_chunks : 1;
}

std::int32_t usual_slices(const ScheduleDef& def, const ShapeOptions& given) {
  return given.profile == Profile::kNone ? def.usual_slices : 1;
}

void say_usual_sizes(const ScheduleDef& def, const ShapeOptions& given) {
  const auto say_usual = [&](const char* flag, std::int32_t usual, bool is_given) {
    if (usual > 1 && !is_given)
      say("bubblescope: {} takes {} {}, as none is given\n", def.name, flag, usual);
  };
  say_usual("--vpp", usual_chunks(def, given), given.chunks || !given.layout.empty());
  say_usual("--slices", usual_slices(def, given), given.slices.has_value());
}

}  // namespace bubblescope
