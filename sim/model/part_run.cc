// Lays out the parts of all layers and times them.
#include "sim/model/part_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "sim/ir/error.h"
#include "sim/model/part_timing.h"

namespace bubblescope::inline sim {

namespace {

/// Collects the parts of all layers of one or two ops, in the order in which lanes run them.
class PartList {
 public:
  PartList(std::vector<const OpParts*> ops, const LaneContention& contention)
      : ops_(std::move(ops)), contention_(contention) {
    for (std::size_t op = 0; op < ops_.size(); ++op) {
      first_use_.push_back(run_.uses.size());
      for (const OpPart& part : ops_[op]->parts)
        run_.uses.push_back({part.name, part.lane, op == 1});
      ids_.emplace_back(ops_[op]->parts.size() * static_cast<std::size_t>(ops_[op]->layers),
                        kNoPart);
    }
  }

  /// Adds a part; what it waits for may be added later.
  void add(std::size_t op, std::size_t part, std::int32_t layer) {
    id_of(op, part, layer) = static_cast<std::uint32_t>(parts_.size());
    const OpPart& given = ops_[op]->parts[part];
    parts_.push_back({given.lane, given.time(layer), {}, window_});
    run_.spans.push_back({first_use_[op] + part, layer, 0, 0});
  }

  void end_window() { ++window_; }

  PartRun run() && {
    for (std::size_t op = 0; op < ops_.size(); ++op)
      for (std::int32_t layer = 0; layer < ops_[op]->layers; ++layer)
        for (std::size_t part = 0; part < ops_[op]->parts.size(); ++part) connect(op, part, layer);
    const PartTiming timing = time_parts(parts_, contention_);
    if (!timing.blocked.empty()) refuse(timing.blocked);
    for (std::size_t at = 0; at < parts_.size(); ++at) {
      PartSpan& span = run_.spans[at];
      PartUse& use = run_.uses[span.use];
      span.start = timing.intervals[at].start;
      span.end = timing.intervals[at].end;
      run_.time = std::max(run_.time, span.end);
      if (!use.of_backward) run_.first_end = std::max(run_.first_end, span.end);
      use.slowed += span.end - span.start - parts_[at].alone;
    }
    for (const PartShare& share : divide_time(parts_, timing.intervals)) add_share(share);
    return std::move(run_);
  }

 private:
  void add_share(const PartShare& share) {
    PartUse& use = run_.uses[run_.spans[share.part].use];
    if (use.lane != kComputeLane) use.exposed += share.end - share.start;
    if (run_.turns.empty() || run_.turns.back().of_backward != use.of_backward)
      run_.turns.push_back({use.of_backward, 0});
    run_.turns.back().end = share.end;
  }

  std::uint32_t& id_of(std::size_t op, std::size_t part, std::int32_t layer) {
    return ids_[op][static_cast<std::size_t>(layer) * ops_[op]->parts.size() + part];
  }

  void connect(std::size_t op, std::size_t part, std::int32_t layer) {
    std::vector<std::uint32_t>& after = parts_[id_of(op, part, layer)].after;
    const OpPart& given = ops_[op]->parts[part];
    for (const std::size_t awaited : given.after) after.push_back(id_of(op, awaited, layer));
    if (layer == 0) return;
    for (const std::size_t awaited : given.after_previous_layer)
      after.push_back(id_of(op, awaited, layer - 1));
  }

  [[noreturn]] void refuse(const std::vector<std::uint32_t>& blocked) const {
    std::string names;
    for (const std::uint32_t part : blocked) {
      const PartUse& use = run_.uses[run_.spans[part].use];
      names += (names.empty() ? "" : ", ") + std::string(use.of_backward ? "B." : "F.") + use.name +
               " of layer " + std::to_string(run_.spans[part].layer);
    }
    throw Error("leaves parts waiting for each other (" + names +
                "); list a part behind those that it waits for");
  }

