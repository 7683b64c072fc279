// Injected faults: `rank=2,op=1F3,delay=50ms`. The simulator applies the delays too, so that a
// straggler's prediction and measurement can be compared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// A fault of one rank, at one op or at all of its compute ops.
struct Injection {
  enum class Kind : std::uint8_t {
    kDelay,      ///< the op takes this much longer
    kSlow,       ///< the op takes this many times as long
    kDie,        ///< the rank fails at the op
    kHang,       ///< the rank never gets past the op
    kWrongSize,  ///< the op's message has another size than its receiver expects
    kGarbage,    ///< the op's message is damaged in transit
  };

  std::int32_t rank = 0;
  std::string op;  ///< as to_string() prints it; empty: every compute op of the rank
  Kind kind = Kind::kDelay;
  Nanos delay = 0;
  Millionths factor = kWhole;  ///< for kSlow

  /// Returns the extra time of an op of this duration.
  Nanos extra(Nanos duration) const;
};

/// Damage to a message in transit.
enum class Damage : std::uint8_t { kNone, kWrongSize, kGarbage };

using Injections = std::vector<Injection>;

/// "rank=2,op=1F3,delay=50ms", "rank=2,slow=1.5", "rank=0,die", "rank=1,op=1B0,hang",
/// "rank=0,op=0F2,wrong-size", "rank=0,op=0F2,garbage". Throws Error.
Injection parse_injection(std::string_view text);

/// Returns the inverse of parse_injection().
std::string to_string(const Injection& injection);

/// The faults of a Program's instructions.
class InjectionTable {
 public:
  /// Throws Error if an injection names a rank or an op that the Program does not have.
  InjectionTable(const Injections& injections, const Program& program);

  /// The fault of an instruction; null if there is none. The damage of a message is in damage().
  const Injection* find(InstructionId id) const {
    return at_.empty() || at_[id] == 0 ? nullptr : &injections_[at_[id] - std::size_t{1}];
  }

  /// Returns the damage of a message.
  Damage damage(InstructionId message) const;

 private:
  bool place(std::size_t index, const Program& program);

  Injections injections_;
  std::vector<std::uint16_t> at_;  ///< [instruction]: index + 1; empty without injections
};

/// Adds the delays to the durations. Throws Error (Fault::kProblem) if a rank dies or hangs, or if
/// a message is damaged: such a step never ends, and the error says where every rank is blocked.
std::vector<Nanos> inject(const Injections& injections, const Program& program,
                          std::vector<Nanos> durations);

}  // namespace bubblescope::inline sim
