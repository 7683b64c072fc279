// Adds up parts by name and rank.
#include "sim/analysis/parts_report.h"

#include <cmath>
#include <map>
#include <utility>

namespace bubblescope::inline sim {

namespace {

Nanos sum_of(const std::vector<PartReport>& parts, std::vector<Nanos> PartReport::*member,
             std::size_t rank) {
  Nanos sum = 0;
  for (const PartReport& part : parts) sum += (part.*member)[rank];
  return sum;
}

Nanos stretch(Nanos time, double factor) {
  return factor == 1 ? time : std::llround(static_cast<double>(time) * factor);
}

/// "F.attn": the name of a part in reports.
std::string name_part(const Program& program, const PlacedRun& placed, const PartUse& use) {
  const InstructionId op = use.of_backward ? placed.last : placed.first;
  return std::string(code(program.instructions[op].op.kind)) + "." + use.name;
}

}  // namespace

Nanos PartsReport::exposed(std::size_t rank) const {
  return sum_of(parts, &PartReport::exposed, rank);
}

Nanos PartsReport::slowed(std::size_t rank) const {
  return sum_of(parts, &PartReport::slowed, rank);
}

PartsReport account_for_parts(const Program& program, const Timeline& timeline,
                              const PartCosts& costs) {
  return account_for_parts(program, timeline, place_runs(program, costs), costs.runs);
}

PartsReport account_for_parts(const Program& program, const Timeline& timeline,
                              std::vector<PlacedRun> placed_runs, std::vector<PartRun> runs) {
  PartsReport report{{}, std::move(placed_runs), std::move(runs)};
  std::map<std::string, std::size_t> part_of;
  const auto ranks = static_cast<std::size_t>(program.ranks);
  for (const PlacedRun& placed : report.placed) {
    const PartRun& run = report.runs[placed.run];
    const auto rank = static_cast<std::size_t>(program.instructions[placed.first].rank);
    const Nanos time = timeline.end[placed.last] - timeline.start[placed.first];
    const double factor =
        run.time == 0 ? 1 : static_cast<double>(time) / static_cast<double>(run.time);
    for (const PartUse& use : run.uses) {
      const std::string name = name_part(program, placed, use);
      const auto [found, is_new] = part_of.emplace(name, report.parts.size());
      if (is_new)
        report.parts.push_back(
            {name, use.lane, std::vector<Nanos>(ranks), std::vector<Nanos>(ranks)});
      PartReport& part = report.parts[found->second];
      part.exposed[rank] += stretch(use.exposed, factor);
      part.slowed[rank] += stretch(use.slowed, factor);
    }
  }
  return report;
}

}  // namespace bubblescope::inline sim
