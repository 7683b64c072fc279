// Whether the messages of a link take another time than those of other links, or only seem to.
//
// Messages of one link vary, often by more than links differ, and a median of a few of them may be
// far from the usual one by chance. Messages count as far if they are beyond the geometric mean of
// the link's median and the usual one. Fisher's exact test says how likely it is that so many of
// the far messages would be the link's own if it were like the others.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// Whether such a difference appears by chance in fewer than one of 20 jobs, in either direction
/// and on any of so many `links`. `all` are the times of the messages of all links, `own` among
/// them. Neither is empty.
bool differs_beyond_chance(const std::vector<Nanos>& own, const std::vector<Nanos>& all,
                           std::size_t links);

}  // namespace bubblescope::inline sim
