// Injected faults: `rank=2,op=1F3,delay=50ms`. The simulator understands the delays too, so that a
// straggler's prediction and its measurement can be compared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// One fault of one rank, at one op or at all of its compute ops.
struct Injection {
  enum class Kind : std::uint8_t {
    kDelay,      ///< the op takes so much longer
    kSlow,       ///< the op takes so many times as long
    kDie,        ///< the rank fails when it comes to the op
    kHang,       ///< the rank comes to the op and goes no further
    kWrongSize,  ///< what the op sends has another size than its receiver expects
    kGarbage,    ///< what the op sends is damaged on its way
  };

  std::int32_t rank = 0;
  std::string op;  ///< as to_string() writes it; empty: every compute op of the rank
  Kind kind = Kind::kDelay;
  Nanos delay = 0;
  Millionths factor = kWhole;  ///< of kSlow

  /// How much longer an op of this duration takes.
  Nanos extra(Nanos duration) const;
};

/// What happens to a message on its way.
enum class Damage : std::uint8_t { kNone, kWrongSize, kGarbage };

using Injections = std::vector<Injection>;

/// "rank=2,op=1F3,delay=50ms", "rank=2,slow=1.5", "rank=0,die", "rank=1,op=1B0,hang",
/// "rank=0,op=0F2,wrong-size", "rank=0,op=0F2,garbage". Throws Error.
Injection parse_injection(std::string_view text);

/// The text form again.
std::string to_string(const Injection& injection);

/// The faults of one Program's instructions.
class InjectionTable {
 public:
  /// Throws Error where an injection names a rank or an op that the Program has not.
  InjectionTable(const Injections& injections, const Program& program);

  /// The fault of an instruction; null for none. Damage is a fault of the message.
  const Injection* find(InstructionId id) const {
    return at_.empty() || at_[id] == 0 ? nullptr : &injections_[at_[id] - std::size_t{1}];
  }

  /// What happens to a message.
  Damage damage(InstructionId message) const;

 private:
  bool place(std::size_t index, const Program& program);

  Injections injections_;
  std::vector<std::uint16_t> at_;  ///< per instruction, index + 1; empty where nothing is injected
};

/// Durations with the delays added. Throws Error (Fault::kProblem) for a rank that dies or hangs
/// and for a message that cannot be used: such a step has no end, and the message says where every
/// rank then stands.
std::vector<Nanos> inject(const Injections& injections, const Program& program,
                          std::vector<Nanos> durations);

}  // namespace bubblescope
