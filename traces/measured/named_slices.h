// The annotations of a profile with the ops that they name.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/op.h"
#include "traces/measured/chrome_events.h"
#include "traces/measured/name_rules.h"
#include "traces/measured/op_names.h"

namespace bubblescope::traces {

/// A slice with the op that its name or args.op states.
struct NamedSlice {
  ChromeSlice slice;
  std::optional<NamedOp> op;
  std::optional<std::array<Op, 2>> pair;  ///< a forward and a backward, where it names no single op
};

/// The slices of a profile.
struct NamedSlices {
  std::vector<NamedSlice> slices;
  std::optional<std::string> doubt = {};  ///< describes those that were left out, if there are any
};

/// Looks up what the slices name. Leaves out those that name an op without its number, where others
/// of the same kind have numbers: forwards may be numbered and backwards in order.
NamedSlices name_slices(std::vector<ChromeSlice> slices, NameMatcher& names);

/// Whether it shows when a device ran what the host annotated.
bool is_of_device(const ChromeSlice& slice);

/// The slices that show their op best, by start. Those of the host lead to their kernels, and are
/// used if there are any; those of the device otherwise. Of two slices for one op, the inner
/// one, or that of its pair.
std::vector<NamedSlice> choose_slices(std::vector<NamedSlice> slices, bool has_kernels);

}  // namespace bubblescope::traces
