// Numbers the names and arguments of slices.
#include "traces/measured/other_slices.h"

namespace bubblescope::traces {

namespace {

/// The number of a value, which is new if it is not among the values yet.
template <class Ids, class Value>
std::uint32_t number(Ids& ids, std::vector<Value>& values, const Value& value) {
  const auto [found, is_new] = ids.emplace(value, static_cast<std::uint32_t>(values.size()));
  if (is_new) values.push_back(value);
  return found->second;
}

}  // namespace

SliceNumbers numbers_of(const ChromeSlice& slice) {
  return {slice.step, slice.chunk,   slice.stage, slice.pp_rank,
          slice.rank, slice.replica, slice.tensor};
}

void OtherSlices::add(const ChromeSlice& slice) {
  slices_.push_back({slice.start, slice.end, slice.thread,
                     number(ids_of_names_, names_, slice.name),
                     number(ids_of_numbers_, numbers_, traces::numbers_of(slice))});
}

void OtherSlices::shift(Nanos span) {
  for (OtherSlice& slice : slices_) {
    slice.start += span;
    slice.end += span;
  }
}

}  // namespace bubblescope::traces