  std::vector<const OpParts*> ops_;
  const LaneContention& contention_;
  std::vector<std::size_t> first_use_;           ///< per op
  std::vector<std::vector<std::uint32_t>> ids_;  ///< per op, [layer * parts + part]
  std::vector<LanePart> parts_;
  std::uint32_t window_ = 0;
  PartRun run_;
};

/// Lets a run take at least `least`. The host then launches parts all the way more slowly than
/// devices run them, so that all of them come later in proportion.
void stretch_to(PartRun& run, Nanos least) {
  if (run.time >= least || run.time == 0) return;
  const double factor = static_cast<double>(least) / static_cast<double>(run.time);
  const auto stretch = [&](Nanos& time) {
    time = time == run.time ? least : std::llround(factor * static_cast<double>(time));
  };
  for (PartUse& use : run.uses) stretch(use.exposed);
  for (PartSpan& span : run.spans) {
    stretch(span.start);
    stretch(span.end);
  }
  for (OpTurn& turn : run.turns) stretch(turn.end);
  stretch(run.first_end);
  run.time = least;
}

using PairOps = std::array<const OpParts*, 2>;

/// Refuses an order that lacks parts of the ops: `left`, by name, of F and of B.
void expect_none_left(const std::array<std::map<std::string_view, std::size_t>, 2>& left,
                      const PairOrder& order) {
  std::string names;
  for (const bool of_backward : {false, true})
    for (const auto& [name, at] : left[of_backward])
      names +=
          (names.empty() ? "" : ", ") + std::string(of_backward ? "B." : "F.") + std::string(name);
  if (names.empty()) return;
  if (!order.name.empty())
    throw Error("lacks " + names + "; list the parts in an order of your own instead of '" +
                order.name + "'");
  const bool is_one = left[false].size() + left[true].size() == 1;
  throw Error("lacks " + names + (is_one ? "; add it" : "; add them"));
}

/// The index of each part of an order in its op; nullopt where the op lacks it. Throws Error where
/// the order lacks a part, or may list only parts that the ops have and lists others.
std::vector<std::optional<std::size_t>> place_parts(const PairOps& ops, const PairOrder& order) {
  std::array<std::map<std::string_view, std::size_t>, 2> left;
  for (const bool of_backward : {false, true})
    for (std::size_t at = 0; at < ops[of_backward]->parts.size(); ++at)
      left[of_backward].emplace(ops[of_backward]->parts[at].name, at);
  std::vector<std::optional<std::size_t>> placed;
  for (const OrderedPart& ordered : order.parts) {
    auto& parts = left[ordered.of_backward];
    const auto part = parts.find(ordered.name);
    placed.push_back(part == parts.end() ? std::nullopt : std::optional(part->second));
    if (part != parts.end())
      parts.erase(part);
    else if (!order.skips_missing)
      throw Error(std::string("has ") + (ordered.of_backward ? "B." : "F.") + ordered.name +
                  ", but the " + (ordered.of_backward ? "backward" : "forward") +
                  " has no part of this name; remove it");
  }
  expect_none_left(left, order);
  return placed;
}

}  // namespace

Nanos PartRun::exposed() const {
  Nanos sum = 0;
  for (const PartUse& use : uses) sum += use.exposed;
  return sum;
}

Nanos PartRun::slowed() const {
  Nanos sum = 0;
  for (const PartUse& use : uses) sum += use.slowed;
  return sum;
}

Nanos PartRun::first_time(Nanos until) const {
  Nanos sum = 0;
  Nanos start = 0;
  for (const OpTurn& turn : turns) {
    if (!turn.of_backward) sum += std::clamp(until - start, Nanos{0}, turn.end - start);
    start = turn.end;
  }
  return sum;
}

PartRun run_parts(const OpParts& op, const LaneContention& contention) {
  PartList list({&op}, contention);
  for (std::int32_t layer = 0; layer < op.layers; ++layer)
    for (std::size_t part = 0; part < op.parts.size(); ++part) list.add(0, part, layer);
  return std::move(list).run();
}

void expect_order(const OpParts& forward, const OpParts& backward, const PairOrder& order) {
  place_parts({&forward, &backward}, order);
}

PartRun run_pair(const OpParts& forward, const OpParts& backward, const PairOrder& order,
                 const LaneContention& contention) {
  const PairOps ops{&forward, &backward};
  const std::vector<std::optional<std::size_t>> placed = place_parts(ops, order);
  PartList list({&forward, &backward}, contention);
  for (std::int32_t layer = 0; layer < std::max(forward.layers, backward.layers); ++layer)
    for (std::size_t at = 0; at < placed.size(); ++at) {
      const OrderedPart& ordered = order.parts[at];
      if (placed[at] && layer < ops[ordered.of_backward]->layers)
        list.add(ordered.of_backward, *placed[at], layer);
      if (ordered.ends_window) list.end_window();
    }
  PartRun run = std::move(list).run();
  stretch_to(run, forward.host + backward.host);
  return run;
}

}  // namespace bubblescope::inline sim
