// The memory peak of a rank, in every unit in which memory is counted.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/ir/program.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// The most buffers of a kind that a rank holds at once.
struct BufferPeak {
  std::int64_t count = 0;
  std::optional<Bytes> bytes;  ///< of the moment with the most bytes; nullopt: unknown
  bool operator==(const BufferPeak&) const = default;
};

/// A rank's memory peak and the op that reaches it.
struct Peak {
  double chunks = 0;       ///< stage chunks whose activations are held
  double activations = 0;  ///< the same in micro-batches of the rank's whole share
  double units = 0;        ///< in the memory model's unit
  std::optional<Bytes> bytes;
  std::optional<InstructionId> at;     ///< the first to reach `chunks`
  std::optional<BufferPeak> outputs;   ///< held until their sends end, with a send budget
  std::optional<BufferPeak> gathered;  ///< stages whose weights are gathered, where they count
  bool operator==(const Peak&) const = default;
};

}  // namespace bubblescope::inline sim
