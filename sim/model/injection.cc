// Injected faults: their syntax, the instructions they concern, and their effect on a prediction.
#include "sim/model/injection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/ir/error.h"
#include "sim/ir/named.h"
#include "sim/ir/number.h"
#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& reason) {
  throw Error("'" + std::string(text) + "' is not a fault: " + reason +
              "; write rank=R[,op=OP],delay=TIME|slow=FACTOR|die|hang|wrong-size|garbage, such as "
              "rank=2,op=1F3,delay=50ms");
}

std::int32_t parse_rank(std::string_view text, std::string_view whole) {
  const auto rank = parse_number<std::int32_t>(text);
  if (!rank || *rank < 0) refuse(whole, "'" + std::string(text) + "' is not a rank");
  return *rank;
}

Millionths parse_factor(std::string_view text, std::string_view whole) {
  const Millionths factor = parse_millionths(text);
  if (factor < kWhole || factor > 1'000'000 * kWhole)
    refuse(whole, "'" + std::string(text) + "' is not a factor from 1 to 1000000");
  return factor;
}

constexpr std::array<Named<Injection::Kind>, 4> kValuelessKinds{
    {{Injection::Kind::kDie, "die"},
     {Injection::Kind::kHang, "hang"},
     {Injection::Kind::kWrongSize, "wrong-size"},
     {Injection::Kind::kGarbage, "garbage"}}};

bool damages(const Injection& injection) {
  return injection.kind == Injection::Kind::kWrongSize ||
         injection.kind == Injection::Kind::kGarbage;
}

bool matches(const Injection& injection, const Instruction& instruction) {
  return is_compute(instruction.op.kind) && instruction.rank == injection.rank &&
         (injection.op.empty() || injection.op == to_string(instruction.op));
}

/// Whether the instruction is a message that is produced by the injection's op.
bool is_message_of(const Injection& injection, const Program& program, InstructionId id) {
  if (!is_message(program.instructions[id])) return false;
  const auto producers = program.dependencies_of(id);
  return std::any_of(producers.begin(), producers.end(), [&](InstructionId producer) {
    return matches(injection, program.instructions[producer]);
  });
}

/// Lists where every rank is blocked if some instructions never end.
std::string describe_blocked_ranks(const Program& program, std::vector<bool> never) {
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
            " is blocked at " + to_string(instruction.op);
  }
  return text;
}

}  // namespace

Nanos Injection::extra(Nanos duration) const {
  const auto more = static_cast<long double>(factor - kWhole) / kWhole;
  const long double slower = more * static_cast<long double>(duration);
  if (slower > kMaxNanos) return kMaxNanos;
  return delay + static_cast<Nanos>(std::llround(slower));
}

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
    } else if (key == "slow" && !value.empty()) {
      injection.kind = Injection::Kind::kSlow;
      injection.factor = parse_factor(value, text);
      ++kinds;
    } else if (const Named<Injection::Kind>* named = find_named(kValuelessKinds, part)) {
      injection.kind = named->choice;
      ++kinds;
    } else {
      refuse(text, "'" + std::string(part) + "' is not understood");
    }
  }
  if (!has_rank) refuse(text, "it does not name a rank");
  if (kinds != 1) refuse(text, "it needs one of delay, slow, die, hang, wrong-size and garbage");
  return injection;
}

namespace {

/// "5ms": as parse_injection() takes it, without a blank.
std::string delay_text(Nanos delay) {
  std::string text = to_text(delay);
  std::erase(text, ' ');
  return text;
}

}  // namespace

std::string to_string(const Injection& injection) {
  std::string text = "rank=" + std::to_string(injection.rank);
  if (!injection.op.empty()) text += ",op=" + injection.op;
  switch (injection.kind) {
    case Injection::Kind::kDelay: return text + ",delay=" + delay_text(injection.delay);
    case Injection::Kind::kSlow: return text + ",slow=" + format_millionths(injection.factor);
    case Injection::Kind::kDie:
    case Injection::Kind::kHang:
    case Injection::Kind::kWrongSize:
    case Injection::Kind::kGarbage: break;
  }
  return text + "," + name_of(kValuelessKinds, injection.kind);
}

InjectionTable::InjectionTable(const Injections& injections, const Program& program)
    : injections_(injections) {
  if (injections.empty()) return;
  if (injections.size() >= std::numeric_limits<std::uint16_t>::max())
    throw Error("too many faults are injected; give `inject` fewer times");
  at_.assign(program.size(), 0);
  for (std::size_t index = 0; index < injections.size(); ++index) {
    const Injection& injection = injections[index];
    if (place(index, program)) continue;
    const std::string rank = "rank " + std::to_string(injection.rank);
    throw Error("`inject` " + to_string(injection) + ": " +
                (injection.rank >= program.ranks
                     ? "ranks are 0.." + std::to_string(program.ranks - 1)
                 : damages(injection) ? rank + " sends no message that such an op produces"
                                      : rank + " runs no such op"));
  }
}

bool InjectionTable::place(std::size_t index, const Program& program) {
  const Injection& injection = injections_[index];
  bool found = false;
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (damages(injection) ? !is_message_of(injection, program, id)
                           : !matches(injection, program.instructions[id]))
      continue;
    at_[id] = static_cast<std::uint16_t>(index + 1);
    found = true;
  }
  return found;
}

Damage InjectionTable::damage(InstructionId message) const {
  const Injection* injection = find(message);
  if (injection == nullptr || !damages(*injection)) return Damage::kNone;
  return injection->kind == Injection::Kind::kGarbage ? Damage::kGarbage : Damage::kWrongSize;
}

std::vector<Nanos> inject(const Injections& injections, const Program& program,
                          std::vector<Nanos> durations) {
  if (injections.empty()) return durations;
  const InjectionTable table(injections, program);
  std::vector<bool> never(program.size(), false);
  const Injection* fatal = nullptr;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Injection* injection = table.find(id);
    if (injection == nullptr) continue;
    durations[id] += injection->extra(durations[id]);
    if (injection->kind == Injection::Kind::kDelay || injection->kind == Injection::Kind::kSlow)
      continue;
    never[id] = true;
    if (fatal == nullptr) fatal = injection;
  }
  if (fatal != nullptr)
    throw Error(Fault::kProblem, "with `inject` " + to_string(*fatal) + " the step never ends: " +
                                     describe_blocked_ranks(program, never));
  expect_in_range(durations);
  return durations;
}

}  // namespace bubblescope::inline sim
