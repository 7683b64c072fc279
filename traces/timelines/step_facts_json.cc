// Writes and reads the facts of a step.
#include "traces/timelines/step_facts_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/ir/counted.h"
#include "sim/ir/range.h"
#include "traces/json/link_uses.h"
#include "traces/timelines/made_with.h"
#include "traces/timelines/memory_json.h"
#include "traces/timelines/parts_json.h"

namespace bubblescope::traces {

namespace {

bool has_gaps(const Timeline& timeline) {
  return std::any_of(timeline.gaps.begin(), timeline.gaps.end(), [](Nanos gap) { return gap > 0; });
}

/// Whether an instruction took longer, or less long, than without contention.
bool has_contention(const Timeline& timeline) {
  for (std::size_t id = 0; id < timeline.uncontended.size(); ++id)
    if (timeline.uncontended[id] != timeline.end[id] - timeline.start[id]) return true;
  return false;
}

/// A link carries no more in a step than its bandwidth lets it while it is busy.
LinkUse read_link(const JsonNode& link, Nanos makespan) {
  link.expect_keys({"name", "bytes", "busy_ns", "shared_ns", "utilization"});
  LinkUse use;
  use.name = link.at("name").text();
  use.bytes = link.at("bytes").integer(0, kMaxBytes);
  use.busy = link.at("busy_ns").integer(0, makespan);
  use.shared = link.at("shared_ns").integer(0, use.busy);
  constexpr double kRounding = 1e-6;
  const double limit =
      makespan == 0 ? 0 : static_cast<double>(use.busy) / static_cast<double>(makespan);
  const JsonNode utilization = link.at("utilization");
  const std::optional<double> used = utilization.number();
  if (!used || *used < 0 || *used > limit + kRounding)
    utilization.refuse(fmt::format(
        "must be a number from 0 to {:.6g}, the part of the step in which the link is busy",
        limit));
  use.utilization = *used;
  return use;
}

std::vector<LinkUse> read_links(const JsonNode& node, const Timeline& timeline) {
  const StepBounds bounds = find_step_bounds(timeline);
  std::vector<LinkUse> links;
  for (std::size_t at = 0; at < node.size(); ++at)
    links.push_back(read_link(node[at], bounds.end - bounds.start));
  return links;
}

/// Reads a time per instruction; nothing where they are left out.
std::vector<Nanos> read_times(const JsonNode& node, const char* key, const Program& program) {
  std::vector<Nanos> times;
  const auto given = node.find(key);
  if (!given) return times;
  if (given->size() != program.size())
    given->refuse(fmt::format("has {} for {}", counted(given->size(), "entry"),
                              counted(program.size(), "instruction")));
  for (std::size_t at = 0; at < given->size(); ++at)
    times.push_back((*given)[at].integer(0, kMaxNanos));
  return times;
}

std::vector<Nanos> read_gaps(const JsonNode& node, const Program& program) {
  std::vector<Nanos> gaps = read_times(node, "gaps_ns", program);
  const auto given = node.find("gaps_ns");
  for (std::size_t id = 0; id < gaps.size(); ++id)
    if (gaps[id] > 0 && program.instructions[id].lane == kNoLane)
      (*given)[id].refuse("must be 0 for an instruction without a lane");
  return gaps;
}

MadeWith read_made_with(const JsonNode& node, const std::string& file) {
  std::map<std::string, std::string> described;
  for (const JsonNode& member : node.members()) described[member.key()] = member.text();
  MadeWith made;
  made.lower = read_lowering(described, file + ": " + node.pointer());
  made.costs = described["costs"];
  made.profile = described["profile"];
  for (const char* const field : kConditions)
    if (const auto given = described.find(field); given != described.end())
      made.conditions.insert(*given);
  return made;
}

}  // namespace

void write_timeline_facts(JsonWriter& json, const Timeline& timeline) {
  if (has_contention(timeline)) json.line(1).array("uncontended_ns", timeline.uncontended);
  if (has_gaps(timeline)) json.line(1).array("gaps_ns", timeline.gaps);
}

void write_step_facts(JsonWriter& json, const StepRecord& record) {
  const BubbleReport& report = record.report;
  if (!record.made.costs.empty()) write_made_with_json(json.line(1), record.made);
  if (!is_plain(report.memory, report.shape))
    write_memory_json(json.line(1).key("memory"), report.memory);
  if (report.parts) write_parts_json(json.line(1).key("parts"), *report.parts);
  if (!report.links.empty()) write_links(json.line(1).key("links"), report.links, 2);
  write_timeline_facts(json, record.timeline);
}

ReadFacts read_step_facts(const JsonNode& node, const FactsOf& step, const std::string& file) {
  ReadFacts read;
  StepFacts& facts = read.facts;
  if (const auto made = node.find("made_with")) facts.made = read_made_with(*made, file);
  if (const auto memory = node.find("memory"))
    facts.memory = read_memory_json(*memory, step.schedule);
  if (const auto parts = node.find("parts"))
    facts.parts = read_parts_json(*parts, step.program, step.timeline);
  if (const auto links = node.find("links")) facts.links = read_links(*links, step.timeline);
  read.uncontended = read_times(node, "uncontended_ns", step.program);
  read.gaps = read_gaps(node, step.program);
  return read;
}

std::string format_step_facts(const StepRecord& record) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  write_step_facts(json, record);
  json.end_object();
  return out;
}

ReadFacts parse_step_facts(std::string_view text, const FactsOf& step, const std::string& file) {
  const JsonFile json(text, file);
  const JsonNode root = json.root();
  root.expect_keys({"made_with", "memory", "parts", "links", "uncontended_ns", "gaps_ns"});
  return read_step_facts(root, step, file);
}

}  // namespace bubblescope::traces
