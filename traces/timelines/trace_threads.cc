// Divides tracks into slots: an instruction takes the first free slot of its track.
#include "traces/timelines/trace_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace bubblescope::traces {

namespace {

/// A lane, or for instructions without a lane the link from a rank to a peer.
struct Track {
  std::int32_t rank = 0;
  std::uint32_t lane = kNoLane;
  std::int32_t peer = 0;

  /// Lanes come before links: kNoLane is the largest lane.
  bool operator<(const Track& other) const {
    return std::tie(rank, lane, peer) < std::tie(other.rank, other.lane, other.peer);
  }
};

struct Slot {
  Nanos free_from = 0;
  std::uint32_t thread = 0;
};

std::string name_thread(const Program& program, const Track& track, std::size_t slot) {
  std::string name = "compute";
  if (track.lane == kNoLane)
    name = track.peer == track.rank ? "other" : fmt::format("send → rank {}", track.peer);
  else if (!program.lanes[track.lane].name.empty())
    name = program.lanes[track.lane].name;
  return slot == 0 ? name : fmt::format("{} ({})", name, slot + 1);
}

/// Returns everything that takes time, and compute work even if it takes none.
std::vector<TraceSlice> shown_slices(const Program& program, const Timeline& timeline) {
  std::vector<TraceSlice> slices;
  std::vector<Nanos> lane_end(program.lanes.size(), 0);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const bool waits = instruction.role == Role::kWait && instruction.lane != kNoLane;
    const Nanos start = waits ? lane_end[instruction.lane] : timeline.start[id];
    if (instruction.role == Role::kWork || (waits && start < timeline.end[id]))
      slices.push_back({id, start, timeline.end[id], 0});
    if (instruction.lane != kNoLane) lane_end[instruction.lane] = timeline.end[id];
  }
  std::sort(slices.begin(), slices.end(), [](const TraceSlice& left, const TraceSlice& right) {
    return std::tie(left.start, left.id) < std::tie(right.start, right.id);
  });
  return slices;
}

class Assignment {
 public:
  Assignment(const Program& program, const Timeline& timeline)
      : program_(program), lane_slots_(program.lanes.size()) {
    assigned_.slices = shown_slices(program, timeline);
  }

  TraceThreads run() && {
    for (TraceSlice& slice : assigned_.slices) slice.thread = place(slice);
    number_threads();
    return std::move(assigned_);
  }

 private:
  std::vector<Slot>& slots_of(const Instruction& instruction) {
    if (instruction.lane != kNoLane) return lane_slots_[instruction.lane];
    return link_slots_[{instruction.rank, instruction.peer}];
  }

  std::uint32_t place(const TraceSlice& slice) {
    const Instruction& instruction = program_.instructions[slice.id];
    std::vector<Slot>& slots = slots_of(instruction);
    auto slot = std::find_if(slots.begin(), slots.end(), [&](const Slot& candidate) {
      return candidate.free_from <= slice.start;
    });
    if (slot == slots.end()) {
      const Track track{instruction.rank, instruction.lane, instruction.peer};
      tracks_.push_back({track, slots.size()});
      slot = slots.insert(slots.end(), {0, static_cast<std::uint32_t>(tracks_.size() - 1)});
    }
    slot->free_from = slice.end;
    return slot->thread;
  }

  /// Renumbers threads by rank, lane, peer and slot; before, they are in order of appearance.
  void number_threads() {
    std::vector<std::uint32_t> sorted(tracks_.size());
    std::iota(sorted.begin(), sorted.end(), 0u);
    std::sort(sorted.begin(), sorted.end(), [&](std::uint32_t left, std::uint32_t right) {
      return tracks_[left] < tracks_[right];
    });
    std::vector<std::uint32_t> place_of(tracks_.size());
    for (const std::uint32_t thread : sorted) {
      const auto& [track, slot] = tracks_[thread];
      std::vector<TraceThread>& threads = assigned_.threads;
      place_of[thread] = static_cast<std::uint32_t>(threads.size());
      const bool first = threads.empty() || threads.back().rank != track.rank;
      threads.push_back(
          {track.rank, first ? 1 : threads.back().tid + 1, name_thread(program_, track, slot)});
    }
    for (TraceSlice& slice : assigned_.slices) slice.thread = place_of[slice.thread];
  }

  const Program& program_;
  std::vector<std::vector<Slot>> lane_slots_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Slot>> link_slots_;
  std::vector<std::pair<Track, std::size_t>> tracks_;
  TraceThreads assigned_;
};

}  // namespace

TraceThreads assign_threads(const Program& program, const Timeline& timeline) {
  return Assignment(program, timeline).run();
}

}  // namespace bubblescope::traces
