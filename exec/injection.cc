// Faults: their text, their place in a Program, their effect on a prediction.
#include "exec/injection.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& reason) {
  throw Error("'" + std::string(text) + "' is no fault: " + reason +
              "; write rank=R[,op=OP],delay=TIME|die|hang, such as rank=2,op=1F3,delay=50ms");
}

std::int32_t parse_rank(std::string_view text, std::string_view whole) {
  std::int32_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size() || rank < 0)
    refuse(whole, "'" + std::string(text) + "' is no rank");
  return rank;
}

bool matches(const Injection& injection, const Instruction& instruction) {
  return is_compute(instruction.op.kind) && instruction.rank == injection.rank &&
         (injection.op.empty() || injection.op == to_string(instruction.op));
}

/// Where every rank's lane comes to a stand when some instructions never end.
std::string describe_stands(const Program& program, std::vector<bool> never) {
  std::vector<bool> told(program.lanes.size(), false);
  std::string text;
  std::vector<bool> lane_stuck(program.lanes.size(), false);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    std::optional<InstructionId> awaited;
    for (const InstructionId dependency : program.dependencies_of(id))
      if (never[dependency] && !awaited) awaited = dependency;
    const bool has_lane = instruction.lane != kNoLane;
    if (awaited || (has_lane && lane_stuck[instruction.lane])) never[id] = true;
    if (!never[id] || !has_lane || lane_stuck[instruction.lane]) continue;
    lane_stuck[instruction.lane] = true;
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(instruction.rank) +
            " stands at " + to_string(instruction.op);
  }
  return text;
}

}  // namespace

Injection parse_injection(std::string_view text) {
  Injection injection;
  bool has_rank = false;
  int kinds = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::string_view key = part.substr(0, part.find('='));
    const std::string_view value = key.size() < part.size() ? part.substr(key.size() + 1) : "";
    if (key == "rank") {
      injection.rank = parse_rank(value, text);
      has_rank = true;
    } else if (key == "op" && !value.empty()) {
      injection.op = value;
    } else if (key == "delay" && !value.empty()) {
      injection.delay = parse_duration(value);
      ++kinds;
    } else if (part == "die" || part == "hang") {
      injection.kind = part == "die" ? Injection::Kind::kDie : Injection::Kind::kHang;
      ++kinds;
    } else {
      refuse(text, "'" + std::string(part) + "' is not understood");
    }
  }
  if (!has_rank) refuse(text, "it names no rank");
  if (kinds != 1) refuse(text, "it needs one of delay, die and hang");
  return injection;
}

std::string to_string(const Injection& injection) {
  std::string text = "rank=" + std::to_string(injection.rank);
  if (!injection.op.empty()) text += ",op=" + injection.op;
  switch (injection.kind) {
    case Injection::Kind::kDelay: return text + ",delay=" + std::to_string(injection.delay) + "ns";
    case Injection::Kind::kDie: return text + ",die";
    case Injection::Kind::kHang: return text + ",hang";
  }
  return text;
}

InjectionTable::InjectionTable(const Injections& injections, const Program& program)
    : injections_(injections) {
  if (injections.empty()) return;
  if (injections.size() >= std::numeric_limits<std::uint16_t>::max())
    throw Error("too many faults are injected; give --inject fewer times");
  at_.assign(program.size(), 0);
  for (std::size_t index = 0; index < injections.size(); ++index) {
    bool found = false;
    for (InstructionId id = 0; id < program.size(); ++id)
      if (matches(injections[index], program.instructions[id])) {
        at_[id] = static_cast<std::uint16_t>(index + 1);
        found = true;
      }
    if (!found)
      throw Error("--inject " + to_string(injections[index]) + ": " +
                  (injections[index].rank < program.ranks
                       ? "rank " + std::to_string(injections[index].rank) + " runs no such op"
                       : "ranks are 0.." + std::to_string(program.ranks - 1)));
  }
}

std::vector<Nanos> inject(const Injections& injections, const Program& program,
                          std::vector<Nanos> durations) {
  const InjectionTable table(injections, program);
  std::vector<bool> never(program.size(), false);
  const Injection* fatal = nullptr;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Injection* injection = table.find(id);
    if (injection == nullptr) continue;
    durations[id] += injection->delay;
    if (injection->kind == Injection::Kind::kDelay) continue;
    never[id] = true;
    if (fatal == nullptr) fatal = injection;
  }
  if (fatal != nullptr)
    throw Error(Fault::kProblem, "with --inject " + to_string(*fatal) +
                                     " the step never ends: " + describe_stands(program, never));
  return durations;
}

}  // namespace bubblescope
