// Slices of a Chrome trace that are not ops. There may be many millions, of few names and with few
// different numbers, each of which is kept once.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/ir/units.h"
#include "traces/measured/chrome_slice.h"

namespace bubblescope::traces {

/// The arguments of a slice that say where it belongs, see ChromeSlice.
struct SliceNumbers {
  std::optional<std::int64_t> step = {};
  std::optional<std::int64_t> chunk = {};
  std::optional<std::int64_t> stage = {};
  std::optional<std::int64_t> pp_rank = {};
  std::optional<std::int64_t> rank = {};
  std::optional<std::int64_t> replica = {};
  std::optional<std::int64_t> tensor = {};
  bool has_microbatch = false;

  auto operator<=>(const SliceNumbers&) const = default;
};

SliceNumbers numbers_of(const ChromeSlice& slice);

/// One of OtherSlices, which know its name and its numbers.
struct OtherSlice {
  Nanos start = 0;
  Nanos end = 0;
  std::uint32_t thread = 0;   ///< index into ChromeEvents::threads
  std::uint32_t name = 0;     ///< slices with the same name have the same number
  std::uint32_t numbers = 0;  ///< slices with the same arguments have the same number
};

class OtherSlices {
 public:
  void add(const ChromeSlice& slice);

  /// Adds a span to all times.
  void shift(Nanos span);

  /// In the order in which they were added.
  const std::vector<OtherSlice>& all() const { return slices_; }

  const std::string& name_of(const OtherSlice& slice) const { return names_[slice.name]; }
  const SliceNumbers& numbers_of(const OtherSlice& slice) const { return numbers_[slice.numbers]; }

 private:
  std::vector<OtherSlice> slices_;
  std::vector<std::string> names_;
  std::vector<SliceNumbers> numbers_;
  std::unordered_map<std::string, std::uint32_t> ids_of_names_;
  std::map<SliceNumbers, std::uint32_t> ids_of_numbers_;
};

}  // namespace bubblescope::traces
