// The facts of a step as members of a json object; those that say nothing are left out.
//
//   "made_with":{"costs":"f 1 ms, ...","p2p_mode":"dataflow",...}
//   "memory":{"release":"w","unit":[2000000,0,-2000000],...}    see memory_json.h
//   "parts":{"runs":[...],"placed":[...]}                       see parts_json.h
//   "links":[{"name":"link 0>1","bytes":...,"busy_ns":...,"shared_ns":...,"utilization":0.3},...]
//   "uncontended_ns":[...]  the duration of every instruction if it shared no link
//   "gaps_ns":[...]         how long the lane of every instruction rests before it
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/files/step_facts.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

void write_step_facts(JsonWriter& json, const StepRecord& record);

/// Writes "uncontended_ns" and "gaps_ns", without which a Timeline is not complete.
void write_timeline_facts(JsonWriter& json, const Timeline& timeline);

/// A step whose facts are read.
struct FactsOf {
  const ValidSchedule& schedule;
  const Program& program;
  const Timeline& timeline;
};

/// The facts that a file has, and those members of the step's Timeline that it lists with them.
struct ReadFacts {
  StepFacts facts;
  std::vector<Nanos> uncontended;
  std::vector<Nanos> gaps;
};

/// Reads the members. Throws Error with the JSON pointer of the first fault.
ReadFacts read_step_facts(const JsonNode& node, const FactsOf& step, const std::string& file);

/// The same for a text that holds nothing else; and such a text, "{}" where there are no facts.
ReadFacts parse_step_facts(std::string_view text, const FactsOf& step, const std::string& file);
std::string format_step_facts(const StepRecord& record);

}  // namespace bubblescope::traces
