// Writes and reads runs of parts.
#include "traces/timelines/parts_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "traces/json/part_lane.h"

namespace bubblescope::traces {

namespace {

/// A run has the parts of both ops of a pair. So many times kMaxPartsTime still fit into 64 bits.
constexpr std::size_t kMaxUses = 2 * static_cast<std::size_t>(kMaxPartsOfOp);
constexpr Nanos kMaxBusy = Nanos{1} << 58;  ///< of a rank, so that the times of all lanes add up

/// The next compute op of the same rank, per instruction.
std::vector<InstructionId> find_next_computes(const Program& program) {
  std::vector<InstructionId> next(program.size(), static_cast<InstructionId>(program.size()));
  std::vector<std::optional<InstructionId>> last(static_cast<std::size_t>(program.ranks));
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!is_compute(program.instructions[id].op.kind)) continue;
    auto& before = last[static_cast<std::size_t>(program.instructions[id].rank)];
    if (before) next[*before] = id;
    before = id;
  }
  return next;
}

PartUse read_use(const JsonNode& node, Nanos time) {
  if (node.size() != 5) node.refuse("must be [part, lane, of_backward, exposed_ns, slowed_ns]");
  return {node[0].text(), read_part_lane(node[1]), node[2].boolean(), node[3].integer(0, time),
          node[4].integer(0, time)};
}

/// The turns of both ops. Files that have none say only when the first op ends.
std::vector<OpTurn> read_turns(const JsonNode& node, const PartRun& run) {
  const auto rows = node.find("turns");
  if (!rows) return {{false, run.first_end}, {true, run.time}};
  std::vector<OpTurn> turns;
  for (std::size_t at = 0; at < rows->size(); ++at) {
    const JsonNode row = (*rows)[at];
    if (row.size() != 2) row.refuse("must be [of_backward, end_ns]");
    const Nanos start = turns.empty() ? 0 : turns.back().end;
    turns.push_back({row[0].boolean(), row[1].integer(start, run.time)});
  }
  if ((turns.empty() ? 0 : turns.back().end) != run.time)
    rows->refuse("must end with the run, at " + std::to_string(run.time));
  return turns;
}

PartRun read_run(const JsonNode& node) {
  node.expect_keys({"time_ns", "first_end_ns", "uses", "spans", "turns"});
  PartRun run;
  run.time = node.at("time_ns").integer(0, kMaxPartsTime);
  run.first_end = node.at("first_end_ns").integer(0, run.time);
  const JsonNode uses = node.at("uses");
  if (uses.size() > kMaxUses)
    uses.refuse(fmt::format("has more than {}", counted(kMaxUses, "entry")));
  for (std::size_t at = 0; at < uses.size(); ++at) run.uses.push_back(read_use(uses[at], run.time));
  if (run.exposed() > run.time) uses.refuse("have more exposed time than the whole run takes");
  if (run.slowed() > static_cast<Nanos>(kPartLanes.size()) * run.time)
    uses.refuse("are slowed for longer than all lanes together run");
  const JsonNode spans = node.at("spans");
  if (run.uses.empty() && spans.size() > 0) spans.refuse("must be empty, as 'uses' is");
  for (std::size_t at = 0; at < spans.size(); ++at) {
    const JsonNode span = spans[at];
    if (span.size() != 4) span.refuse("must be [use, layer, start_ns, end_ns]");
    const Nanos start = span[2].integer(0, run.time);
    run.spans.push_back({static_cast<std::size_t>(
                             span[0].integer(0, static_cast<std::int64_t>(run.uses.size()) - 1)),
                         span[1].integer32(0, kMaxPartsOfOp), start,
                         span[3].integer(start, run.time)});
  }
  run.turns = read_turns(node, run);
  return run;
}

/// Expects ops in the order of the Program, and pairs of ops that follow each other.
std::vector<PlacedRun> read_placed(const JsonNode& node, const Program& program,
                                   const Timeline& timeline, std::size_t runs) {
  const std::vector<InstructionId> next = find_next_computes(program);
  const auto last_id = static_cast<std::int64_t>(program.size()) - 1;
  std::vector<bool> is_taken(program.size(), false);
  std::vector<Nanos> busy(static_cast<std::size_t>(program.ranks), 0);
  std::vector<PlacedRun> placed;
  if (runs == 0 && node.size() > 0) node.refuse("must be empty, as 'runs' is");
  for (std::size_t at = 0; at < node.size(); ++at) {
    const JsonNode row = node[at];
    if (row.size() != 3) row.refuse("must be [first, last, run]");
    const auto first = static_cast<InstructionId>(row[0].integer(0, last_id));
    const auto last = static_cast<InstructionId>(row[1].integer(first, last_id));
    if (!is_compute(program.instructions[first].op.kind) || (last != first && last != next[first]))
      row.refuse("must be a compute op, or two of a rank that follow each other");
    if (is_taken[first] || is_taken[last]) row.refuse("has an op that another run has");
    is_taken[first] = is_taken[last] = true;
    const Nanos time = timeline.end[last] - timeline.start[first];
    Nanos& of_rank = busy[static_cast<std::size_t>(program.instructions[first].rank)];
    if (time < 0 || time > kMaxBusy || (of_rank += time) > kMaxBusy)
      row.refuse("ends before it starts, or its rank is busy for more than 9 years");
    placed.push_back(
        {first, last,
         static_cast<std::size_t>(row[2].integer(0, static_cast<std::int64_t>(runs) - 1))});
  }
  return placed;
}

/// The ops of pairs take turns; an op alone has all of its run.
void write_turns(JsonWriter& json, const PartRun& run) {
  const bool is_pair = std::any_of(run.uses.begin(), run.uses.end(),
                                   [](const PartUse& use) { return use.of_backward; });
  if (!is_pair) return;
  json.key("turns").begin_array();
  for (const OpTurn& turn : run.turns)
    json.begin_array().value(turn.of_backward).value(turn.end).end_array();
  json.end_array();
}

}  // namespace

void write_parts_json(JsonWriter& json, const PartsReport& parts) {
  json.begin_object().key("runs").begin_array();
  for (const PartRun& run : parts.runs) {
    json.line(2).begin_object().member("time_ns", run.time).member("first_end_ns", run.first_end);
    json.key("uses").begin_array();
    for (const PartUse& use : run.uses) {
      json.begin_array().value(use.name).value(kPartLanes[use.lane].name).value(use.of_backward);
      json.value(use.exposed).value(use.slowed).end_array();
    }
    json.end_array().key("spans").begin_array();
    for (const PartSpan& span : run.spans) {
      json.begin_array().value(span.use).value(span.layer).value(span.start).value(span.end);
      json.end_array();
    }
    json.end_array();
    write_turns(json, run);
    json.end_object();
  }
  json.end_array().line(2).key("placed").begin_array();
  for (const PlacedRun& placed : parts.placed) {
    json.begin_array().value(placed.first).value(placed.last).value(placed.run);
    json.end_array();
  }
  json.end_array().end_object();
}

PartsReport read_parts_json(const JsonNode& node, const Program& program,
                            const Timeline& timeline) {
  node.expect_keys({"runs", "placed"});
  const JsonNode rows = node.at("runs");
  std::vector<PartRun> runs;
  for (std::size_t at = 0; at < rows.size(); ++at) runs.push_back(read_run(rows[at]));
  std::vector<PlacedRun> placed = read_placed(node.at("placed"), program, timeline, runs.size());
  return account_for_parts(program, timeline, std::move(placed), std::move(runs));
}

}  // namespace bubblescope::traces
